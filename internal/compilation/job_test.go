package compilation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

func sizes(dims map[string]int64) onnxpass.Specialization { return onnxpass.Specialization{Dims: dims} }

var pictures = map[string]int64{"batch": 1, "height": 4, "width": 6}

func TestCompileStatic(t *testing.T) {
	w := newWorkshop(t, imageModel)
	w.job.Static, w.job.Sizes = true, sizes(pictures)
	r, err := w.job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	b := r.Builds[0]
	if b.Status != Built || b.Kind != StaticKind || r.Emulated || b.Bytes == 0 {
		t.Errorf("%+v", b)
	}
	if got := fmt.Sprint(b.Inputs[0].Dims, b.Outputs[0].Tensor); got != "[1 3 4 6]y" {
		t.Errorf("signature %s", got)
	}
	if left := w.leftovers(t, "net.om", "net.om.json", "net.om.onnx"); len(left) > 0 {
		t.Errorf("the folder: %v", left)
	}
	for _, want := range []string{"--model=", "--framework=5", "--soc_version=Ascend910B3", "--op_compiler_cache_mode=enable", "8.1.RC1/Ascend910B3"} {
		if !strings.Contains(b.CommandLine, want) {
			t.Errorf("no %s in %s", want, b.CommandLine)
		}
	}
	if strings.Contains(b.CommandLine, "input_shape") {
		t.Errorf("a static graph needs no shapes: %s", b.CommandLine)
	}
	m, err := onnx.Open(filepath.Join(w.folder, "net.om.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	names := map[string]bool{}
	for n := range m.Nodes() {
		names[n.Name] = true
	}
	if names[""] || !names["second"] {
		t.Errorf("nodes of the optimised graph are named %v", names)
	}
}

func TestRecord(t *testing.T) {
	w := newWorkshop(t, imageModel)
	w.job.Gears, w.job.Sizes = "1,2,4", sizes(map[string]int64{"height": 4, "width": 6})
	if _, err := w.job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r, err := ReadRecord(filepath.Join(w.folder, "net.om.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Input[0].Path != "net.onnx" || r.Outputs[0].Path != "net.om" || r.Graph.Path != "net.om.onnx" {
		t.Errorf("paths %v %v %v", r.Input, r.Outputs, r.Graph)
	}
	for _, f := range append([]FileFacts{*r.Graph, r.Outputs[0]}, r.Input...) {
		got, err := factsOf(filepath.Join(w.folder, f.Path))
		if err != nil || got.SHA256 != f.SHA256 || got.Bytes != f.Bytes {
			t.Errorf("%+v is %+v, %v", f, got, err)
		}
	}
	if r.SoC != "Ascend910B3" || r.Kind != GearsKind || len(r.Gears.Gears) != 3 || r.NPUCTL != "test" || r.Toolkit.Version != "8.1.RC1" ||
		len(r.Signature.Inputs) != 1 || !slices.Equal(r.RequestedBy.Command, w.job.Command) || r.Emulated || r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
}

// Which options follow from shapes and wishes.
func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		set   func(j *Job)
		want  []string // among the arguments; with ! not
	}{
		"batches": {imageModel, func(j *Job) { j.Gears, j.Sizes = "1,2,4", sizes(map[string]int64{"height": 4, "width": 6}) },
			[]string{"--input_shape=x:-1,3,4,6", "--dynamic_batch_size=1,2,4", "!--input_format=ND"}},
		"images": {imageModel, func(j *Job) { j.Gears, j.Sizes.Batch = "224,224;336,336", 1 },
			[]string{"--input_shape=x:1,3,-1,-1", "--dynamic_image_size=224,224;336,336"}},
		"dims by name": {textModel, func(j *Job) { j.Gears = "1,32;4,64" },
			[]string{"--input_format=ND", "--input_shape=ids:-1,-1;mask:-1,-1", "--dynamic_dims=1,32,1,32;4,64,4,64"}},
		"lengths": {textModel, func(j *Job) { j.Gears, j.Sizes.Batch = "32;64", 1 },
			[]string{"--input_shape=ids:1,-1;mask:1,-1", "--dynamic_dims=32,32;64,64"}},
		"dynamic":              {imageModel, func(j *Job) { j.Dynamic = true }, []string{"--input_shape=x:-1,3,-1,-1"}},
		"fixed as it is":       {imageModel, func(j *Job) { j.NoOptimize, j.Sizes = true, sizes(pictures) }, []string{"--input_shape=x:1,3,4,6"}},
		"newer precision":      {fixedModel, func(j *Job) { j.Options.Precision = "origin" }, []string{"--precision_mode_v2=origin", "!--precision_mode=origin"}},
		"older precision":      {fixedModel, func(j *Job) { j.Options.Precision = "must_keep_origin_dtype" }, []string{"--precision_mode=must_keep_origin_dtype"}},
		"cores":                {fixedModel, func(j *Job) { j.Options.AICoreNum = "12|10" }, []string{"--aicore_num=12|10", "8.1.RC1/Ascend910B3-12_10"}},
		"passed on":            {fixedModel, func(j *Job) { j.Options.Extra = []string{"log=info", "--deterministic=1"} }, []string{"--log=info", "--deterministic=1"}},
		"the user's own cache": {fixedModel, func(j *Job) { j.Options.Extra = []string{"op_compiler_cache_mode=force"} }, []string{"--op_compiler_cache_mode=force", "!op_compiler_cache_dir"}},
		"half inputs":          {fixedModel, func(j *Job) { j.Options.FP16Inputs = []string{"x"} }, []string{"--input_fp16_nodes=x"}},
		"the plain case":       {fixedModel, func(j *Job) {}, []string{"--model=", "--output=", "!input_shape", "!precision", "!input_format"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, c.model)
			w.job.DryRun = true
			c.set(&w.job)
			r, err := w.job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(r.Builds[0].Arguments, " ")
			for _, want := range c.want {
				if without, not := strings.CutPrefix(want, "!"); not == strings.Contains(all, without) {
					t.Errorf("%s: %s", want, all)
				}
			}
			if left := w.leftovers(t); len(left) > 0 || r.Builds[0].Status != Planned {
				t.Errorf("a dry run left %v, %s", left, r.Builds[0].Status)
			}
		})
	}
}

