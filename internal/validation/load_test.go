package validation

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/tritonserver/tritontest"
)

const fineConfig = `backend: "npu_ge"
max_batch_size: 8
input [ { name: "a" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "b" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "c" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_CPU } ]
`

// The real server, on a repository, a model's folder, and a config that stands alone
// with the steps of an ensemble made up.
func TestLoadReal(t *testing.T) {
	server := tritontest.Find(t)
	folder := t.TempDir()
	lay := func(name, config string) string {
		write(t, filepath.Join(folder, "models", name, "config.pbtxt"), config)
		write(t, filepath.Join(folder, "models", name, "1", "x"), "")
		save(t, filepath.Join(folder, "models", name, "1", "model.onnx"), someModel)
		return filepath.Join(folder, "models", name)
	}
	lay("fine", fineConfig)
	odd := lay("odd", fineConfig+"dynamic_batching { preferred_batch_size: [ 9 ] }\n")
	alone := write(t, filepath.Join(folder, "pair.pbtxt"), `platform: "ensemble"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [
  { model_name: "one" model_version: -1 input_map { key: "x" value: "IN" } output_map { key: "y" value: "between" } },
  { model_name: "two" model_version: -1 input_map { key: "x" value: "between" } output_map { key: "y" value: "OUT" } }
] }
`)
	for _, test := range []struct {
		path, want string
		verdict    rules.Verdict
		loaded     int
	}{
		{filepath.Join(folder, "models"), "load-refused load-stand-in preferred-over-max", rules.Refuse, 2},
		{odd, "load-refused load-stand-in preferred-over-max", rules.Refuse, 1},
		{filepath.Join(folder, "models", "fine", "config.pbtxt"), "load-stand-in", rules.Accept, 1},
		{alone, "", rules.Accept, 1},
	} {
		r, err := Job{Paths: []string{test.path}, Load: true, Server: server.Program, LoadTimeout: 20 * time.Second}.Run(context.Background())
		if server.Engine != "" || err != nil && strings.Contains(err.Error(), "libpython") {
			r, err = Job{Paths: []string{test.path}, Load: true}.Run(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(r.Findings); got != test.want || r.Verdict != test.verdict || len(r.Outcomes) != test.loaded {
			t.Errorf("%s: %q, %s, %+v", test.path, got, r.Verdict, r.Outcomes)
		}
		for _, f := range r.Findings {
			if f.Rule == "load-refused" && f.Line != 6 {
				t.Errorf("what the server says is at %s", f.Place())
			}
		}
	}
}
