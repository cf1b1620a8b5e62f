package cpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// ErrClosed is the error of instances and models that are closed.
var ErrClosed = errors.New("already closed")

// alignment of the memory of inputs, in bytes: a line of the caches of the CPUs in use,
// and enough for their widest registers.
const alignment = 64

// Inputs is the memory of the inputs of an instance.
type Inputs struct {
	ports  []engine.Port
	own    []engine.Buffer
	memory [][]byte // the largest that each of own was so far
	state  []state
	closed bool
}

// state is what an input is for the run to come, and was in the run before.
type state struct {
	made  bool // there is an own buffer
	given bool // it was asked for, or lent
	next  engine.Buffer
	last  engine.Buffer // with a shape of its own; without one it was left out
}

// NewInputs makes the memory for the inputs of a model; none of it is there yet.
func NewInputs(ports []engine.Port) *Inputs {
	return &Inputs{ports: ports, own: make([]engine.Buffer, len(ports)), memory: make([][]byte, len(ports)), state: make([]state, len(ports))}
}

// Input is Input of an instance.
func (in *Inputs) Input(i int, shape []int64) (engine.Buffer, error) {
	if err := in.check(i); err != nil {
		return engine.Buffer{}, err
	}
	s := &in.state[i]
	s.given = false
	if !s.made || !slices.Equal(in.own[i].Shape, shape) {
		if err := in.resize(i, shape); err != nil {
			return engine.Buffer{}, err
		}
	}
	s.made, s.given, s.next = true, true, in.own[i]
	return s.next, nil
}

// Borrow is Borrow of an instance.
func (in *Inputs) Borrow(i int, b engine.Buffer) error {
	if err := in.check(i); err != nil {
		return err
	}
	in.state[i].given = false
	count, size, err := in.size(i, b.Shape)
	if err != nil {
		return err
	}
	if in.ports[i].Type == tensor.String {
		size = 0
	} else {
		count = 0
	}
	if len(b.Bytes) != size || len(b.Strings) != count {
		return fmt.Errorf("input %q of shape %s: %d bytes and %d strings are lent, it takes %d and %d", in.ports[i].Name, ShapeText(b.Shape), len(b.Bytes), len(b.Strings), size, count)
	}
	in.state[i].given, in.state[i].next = true, b
	return nil
}

func (in *Inputs) check(i int) error {
	if in.closed {
		return fmt.Errorf("the instance: %w", ErrClosed)
	}
	if i < 0 || i >= len(in.ports) {
		return fmt.Errorf("the model has no input %d, it has %d", i, len(in.ports))
	}
	return nil
}

// size is how many elements and bytes an input of a shape has.
func (in *Inputs) size(i int, shape []int64) (count, size int, err error) {
	p := &in.ports[i]
	if !Fits(p.Dims, shape) {
		return 0, 0, fmt.Errorf("input %q: the shape %s does not fit %s", p.Name, ShapeText(shape), ShapeText(p.Dims))
	}
	if count, size, err = Size(p.Type, shape); err != nil {
		err = fmt.Errorf("input %q of shape %s: %w", p.Name, ShapeText(shape), err)
	}
	return count, size, err
}

// resize makes the buffer of another shape.
func (in *Inputs) resize(i int, shape []int64) error {
	count, size, err := in.size(i, shape)
	if err != nil {
		return err
	}
	b := &in.own[i]
	b.Shape = slices.Clone(shape)
	if b.Shape == nil {
		b.Shape = []int64{}
	}
	if in.ports[i].Type == tensor.String {
		b.Strings = make([]string, count)
		return nil
	}
	if size > len(in.memory[i]) || in.memory[i] == nil {
		in.memory[i] = aligned(size)
	}
	b.Bytes = in.memory[i][:size:size]
	return nil
}

// aligned makes memory of at least one byte, so that there is something to point at.
func aligned(size int) []byte {
	m := make([]byte, max(1, size)+alignment-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(m))) % alignment
	return m[skip:][:max(1, size)]
}

