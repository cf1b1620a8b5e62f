package inference

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// subject is what runs: a model, or what a compiled one says of itself, with the sizes
// that the user gives.
type subject struct {
	model *onnx.Model
	file  *compiledmodel.File // of a compiled model; nil for a graph
}

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

// open opens the model and fixes its sizes.
func (j Job) open() (s subject, err error) {
	if compiledmodel.Is(j.Model) {
		if s.file, err = compiledmodel.Open(j.Model); err != nil {
			return s, err
		}
		s.model, err = s.file.Model()
	} else {
		s.model, err = modelfile.Open(j.Model)
	}
	if err != nil {
		return s, err
	}
	if err := onnxpass.Specialize(s.model, j.Sizes); err != nil {
		s.model.Close()
		return s, s.sized(err)
	}
	return s, nil
}

// sized says of sizes that a compiled model does not take what it does take: the
// remedies for graphs, which are in the export, are none here.
func (s subject) sized(err error) error {
	var f *fault.Error
	if s.file == nil || !errors.As(err, &f) {
		return err
	}
	switch {
	case strings.HasPrefix(f.Remedy, "did you mean"): // a name, not a size
		return err
	case s.file.Gears() > 0:
		return fault.New(f.Family, "%s: %w", s.file.Path, f.Err).With("it has gears %s", s.file.GearText())
	case !s.file.Open:
		return fault.New(f.Family, "%s: %w", s.file.Path, f.Err).With("its sizes were fixed when it was compiled; compile it with --gears for several")
	}
	return err
}

// openEngine opens the engine and notes what is to be known of it. What the emulator
// compiled runs on the emulator: there is nowhere else.
func (j Job) openEngine(ctx context.Context, s subject, r *Result) (engine.Engine, error) {
	options := j.EngineOptions
	if s.file != nil && s.file.Emulated && options.AscendLibrary == "" && j.Emulator != nil && !cannemu.IsAtHand() {
		root, err := j.Emulator(ctx)
		if err != nil {
			return nil, err
		}
		options.AscendLibrary = filepath.Join(root, "lib64")
		r.note("%s was compiled by npuctl's emulator, so that it runs on it", j.Model)
	}
	e, err := engine.Open(j.engine(), options)
	if err != nil {
		return nil, j.notOpened(s, options, err)
	}
	device, ok := e.(engine.Device)
	if !ok {
		return e, nil
	}
	r.Emulated = device.Emulated()
	if s.file != nil && s.file.Chip != "" && device.Chip() != "" && !strings.EqualFold(s.file.Chip, device.Chip()) {
		r.otherChip = fmt.Sprintf("compiled for %s; the device is %s", s.file.Chip, device.Chip())
		r.note("%s", r.otherChip)
	}
	return e, nil
}

// notOpened says why a device could not be had: it, or its driver, failed; there is none of
// that number; or there is nothing here that could run a compiled model.
func (j Job) notOpened(s subject, options engine.Options, err error) error {
	var call *ascendcl.Error
	switch {
	case !errors.As(err, &call):
		return j.withoutLibrary(s, options, err)
	case call.Device():
		return fault.New(fault.Program, "%w", withoutRemedy(err)).With("look at the device with `npu-smi info` and at its logs; --device chooses another")
	}
	return fault.New(fault.Missing, "%w", withoutRemedy(err)).With("`npu-smi info` and `npuctl doctor` list the devices; --device chooses another")
}

func withoutRemedy(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// withoutLibrary says what to do about a compiled model on a machine without AscendCL.
func (j Job) withoutLibrary(s subject, options engine.Options, err error) error {
	if s.file == nil || options.AscendLibrary != "" {
		return err
	}
	_, tried, missing := ascendcl.Find("")
	if missing == nil {
		return err
	}
	chip := s.file.Chip
	if chip == "" {
		chip = "an NPU"
	}
	return fault.New(fault.Missing, "install CANN to run %s, which was compiled for %s, and `source <cann>/set_env.sh`, or name its folder with --ascend-lib: "+
		"there is no AscendCL library on this machine; looked at %s", j.Model, chip, strings.Join(tried, ", "))
}

// checkGear refuses inputs that the user gives and that have the sizes of no gear, before
// anything is loaded.
func (s subject) checkGear(given map[string]eval.Value) error {
	if given == nil || s.file == nil || s.file.Gears() == 0 {
		return nil
	}
	shapes := s.shapes(given)
	if shapes == nil {
		return nil // no tensors, which the engine tells
	}
	_, err := s.file.GearOf(shapes)
	return err
}

// shapes are those of a compiled model's inputs, in its order; nil when one is no tensor.
func (s subject) shapes(inputs map[string]eval.Value) (shapes [][]int) {
	for _, in := range s.file.Signature.Inputs {
		d, ok := inputs[in.Name].(*tensor.Dense)
		if !ok {
			return nil
		}
		shapes = append(shapes, d.Shape())
	}
	return shapes
}

// attempts lists sets of random inputs, the likeliest to suit the model first. A model
// with gears gets the sizes of each gear that the user's sizes allow.
func (j Job) attempts(s subject) ([]attempt, error) {
	if s.file == nil || s.file.Gears() == 0 {
		return j.randomInputs(s.model), nil
	}
	gears, err := s.file.GearsFor(s.model)
	if err != nil {
		return nil, err
	}
	var all []attempt
	for _, gear := range gears {
		m, err := s.file.InGear(gear)
		if err != nil {
			return nil, err
		}
		all = append(all, j.randomInputs(m)...)
	}
	return all, nil
}

// gearText says in which gear a model runs these inputs; "" when it has no gears.
func (s subject) gearText(inputs map[string]eval.Value) string {
	if s.file == nil || s.file.Gears() == 0 {
		return ""
	}
	gear, err := s.file.GearOf(s.shapes(inputs))
	if err != nil {
		return ""
	}
	return s.file.RowText(gear)
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
