package generate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
)

// theirs is a config as people write it, with a field that this server does not know.
const theirs = `# Owned by the vision team: ask before you change it.
name: "net"; backend: "npu_ge"
max_batch_size: 8   # what the cards were bought for
input [
  { name: "image" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 8, 8 ] }, # RGB
  { name: "words", data_type: TYPE_INT64, dims: 4 optional: false }
]
output <
  name: "y" data_type: TYPE_FP32 dims: [3,8,8]
  label_filename: "labels.txt"  # from training
>
output { name: "z" data_type: TYPE_INT64 dims: [ 4 ] }
instance_group [ { kind: KIND_CPU count: 3 name: "mine" } ]
# measured in March
dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 700 }
parameters: [
  { key: "device_ids" value: { string_value: "4" } }, # the free card
  { key: "owner" value: { string_value: "vision" } }
]
speed_of_light { metres_per_second: 299792458 }
`

// mergeInto runs a job on a config that is there.
func mergeInto(t testing.TB, graph, config string, job generate.Job) (*generate.Result, error) {
	t.Helper()
	job.Model, job.Repository = model(t, graph), t.TempDir()
	folder := filepath.Join(job.Repository, "net")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.pbtxt": config, "labels.txt": strings.Repeat("label\n", 192)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return job.Run(context.Background())
}

// What a merge changes is what was asked for or what the model demands; every other
// byte stays. Each case lists the lines that go and come.
func TestMerge(t *testing.T) {
	known := strings.Replace(theirs, "speed_of_light { metres_per_second: 299792458 }\n", "", 1)
	for _, test := range []struct {
		name, config string
		job          generate.Job
		want         string // lines of the diff
		changed      []string
	}{
		{"nothing", known, generate.Job{}, "", nil},
		{"instances keep their name", known, generate.Job{Instances: 5}, `
-instance_group [ { kind: KIND_CPU count: 3 name: "mine" } ]
+#: KIND_CPU: the server knows no NPUs. npu_ge chooses them by itself; an instance is a
+#: thread that brings requests to them.
+instance_group [
+  {
+    name: "mine"
+    kind: KIND_CPU
+    count: 5
+  }
+]
`, []string{"instance_group"}},
		{"a delay leaves the sizes", known, generate.Job{MaxQueueDelay: time.Millisecond}, `
-dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 700 }
+#: Requests that wait are sent as one batch; a request waits up to 1ms for others. npu_ge
+#: merges only where preferred sizes are set.
+dynamic_batching {
+  preferred_batch_size: [ 8 ]
+  max_queue_delay_microseconds: 1000
+}
`, []string{"dynamic_batching"}},
		{"a device in a list", known, generate.Job{Devices: []int{0, 1}}, `
-  { key: "device_ids" value: { string_value: "4" } }, # the free card
+  #: The NPUs of this model; without it, all of them.
+  { key: "device_ids" value { string_value: "0,1" } }, # the free card
`, []string{"parameters.device_ids"}},
		{"a new parameter", known, generate.Job{Precision: "origin"}, `
+#: As asked.
+parameters { key: "session.ge.exec.precision_mode_v2" value { string_value: "origin" } }
`, []string{"parameters.session.ge.exec.precision_mode_v2"}},
		{"gears", known, generate.Job{Gears: "1,2"}, `
-max_batch_size: 8   # what the cards were bought for
+#: The largest gear. The batch is the first axis of all tensors (N); dims below leave it
+#: out.
+max_batch_size: 2   # what the cards were bought for
-dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 700 }
+dynamic_batching {
+  preferred_batch_size: [ 2 ]
+  max_queue_delay_microseconds: 700
+}
+#: The sizes that gears set are -1 here, with the batch in front.
+parameters { key: "graph.ge.inputShape" value { string_value: "image:-1,3,8,8;words:-1,4" } }
+#: 2 gears of N (image[0], words[0]). Every batch from 1 to 2 has one, for npu_ge does
+#: not pad.
+parameters { key: "graph.ge.dynamicDims" value { string_value: "1,1;2,2" } }
+#: Gears are sizes of the graph's inputs.
+parameters { key: "graph.ge.dynamicNodeType" value { string_value: "1" } }
`, []string{"max_batch_size", "dynamic_batching", "parameters.graph.ge.inputShape", "parameters.graph.ge.dynamicDims", "parameters.graph.ge.dynamicNodeType"}},
		{"versions go to their place", known, generate.Job{VersionPolicy: "all"}, `
+#: This is for the server. npu_ge itself takes the first .onnx that it finds in this
+#: model's folder, whatever the version: keep one.
+version_policy { all { } }
`, []string{"version_policy"}},
		{"no batching", known, generate.Job{NoBatching: true}, `
-dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 700 }
`, []string{"dynamic_batching"}},
		{"a wrong tensor", strings.Replace(known, "dims: [3,8,8]\n", "dims: [3,8,9]\n", 1), generate.Job{}, `
-output <
-  name: "y" data_type: TYPE_FP32 dims: [3,8,9]
-  label_filename: "labels.txt"  # from training
->
-output { name: "z" data_type: TYPE_INT64 dims: [ 4 ] }
+output [
+  {
+    name: "y"
+    data_type: TYPE_FP32
+    dims: [ 3, 8, 8 ]
+    label_filename: "labels.txt" # from training
+  },
+  {
+    name: "z"
+    data_type: TYPE_INT64
+    dims: [ 4 ]
+  }
+]
`, []string{"output.y"}},
		{"a warm-up", known, generate.Job{Warmup: &generate.Warmup{}, Preferred: []int32{8}}, `
+#: Each instance runs these before the server is ready: 2 sizes.
+model_warmup [
+  {
+    name: "npuctl batch 1"
+    batch_size: 1
+    inputs {
+      key: "image"
+      value {
+        data_type: TYPE_FP32
+        dims: [ 3, 8, 8 ]
+        zero_data: true
+      }
+    }
+    inputs {
+      key: "words"
+      value {
+        data_type: TYPE_INT64
+        dims: [ 4 ]
+        zero_data: true
+      }
+    }
+  },
+  {
+    name: "npuctl batch 8"
+    batch_size: 8
+    inputs {
+      key: "image"
+      value {
+        data_type: TYPE_FP32
+        dims: [ 3, 8, 8 ]
+        zero_data: true
+      }
+    }
+    inputs {
+      key: "words"
+      value {
+        data_type: TYPE_INT64
+        dims: [ 4 ]
+        zero_data: true
+      }
+    }
+  }
+]
`, []string{"model_warmup"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := mergeInto(t, batched, test.config, test.job)
			if err != nil {
				t.Fatal(err)
			}
			var lines, changed []string
			for line := range strings.Lines(r.Diff) {
				isHead := strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++")
				if !isHead && (line[0] == '+' || line[0] == '-') {
					lines = append(lines, line)
				}
			}
			for _, c := range r.Changes {
				changed = append(changed, c.Field)
				if c.Why == "" || c.From == c.To {
					t.Errorf("change %+v", c)
				}
			}
			if d := cmp.Diff(strings.TrimPrefix(test.want, "\n"), strings.Join(lines, "")); d != "" {
				t.Errorf("lines that go and come (-want +got)\n%s", d)
			}
			if d := cmp.Diff(test.changed, changed); d != "" {
				t.Errorf("changes (-want +got)\n%s", d)
			}
			written, err := os.ReadFile(r.Config)
			if err != nil || string(written) != r.Text {
				t.Errorf("the file is not what was told (%v)", err)
			}
		})
	}
}

