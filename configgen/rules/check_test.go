package rules_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
)

const plain = `backend: "npu_ge"
max_batch_size: 8
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 16, 16 ] } ]
output [ { name: "feat" data_type: TYPE_FP32 dims: [ 10 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
`

// checkText checks a config that stands alone.
func checkText(text string) rules.Result {
	return rules.CheckText("model.pbtxt", []byte(text), rules.Options{})
}

func TestNothingToSay(t *testing.T) {
	if r := checkText(plain); len(r.Findings) > 0 || r.Verdict != rules.Accept {
		t.Errorf("%s, %+v", r.Verdict, r.Findings)
	}
}

// Of several reasons to refuse, the first finding is the one that the server gives: it
// polls before it loads, and looks at instances before tensors.
func TestServerOrder(t *testing.T) {
	for _, test := range []struct{ extra, want string }{
		{`version_policy { latest { num_versions: 0 } } dynamic_batching { preferred_batch_size: 99 } metric_tags { key: "a-b" }`, "preferred-over-max"},
		{`version_policy { latest { num_versions: 0 } } metric_tags { key: "a-b" }`, "version-none"},
		{`instance_group { kind: KIND_CPU gpus: 0 } input { name: "x" dims: 0 data_type: TYPE_FP32 } metric_tags { key: "a-b" }`, "instance-gpus"},
		{`output { name: "x" data_type: TYPE_FP32 dims: 1 label_filename: "missing.txt" } input { name: "x" dims: 0 data_type: TYPE_FP32 }`, "io-dim"},
		{`model_repository_agents { } dynamic_batching { preferred_batch_size: 99 }`, "agents-empty"},
	} {
		r := checkText(plain + test.extra)
		if len(r.Findings) == 0 || r.Findings[0].Rule != test.want || r.Verdict != rules.Refuse {
			t.Errorf("%s: %s, %+v", test.want, r.Verdict, r.Findings)
		}
	}
}

