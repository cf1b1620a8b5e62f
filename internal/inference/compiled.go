package inference

import (
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// engine is the engine that runs the job: for a compiled model there is but one.
func (j Job) engine() string {
	switch {
	case j.Engine != "":
		return j.Engine
	case compiledmodel.Is(j.Model):
		return engine.Ascend
	}
	return engine.Reference
}

// openModel gives the model, or what a compiled one says of itself, with the sizes
// that the user gives.
func (j Job) openModel() (*onnx.Model, error) {
	open := modelfile.Open
	if compiledmodel.Is(j.Model) {
		open = compiledSignature
	}
	m, err := open(j.Model)
	if err != nil {
		return nil, err
	}
	if err := onnxpass.Specialize(m, j.Sizes); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func compiledSignature(path string) (*onnx.Model, error) {
	file, err := compiledmodel.Open(path)
	if err != nil {
		return nil, err
	}
	return file.Model()
}

// attempts lists sets of random inputs, the likeliest to suit the model first. A model
// with gears gets the sizes of a gear, the largest first, which is the last in the file.
func (j Job) attempts(m *onnx.Model) ([]attempt, error) {
	if !compiledmodel.Is(j.Model) {
		return j.randomInputs(m), nil
	}
	file, err := compiledmodel.Open(j.Model)
	if err != nil {
		return nil, err
	}
	if file.Gears() == 0 {
		return j.randomInputs(m), nil
	}
	var all []attempt
	var contradiction error
	for gear := file.Gears() - 1; gear >= 0; gear-- {
		m, err := file.InGear(gear)
		if err != nil {
			return nil, err
		}
		if err := onnxpass.Specialize(m, j.Sizes); err != nil {
			contradiction = err
			continue
		}
		all = append(all, j.randomInputs(m)...)
	}
	if len(all) == 0 {
		return nil, contradiction
	}
	return all, nil
}
