package optimization

import (
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// Advice is something that is better changed in the export than repaired in the
// graph, in the words of the exporter's own options.
type Advice struct {
	Finding string `json:"finding"`
	Option  string `json:"option"` // what to give the exporter
}

// exporter names the options of one exporter for the things we advise on; an
// empty one means it has no such option.
type exporter struct {
	producer    string // how producer_name begins
	opset       string
	dynamic     string
	folding     string
	keepInputs  string
	evaluation  string
	outputShape string
}

// exporters is searched in order; the last row fits every producer.
var exporters = []exporter{
	{
		producer: "pytorch", opset: "torch.onnx.export(…, opset_version=%d)",
		dynamic:     "torch.onnx.export(…, dynamic_axes=None), or dynamic_shapes=None with dynamo=True, makes every axis static",
		folding:     "torch.onnx.export(…, do_constant_folding=True)",
		keepInputs:  "torch.onnx.export(…, keep_initializers_as_inputs=False)",
		evaluation:  "model.eval() before torch.onnx.export(…, training=torch.onnx.TrainingMode.EVAL)",
		outputShape: "return the tensor with a shape from forward(), for example x.reshape(1)",
	},
	{
		producer: "tf2onnx", opset: "python -m tf2onnx.convert … --opset %d",
		dynamic: "python -m tf2onnx.convert … --inputs NAME:0[1,224,224,3] fixes the shapes",
	},
	{
		producer: "paddle", opset: "paddle2onnx … --opset_version %d",
		dynamic: "paddle.static.InputSpec with full shapes before the export",
	},
	{producer: "skl2onnx", opset: "skl2onnx.to_onnx(…, target_opset=%d)", dynamic: "initial_types with full shapes"},
	{producer: "keras2onnx", opset: "keras2onnx is no longer kept; tf2onnx takes --opset %d"},
	{opset: "the exporter's opset option, %d"},
}

// advisedOpset is the opset from which operators have the form that compilers
// like best: axes of ReduceSum and Squeeze as inputs, typed Resize.
const advisedOpset = 13

// advise lists what to change in the export, from what the optimised graph
// still shows and from what the passes had to do.
func advise(m *onnx.Model, r *Result) []Advice {
	e := exporterOf(m)
	out := []Advice{}
	add := func(option, finding string, args ...any) {
		if option != "" {
			out = append(out, Advice{fmt.Sprintf(finding, args...), option})
		}
	}
	if v := m.Opset(""); v > 0 && v < advisedOpset {
		add(fmt.Sprintf(e.opset, advisedOpset), "the model speaks opset %d: several operators only have their modern form from %d", v, advisedOpset)
	}
	if inputs := openInputs(m); len(inputs) > 0 {
		add(e.dynamic, "dynamic axes: %s", strings.Join(inputs, ", "))
	}
	if n := constantWork(r); n > 0 && n*10 >= r.NodesBefore {
		add(e.folding, "%d of %d nodes computed constants: folding was off in the export", n, r.NodesBefore)
	}
	if m.IRVersion < 4 {
		add(e.keepInputs, "IR version %d lists every weight as an input", m.IRVersion)
	}
	if n := r.OpsBefore["Dropout"]; n > 0 {
		add(e.evaluation, "%d Dropout nodes: the model was exported in training mode", n)
	}
	for _, v := range m.Graph.Outputs() {
		if v.Type.IsTensor() && v.Type.Shape != nil && len(v.Type.Shape.Dims) == 0 {
			add(e.outputShape, "output %q is a scalar: servers that batch need at least one axis", v.Name())
		}
	}
	return out
}

func exporterOf(m *onnx.Model) exporter {
	producer := strings.ToLower(m.ProducerName)
	for _, e := range exporters {
		if strings.HasPrefix(producer, e.producer) {
			return e
		}
	}
	return exporters[len(exporters)-1]
}

func openInputs(m *onnx.Model) (out []string) {
	for _, v := range onnxpass.RealInputs(m) {
		if v.Type == nil {
			out = append(out, v.Name()+" (no type)")
			continue
		}
		if _, known := v.Type.Shape.Ints(); v.Type.IsTensor() && !known {
			out = append(out, v.Name()+" "+v.Type.String())
		}
	}
	return out
}

// constantWork counts the nodes that folding made needless.
func constantWork(r *Result) int {
	for _, p := range r.Passes {
		if p.Pass == "fold" {
			return p.Changes
		}
	}
	return 0
}