// What is known not to load is not written, whoever wrote it, and nothing of it is lost.
func TestMergeRefusesWhatDoesNotLoad(t *testing.T) {
	known := strings.Replace(theirs, "speed_of_light { metres_per_second: 299792458 }\n", "", 1)
	for name, test := range map[string]struct{ config, want string }{
		"a field that nobody knows": {theirs, "speed_of_light"},
		"a label file":              {strings.Replace(known, "labels.txt", "none.txt", 1), "(label-missing)"},
		"a priority":                {strings.Replace(known, "{ preferred_batch_size: [ 8 ]", "{ priority_levels: 2 preferred_batch_size: [ 8 ]", 1), "(priority-default)"},
	} {
		r, err := mergeInto(t, batched, test.config, generate.Job{Instances: 2})
		if fault.FamilyOf(err) != fault.Goal || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "nothing was written") || r == nil || r.Written {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if after, _ := os.ReadFile(r.Config); string(after) != test.config {
			t.Errorf("%s: the config was changed", name)
		}
	}
}

// Settings of the queue that no flag speaks of stay as they are, with their comments, and
// what explains the block speaks of them all.
func TestMergeOfTheQueue(t *testing.T) {
	queued := strings.Replace(theirs, "speed_of_light { metres_per_second: 299792458 }\n", "", 1)
	queued = strings.Replace(queued, "max_queue_delay_microseconds: 700 }", `max_queue_delay_microseconds: 700
  priority_levels: 3 default_priority_level: 3
  default_queue_policy {
    timeout_action: DELAY
    # agreed with the callers
    default_timeout_microseconds: 5000
    allow_timeout_override: true
    max_queue_size: 3
  }
}`, 1)
	type settings struct {
		policy            configgen.QueuePolicy
		levels, level, us uint64
	}
	stands := settings{configgen.QueuePolicy{TimeoutAction: 1, DefaultTimeout: 5000, AllowTimeoutOverride: true, MaxQueueSize: 3}, 3, 3, 700}
	for name, test := range map[string]struct {
		job    generate.Job
		change func(*settings)
		says   []string
	}{
		"size":     {generate.Job{Queue: generate.Queue{MaxSize: 7}}, func(s *settings) { s.policy.MaxQueueSize = 7 }, []string{"waits up to 700µs", "More than 7", "waited 5ms", "served after all others"}},
		"timeout":  {generate.Job{Queue: generate.Queue{Timeout: 9 * time.Millisecond}}, func(s *settings) { s.policy.DefaultTimeout = 9000 }, []string{"waited 9ms", "More than 3"}},
		"action":   {generate.Job{Queue: generate.Queue{Action: "reject"}}, func(s *settings) { s.policy.TimeoutAction = 0 }, []string{"waited 5ms is refused"}},
		"delay":    {generate.Job{MaxQueueDelay: time.Millisecond}, func(s *settings) { s.us = 1000 }, []string{"waits up to 1ms", "More than 3"}},
		"sizes":    {generate.Job{Preferred: []int32{4}}, func(*settings) {}, []string{"waits up to 700µs", "requests without one have 3"}},
		"priority": {generate.Job{Queue: generate.Queue{DefaultPriority: 2}}, func(s *settings) { s.level = 2 }, []string{"requests without one have 2"}},
		"levels":   {generate.Job{Queue: generate.Queue{Priorities: 2}}, func(s *settings) { s.levels, s.level = 2, 2 }, []string{"requests without one have 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := mergeInto(t, batched, queued, test.job)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := configgen.Parse("", []byte(r.Text))
			if err != nil {
				t.Fatal(err)
			}
			want := stands
			test.change(&want)
			d := doc.Config().DynamicBatching
			got := settings{*d.DefaultQueuePolicy, d.PriorityLevels, d.DefaultPriority, d.MaxQueueDelay}
			got.policy.Node = configgen.Node{}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(settings{}), cmpopts.IgnoreTypes(configgen.Node{})); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !strings.Contains(r.Text, "    # agreed with the callers\n") {
				t.Errorf("a comment is gone:\n%s", r.Text)
			}
			words := strings.Join(strings.Fields(strings.ReplaceAll(r.Text, "#:", "")), " ")
			for _, say := range test.says {
				if !strings.Contains(words, say) {
					t.Errorf("nothing says %q:\n%s", say, r.Text)
				}
			}
		})
	}
	// A failure that the standing config has no part in does not speak of it.
	_, err := mergeInto(t, batched, "name: \"net\"\nbackend: \"npu_ge\"\nmax_batch_size: 8\n", generate.Job{Queue: generate.Queue{Action: "reject"}})
	if err == nil || !strings.Contains(err.Error(), "nothing times out") || strings.Contains(err.Error(), "taken over") {
		t.Errorf("%v", err)
	}
}