// A graph of an earlier compile is not taken for that of the model as it is.
func TestOldGraph(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	for _, asItIs := range []bool{false, true} {
		w.job.NoOptimize = asItIs
		r, err := w.job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(strings.Join(r.Builds[0].Notes, "\n"), "net.om.onnx is of an earlier compile: ATC got the model as it is"); said != asItIs {
			t.Errorf("as it is %v: notes %q", asItIs, r.Builds[0].Notes)
		}
	}
}

// What cannot be done is said with what to do, and nothing is left behind.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		model     string
		behaviour string
		set       func(j *Job)
		family    fault.Family
		want      string
	}{
		"no chip":               {fixedModel, "", func(j *Job) { j.SoCs = nil }, fault.Usage, "--soc is missing"},
		"a family":              {fixedModel, "", func(j *Job) { j.SoCs = []string{"310P"} }, fault.Usage, "Ascend310P3"},
		"no name of a chip":     {fixedModel, "", func(j *Job) { j.SoCs = []string{"910B33"} }, fault.Usage, "Ascend910B3"},
		"open with --static":    {imageModel, "", func(j *Job) { j.Static = true }, fault.Goal, "dim 0 of input x is open (3 dims in all)"},
		"open without a word":   {imageModel, "", func(j *Job) {}, fault.Usage, "fix them with --batch N --dim height=SIZE --dim width=SIZE, give sizes with --gears, or say --dynamic"},
		"static and gears":      {imageModel, "", func(j *Job) { j.Static, j.Gears = true, "1,2" }, fault.Usage, "exclude each other"},
		"gears that do not fit": {imageModel, "", func(j *Job) { j.Gears = "1,2;3" }, fault.Usage, "gear 1,2 has 2 numbers"},
		"gears of one axis of three": {imageModel, "", func(j *Job) { j.Gears = "1,2,4,8" }, fault.Usage,
			`fix the others first, with --batch N --dim height=SIZE --dim width=SIZE; else give every gear 3 numbers, as in --gears "1,1,1;2,2,2"`},
		"a gear that is too large":       {textModel, "", func(j *Job) { j.Gears, j.Sizes.Batch = "1;99999999999", 1 }, fault.Usage, "99999999999 is too large for a size: at most 2147483647"},
		"a second model that is missing": {fixedModel, "hangs", func(j *Job) { j.Models = append(j.Models, "none.onnx") }, fault.Input, "none.onnx"},
		"too many gears":                 {textModel, "", func(j *Job) { j.Gears, j.Sizes.Batch = numbersTo(101), 1 }, fault.Usage, "101 gears, Ascend910B3 takes at most 100"},
		"shape of the data":              {nonZeroModel, "", func(j *Job) { j.Static = true }, fault.Goal, "depends on its data"},
		"shape of the data, as it is":    {nonZeroModel, "", func(j *Job) { j.Static, j.NoOptimize = true, true }, fault.Goal, "depends on its data"},
		"our own option":                 {fixedModel, "", func(j *Job) { j.Options.Extra = []string{"soc_version=x"} }, fault.Usage, "use --soc"},
		"too many cores":                 {fixedModel, "", func(j *Job) { j.Options.AICoreNum = "21|10" }, fault.Usage, "--aicore_num"},
		"a file that is missing":         {fixedModel, "", func(j *Job) { j.Options.KeepDType = "none.txt" }, fault.Input, "--keep_dtype"},
		"no elements":                    {emptyModel, "", func(j *Job) { j.Gears = "1,2" }, fault.Usage, "dim 1 of input x has size 0"},
		"no input in half":               {fixedModel, "", func(j *Job) { j.Options.FP16Inputs = []string{"z"} }, fault.Usage, "z"},
		"no layout":                      {fixedModel, "", func(j *Job) { j.Options.InputFormat = "NXYZ" }, fault.Usage, "NXYZ"},
		"no pass":                        {fixedModel, "", func(j *Job) { j.Passes.Skip = []string{"fuse-afine"} }, fault.Usage, "fuse-affine"},
		"no model":                       {fixedModel, "", func(j *Job) { j.Models = []string{"none.onnx"} }, fault.Input, "none.onnx"},
		"no toolkit":                     {fixedModel, "", func(j *Job) { j.CANN = j.Cache }, fault.Missing, "nothing there"},
		"bind as it is": {fixedModel, "", func(j *Job) { j.NoOptimize = true; j.Sizes.Bind = map[string]string{"x": "1"} },
			fault.Usage, "--no-optimize"},
		"one target for two": {fixedModel, "", func(j *Job) { j.Models = append(j.Models, j.Models[0]) }, fault.Usage, "is named twice; leave it out once"},
		"atc fails":          {imageModel, "fails", func(j *Job) { j.Sizes = sizes(pictures) }, fault.Program, "EZ3003"},
		"atc lies":           {fixedModel, "lies", func(j *Job) {}, fault.Program, "wrote no net.om"},
		"another chip":       {fixedModel, "wrong-chip", func(j *Job) {}, fault.Program, "it is for Ascend310P3, not for Ascend910B3"},
		"another shape":      {fixedModel, "wrong-shape", func(j *Job) {}, fault.Program, "its input x is [2 3], not 1,3"},
		"too long":           {fixedModel, "hangs", func(j *Job) { j.Timeout = 200 * time.Millisecond }, fault.Program, "was stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, c.model, c.behaviour)
			c.set(&w.job)
			_, err := w.job.Run(context.Background())
			if err == nil || fault.FamilyOf(err) != c.family || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v error %v, want %v and %q", fault.FamilyOf(err), err, c.family, c.want)
			}
			if left := w.leftovers(t); len(left) > 0 {
				t.Errorf("the folder has %v", left)
			}
			// A dry run finds what needs no run of atc.
			if c.behaviour != "" {
				return
			}
			w.job.DryRun = true
			_, err = w.job.Run(context.Background())
			if err == nil || fault.FamilyOf(err) != c.family || !strings.Contains(err.Error(), c.want) {
				t.Errorf("dry: %v error %v, want %v and %q", fault.FamilyOf(err), err, c.family, c.want)
			}
		})
	}
}

