package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// ascendEngine runs .om models on a device, through AscendCL.
type ascendEngine struct {
	runtime *ascendcl.Runtime
	device  *ascendcl.Device
	number  int
}

func openAscend(o Options) (Engine, error) {
	paths, _, err := ascendcl.Find(o.AscendLibrary)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	runtime, err := ascendcl.Open(paths)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	device, err := runtime.Device(o.Device)
	if err != nil {
		runtime.Close()
		var call *ascendcl.Error
		if errors.As(err, &call) && call.Device() {
			return nil, fault.New(fault.Program, "%w", err).With("look at the device with `npu-smi info` and at its logs; --device chooses another")
		}
		return nil, fault.New(fault.Missing, "%w", err).With("see what there is with `npuctl doctor`; --device chooses another")
	}
	return &ascendEngine{runtime, device, o.Device}, nil
}

// Name says which interface, chip and device it is, and whether they are emulated.
func (e *ascendEngine) Name() string {
	name := fmt.Sprintf("AscendCL %s, device %d", e.runtime.Version(), e.number)
	if chip := e.device.Chip(); chip != "" {
		name += ", " + chip
	}
	if e.runtime.Emulated() {
		name += " (emulated: no NPU had a part in this)"
	}
	return name
}

// Chip is the device's.
func (e *ascendEngine) Chip() string { return e.device.Chip() }

// Emulated says that the library is npuctl's emulator.
func (e *ascendEngine) Emulated() bool { return e.runtime.Emulated() }

// Close gives device and runtime back.
func (e *ascendEngine) Close() error {
	e.device.Close()
	return e.runtime.Close()
}

// Load puts an .om on the device.
func (e *ascendEngine) Load(_ context.Context, s Source) (Program, error) {
	if s.Path == "" || !compiledmodel.Is(s.Path) {
		return nil, fault.New(fault.Usage, "%s is no compiled model; an NPU runs .om files", s.Path).
			With("compile it first, as in `npuctl compile --static --soc Ascend910B3 MODEL.onnx`")
	}
	file, err := compiledmodel.Open(s.Path)
	if err != nil {
		return nil, err
	}
	model, err := e.device.Load(s.Path)
	if err != nil {
		return nil, err
	}
	if len(model.Inputs()) != len(file.Signature.Inputs) || len(model.Outputs()) != len(file.Signature.Outputs) {
		model.Close()
		return nil, fmt.Errorf("the file says that the model has %d inputs and %d outputs, the device says %d and %d",
			len(file.Signature.Inputs), len(file.Signature.Outputs), len(model.Inputs()), len(model.Outputs()))
	}
	return &ascendProgram{file, model}, nil
}

type ascendProgram struct {
	file  *compiledmodel.File
	model *ascendcl.Model
}

// Close unloads the model.
func (p *ascendProgram) Close() error { return p.model.Close() }

// Run computes all outputs, in the gear of the inputs' shapes.
func (p *ascendProgram) Run(ctx context.Context, inputs map[string]eval.Value) (map[string]eval.Value, error) {
	var given []*tensor.Dense
	var shapes [][]int
	for _, in := range p.file.Signature.Inputs {
		v, ok := inputs[in.Name]
		if !ok || v == nil {
			return nil, missing(in.Name)
		}
		d, ok := v.(*tensor.Dense)
		if !ok {
			return nil, fmt.Errorf("input %q is no tensor", in.Name)
		}
		given, shapes = append(given, d), append(shapes, d.Shape())
	}
	gear, err := p.file.GearFor(shapes)
	if err != nil {
		return nil, err
	}
	results, err := p.model.Run(ctx, given, gear)
	if err != nil {
		return nil, err
	}
	out := map[string]eval.Value{}
	for i, t := range p.file.Signature.Outputs {
		out[compiledmodel.OutputName(t)] = results[i]
	}
	return out, nil
}
