package tritonconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/configgen"
)

func read(t *testing.T, config string, o Options) (executor.Setup, []string, error) {
	t.Helper()
	doc, err := configgen.Parse("config.pbtxt", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return Read(doc.Config(), o)
}

// Every field of dynamic_batching, by its name in the file.
func TestPolicy(t *testing.T) {
	s, _, err := read(t, `max_batch_size: 16 dynamic_batching {
		preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 1500 priority_levels: 3 default_priority_level: 2
		default_queue_policy { max_queue_size: 7 }
		priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 2000 allow_timeout_override: true } } }`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := executor.Policy{MaxBatch: 16, Dynamic: true, Preferred: []int{4, 8}, Delay: 1500 * time.Microsecond, Levels: 3, DefaultLevel: 2,
		Queue:      executor.QueuePolicy{MaxSize: 7},
		LevelQueue: map[int]executor.QueuePolicy{1: {Timeout: 2 * time.Millisecond, AllowOverride: true, DelayExpired: true}}}
	if diff := cmp.Diff(want, s.Policy); diff != "" {
		t.Error(diff)
	}
	s, _, err = read(t, `dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 preserve_ordering: true }`, Options{})
	if err != nil || s.Policy.Delay < 290*365*24*time.Hour || !s.Policy.PreserveOrdering {
		t.Errorf("%v: %+v", err, s.Policy)
	}
}

func TestDevices(t *testing.T) {
	const parameter = ` backend: "npu_ge" parameters { key: "device_ids" value { string_value: "4,5" } }`
	for _, test := range []struct {
		config string
		o      Options
		want   string
	}{
		{``, Options{}, "[0]"},
		{`instance_group { count: 3 kind: KIND_CPU }`, Options{}, "[0 0 0]"},
		{`instance_group { count: 2 kind: KIND_GPU gpus: [ 0, 3 ] }`, Options{}, "[0 0 3 3]"},
		{`instance_group { kind: KIND_CPU } instance_group { count: 2 kind: KIND_CPU }`, Options{}, "[0 0 0]"},
		{`instance_group { count: -1 kind: KIND_CPU }`, Options{}, "[0]"},
		{`instance_group { kind: KIND_CPU passive: true } instance_group { kind: KIND_CPU }`, Options{}, "[0]"},
		{`instance_group { count: 3 kind: KIND_CPU }` + parameter, Options{}, "[4 5 4]"},
		{`instance_group { count: 3 kind: KIND_CPU }`, Options{Devices: 2}, "[0 1 0]"},
		{`instance_group { count: 2 kind: KIND_GPU gpus: [ 0, 3 ] }`, Options{Instances: 3}, "[0 1 0]"},
		{parameter, Options{Devices: 3, Instances: 4}, "[0 1 2 0]"},
		{`instance_group { passive: true kind: KIND_CPU }`, Options{}, "instance_group: all instances are passive, and nothing would run"},
		{`instance_group { count: 2000000000 kind: KIND_CPU }`, Options{}, "65537 instances: at most 65536 can be run here"},
		{`backend: "npu_ge" parameters { key: "device_ids" value { string_value: "a" } }`, Options{}, `parameter device_ids "a": give numbers from 0 to 32767, as in 0,1`},
		{`backend: "npu_ge" parameters { key: "device_ids" value { string_value: "40000" } }`, Options{}, `parameter device_ids "40000": give numbers from 0 to 32767, as in 0,1`},
		{`backend: "npu_ge" parameters { key: "device_ids" value { string_value: "0,0,1" } }`, Options{}, `parameter device_ids "0,0,1": device 0 is there twice`},
		{`backend: "npu_ge" parameters { key: "device_ids" value { string_value: "1, 01" } }`, Options{}, `parameter device_ids "1, 01": device 1 is there twice`},
		{`backend: "npu_ge" parameters { key: "device_ids" value { string_value: "," } }`, Options{}, `parameter device_ids "," names no device`},
		{`sequence_batching {}`, Options{}, "sequence_batching: only dynamic_batching, or none, can be run here"},
		{`ensemble_scheduling {}`, Options{}, "ensemble_scheduling: give the config of one of its steps; each has a queue of its own"},
	} {
		s, _, err := read(t, test.config, test.o)
		got := fmt.Sprint(s.Devices)
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.config, test.o, got, test.want)
		}
	}
}

