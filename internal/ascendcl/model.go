//go:build cgo && linux

package ascendcl

/*
#include <stdlib.h>
#include "api.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// gearInput is the input through which the runtime takes the gear; it fills it itself.
const gearInput = "ascend_mbatch_shape_data"

// Model is a loaded .om. It runs once at a time: runs that several goroutines ask for
// wait for each other.
type Model struct {
	device  *Device
	inputs  []Port
	outputs []Port
	hidden  int // index of the gear input among the model's inputs; -1 without

	mu    sync.Mutex
	model *C.acl_model // nil when closed
}

// Load puts the model of a file on the device.
func (d *Device) Load(path string) (*Model, error) {
	if err := d.acquire(); err != nil {
		return nil, err
	}
	m := &Model{device: d, hidden: -1, model: (*C.acl_model)(C.calloc(1, C.sizeof_acl_model))}
	if err := m.load(path); err != nil {
		C.free(unsafe.Pointer(m.model))
		d.release()
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return m, nil
}

func (m *Model) load(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name := C.CString(absolute)
	defer C.free(unsafe.Pointer(name))
	var failure C.acl_failure
	if !C.acl_model_load(m.model, m.device.runtime.library, m.device.device, name, &failure) {
		return failed(&failure)
	}
	for i, p := range unsafe.Slice(m.model.inputs, m.model.input_count) {
		if C.GoString(p.name) == gearInput {
			m.hidden = i
			continue
		}
		m.inputs = append(m.inputs, portOf(&p))
	}
	for _, p := range unsafe.Slice(m.model.outputs, m.model.output_count) {
		m.outputs = append(m.outputs, portOf(&p))
	}
	return nil
}

func portOf(p *C.acl_port) Port {
	return Port{Name: C.GoString(p.name), Type: elementTypes[int(p._type)], Dims: dimsOf(&p.dims), Bytes: int(p.bytes)}
}

func dimsOf(d *C.acl_dims) []int {
	dims := make([]int, d.dim_count)
	for i := range dims {
		dims[i] = int(d.dims[i])
	}
	return dims
}

// Inputs are what [Model.Run] takes, in order; the one for the gear is not among them.
func (m *Model) Inputs() []Port { return m.inputs }

// Outputs are what [Model.Run] gives, in order.
func (m *Model) Outputs() []Port { return m.outputs }

// Close unloads the model and gives its memory back.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.model == nil {
		return nil
	}
	if m.model.abandoned {
		// Device and runtime stay open with it: to close them would wait for the device.
		return nil
	}
	C.acl_model_close(m.model)
	C.free(unsafe.Pointer(m.model))
	m.model = nil
	m.device.release()
	return nil
}

// Run computes all outputs from all inputs, in the model's order. With a gear, inputs
// must have that gear's sizes; see [Gear]. When ctx ends, the run is given up: the device
// may still be at it, so the model cannot run again, and what it holds on the device is
// given back by the end of the process only. A model of open shape cannot be given up.
func (m *Model) Run(ctx context.Context, inputs []*tensor.Dense, gear Gear) ([]*tensor.Dense, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.model == nil {
		return nil, fmt.Errorf("run: model: %w", ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run: %w", context.Cause(ctx))
	}
	if m.model.abandoned {
		return nil, errors.New("run: an earlier run of the model was given up")
	}
	if err := m.suits(inputs, gear); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	m.model.stop = 0 // a context that ended as an earlier run did may have set it
	over := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		C.acl_model_stop(m.model)
		close(over)
	})
	outputs, err := m.run(inputs, gear)
	if !forget() {
		<-over // nobody may touch the model's memory once Run has returned
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return outputs, nil
}

// suits says what is wrong with inputs before anything is copied.
func (m *Model) suits(inputs []*tensor.Dense, gear Gear) error {
	if err := gear.check(); err != nil {
		return err
	}
	if len(inputs) != len(m.inputs) {
		return fmt.Errorf("%d inputs are given; the model has %d", len(inputs), len(m.inputs))
	}
	for i, in := range inputs {
		p := m.inputs[i]
		switch size := len(in.Raw()); {
		case p.Type == tensor.Undefined:
			return fmt.Errorf("input %q has an element type that npuctl does not know", p.Name)
		case in.Type() != p.Type:
			return fmt.Errorf("input %q is %s; the model takes %s", p.Name, in.Type(), p.Type)
		case in.Rank() > mostDims:
			return fmt.Errorf("input %q has %d dims; AscendCL takes at most %d", p.Name, in.Rank(), mostDims)
		case gear.Kind == NoGear && size != p.Bytes:
			return fmt.Errorf("input %q of shape %v has %d bytes; the model takes %v, %d bytes", p.Name, in.Shape(), size, p.Dims, p.Bytes)
		case gear.Kind != OpenShape && size > p.Bytes:
			return fmt.Errorf("input %q of shape %v has %d bytes; the largest gear takes %d", p.Name, in.Shape(), size, p.Bytes)
		}
	}
	return nil
}

func (m *Model) run(inputs []*tensor.Dense, gear Gear) ([]*tensor.Dense, error) {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	in := m.arrays(inputs, &pinner)
	out := make([]C.acl_array, m.model.output_count+1)
	var numbers C.acl_dims
	setDims(&numbers, gear.Values)
	hidden := ^C.size_t(0)
	if m.hidden >= 0 {
		hidden = C.size_t(m.hidden)
	}
	var failure C.acl_failure
	if !C.acl_model_run(m.model, C.int(gear.Kind), &numbers, hidden, &in[0], &out[0], &failure) {
		return nil, failed(&failure)
	}
	outputs := make([]*tensor.Dense, len(m.outputs))
	for i, p := range m.outputs {
		var err error
		if outputs[i], err = m.fetch(i, p, &out[i]); err != nil {
			return nil, fmt.Errorf("output %q: %w", p.Name, err)
		}
	}
	return outputs, nil
}

// arrays puts the inputs where C finds them: one for each input of the model, that of
// the gear left empty. There is always at least one, so that it has an address.
func (m *Model) arrays(inputs []*tensor.Dense, pinner *runtime.Pinner) []C.acl_array {
	all := make([]C.acl_array, m.model.input_count+1)
	next := 0
	for i := range int(m.model.input_count) {
		if i == m.hidden {
			continue
		}
		d := inputs[next]
		next++
		if raw := d.Raw(); len(raw) > 0 {
			pinner.Pin(&raw[0])
			all[i].data, all[i].bytes = unsafe.Pointer(&raw[0]), C.size_t(len(raw))
		}
		shape := make([]int64, d.Rank())
		for axis, size := range d.Shape() {
			shape[axis] = int64(size)
		}
		setDims(&all[i].dims, shape)
	}
	return all
}

func setDims(d *C.acl_dims, values []int64) {
	d.dim_count = C.size_t(len(values))
	for i, v := range values {
		d.dims[i] = C.int64_t(v)
	}
}

// fetch copies an output from the device.
func (m *Model) fetch(i int, p Port, array *C.acl_array) (*tensor.Dense, error) {
	if p.Type == tensor.Undefined {
		return nil, errors.New("an element type that npuctl does not know")
	}
	d, err := tensor.New(p.Type, dimsOf(&array.dims)...)
	if err != nil {
		return nil, err
	}
	size := len(d.Raw())
	if C.size_t(size) > array.bytes {
		return nil, fmt.Errorf("shape %v takes %d bytes; the device has %d", d.Shape(), size, int(array.bytes))
	}
	if size == 0 {
		return d, nil
	}
	raw := make([]byte, size)
	var failure C.acl_failure
	if !C.acl_model_fetch(m.model, C.size_t(i), unsafe.Pointer(&raw[0]), C.size_t(size), &failure) {
		return nil, failed(&failure)
	}
	return tensor.FromRaw(p.Type, d.Shape(), raw)
}
