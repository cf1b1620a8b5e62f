package ascend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx/tensor"
)

type model struct {
	engine          *npus
	file            *compiledmodel.File
	stamp           stamp
	inputs, outputs []engine.Port
	gears           *engine.Gears
	choices         []ascendcl.Gear // for each gear, what AscendCL has to be told

	mu     sync.Mutex
	places []*place
	closed bool
}

// place is the model on one device.
type place struct {
	device *device
	shared *ascendcl.Shared
	spare  *ascendcl.Session // the first one, until an instance takes it
}

// stamp tells whether a file was written since: instances made of another would run on
// the weights of this one.
type stamp struct {
	size     int64
	modified time.Time
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, fault.New(fault.Input, "%w", err)
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// Open loads the model on every device.
func (e *npus) Open(ctx context.Context, path string) (engine.Model, error) {
	if !compiledmodel.Is(path) {
		return nil, fault.New(fault.Usage, "%s is no compiled model; an NPU runs .om files", path).
			With("compile it first, as in `npuctl compile --soc Ascend910B3 MODEL.onnx`, or choose another --engine")
	}
	file, err := compiledmodel.Open(path)
	if err != nil {
		return nil, err
	}
	m := &model{engine: e, file: file}
	if m.stamp, err = stampOf(path); err == nil {
		err = m.describe()
	}
	for _, d := range e.devices {
		if err == nil {
			err = m.load(ctx, d)
		}
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// aippInput is the input through which a program sets the preprocessing of images.
const aippInput = "ascend_dynamic_aipp_data"

// describe reads ports and gears out of the file.
func (m *model) describe() (err error) {
	s := m.file.Signature
	if slices.ContainsFunc(s.Inputs, func(t om.Tensor) bool { return t.Name == aippInput }) {
		return fault.New(fault.Input, "%s: its image preprocessing (AIPP) is set in each run, which this engine does not do", m.file.Path).
			With("compile it with a static AIPP configuration, or without one")
	}
	if m.inputs, err = m.ports(s.Inputs, func(t om.Tensor) string { return t.Name }); err != nil {
		return err
	}
	if m.outputs, err = m.ports(s.Outputs, compiledmodel.OutputName); err != nil {
		return err
	}
	if s.Gears == nil {
		m.usePlainDims()
		return nil
	}
	for _, o := range s.GearOutputs {
		if o.Output >= 0 && o.Output < len(m.outputs) {
			m.outputs[o.Output].Dims = common(m.outputs[o.Output].Dims, o.Dims)
		}
	}
	return m.readGears()
}

// usePlainDims has images go in as they are before the preprocessing (AIPP) that is
// compiled into the model.
func (m *model) usePlainDims() {
	for i, t := range m.file.Signature.Inputs {
		if len(t.PlainDims) > 0 {
			m.inputs[i].Dims = slices.Clone(t.PlainDims)
		}
	}
}

func (m *model) ports(tensors []om.Tensor, name func(om.Tensor) string) ([]engine.Port, error) {
	ports := make([]engine.Port, len(tensors))
	for i, t := range tensors {
		element, ok := tensor.ParseType(t.DType)
		if !ok {
			return nil, fault.New(fault.Input, "%s: %q has element type %s, which npuctl does not know", m.file.Path, t.Name, t.DType)
		}
		ports[i] = engine.Port{Name: name(t), Type: element, Dims: append([]int64{}, t.Dims...)}
	}
	return ports, nil
}

// common leaves open what differs between the gears.
func common(dims, other []int64) []int64 {
	if len(dims) != len(other) {
		return nil
	}
	for axis, n := range other {
		if dims[axis] != n {
			dims[axis] = -1
		}
	}
	return dims
}

func (m *model) readGears() error {
	m.gears = &engine.Gears{}
	for _, in := range m.inputs {
		m.gears.Dims = append(m.gears.Dims, in.Dims)
	}
	for n := range m.file.Gears() {
		shapes, err := m.file.GearShapes(n)
		if err != nil {
			return err
		}
		var row []int64
		whole := make([][]int, len(shapes))
		for i, shape := range shapes {
			for axis, size := range shape {
				whole[i] = append(whole[i], int(size))
				if m.inputs[i].Dims[axis] < 0 {
					row = append(row, size)
				}
			}
		}
		choice, err := m.file.GearFor(whole)
		if err != nil {
			return err
		}
		m.gears.Rows, m.choices = append(m.gears.Rows, row), append(m.choices, choice)
	}
	return nil
}

// load puts the weights on a device, and makes a session, so that what is wrong shows.
func (m *model) load(ctx context.Context, d *device) error {
	if err := over(ctx); err != nil {
		return err
	}
	share := d.device.Share
	if m.file.Open {
		share = d.device.ShareNothing
	}
	shared, err := share(m.file.Path)
	if err != nil {
		return d.unfit(err)
	}
	p := &place{device: d, shared: shared}
	m.places = append(m.places, p)
	if p.spare, err = m.session(p); err != nil {
		return d.unfit(err)
	}
	return nil
}

// session makes a session of which file and device say the same.
func (m *model) session(p *place) (*ascendcl.Session, error) {
	now, err := stampOf(m.file.Path)
	if err != nil {
		return nil, err
	}
	if now != m.stamp {
		return nil, fault.New(fault.Input, "%s was changed after it was opened", m.file.Path).With("leave it as it is while it is in use")
	}
	s, err := p.shared.Session()
	if err != nil {
		return nil, err
	}
	if err := m.agrees(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// agrees holds what the device says of the model against the file.
func (m *model) agrees(s *ascendcl.Session) error {
	for _, side := range []struct {
		what   string
		ports  []engine.Port
		device []ascendcl.Port
	}{{"input", m.inputs, s.Inputs()}, {"output", m.outputs, s.Outputs()}} {
		if len(side.ports) != len(side.device) {
			return fmt.Errorf("%s: the file says that the model has %d %ss, the device says %d", m.file.Path, len(side.ports), side.what, len(side.device))
		}
		for i, p := range side.ports {
			if p.Type != side.device[i].Type {
				return fmt.Errorf("%s: the file says that %s %q is %s, the device says %s", m.file.Path, side.what, p.Name, p.Type, side.device[i].Type)
			}
		}
	}
	return nil
}

// Inputs are those of the file, without the one for gears.
func (m *model) Inputs() []engine.Port { return m.inputs }

// Outputs are those of the file, with the names that they had in the ONNX model where it
// still says them. Dims that differ between gears are open.
func (m *model) Outputs() []engine.Port { return m.outputs }

// Gears are those that the file was compiled with.
func (m *model) Gears() *engine.Gears { return m.gears }

// NewInstance loads the model once more, and locks the goroutine to its thread.
func (m *model) NewInstance(p engine.Placement) (engine.Instance, error) {
	d, err := m.engine.find(p.Device)
	if err != nil {
		return nil, err
	}
	if err := d.checkLimits(p); err != nil {
		return nil, err
	}
	s, err := m.take(d)
	if err != nil {
		return nil, d.unfit(err)
	}
	if err := s.Limit(p.CubeCores, p.VectorCores); err != nil {
		s.Close()
		var acl *ascendcl.Error
		if errors.As(err, &acl) {
			return nil, d.unfit(err)
		}
		return nil, fault.New(fault.Missing, "device %d: %w", d.number, err)
	}
	runtime.LockOSThread()
	return newInstance(m, d, s), nil
}

// take gives the spare session of a device, or makes one.
func (m *model) take(d *device) (*ascendcl.Session, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", m.file.Path, ascendcl.ErrClosed)
	}
	p := m.places[slices.IndexFunc(m.places, func(p *place) bool { return p.device == d })]
	s := p.spare
	p.spare = nil
	m.mu.Unlock()
	if s != nil {
		return s, nil
	}
	return m.session(p)
}

// Close gives the weights back, once the instances are closed.
func (m *model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var errs []error
	for _, p := range m.places {
		if p.spare != nil {
			errs = append(errs, p.spare.Close())
		}
		errs = append(errs, p.shared.Close())
	}
	return errors.Join(errs...)
}