func TestGears(t *testing.T) {
	model := func(shape, dims string) string {
		return fmt.Sprintf(`backend: "npu_ge" max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] }
			parameters { key: "graph.ge.inputShape" value { string_value: %q } } parameters { key: "graph.ge.dynamicDims" value { string_value: %q } }`, shape, dims)
	}
	for _, test := range []struct {
		config string
		o      Options
		want   string
	}{
		{model("x:-1,3,-1", "1,16;8,16"), Options{}, "1,16 8,16"},
		{model("x:-1,3,-1;", "1,16;8,16;"), Options{}, "1,16 8,16"},
		{model("x:-1,3,-1", "1,16;8,16"), Options{Gears: []int64{2, 4}}, "2 4"},
		{`backend: "npu_ge" max_batch_size: 8 parameters { key: "static_model" value { string_value: "1" } }`, Options{}, "1"},
		{`backend: "onnxruntime" max_batch_size: 8 parameters { key: "static_model" value { string_value: "1" } }`, Options{}, ""},
		{`max_batch_size: 8`, Options{}, ""},
		{`max_batch_size: 0`, Options{Gears: []int64{2}}, "gears for the batch need a max_batch_size above 0"},
		{model("y:-1,3,-1", "1,16"), Options{}, `parameter graph.ge.inputShape: the model has no input "y"; did you mean "x"?`},
		{model("x", "1,16"), Options{}, `parameter graph.ge.inputShape: "x" is not NAME:DIM,DIM`},
		{model("x:-1,3,0", "1,16"), Options{}, `parameter graph.ge.inputShape: input "x": "0" is no dim: give whole numbers from 1 to 2147483647, or -1`},
		{model("x:-1,3", "1,16"), Options{}, `parameter graph.ge.dynamicDims: the gears of input "x" have 2 dims, the input 3`},
		{model("x:-1,3,-1", "1;2"), Options{}, `parameter graph.ge.dynamicDims: gear 1: it has 1 numbers, and the inputs leave 2 dims open`},
		{model("x:-1,3,-1", "1,a"), Options{}, `parameter graph.ge.dynamicDims: "a" is no size: give whole numbers from 1 to 2147483647`},
	} {
		s, _, err := read(t, test.config, test.o)
		var words []string
		for i := range s.Gears.Len() {
			words = append(words, s.Gears.Text(i))
		}
		got := strings.Join(words, " ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.config, got, test.want)
		}
	}
}

