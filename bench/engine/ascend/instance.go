package ascend

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/cpu"
	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/fault"
)

type instance struct {
	model   *model
	device  *device
	session *ascendcl.Session
	inputs  []input
	outputs [][]int64 // shapes of the last run
	gear    int       // of the last run
	broken  error     // why nothing can be run any more
	closed  bool
}

// input is what is known of an input of the next run.
type input struct {
	shape []int64
	given bool
}

func newInstance(m *model, d *device, s *ascendcl.Session) *instance {
	return &instance{model: m, device: d, session: s, inputs: make([]input, len(m.inputs)), outputs: make([][]int64, len(m.outputs))}
}

// Input gives pinned memory. Shapes that no gear has are told by Run, which sees all
// inputs.
func (i *instance) Input(n int, shape []int64) (engine.Buffer, error) {
	if err := i.usable(); err != nil {
		return engine.Buffer{}, err
	}
	if n < 0 || n >= len(i.inputs) {
		return engine.Buffer{}, fmt.Errorf("the model has no input %d, it has %d", n, len(i.inputs))
	}
	p := &i.model.inputs[n]
	if !cpu.Fits(p.Dims, shape) {
		return engine.Buffer{}, fmt.Errorf("input %q: the shape %s does not fit %s", p.Name, cpu.ShapeText(shape), cpu.ShapeText(p.Dims))
	}
	bytes, err := i.session.Input(n, shape)
	if err != nil {
		return engine.Buffer{}, i.device.refused(err)
	}
	in := &i.inputs[n]
	in.shape, in.given = append(in.shape[:0], shape...), true
	return engine.Buffer{Shape: in.shape, Bytes: bytes}, nil
}

// usable says why the instance cannot be used.
func (i *instance) usable() error {
	if i.closed {
		return fmt.Errorf("the instance: %w", ascendcl.ErrClosed)
	}
	return i.broken
}

// Run runs the model in the gear of the inputs' shapes.
func (i *instance) Run(ctx context.Context) (engine.Times, error) {
	if err := i.usable(); err != nil {
		return engine.Times{}, err
	}
	if err := i.takeInputs(); err != nil {
		return engine.Times{}, err
	}
	if err := over(ctx); err != nil {
		return engine.Times{}, err
	}
	gear, err := i.chooseGear()
	if err != nil {
		return engine.Times{}, err
	}
	t, err := i.session.Run(ctx, gear)
	if err != nil {
		return engine.Times{}, i.failed(ctx, err)
	}
	return engine.Times(t), nil
}

// takeInputs ends the asking for inputs, and fails when one was not asked for.
func (i *instance) takeInputs() (err error) {
	for n := range i.inputs {
		if !i.inputs[n].given && err == nil {
			err = fmt.Errorf("input %q is missing", i.model.inputs[n].Name)
		}
		i.inputs[n].given = false
	}
	return err
}

// chooseGear finds the gear of the inputs' shapes. That of the last run is tried first.
func (i *instance) chooseGear() (ascendcl.Gear, error) {
	m := i.model
	switch {
	case m.file.Open:
		return ascendcl.Gear{Kind: ascendcl.OpenShape}, nil
	case m.gears == nil:
		return ascendcl.Gear{}, nil
	}
	for n := range m.gears.Rows {
		if at := (i.gear + n) % len(m.gears.Rows); i.isGear(m.gears.Rows[at]) {
			i.gear = at
			return m.choices[at], nil
		}
	}
	return ascendcl.Gear{}, i.noGear()
}

// isGear says whether the open dims of the inputs have the sizes of a gear.
func (i *instance) isGear(row []int64) bool {
	at := 0
	for n, dims := range i.model.gears.Dims {
		for axis, d := range dims {
			if d >= 0 {
				continue
			}
			if i.inputs[n].shape[axis] != row[at] {
				return false
			}
			at++
		}
	}
	return true
}

func (i *instance) noGear() error {
	var text string
	for n, p := range i.model.inputs {
		text += fmt.Sprintf(", %s %s", p.Name, cpu.ShapeText(i.inputs[n].shape))
	}
	return fault.New(fault.Input, "%s has no gear for %s: it has gears %s", i.model.file.Path, text[len(", "):], i.model.file.GearText()).
		With("pad the inputs to a gear, or compile the model with this one")
}

// failed says what a run came to, and whether there can be another.
func (i *instance) failed(ctx context.Context, err error) error {
	var acl *ascendcl.Error
	switch isDevice := errors.As(err, &acl) && acl.Device(); {
	case isDevice:
		i.broken = fmt.Errorf("%w: device %d failed in an earlier run: %w", engine.ErrBroken, i.device.number, err)
		return i.device.gone(fmt.Errorf("%w: %w", err, engine.ErrBroken))
	case i.session.Stuck():
		i.broken = fmt.Errorf("%w: device %d: %w", engine.ErrBroken, i.device.number, ascendcl.ErrGivenUp)
	}
	if i.broken != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: the run could not be stopped, and was left", context.Cause(ctx))
	}
	return i.device.refused(err)
}

// Output gives what the last run computed, in pinned memory.
func (i *instance) Output(n int) engine.Buffer {
	if i.closed {
		return engine.Buffer{}
	}
	var bytes []byte
	i.outputs[n], bytes = i.session.Output(n, i.outputs[n][:0])
	return engine.Buffer{Shape: i.outputs[n], Bytes: bytes}
}

// Close gives everything back but what a device may still write to, and lets the
// goroutine go from its thread.
func (i *instance) Close() error {
	if i.closed {
		return nil
	}
	i.closed = true
	runtime.UnlockOSThread()
	return i.session.Close()
}
