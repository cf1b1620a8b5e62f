//go:build cgo && linux

package ascendcl

import (
	"context"
	"fmt"
	"sync"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Model is a loaded .om. It runs once at a time: runs that several goroutines ask for
// wait for each other.
type Model struct {
	inputs  []Port
	outputs []Port

	mu      sync.Mutex
	session *Session
}

// Load puts the model of a file on the device.
func (d *Device) Load(path string) (*Model, error) {
	shared, err := d.ShareNothing(path)
	if err != nil {
		return nil, err
	}
	defer shared.Close() // the session keeps it
	session, err := shared.Session()
	if err != nil {
		return nil, err
	}
	return &Model{inputs: session.Inputs(), outputs: session.Outputs(), session: session}, nil
}

// Inputs are what [Model.Run] takes, in order; the one for the gear is not among them.
func (m *Model) Inputs() []Port { return m.inputs }

// Outputs are what [Model.Run] gives, in order.
func (m *Model) Outputs() []Port { return m.outputs }

// Close unloads the model and gives its memory back.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session.Close()
}

// Run computes all outputs from all inputs, in the model's order. With a gear, inputs
// must have that gear's sizes; see [Gear]. When ctx ends, the run is given up; see
// [Session.Run].
func (m *Model) Run(ctx context.Context, inputs []*tensor.Dense, gear Gear) ([]*tensor.Dense, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session.session == nil {
		return nil, fmt.Errorf("run: model: %w", ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run: %w", context.Cause(ctx))
	}
	if err := m.fill(inputs, gear); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if _, err := m.session.Run(ctx, gear); err != nil {
		return nil, err
	}
	outputs := make([]*tensor.Dense, len(m.outputs))
	for i, p := range m.outputs {
		var err error
		if outputs[i], err = m.fetch(i, p); err != nil {
			return nil, fmt.Errorf("run: output %q: %w", p.Name, err)
		}
	}
	return outputs, nil
}

// fill copies the inputs into the session's memory.
func (m *Model) fill(inputs []*tensor.Dense, gear Gear) error {
	if len(inputs) != len(m.inputs) {
		return fmt.Errorf("%d inputs are given; the model has %d", len(inputs), len(m.inputs))
	}
	for i, in := range inputs {
		p := m.inputs[i]
		raw := in.Raw()
		switch {
		case in.Type() != p.Type:
			return fmt.Errorf("input %q is %s; the model takes %s", p.Name, in.Type(), p.Type)
		case gear.Kind == NoGear && len(raw) != p.Bytes:
			return fmt.Errorf("input %q of shape %v has %d bytes; the model takes %v, %d bytes", p.Name, in.Shape(), len(raw), p.Dims, p.Bytes)
		}
		shape := make([]int64, in.Rank())
		for axis, size := range in.Shape() {
			shape[axis] = int64(size)
		}
		memory, err := m.session.Input(i, shape)
		if err != nil {
			return err
		}
		copy(memory, raw)
	}
	return nil
}

// fetch makes a tensor of an output.
func (m *Model) fetch(i int, p Port) (*tensor.Dense, error) {
	dims, bytes := m.session.Output(i, nil)
	shape := make([]int, len(dims))
	for axis, size := range dims {
		shape[axis] = int(size)
	}
	return tensor.FromRaw(p.Type, shape, append(make([]byte, 0, len(bytes)), bytes...))
}