// Take gives the inputs of the run that begins: to each that was asked for or lent, give,
// with whether its memory or shape is another than in the run before; to each other, leave.
// It fails when one is missing that is needed. What comes next is for the run after.
func (in *Inputs) Take(give func(i int, b engine.Buffer, changed bool) error, leave func(i int) error) (err error) {
	if in.closed {
		return fmt.Errorf("the instance: %w", ErrClosed)
	}
	for i := range in.ports {
		if !in.state[i].given && !in.ports[i].Optional && err == nil {
			err = fmt.Errorf("input %q is missing", in.ports[i].Name)
		}
	}
	for i := range in.ports {
		s := &in.state[i]
		isGiven := s.given
		s.given = false
		switch {
		case err != nil:
			continue
		case isGiven:
			err = give(i, s.next, s.changed())
			s.keep()
		default:
			err = leave(i)
			s.last.Shape = nil
		}
		if err != nil {
			s.last.Shape = nil
			err = fmt.Errorf("input %q: %w", in.ports[i].Name, err)
		}
	}
	return err
}

// changed says whether memory or shape are others than in the run before.
func (s *state) changed() bool {
	return s.last.Shape == nil || unsafe.SliceData(s.last.Bytes) != unsafe.SliceData(s.next.Bytes) ||
		unsafe.SliceData(s.last.Strings) != unsafe.SliceData(s.next.Strings) || !slices.Equal(s.last.Shape, s.next.Shape)
}

// keep notes what was given. The shape may be memory of the caller.
func (s *state) keep() {
	shape := append(s.last.Shape[:0], s.next.Shape...)
	if shape == nil {
		shape = []int64{}
	}
	s.last, s.next = s.next, engine.Buffer{}
	s.last.Shape = shape
}

// Overlaps says whether memory is that of an input of the last run.
func (in *Inputs) Overlaps(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := range in.state {
		m := in.state[i].last.Bytes
		from := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
		if len(m) > 0 && len(b) > 0 && at < from+uintptr(len(m)) && from < at+uintptr(len(b)) {
			return true
		}
	}
	return false
}

// Close lets go of the memory.
func (in *Inputs) Close() {
	in.closed = true
	in.own, in.memory, in.state = nil, nil, nil
}

// Fits says whether a shape fits dims, of which -1 is open and nil anything.
func Fits(dims, shape []int64) bool {
	for _, d := range shape {
		if d < 0 {
			return false
		}
	}
	return dims == nil || slices.EqualFunc(dims, shape, func(d, n int64) bool { return d < 0 || d == n })
}

// Size is how many elements and bytes a tensor has. It fails above [tensor.MaxBytes].
func Size(t tensor.Type, shape []int64) (count, size int, err error) {
	n := int64(1)
	for _, d := range shape {
		if d > 0 && n > tensor.MaxBytes/d {
			return 0, 0, fmt.Errorf("%w: at most %d bytes are possible", tensor.ErrTooLarge, tensor.MaxBytes)
		}
		n *= d
	}
	bytes, _ := t.RawSize(n)
	if bytes > tensor.MaxBytes {
		return 0, 0, fmt.Errorf("%w: at most %d bytes are possible", tensor.ErrTooLarge, tensor.MaxBytes)
	}
	return int(n), int(bytes), nil
}

// ShapeText writes a shape, 4x3, and dims, of which -1 is open.
func ShapeText(shape []int64) string {
	if len(shape) == 0 {
		return "a scalar"
	}
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = fmt.Sprint(d)
	}
	return strings.Join(words, "x")
}

// CheckPlacement says that there is no such device.
func CheckPlacement(p engine.Placement) error {
	if p.Device != 0 {
		return fault.New(fault.Missing, "there is no device %d: an engine of the CPU has only 0", p.Device)
	}
	return nil
}