// A lone config is judged in the repository that its comments and paths describe.
func TestImaginedRepository(t *testing.T) {
	ensemble := `platform: "ensemble"
input { name: "A" data_type: TYPE_INT64 dims: 4 }
output { name: "C" data_type: TYPE_FP16 dims: 2 }
ensemble_scheduling { step { model_name: "m" model_version: -1 input_map { key: "x" value: "A" } output_map { key: "y" value: "C" } } }
`
	for _, test := range []struct {
		name, text string
		want       rules.Verdict
	}{
		{"steps have the ensemble's tensors", ensemble, rules.Accept},
		{"steps have version 1", strings.Replace(ensemble, "-1", "1", 1), rules.Accept},
		{"and no other", strings.Replace(ensemble, "-1", "2", 1), rules.Refuse},
		{"a step that is told not to be there", "#@ absent m\n" + ensemble, rules.Refuse},
		{"a step that is told to be another", "#@ model m mbs=0 in x:INT32[4] out y:FP16[2]\n" + ensemble, rules.Refuse},
		{"versions of a policy are there", plain + "version_policy { specific { versions: [ 3, 5 ] } }", rules.Accept},
		{"a label file inside is there", strings.Replace(plain, "[ 10 ]", `[ 10 ] label_filename: "l/x.txt"`, 1), rules.Accept},
		{"unless it says missing", strings.Replace(plain, "[ 10 ]", `[ 10 ] label_filename: "missing.txt"`, 1), rules.Refuse},
		{"outside there is none", strings.Replace(plain, "[ 10 ]", `[ 10 ] label_filename: "../x.txt"`, 1), rules.Refuse},
		{"nor at the root", strings.Replace(plain, "[ 10 ]", `[ 10 ] label_filename: "/etc/hosts"`, 1), rules.Refuse},
		{"the folder has the config's name", `name: "other" ` + plain, rules.Accept},
		{"where that can be a folder's", `name: "a/b" ` + plain, rules.Refuse},
		{"model.onnx makes it onnxruntime", strings.Replace(plain, `backend: "npu_ge"`, "", 1), rules.Accept},
		{"another file does not", "#@ file net.om\n" + strings.Replace(plain, `backend: "npu_ge"`, `name: "m"`, 1), rules.Refuse},
	} {
		if got := checkText(test.text).Verdict; got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

// A model without a config is completed by the server; what is said of it is said of
// its folder.
func TestModelWithoutConfig(t *testing.T) {
	for _, test := range []struct {
		file string
		want string
	}{
		{"model.onnx", "backend-installed"}, {"model.py", "python-class"}, {"net.bin", "backend-undetermined"},
	} {
		folder := t.TempDir()
		version := filepath.Join(folder, "m", "1")
		if err := os.MkdirAll(version, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(version, test.file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := rules.Check([]string{folder}, rules.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(of(r.Findings, test.want)) != 1 || !strings.HasPrefix(r.Findings[0].File, filepath.Join(folder, "m")) {
			t.Errorf("%s: %+v", test.file, r.Findings)
		}
	}
}

func TestPathsThatAreNotThere(t *testing.T) {
	_, err := rules.Check([]string{filepath.Join(t.TempDir(), "gone")}, rules.Options{})
	var f *fault.Error
	if !errors.As(err, &f) || f.Family != fault.Input {
		t.Errorf("%v", err)
	}
}

// What is repaired stays repaired, and no repair breaks a file or brings an error.
func TestFixes(t *testing.T) {
	fixed := 0
	for _, r := range rules.Rules() {
		if r.IsOutside() {
			continue // they repair nothing
		}
		e := readExample(t, r.ID)
		t.Run(r.ID, func(t *testing.T) {
			folder := t.TempDir()
			paths := e.lay(t, folder, "reject")
			t.Chdir(folder)
			before, err := rules.Check(paths, rules.Options{Chip: e.chip})
			if err != nil {
				t.Fatal(err)
			}
			if len(of(before.Findings, r.ID)) == 0 || len(of(before.Findings, r.ID)[0].Edits) == 0 {
				return
			}
			fixed++
			if _, err := findings.Fix(of(before.Findings, r.ID)); err != nil {
				t.Fatal(err)
			}
			after, err := rules.Check(paths, rules.Options{Chip: e.chip})
			if err != nil {
				t.Fatal(err)
			}
			if found := of(after.Findings, r.ID); len(found) >= len(of(before.Findings, r.ID)) {
				t.Errorf("it is still found: %+v", found)
			}
			for _, f := range after.Findings {
				if f.Severity == findings.Error && len(of(before.Findings, f.Rule)) == 0 && !strings.HasPrefix(before.Findings[0].Rule, "syntax-") {
					t.Errorf("the repair brought %s: %s", f.Rule, f.Message)
				}
			}
		})
	}
	if fixed < 20 {
		t.Errorf("only %d rules repair", fixed)
	}
}

// Findings in a suppressed place are gone, with a reason and only there.
func TestSuppression(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"line above", plain + "# npuctl:ignore ge-merge one client\ndynamic_batching { }\n", nil},
		{"same line", plain + "dynamic_batching { } # npuctl:ignore ge-merge one client\n", nil},
		{"whole file", "# npuctl:ignore ge-merge,cache-server one client\n" + plain + "dynamic_batching { }\nresponse_cache { enable: true }\n", nil},
		{"too far", plain + "# npuctl:ignore ge-merge one client\n\ndynamic_batching { }\n", []string{"ge-merge"}},
		{"no reason", plain + "# npuctl:ignore ge-merge\ndynamic_batching { }\n", []string{"ge-merge", "suppression-reason"}},
		{"unknown rule", plain + "# npuctl:ignore ge-merg why\ndynamic_batching { }\n", []string{"suppression-reason", "ge-merge"}},
	} {
		found := map[string]bool{}
		for _, f := range checkText(test.text).Findings {
			found[f.Rule] = true
		}
		for _, id := range test.want {
			if !found[id] {
				t.Errorf("%s: no %s", test.name, id)
			}
		}
		if len(found) != len(test.want) {
			t.Errorf("%s: found %v", test.name, found)
		}
	}
}

// layRepository makes a repository of many models, one in ten an ensemble.
func layRepository(t testing.TB, models int) string {
	t.Helper()
	folder := t.TempDir()
	for i := range models {
		name := fmt.Sprintf("model_%03d", i)
		text := plain + "dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 1000 }\nparameters [ { key: \"device_ids\" value { string_value: \"0\" } } ]\n"
		if i%10 == 9 {
			text = fmt.Sprintf("platform: \"ensemble\"\nmax_batch_size: 8\ninput { name: \"A\" data_type: TYPE_FP32 dims: [ 3, 16, 16 ] }\noutput { name: \"B\" data_type: TYPE_FP32 dims: 10 }\nensemble_scheduling { step { model_name: \"model_%03d\" model_version: -1 input_map { key: \"image\" value: \"A\" } output_map { key: \"feat\" value: \"B\" } } }\n", i-1)
		}
		if err := os.MkdirAll(filepath.Join(folder, name, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "config.pbtxt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if i%10 != 9 {
			if err := writeFile(filepath.Join(folder, name, "1", "model.onnx.text"), []byte(network)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

const network = `<ir_version: 10, opset_import: ["": 13]>
net (float[N,3,16,16] image) => (float[N,10] feat)
<int64[2] size = {768, 10}, int64[2] shape = {-1, 768}> {
  flat = Reshape (image, shape)
  w = ConstantOfShape (size)
  feat = MatMul (flat, w)
}
`

// A repository of 500 models, each with its graph, is a matter of two seconds at most.
func BenchmarkRepository(b *testing.B) {
	folder := layRepository(b, 500)
	for b.Loop() {
		r, err := rules.Check([]string{folder}, rules.Options{})
		if err != nil || r.Verdict != rules.Accept || len(r.Findings) > 0 {
			b.Fatalf("%v, %+v", err, r)
		}
	}
}

// Whatever a config holds, checking ends, and places are inside the file.
func FuzzCheck(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "rules", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, "config.pbtxt") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, finding := range checkText(text).Findings {
			if finding.Line > lines || finding.Line < 0 || strings.Contains(finding.Message, "%!") {
				t.Fatalf("%+v in a file of %d lines", finding, lines)
			}
		}
	})
}
