//go:build cgo && linux

package ascendcl

/*
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// gearInput is the input through which the runtime takes the gear; it fills it itself.
const gearInput = "ascend_mbatch_shape_data"

// Session is a loaded model with all that its runs need: a context, a stream, events,
// memory on the device and pinned memory of the host. It is for one goroutine at a time.
//
// A run is one call into C. It copies the inputs to the device, runs the model and copies
// the outputs back, all in the session's stream, and waits for the end.
type Session struct {
	shared  *Shared
	session *C.acl_session // nil when closed
	inputs  []Port
	outputs []Port
	at      []int // of each input, its index among those of the runtime, which counts that of the gear as well
	gear    Gear  // of the last run

	stuck bool // the device is still at a run that was given up
	// Runs of open shape that may be given up wait in a goroutine of their own.
	begin chan struct{}
	ended chan C.int
}

// Session loads the model, with memory of its own for all but the weights.
func (s *Shared) Session() (*Session, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	n := &Session{shared: s, session: (*C.acl_session)(C.calloc(1, C.sizeof_acl_session))}
	if err := n.load(); err != nil {
		n.Close()
		return nil, fmt.Errorf("load %s: %w", s.path, err)
	}
	return n, nil
}

func (s *Session) load() error {
	if !C.acl_session_load(s.session, s.shared.shared) {
		return s.failed()
	}
	inputs, outputs := s.ports()
	for i := range inputs {
		p := portOf(&inputs[i])
		if p.Name == gearInput {
			continue
		}
		inputs[i].bits = C.int(p.Type.Bits())
		s.inputs, s.at = append(s.inputs, p), append(s.at, i)
	}
	for i := range outputs {
		p := portOf(&outputs[i])
		outputs[i].bits = C.int(p.Type.Bits())
		s.outputs = append(s.outputs, p)
	}
	for _, p := range slices.Concat(s.inputs, s.outputs) {
		if p.Type == tensor.Undefined {
			return fmt.Errorf("%q has an element type that npuctl does not know", p.Name)
		}
	}
	if !C.acl_session_allocate(s.session) {
		return s.failed()
	}
	return nil
}

func (s *Session) failed() error { return failed(&s.session.failure) }

// ports are the inputs and outputs as C has them.
func (s *Session) ports() (inputs, outputs []C.acl_port) {
	return unsafe.Slice(s.session.inputs, s.session.input_count), unsafe.Slice(s.session.outputs, s.session.output_count)
}

func portOf(p *C.acl_port) Port {
	dims := make([]int, p.dims.dim_count)
	for i := range dims {
		dims[i] = int(p.dims.dims[i])
	}
	return Port{Name: C.GoString(p.name), Type: elementTypes[int(p._type)], Dims: dims, Bytes: int(p.bytes)}
}

// Inputs are what a run takes, in order; the one for the gear is not among them.
func (s *Session) Inputs() []Port { return s.inputs }

// Outputs are what a run gives, in order.
func (s *Session) Outputs() []Port { return s.outputs }

// Limit sets how many cores the operators may use whose tiling is decided as they are
// launched; 0 leaves a kind as it is. Those of a model that was compiled for fixed shapes
// have had their tiling decided by ATC.
func (s *Session) Limit(cube, vector int) error {
	if s.session == nil {
		return fmt.Errorf("session: %w", ErrClosed)
	}
	for kind, cores := range [...]int{C.ACL_CUBE_CORES: cube, C.ACL_VECTOR_CORES: vector} {
		if cores == 0 {
			continue
		}
		if missing := s.shared.device.runtime.missingForLimits(); missing != "" {
			return fmt.Errorf("limit cores: the library has no function %s; CANN 8.3 or newer has", missing)
		}
		if !C.acl_session_limit(s.session, C.int(kind), C.uint32_t(cores)) {
			return fmt.Errorf("limit cores: %w", s.failed())
		}
	}
	return nil
}

// missingForLimits names the first function that is missing to limit cores.
func (r *Runtime) missingForLimits() string {
	switch l := r.library; {
	case l.aclrtSetStreamResLimit == nil:
		return "aclrtSetStreamResLimit"
	case l.aclrtUseStreamResInCurrentThread == nil:
		return "aclrtUseStreamResInCurrentThread"
	case l.aclrtUnuseStreamResInCurrentThread == nil:
		return "aclrtUnuseStreamResInCurrentThread"
	}
	return ""
}

// Input gives the pinned memory of an input for the next run, in a shape. It stays as it
// was filled; of open shape, a shape that needs more memory than any before loses what
// was there.
func (s *Session) Input(i int, shape []int64) ([]byte, error) {
	if s.session == nil {
		return nil, fmt.Errorf("session: %w", ErrClosed)
	}
	if s.stuck {
		return nil, ErrGivenUp
	}
	bytes, err := s.sizeOf(i, shape)
	if err != nil {
		return nil, err
	}
	index := s.at[i]
	inputs, _ := s.ports()
	p := &inputs[index]
	switch {
	case p.bytes > 0 && bytes > int64(p.bytes):
		return nil, fmt.Errorf("input %q of shape %v has %d bytes; the largest gear takes %d", s.inputs[i].Name, slices.Clone(shape), bytes, int64(p.bytes))
	case p.memory == nil || p.host == nil || bytes > int64(min(p.room, p.host_room)):
		if !C.acl_session_reserve(s.session, C.size_t(index), C.size_t(max(bytes, 2*int64(p.room)))) {
			return nil, fmt.Errorf("input %q of shape %v: %w", s.inputs[i].Name, slices.Clone(shape), s.failed())
		}
	}
	if !dimsAre(&p.now, shape) || p.now_bytes != C.size_t(bytes) {
		setDims(&p.now, shape)
		p.now_bytes, p.is_new = C.size_t(bytes), true
	}
	return unsafe.Slice((*byte)(p.host), bytes), nil
}

// sizeOf is how many bytes an input has in a shape.
func (s *Session) sizeOf(i int, shape []int64) (int64, error) {
	if i < 0 || i >= len(s.inputs) {
		return 0, fmt.Errorf("there is no input %d; the model has %d", i, len(s.inputs))
	}
	p := s.inputs[i]
	if len(shape) > mostDims {
		return 0, fmt.Errorf("input %q has %d dims; AscendCL takes at most %d", p.Name, len(shape), mostDims)
	}
	const most = 1 << 50
	count := int64(1)
	for _, d := range shape {
		if d < 0 || count > 0 && d > most/count {
			return 0, fmt.Errorf("input %q cannot have shape %v", p.Name, slices.Clone(shape))
		}
		count *= d
	}
	bytes, _ := p.Type.RawSize(count)
	return bytes, nil
}

func dimsAre(d *C.acl_dims, shape []int64) bool {
	if int(d.dim_count) != len(shape) {
		return false
	}
	for i, n := range shape {
		if int64(d.dims[i]) != n {
			return false
		}
	}
	return true
}

func setDims(d *C.acl_dims, values []int64) {
	d.dim_count = C.size_t(len(values))
	for i, v := range values {
		d.dims[i] = C.int64_t(v)
	}
}

// Run computes the outputs. With a gear, inputs must have that gear's sizes; see [Gear].
//
// When the context ends, the run is given up: the device may still be at it, so the
// session cannot run again, and what it holds is given back by the end of the process
// only.
func (s *Session) Run(ctx context.Context, gear Gear) (Times, error) {
	switch {
	case s.session == nil:
		return Times{}, fmt.Errorf("run: session: %w", ErrClosed)
	case ctx.Err() != nil:
		return Times{}, fmt.Errorf("run: %w", context.Cause(ctx))
	case s.stuck:
		return Times{}, fmt.Errorf("run: %w", ErrGivenUp)
	}
	if err := s.setGear(gear); err != nil {
		return Times{}, fmt.Errorf("run: %w", err)
	}
	state := C.int(C.ACL_FAILED)
	if gear.Kind == OpenShape {
		state = s.runOpen(ctx)
	} else {
		state = C.acl_session_start(s.session)
		for state == C.ACL_UNDER_WAY && ctx.Err() == nil {
			state = C.acl_session_wait(s.session)
		}
	}
	switch state {
	case C.ACL_UNDER_WAY:
		s.stuck = true
		return Times{}, fmt.Errorf("run: %w", context.Cause(ctx))
	case C.ACL_FAILED:
		s.stuck = bool(s.session.in_flight)
		return Times{}, fmt.Errorf("run: %w", s.failed())
	}
	return Times{H2D: milliseconds(s.session.h2d), Compute: milliseconds(s.session.compute), D2H: milliseconds(s.session.d2h)}, nil
}

func milliseconds(ms C.float) time.Duration {
	return time.Duration(float64(ms) * float64(time.Millisecond))
}

// setGear writes the gear down for C, when it is another than in the run before.
func (s *Session) setGear(gear Gear) error {
	if gear.Kind == s.gear.Kind && slices.Equal(gear.Values, s.gear.Values) {
		return nil
	}
	if err := gear.check(); err != nil {
		return err
	}
	s.gear = Gear{gear.Kind, append(s.gear.Values[:0], gear.Values...)}
	s.session.gear, s.session.gear_set = C.int(gear.Kind), false
	setDims(&s.session.values, gear.Values)
	return nil
}

// runOpen runs a model of open shape. The call cannot be ended from outside; it is left
// behind when the context ends first.
func (s *Session) runOpen(ctx context.Context) C.int {
	if ctx.Done() == nil {
		return C.acl_session_run_open(s.session)
	}
	if s.begin == nil {
		s.begin, s.ended = make(chan struct{}), make(chan C.int, 1)
		go runWhenTold(s.session, s.begin, s.ended)
	}
	s.begin <- struct{}{}
	select {
	case state := <-s.ended:
		return state
	case <-ctx.Done():
		s.dismiss()
		return C.ACL_UNDER_WAY
	}
}

// runWhenTold must not touch the session of Go, which goes on without it.
func runWhenTold(session *C.acl_session, begin <-chan struct{}, ended chan<- C.int) {
	for range begin {
		ended <- C.acl_session_run_open(session)
	}
}

func (s *Session) dismiss() {
	if s.begin != nil {
		close(s.begin)
		s.begin = nil
	}
}

// Stuck says that the device may still be at a run that was given up.
func (s *Session) Stuck() bool { return s.stuck }

// Output gives what the last run computed: its dims are appended to shape. The bytes are
// pinned memory, and valid until the next run or the end of the session.
func (s *Session) Output(i int, shape []int64) ([]int64, []byte) {
	if s.session == nil || s.stuck {
		return shape, nil
	}
	_, outputs := s.ports()
	p := &outputs[i]
	for _, n := range p.now.dims[:min(mostDims, p.now.dim_count)] {
		shape = append(shape, int64(n))
	}
	return shape, unsafe.Slice((*byte)(p.host), p.now_bytes)
}

// Close unloads the model and gives its memory back. A session whose run was given up
// keeps what it holds, and with it device and runtime: to close them would wait for the
// device.
func (s *Session) Close() error {
	if s.session == nil || s.stuck {
		return nil
	}
	s.dismiss()
	C.acl_session_close(s.session)
	C.free(unsafe.Pointer(s.session))
	s.session = nil
	s.shared.release()
	return nil
}
