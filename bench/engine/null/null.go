package null

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/cpu"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options say what the engine does instead of computing.
type Options struct {
	// Inputs and Outputs are the signature. Without them it is that of the ONNX file that
	// is opened; with them the path does not matter.
	Inputs, Outputs []engine.Port
	// Gears has it refuse sizes that are none of them, as compiled models do.
	Gears *engine.Gears
	// A run takes Fixed, and Item for each row of the first input. Time, when set, says
	// instead how long, by the shapes of all inputs. It must not keep them.
	Fixed, Item time.Duration
	Time        func(shapes [][]int64) time.Duration
	// Silent leaves the outputs as they are: shapes alone are set.
	Silent bool
	// Devices is how many there are; 0 is one.
	Devices int
	// Faults are what goes wrong.
	Faults Faults
}

// Faults count the runs of all instances of a model together; 0 is never.
type Faults struct {
	// Fail has every so-manieth run fail, alone.
	Fail int
	// Break has every so-manieth run fail, and every later one of its instance.
	Break int
	// Panic has every so-manieth run panic.
	Panic int
	// Stall has every so-manieth run take StallTime more.
	Stall     int
	StallTime time.Duration
	// NewInstance, when set, is asked before each instance is made, by its number from 0
	// in the model.
	NewInstance func(number int, p engine.Placement) error
}

// ErrInjected is the error of runs that fail because [Faults] say so.
var ErrInjected = errors.New("a fault that was asked for")

type null struct{ options Options }

// New makes the engine.
func New(o Options) engine.Engine { return null{o} }

// About says that nothing is computed.
func (e null) About() engine.About {
	return engine.About{Name: "null", Version: "nothing is computed", Device: "none", Devices: max(1, e.options.Devices), Emulated: true}
}

// Close returns nil.
func (null) Close() error { return nil }

// Open reads the signature of a file, unless there is one in the options.
func (e null) Open(ctx context.Context, path string) (engine.Model, error) {
	m := &model{options: e.options, devices: max(1, e.options.Devices)}
	if e.options.Outputs != nil {
		m.signature = &cpu.Signature{Inputs: e.options.Inputs, Outputs: e.options.Outputs}
	} else {
		file, s, err := cpu.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		m.signature = s
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	for o := range m.signature.Outputs {
		m.sources = append(m.sources, m.source(o))
	}
	return m, nil
}

type model struct {
	options   Options
	devices   int
	signature *cpu.Signature
	sources   []int // of each output: the input that it copies, -1 for none
	runs      atomic.Int64
	instances atomic.Int64
	closed    atomic.Bool
}

// source chooses what an output copies: the first input of its type and dims, or else of
// its type, or else any.
func (m *model) source(output int) int {
	out, best := &m.signature.Outputs[output], -1
	worth := 0
	for i := range m.signature.Inputs {
		in, w := &m.signature.Inputs[i], 1
		switch {
		case in.Type == out.Type && slices.Equal(in.Dims, out.Dims) && slices.Equal(names(m.signature.InputNames, i), names(m.signature.OutputNames, output)):
			w = 4
		case in.Type == out.Type && slices.Equal(in.Dims, out.Dims):
			w = 3
		case in.Type == out.Type:
			w = 2
		}
		if w > worth {
			best, worth = i, w
		}
	}
	return best
}

func names(all [][]string, i int) []string {
	if i < len(all) {
		return all[i]
	}
	return nil
}

// Inputs and Outputs are the signature.
func (m *model) Inputs() []engine.Port  { return m.signature.Inputs }
func (m *model) Outputs() []engine.Port { return m.signature.Outputs }

// Gears are those of the options.
func (m *model) Gears() *engine.Gears { return m.options.Gears }

// Close ends the model.
func (m *model) Close() error {
	m.closed.Store(true)
	return nil
}

// NewInstance makes an instance, unless a fault is asked for.
func (m *model) NewInstance(p engine.Placement) (engine.Instance, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("the model: %w", cpu.ErrClosed)
	}
	number := int(m.instances.Add(1)) - 1
	if p.Device < 0 || p.Device >= m.devices {
		return nil, fault.New(fault.Missing, "there is no device %d, there are %d", p.Device, m.devices)
	}
	if f := m.options.Faults.NewInstance; f != nil {
		if err := f(number, p); err != nil {
			return nil, err
		}
	}
	return &instance{
		Inputs: cpu.NewInputs(m.signature.Inputs), model: m, clock: load.NewClock(),
		given: make([]engine.Buffer, len(m.signature.Inputs)), shapes: make([][]int64, len(m.signature.Inputs)),
		outputs: make([]engine.Buffer, len(m.signature.Outputs)), memory: make([]engine.Buffer, len(m.signature.Outputs)),
	}, nil
}

type instance struct {
	*cpu.Inputs
	model   *model
	clock   load.Clock
	given   []engine.Buffer
	shapes  [][]int64
	outputs []engine.Buffer
	memory  []engine.Buffer // the largest of each so far
	broken  bool
}

// Run waits for its time and copies.
func (i *instance) Run(ctx context.Context) (engine.Times, error) {
	begin := i.clock.Now()
	if err := i.Take(i.give, i.leave); err != nil {
		return engine.Times{}, err
	}
	if ctx.Err() != nil {
		return engine.Times{}, context.Cause(ctx)
	}
	stall, err := i.injected()
	if err != nil {
		return engine.Times{}, err
	}
	if err := i.checkGear(); err != nil {
		return engine.Times{}, err
	}
	for o := range i.outputs {
		if err := i.compute(o); err != nil {
			return engine.Times{}, fmt.Errorf("output %q: %w", i.model.signature.Outputs[o].Name, err)
		}
	}
	if d := i.time() + stall; d > 0 && !i.clock.Wait(begin+d, ctx.Done()) {
		return engine.Times{}, context.Cause(ctx)
	}
	return engine.Times{Compute: i.clock.Now() - begin}, nil
}