// What only the tables here do not have, chips and operators, a real CANN decides, and
// notes say so; the emulator is no newer than the tables.
func TestUnknownToTheTables(t *testing.T) {
	for name, c := range map[string]struct {
		model  string
		set    func(j *Job)
		family fault.Family // with the emulator
		want   []string     // among the notes, and in the emulator's refusal the first
	}{
		"a chip": {fixedModel, func(j *Job) { j.SoCs = []string{"Ascend910B33"} }, fault.Usage, []string{`did you mean "Ascend910B3"`, "atc will decide"}},
		"a chip with gears": {textModel, func(j *Job) { j.SoCs, j.Gears, j.Sizes.Batch = []string{"Ascend999"}, numbersTo(120), 1 },
			fault.Usage, []string{`no Ascend chip`, "atc will decide"}},
		"an option": {fixedModel, func(j *Job) { j.Options.Extra = []string{"--precison_mode=x"} }, fault.Usage,
			[]string{"did you mean --precision_mode?", "--precison_mode: not in npuctl's table of ATC's flags; CANN 8.1.RC1 will decide"}},
		"an opset": {newerModel, func(j *Job) {}, fault.Input, []string{"imports opset 21", "CANN 8.1.RC1 will decide"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, c.model)
			c.set(&w.job)
			r, err := w.job.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if notes := strings.Join(r.Builds[0].Notes, "\n"); r.Builds[0].Status != Built || !strings.Contains(notes, want) {
					t.Errorf("%s, notes %s", r.Builds[0].Status, notes)
				}
			}
			w = newWorkshop(t, c.model).emulated(t)
			c.set(&w.job)
			if _, err := w.job.Run(context.Background()); fault.FamilyOf(err) != c.family || err == nil || !strings.Contains(err.Error(), c.want[0]) {
				t.Errorf("emulated: %v error %v", fault.FamilyOf(err), err)
			}
			if left := w.leftovers(t); len(left) > 0 {
				t.Errorf("the folder has %v", left)
			}
		})
	}
}