// How many batches run at once: streams of a device, streams of a batch, instances.
func TestStreams(t *testing.T) {
	model := func(instances int, parameters ...string) string {
		text := fmt.Sprintf(`backend: "npu_ge" instance_group { kind: KIND_CPU count: %d }`, instances)
		for i := 0; i < len(parameters); i += 2 {
			text += fmt.Sprintf(` parameters { key: %q value { string_value: %q } }`, parameters[i], parameters[i+1])
		}
		return text
	}
	const wait = "the others wait for a stream"
	for _, test := range []struct {
		config string
		o      Options
		want   string
	}{
		{model(8), Options{}, "8 at once"},
		{model(8, "device_exec_blocks", "2"), Options{}, "2 at once; device_exec_blocks 2: of 8 instances 2 at most run at once, " + wait},
		{model(8, "device_exec_blocks", "2", "device_ids", "0,1"), Options{}, "4 at once; device_exec_blocks 2: of 8 instances 4 at most run at once, " + wait},
		{model(8, "device_exec_blocks", "2"), Options{Devices: 3}, "6 at once; device_exec_blocks 2: of 8 instances 6 at most run at once, " + wait},
		{model(1, "device_exec_blocks", "2"), Options{Instances: 3}, "2 at once; device_exec_blocks 2: of 3 instances 2 at most run at once, " + wait},
		{model(2, "device_exec_blocks", "8"), Options{}, "2 at once"},
		{model(8, "device_exec_blocks", "5", "instance_exec_blocks", "2"), Options{}, "2 at once; device_exec_blocks 5: of 8 instances 2 at most run at once, " + wait +
			"; instance_exec_blocks 2: batches are split over streams; published versions of npu_ge compute wrong results with it"},
		{model(8, "instance_exec_blocks", "2"), Options{}, "8 at once; instance_exec_blocks 2: batches are split over streams; published versions of npu_ge compute wrong results with it"},
		{model(8, "device_exec_blocks", "1", "instance_exec_blocks", "2"), Options{}, "parameter instance_exec_blocks 2: a batch would wait for ever, as all devices together have fewer streams (device_exec_blocks 1); give 1"},
		{model(8, "device_exec_blocks", "0"), Options{}, `parameter device_exec_blocks "0": give 1 to 1000`},
		{model(8, "device_exec_blocks", "two"), Options{}, `parameter device_exec_blocks "two": give 1 to 1000`},
		{model(8, "instance_exec_blocks", "99999999999"), Options{}, `parameter instance_exec_blocks "99999999999": give 1 to 1000`},
		{`backend: "onnxruntime" instance_group { kind: KIND_CPU count: 3 } parameters { key: "device_exec_blocks" value { string_value: "1" } }`, Options{}, "3 at once"},
	} {
		s, notes, err := read(t, test.config, test.o)
		got := strings.Join(append([]string{fmt.Sprintf("%d at once", s.AtOnce())}, notes...), "; ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.config, test.o, got, test.want)
		}
	}
}

func TestNotes(t *testing.T) {
	_, notes, err := read(t, `response_cache { enable: true } instance_group { kind: KIND_CPU rate_limiter { } }`, Options{})
	if err != nil || len(notes) != 2 {
		t.Errorf("%v: %q", err, notes)
	}
}

// Whatever a config says, it becomes a setup or an error.
func FuzzRead(f *testing.F) {
	f.Add(`backend: "npu_ge" max_batch_size: 8 input { name: "x" dims: [ -1 ] } parameters { key: "graph.ge.inputShape" value { string_value: "x:-1,-1" } } parameters { key: "graph.ge.dynamicDims" value { string_value: "1,2" } }`)
	f.Add(`max_batch_size: -5 dynamic_batching { preferred_batch_size: 9 priority_levels: 18446744073709551615 } instance_group { count: 2147483647 gpus: [ 1, 2, 3 ] }`)
	f.Fuzz(func(t *testing.T, config string) {
		doc, err := configgen.Parse("config.pbtxt", []byte(config))
		if err != nil {
			return
		}
		s, _, err := Read(doc.Config(), Options{})
		if err == nil && len(s.Devices) == 0 {
			t.Error("no instances")
		}
	})
}

// What a file declares of inputs and outputs, types and all, is what a model is held
// against.
func TestDeclared(t *testing.T) {
	in := func(reshape *configgen.Reshape) *configgen.Config {
		return &configgen.Config{
			Input:  []configgen.Input{{Name: "x", DataType: configgen.TypeFP16, Dims: []int64{3, -1}, Reshape: reshape}},
			Output: []configgen.Output{{Name: "y", DataType: configgen.TypeString, Dims: []int64{1}}},
		}
	}
	for name, reshape := range map[string]*configgen.Reshape{"none": nil, "the same": {Shape: []int64{3, -1}}} {
		inputs, outputs, err := Declared(in(reshape))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(inputs, outputs), "[{x FLOAT16 [3 -1]}] [{y STRING [1]}]"; got != want {
			t.Errorf("reshape %s: %s, want %s", name, got, want)
		}
	}
	if _, _, err := Declared(in(&configgen.Reshape{Shape: []int64{-1, 3}})); err == nil || !strings.Contains(err.Error(), `input "x": reshape is not done here`) {
		t.Errorf("%v", err)
	}
}
