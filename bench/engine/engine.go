// Package engine is what computes a model for the serving executor: it opens a model,
// says its signature, makes instances that run at the same time, and each of those runs
// one batch at a time from memory of the host to memory of the host.
//
// An engine is small. Queues, batches, gears, padding, and which rows belong to whom are
// the executor's; engines know nothing of requests, and nothing of each other. Each lies
// in a folder of its own: ascend (an NPU behind AscendCL, or its emulator), ort (ONNX
// Runtime), ref (the built-in interpreter) and null (a programmed time and no work, for
// measuring everything else).
//
// # One copy
//
// The memory of inputs belongs to the instance: pinned memory of the host for a device,
// plain memory elsewhere. Who makes a batch writes its rows straight into it:
//
//	x, err := instance.Input(0, []int64{8, 3, 224, 224})
//	copy(x.Bytes, rows)                      // of every request, behind each other
//	times, err := instance.Run(ctx)
//	y := instance.Output(0)                  // valid until the next Run
//
// so that a row is copied once on its way in and once on its way out.
package engine

import (
	"context"
	"errors"
	"time"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// ErrBroken is wrapped by the errors of an instance that can run nothing any more: it was
// left in the midst of a run that could not be stopped, or its device is gone. Who has it
// closes it and makes another. Any other error of a run is of that run alone.
var ErrBroken = errors.New("the instance cannot be used any more")

// Engine makes models ready to run. Goroutines may share it.
type Engine interface {
	// About says what it is, for reports.
	About() About
	// Open makes the model of a file ready: on every device, where weights lie once and
	// are shared by instances. Faults of the file are fault.Input, a file of the wrong kind
	// is fault.Usage, a device that is not there fault.Missing.
	Open(ctx context.Context, path string) (Model, error)
	// Close gives back what the engine holds, once its models are closed.
	Close() error
}

// About is what every report has to say about an engine.
type About struct {
	// Name is that of the --engine flag: ascend, ort, ref, null.
	Name string
	// Version is that of the library, such as "ONNX Runtime 1.22.0".
	Version string
	// Device is what computes, such as "CPU" or "Ascend910B3".
	Device string
	// Devices is how many of them the engine may use.
	Devices int
	// Emulated says that no device had a part in it.
	Emulated bool
}

// Model is a model that is ready. Goroutines may share it.
type Model interface {
	// Inputs and Outputs are its signature, in the order of the model.
	Inputs() []Port
	Outputs() []Port
	// Gears are the sizes it was compiled for; nil when any size runs that the dims allow.
	Gears() *Gears
	// NewInstance makes one of the instances that may run at the same time.
	NewInstance(p Placement) (Instance, error)
	// Close gives the model back, once its instances are closed.
	Close() error
}

// Port is an input or output of a model.
type Port struct {
	Name string
	Type tensor.Type
	// Dims are its sizes, batch axis included; -1 is open. Nil is an unknown rank.
	Dims []int64
	// Optional inputs have a default and may be left out.
	Optional bool
}

// Gears are the sizes that a model was compiled for.
type Gears struct {
	// Dims are those of every input, -1 where a gear decides.
	Dims [][]int64
	// Rows have, for each gear, a number for every -1 of Dims in their order.
	Rows [][]int64
}

// Placement is where an instance runs.
type Placement struct {
	// Device is its number, from 0; engines of the CPU have only 0.
	Device int
	// CubeCores and VectorCores limit what it takes of the device; 0 is no limit.
	CubeCores, VectorCores int
}

// Buffer is memory for the elements of a tensor, row by row. Strings have Strings, all
// other types Bytes, little-endian.
type Buffer struct {
	Shape   []int64
	Bytes   []byte
	Strings []string
}

// Times are how long the parts of a run took, as the engine itself stamped them. Engines
// of the CPU have Compute alone.
type Times struct {
	H2D     time.Duration // inputs to the device
	Compute time.Duration // the model
	D2H     time.Duration // outputs to the host
}

// Instance runs a model, one batch at a time. It belongs to the goroutine that made it:
// engines whose library has its state by thread lock that goroutine to its thread until
// Close.
type Instance interface {
	// Input gives the memory of an input for the next run, of the shape that it is to have.
	// It is to be filled by the caller, and holds whatever the caller last left in it: the
	// engine does not write to it. Asked again for the same shape it is the same memory
	// with the same elements, until another shape was asked for. An optional input that is
	// not asked for before a run is left out of it; any other that is not is an error of
	// the run.
	Input(i int, shape []int64) (Buffer, error)
	// Run computes the outputs. When the context ends it comes back soon with the
	// context's error; an instance that could not stop its run gives an error for every
	// later one, which wraps [ErrBroken].
	Run(ctx context.Context) (Times, error)
	// Output gives what the last run computed. It is valid until the next one.
	Output(i int) Buffer
	// Close gives back what the instance holds.
	Close() error
}

// Borrower is an instance that can also read an input where the caller has it: an engine of
// the CPU. It saves the copy where a batch is one request.
type Borrower interface {
	Instance
	// Borrow takes the place of Input for the next run. The memory must stay as it is until
	// the run is over; the engine does not write to it, and no output stands on it.
	Borrow(i int, b Buffer) error
}