const newerModel = `<ir_version: 10, opset_import: ["": 21]>
net (float[1,3] x) => (float[1,3] y) { a = Abs (x)  y = Relu (a) }`

// Each gear is followed through the graph before ATC compiles it.
func TestGearsGoThroughTheModel(t *testing.T) {
	const uneven = `<ir_version: 8, opset_import: ["": 17]>
net (float[1,length] x) => (float[4,k] y) <int64[2] shape = {4, -1}> { a = Abs (x)  y = Reshape (a, shape) }`
	const data = `<ir_version: 8, opset_import: ["": 17]>
net (float[1,length] x) => (int64[2,k] y) { a = Abs (x)  [find] y = NonZero (a) }`
	const others = `<ir_version: 8, opset_import: ["": 17, "mine": 1]>
net (float[1,length] x) => (float[1,k] y) { [odd] y = mine.Special (x) }`
	for name, c := range map[string]struct {
		model, gears string
		asItIs       bool
		family       fault.Family // 0 is a success
		want         string
	}{
		"all go":                 {uneven, "8;16", false, 0, ""},
		"one does not":           {uneven, "8;10;16", false, fault.Usage, "--gears: the gear 10 of "},
		"one does not, as it is": {uneven, "8;10;16", true, fault.Usage, "--gears: the gear 10 of "},
		"a shape of the data":    {data, "8;16", false, fault.Goal, `NonZero node "find" gives depends on data`},
		"an operator of others":  {others, "8;16", false, 0, "with 2 of 2 gears (8) the shape of what"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, c.model)
			w.job.Gears, w.job.NoOptimize = c.gears, c.asItIs
			r, err := w.job.Run(context.Background())
			switch {
			case c.family == 0 && err != nil:
				t.Error(err)
			case c.family == 0:
				if notes := strings.Join(r.Builds[0].Notes, "\n"); !strings.Contains(notes, c.want) || c.want == "" && notes != "" {
					t.Errorf("notes %s", notes)
				}
			case err == nil || fault.FamilyOf(err) != c.family || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v error %v", fault.FamilyOf(err), err)
			}
		})
	}
}

const nonZeroModel = `<ir_version: 8, opset_import: ["": 17]>
net (float[2,3] x) => (int64[2,n] y) { y = NonZero (x) }`

const emptyModel = `<ir_version: 8, opset_import: ["": 17]>
net (float[batch,0] x) => (float[batch,0] y) { y = Abs (x) }`

func numbersTo(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(words, ";")
}