func (i *instance) give(at int, b engine.Buffer, _ bool) error {
	i.given[at], i.shapes[at] = b, b.Shape
	return nil
}

func (i *instance) leave(at int) error {
	i.given[at], i.shapes[at] = engine.Buffer{}, nil
	return nil
}

// injected does what [Faults] ask of this run.
func (i *instance) injected() (stall time.Duration, err error) {
	f := &i.model.options.Faults
	run := i.model.runs.Add(1)
	is := func(every int) bool { return every > 0 && run%int64(every) == 0 }
	switch {
	case i.broken || is(f.Break):
		i.broken = true
		return 0, fmt.Errorf("run %d: %w: %w", run, engine.ErrBroken, ErrInjected)
	case is(f.Panic):
		panic(ErrInjected)
	case is(f.Fail):
		return 0, fmt.Errorf("run %d: %w", run, ErrInjected)
	case is(f.Stall):
		return f.StallTime, nil
	}
	return 0, nil
}

// time is how long the run is to take.
func (i *instance) time() time.Duration {
	o := &i.model.options
	if o.Time != nil {
		return o.Time(i.shapes)
	}
	if o.Item == 0 {
		return o.Fixed
	}
	rows := int64(1)
	if len(i.shapes) > 0 && len(i.shapes[0]) > 0 {
		rows = i.shapes[0][0]
	}
	return o.Fixed + time.Duration(rows)*o.Item
}

// checkGear holds that the shapes are those of a gear.
func (i *instance) checkGear() error {
	g := i.model.options.Gears
	if g == nil || slices.ContainsFunc(g.Rows, func(row []int64) bool { return i.isGear(g, row) }) {
		return nil
	}
	return fmt.Errorf("no gear has the shapes %v", i.shapes)
}

func (i *instance) isGear(g *engine.Gears, row []int64) bool {
	next := 0
	for at, dims := range g.Dims {
		shape := i.shapes[at]
		for axis, d := range dims {
			if d < 0 {
				d = row[next]
				next++
			}
			if shape != nil && (axis >= len(shape) || shape[axis] != d) {
				return false
			}
		}
	}
	return true
}

// compute fills an output, row by row: with the row of its source, again and again where
// that is shorter.
func (i *instance) compute(o int) error {
	p := &i.model.signature.Outputs[o]
	var source engine.Buffer
	at := i.model.sources[o]
	if at >= 0 {
		source = i.given[at]
	}
	out := &i.outputs[o]
	i.shape(o, source.Shape)
	count, size, err := cpu.Size(p.Type, out.Shape)
	if err != nil {
		return err
	}
	if p.Type == tensor.String {
		out.Strings = sized(&i.memory[o].Strings, count)
		copyRows(out.Strings, source.Strings, rowsOf(out.Shape), i.model.options.Silent)
		return nil
	}
	out.Bytes = sized(&i.memory[o].Bytes, size)
	from := source.Bytes
	if len(source.Strings) > 0 {
		from = []byte(source.Strings[0])
	}
	copyRows(out.Bytes, from, rowsOf(out.Shape), i.model.options.Silent)
	return nil
}

// shape sets the shape of an output. An open dim has the size of the source's dim of the
// same name, or else at the same place; where there is none it is 1.
func (i *instance) shape(o int, source []int64) {
	p := &i.model.signature.Outputs[o]
	out := &i.outputs[o]
	if p.Dims == nil {
		out.Shape = append(out.Shape[:0], source...)
		return
	}
	out.Shape = append(out.Shape[:0], p.Dims...)
	for axis, d := range p.Dims {
		if d >= 0 {
			continue
		}
		out.Shape[axis] = 1
		if axis < len(source) {
			out.Shape[axis] = source[axis]
		}
		if own := names(i.model.signature.OutputNames, o); axis < len(own) && own[axis] != "" {
			if n, ok := i.named(own[axis]); ok {
				out.Shape[axis] = n
			}
		}
	}
}

// named looks for the size of a dim of this name.
func (i *instance) named(name string) (int64, bool) {
	for at, dims := range i.model.signature.InputNames {
		if axis := slices.Index(dims, name); axis >= 0 && axis < len(i.shapes[at]) {
			return i.shapes[at][axis], true
		}
	}
	return 0, false
}

func rowsOf(shape []int64) int {
	if len(shape) == 0 {
		return 1
	}
	return int(shape[0])
}

// sized gives the start of a memory that grows.
func sized[T any](memory *[]T, n int) []T {
	if n > len(*memory) {
		*memory = make([]T, n)
	}
	return (*memory)[:n]
}

// copyRows fills rows from rows; both have as many.
func copyRows[T any](to, from []T, rows int, silent bool) {
	if silent || rows == 0 || len(to) == 0 {
		return
	}
	if len(to) == len(from) {
		copy(to, from)
		return
	}
	each, of := len(to)/rows, len(from)/rows
	if of == 0 {
		clear(to)
		return
	}
	for r := range rows {
		row, source := to[r*each:(r+1)*each], from[r*of:(r+1)*of]
		for n := copy(row, source); n < each; n += copy(row[n:], source) {
		}
	}
}

// Output gives what the last run made up.
func (i *instance) Output(o int) engine.Buffer { return i.outputs[o] }

// Close ends the instance.
func (i *instance) Close() error {
	i.Inputs.Close()
	return nil
}