// Ends of lines stay those of the file, and comments within what changes stay.
func TestMergeKeepsLinesAndComments(t *testing.T) {
	config := `name: "net"
backend: "npu_ge"
max_batch_size: 8
input [
  { name: "image" data_type: TYPE_FP32 dims: [ # channels first
      3, 8, 9 ] },
  { name: "words" data_type: TYPE_INT64 dims: [ 4 ] },
  # a mask was planned
  { name: "mask" data_type: TYPE_INT64 dims: [ 4 ] } # for Anna
]
output [
  { name: "y" data_type: TYPE_FP32 dims: [ 3, 8, 8 ] },
  { name: "z" data_type: TYPE_INT64 dims: [ 4 ] }
]
parameters { key: "device_ids" value {
  # the quiet ones
  string_value: "4" # ask first
} }
`
	for _, ends := range []string{"\n", "\r\n"} {
		r, err := mergeInto(t, batched, strings.ReplaceAll(config, "\n", ends), generate.Job{Devices: []int{0, 1}, Instances: 2})
		if err != nil {
			t.Fatal(err)
		}
		if ends == "\r\n" && strings.Count(r.Text, "\n") != strings.Count(r.Text, "\r\n") {
			t.Errorf("lines end in two ways:\n%q", r.Text)
		}
		for _, comment := range []string{"channels first", "a mask was planned", "for Anna", "the quiet ones", "ask first"} {
			if strings.Count(r.Text, "# "+comment) != 1 {
				t.Errorf("the comment %q is not there once:\n%s", comment, r.Text)
			}
		}
		if !strings.Contains(r.Text, `string_value: "0,1"`) || strings.Contains(r.Text, `"mask"`) {
			t.Errorf("%s", r.Text)
		}
	}
}