// A failure tells what is to be looked at, down to the lines of the log.
func TestFailureIsExplained(t *testing.T) {
	w := newWorkshop(t, imageModel, "fails")
	w.job.Sizes = sizes(pictures)
	r, err := w.job.Run(context.Background())
	if err == nil {
		t.Fatal("no error")
	}
	b := r.Builds[0]
	if b.Status != Failed || b.Error == "" || len(b.Diagnoses) == 0 || !slices.Contains(b.Diagnoses[0].Names, "second") {
		t.Errorf("%+v", b)
	}
	if len(b.LogLines) != 1 || b.LogLines[0] != "GE graph.cc:7: graph of [second] is odd" {
		t.Errorf("log lines %q", b.LogLines)
	}
	if data, err := os.ReadFile(filepath.Join(b.LogFolder, "stdout.txt")); err != nil || !strings.Contains(string(data), "EZ3003") {
		t.Errorf("what it printed: %q, %v", data, err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// Nodes that the optimiser made lead back to the user's.
func TestOrigins(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]>
net (float[2] x) => (float[2] y) { [one] a = Abs (x)  b = Neg (a)  [one] y = Relu (b) }`)
	o := originsOf(m)
	o.nameNodes(m)
	var names []string
	for n := range m.Nodes() {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "one b one_1" {
		t.Errorf("names %s", got)
	}
	if got := o.renamed["one_1"]; !strings.Contains(got, "Relu") {
		t.Errorf("one_1 leads to %q", got)
	}
	// An input and a stored value are nodes of their names for ATC.
	m = text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]>
net (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [x] a = Abs (x)  [w] y = Mul (a, w) }`)
	o = originsOf(m)
	o.nameNodes(m)
	for n := range m.Nodes() {
		if n.Name != n.Inputs()[0].Name()+"_1" && n.Name != "w_1" {
			t.Errorf("%s is named %s", n.OpType, n.Name)
		}
		if o.renamed[n.Name] == "" {
			t.Errorf("%s leads nowhere", n.Name)
		}
	}
}

// The second build of the same is none; whatever decides the result makes it one.
func TestUnchanged(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	status := func(change func(j *Job)) Status {
		t.Helper()
		j := w.job
		change(&j)
		r, err := j.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return r.Builds[0].Status
	}
	same := func(j *Job) {}
	if got := status(same); got != Built {
		t.Fatalf("first: %s", got)
	}
	for _, step := range []struct {
		name   string
		before func()
		change func(j *Job)
		want   Status
	}{
		{"nothing", func() {}, same, Unchanged},
		{"forced", func() {}, func(j *Job) { j.Force = true }, Built},
		{"another log level", func() {}, func(j *Job) { j.Options.Extra = []string{"log=info"} }, Unchanged},
		{"another option", func() {}, func(j *Job) { j.Options.Precision = "origin" }, Built},
		{"and back", func() {}, same, Built},
		{"another npuctl", func() {}, func(j *Job) { j.Version = "next" }, Built},
		{"back again", func() {}, same, Built},
		{"the result is damaged", func() { appendTo(t, filepath.Join(w.folder, "net.om")) }, same, Built},
		{"the graph is gone", func() { os.Remove(filepath.Join(w.folder, "net.om.onnx")) }, same, Built},
		{"the record is damaged", func() { appendTo(t, filepath.Join(w.folder, "net.om.json")) }, same, Built},
		{"the model has changed", func() {
			if err := text.MustParse(t, strings.Replace(fixedModel, "Relu", "Abs", 1)).Save(w.model, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}, same, Built},
		{"and then nothing", func() {}, same, Unchanged},
	} {
		step.before()
		if got := status(step.change); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func appendTo(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
}

// Several models for several chips, at once.
func TestManyBuilds(t *testing.T) {
	w := newWorkshop(t, fixedModel, "slow")
	second := filepath.Join(w.folder, "other.onnx")
	if err := text.MustParse(t, fixedModel).Save(second, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	w.job.Models, w.job.SoCs, w.job.Jobs = []string{w.model, second}, []string{"Ascend910B3", "310P3"}, 4
	w.job.Output = filepath.Join(w.folder, "out") + "/"
	r, err := w.job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var outputs []string
	for _, b := range r.Builds {
		outputs = append(outputs, filepath.Base(b.Output))
		if b.Status != Built {
			t.Errorf("%s: %s", b.Output, b.Status)
		}
	}
	if got := strings.Join(outputs, " "); got != "net.Ascend910B3.om net.Ascend310P3.om other.Ascend910B3.om other.Ascend310P3.om" {
		t.Errorf("outputs %s", got)
	}
	if left := w.leftovers(t, "other.onnx", "out"); len(left) > 0 {
		t.Errorf("the folder has %v", left)
	}
}

// The name may gain the host's system; the next build still knows it.
func TestSuffix(t *testing.T) {
	w := newWorkshop(t, fixedModel, "suffix")
	for _, want := range []Status{Built, Unchanged} {
		r, err := w.job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b := r.Builds[0]; b.Status != want || filepath.Base(b.Output) != "net_linux_x86_64.om" {
			t.Errorf("%s %s, want %s", b.Status, b.Output, want)
		}
	}
}

// Weights that ATC keeps outside come along, and external data of the model stays
// where it is.
func TestWeightsOutside(t *testing.T) {
	w := newWorkshop(t, fixedModel, "weights")
	numbers := strings.ReplaceAll(numbersTo(512), ";", ",")
	big := text.MustParse(t, `<ir_version: 8, opset_import: ["": 17]>
net (float[1,512] x) => (float[1,512] y) <float[512] w = {`+numbers+`}> { a = Mul (x, w)  y = Relu (a) }`)
	if err := big.Save(w.model, onnx.SaveOptions{ExternalData: onnx.SplitExternal}); err != nil {
		t.Fatal(err)
	}
	w.job.Options.Extra = []string{"external_weight=1"}
	r, err := w.job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if left := w.leftovers(t, "net.om", "net.om.json", "net.om.onnx", "net.onnx.data", "weight"); len(left) > 0 {
		t.Errorf("the folder: %v", left)
	}
	if _, err := os.Stat(filepath.Join(w.folder, "weight", "weight_1")); err != nil {
		t.Error(err)
	}
	m, err := onnx.Open(r.Builds[0].Graph)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	// Into another folder the data goes along.
	w.job.Output = filepath.Join(w.folder, "out") + "/"
	if r, err = w.job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.Open(r.Builds[0].Graph); err != nil {
		t.Fatal(err)
	}
	m.Close()
}

// ATC takes few letters in paths; whoever keeps models in "My Models" need not care.
func TestOddPaths(t *testing.T) {
	w := newWorkshop(t, fixedModel, "weights")
	odd := filepath.Join(w.folder, "My Models (1)", "net + é.onnx")
	if err := os.MkdirAll(filepath.Dir(odd), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(w.model, odd); err != nil {
		t.Fatal(err)
	}
	w.job.Models = []string{odd}
	for _, want := range []Status{Built, Unchanged} {
		r, err := w.job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b := r.Builds[0]; b.Status != want || b.Output != strings.TrimSuffix(odd, ".onnx")+".om" {
			t.Errorf("%s %s, want %s", b.Status, b.Output, want)
		}
	}
	var names []string
	entries, _ := os.ReadDir(filepath.Dir(odd))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, ", "); got != "net + é.om, net + é.om.json, net + é.om.onnx, net + é.onnx, weight" {
		t.Errorf("the folder has %s", got)
	}
	if left, _ := os.ReadDir(filepath.Join(w.job.Cache, "work")); len(left) > 0 {
		t.Errorf("the cache has %v", left)
	}
}

// What a killed npuctl left is taken away in time; what may be another's is not.
func TestAbandonedFolders(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	for name, age := range map[string]time.Duration{".npuctl-build-1": 2 * abandonedAfter, ".npuctl-build-2": time.Hour} {
		path := filepath.Join(w.folder, name)
		if err := os.MkdirAll(filepath.Join(path, "work"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := w.leftovers(t, "net.om", "net.om.json", "net.om.onnx", ".npuctl-build-2"); len(left) > 0 {
		t.Errorf("the folder: %v", left)
	}
}

// Earlier builds tell how long the next takes.
func TestEstimate(t *testing.T) {
	w := newWorkshop(t, fixedModel)
	for i := range 2 {
		w.job.Force = true
		r, err := w.job.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Builds[0].EstimatedSeconds; (got > 0) != (i > 0) {
			t.Errorf("build %d is estimated at %v s", i, got)
		}
	}
	b := build{job: w.job, input: []FileFacts{{SHA256: "other"}}, result: Build{Nodes: &NodesChange{After: 4}}}
	b.chip.Name = "Ascend910B3"
	history := b.history()
	want := history[1].Seconds * 4 / float64(history[1].Nodes)
	if got := b.estimate().Seconds(); got < want*0.99 || got > want*1.01 {
		t.Errorf("estimated %v s for four nodes, want %v", got, want)
	}
	b.toolkit.Emulated = true
	if got := b.estimate(); got != 0 {
		t.Errorf("real runs tell %v of emulated ones", got)
	}
}