// What can neither stay nor be changed is refused with its place, and nothing is written.
func TestMergeConflicts(t *testing.T) {
	head := "name: \"net\"\nbackend: \"npu_ge\"\n"
	for _, test := range []struct {
		name, graph, config string
		job                 generate.Job
		want                string
	}{
		{"another backend", batched, "backend: \"python\"\n", generate.Job{}, `config.pbtxt:1:1: the backend is "python" here, and this is for npu_ge`},
		{"another backend is asked for", batched, head, generate.Job{Backend: generate.ONNXRuntime}, `config.pbtxt:2:1: the backend is "npu_ge" here, and this is for onnxruntime`},
		{"a platform", batched, "platform: \"tensorrt_plan\"\n", generate.Job{}, "config.pbtxt:1:1: the backend is \"tensorrt_plan\""},
		{"an ensemble", batched, "platform: \"ensemble\" ensemble_scheduling { }\n", generate.Job{}, "config.pbtxt:1:22: it is an ensemble"},
		{"two groups", batched, head + "instance_group [ { count: 1 }, { count: 2 } ]\n", generate.Job{Instances: 4}, "config.pbtxt:3:1: there are 2 instance groups"},
		{"sequences", batched, head + "max_batch_size: 4\nsequence_batching { }\n", generate.Job{MaxQueueDelay: time.Millisecond}, "config.pbtxt:4:1: sequences are batched"},
		{"a dim that the model leaves open", lengths, head + "input { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 16, 4 ] }\n", generate.Job{}, "config.pbtxt:3:52: input x is [-1 16 4] here, and the model leaves dim 1 open"},
		{"a reshape", fixed, head + "input { name: \"image\" data_type: TYPE_FP32 dims: [ 384 ] reshape { shape: [ 2, 3, 64 ] } }\n", generate.Job{}, "config.pbtxt:3:58: input image is reshaped to [2 3 64]"},
		{"no config at all", batched, "max_batch_size = 8\n", generate.Job{}, "config.pbtxt:1:16: expected"},
		{"a batch that the model does not have", fixed, head + "max_batch_size: 4\n", generate.Job{}, "taken over from the config that is there: max_batch_size 4 in line 3"},
		{"gears that the model does not take", fixed, head + "parameters { key: \"graph.ge.dynamicDims\" value { string_value: \"1;2\" } }\n", generate.Job{}, "gears 1;2 in line 3"},
		{"what the server would refuse then", batched, head + "max_batch_size: 4\ndynamic_batching { preserve_ordering: true }\n", generate.Job{Queue: generate.Queue{Priorities: 2}}, "(priority-preserve)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := mergeInto(t, test.graph, test.config, test.job)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

// A config that npuctl wrote, changed by one job after another, says in the end what
// the same demands made anew would say, and reads well at every step.
func TestMergesOfOurOwn(t *testing.T) {
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		own := filepath.Join(folder, fmt.Sprint(n))
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
		graph, axes := randomGraph(rt)
		first, second := randomJob(rt, axes), randomJob(rt, axes)
		second.Backend = first.Backend
		if second.Backend == generate.ONNXRuntime {
			second.Precision = ""
		}
		second.Sizes = first.Sizes
		path := modelIn(t, own, graph, onnx.SaveOptions{})
		for _, job := range []*generate.Job{&first, &second} {
			job.Model, job.Repository = path, filepath.Join(own, "repository")
		}
		if _, err := first.Run(context.Background()); err != nil {
			return
		}
		before, _ := os.ReadFile(filepath.Join(second.Repository, "net", "config.pbtxt"))
		r, err := second.Run(context.Background())
		if err != nil {
			if after, _ := os.ReadFile(filepath.Join(second.Repository, "net", "config.pbtxt")); string(after) != string(before) {
				rt.Fatalf("refused (%v), and yet it changed", err)
			}
			return
		}
		doc, err := configgen.Parse("", []byte(r.Text))
		if err != nil {
			rt.Fatalf("%v\n%s", err, r.Text)
		}
		c := doc.Config()
		if c.MaxBatchSize != r.MaxBatchSize {
			rt.Errorf("max_batch_size %d, want %d", c.MaxBatchSize, r.MaxBatchSize)
		}
		if _, isStatic := c.Parameter("static_model"); isStatic != (r.Form == generate.Static && r.Backend == generate.GE) {
			rt.Errorf("form %s, static_model %v", r.Form, isStatic)
		}
		if _, hasGears := c.Parameter("graph.ge.dynamicDims"); hasGears != (r.Form == generate.Gears) {
			rt.Errorf("form %s, gears %v", r.Form, hasGears)
		}
		if second.VersionPolicy != "" {
			if c.VersionPolicy == nil {
				rt.Error("no version policy")
			}
		}
		again, err := second.Run(context.Background())
		if err != nil || again.Written || len(again.Changes) > 0 {
			rt.Errorf("the same again: %v, %+v", err, again)
		}
	})
}
