package executor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Model runs the batches of a [Live] on the instances of an engine's model, one for each
// worker:
//
//	m, err := NewModel(opened, &setup, ModelOptions{})    // checks it against the setup
//	live, err := NewLive(setup, m)                        // makes the instances
//	call, p := NewCall(), &Payload{Inputs: …}
//	err = m.Prepare(call, p)                              // size, class, sizes of memory
//	if live.Do(ctx, call) == OK { use(p.Outputs) }
//
// A row is copied once on its way in, from the request into the memory of the instance,
// and once on its way out. Where a chunk is one request, an engine of the CPU reads the
// inputs where they are. A batch of requests of a shape that was there before allocates
// nothing, apart from outputs for which there is no room.
//
// An instance that breaks is made anew; when that fails, or it breaks again and again, its
// worker goes out of service.
type Model struct {
	engine  engine.Model
	options ModelOptions
	setup   *Setup
	inputs  []modelInput
	outputs []modelOutput
	workers []worker
	notes   []string
	remade  atomic.Int64
	begin   time.Time
}

// now is a time since a beginning: half as dear as one of the calendar.
func (m *Model) now() time.Duration { return time.Since(m.begin) }

// ModelOptions say how a [Model] is to be run.
type ModelOptions struct {
	// Inputs and Outputs are what a configuration declares, in its order, which is that of
	// payloads. Inputs must be those of [Setup.Signature]. Nil takes the model's own.
	Inputs, Outputs []Declared
	// Follows say which dims of outputs are as large as which of inputs: where a gear is
	// larger in these than a request, its outputs are cut to its own size. Outputs are as
	// large as the gear in all other dims.
	Follows []Follow
	// CubeCores and VectorCores limit each instance; 0 is no limit.
	CubeCores, VectorCores int
	// Context, when it ends, stops all runs; nil never does. With one that can end some
	// engines run a little slower.
	Context context.Context
}

// Declared is an input or output, as a configuration declares it.
type Declared struct {
	Name string
	// Type of its elements; Undefined is not checked.
	Type tensor.Type
	// Dims are those of one item; -1 is open.
	Dims []int64
}

// Follow says that a dim of an output is as large as one of an input. Axes count from 0,
// that of the batch included.
type Follow struct {
	Output string
	Axis   int
	Input  string
	From   int
}

// modelInput is an input in the order of payloads.
type modelInput struct {
	name string
	port int // of the engine
	kind tensor.Type
	unit unit
	// gears has, for each gear, the item that it is made for; nil where that is the request's.
	gears [][]int64
}

// modelOutput is an output in the order of payloads.
type modelOutput struct {
	name   string
	port   int
	kind   tensor.Type
	unit   unit
	follow []follow // by axis of the item
}

// follow is where the size of an axis of an output comes from: an axis of an item, or
// input -1 for nowhere.
type follow struct{ input, axis int }

// unit is what elements of a type are in memory.
type unit struct {
	bits    int
	strings bool
}

func unitOf(t tensor.Type) unit { return unit{t.Bits(), t == tensor.String} }

// size is the bytes, or strings, of so many elements.
func (u unit) size(elements int) int {
	switch {
	case u.strings:
		return elements
	case elements > math.MaxInt/256:
		return math.MaxInt // no memory is as large
	}
	return (elements*u.bits + 7) / 8
}

// room is the bytes, or strings, that a buffer has.
func (u unit) room(b *engine.Buffer) int {
	if u.strings {
		return len(b.Strings)
	}
	return len(b.Bytes)
}

// copy copies a run of bytes or strings.
func (u unit) copy(to *engine.Buffer, at int, from *engine.Buffer, start, count int) {
	if u.strings {
		copy(to.Strings[at:at+count], from.Strings[start:start+count])
		return
	}
	copy(to.Bytes[at:at+count], from.Bytes[start:start+count])
}

// block copies the part of an item that fits.
func (u unit) block(to *engine.Buffer, at int, toDims []int64, from *engine.Buffer, start int, fromDims, block []int64) {
	if u.strings {
		copyBlock(to.Strings[at:], toDims, from.Strings[start:], fromDims, block, 1)
		return
	}
	copyBlock(to.Bytes[at:], toDims, from.Bytes[start:], fromDims, block, u.bits/8)
}

// Inputs and Outputs give the names, in the order of payloads.
func (m *Model) Inputs() []string {
	names := make([]string, len(m.inputs))
	for i := range m.inputs {
		names[i] = m.inputs[i].name
	}
	return names
}

// Outputs gives the names of the outputs, in the order of payloads.
func (m *Model) Outputs() []string {
	names := make([]string, len(m.outputs))
	for i := range m.outputs {
		names[i] = m.outputs[i].name
	}
	return names
}

// InputPort and OutputPort give what the engine says of an input or output.
func (m *Model) InputPort(i int) engine.Port { return m.engine.Inputs()[m.inputs[i].port] }

// OutputPort gives what the engine says of an output.
func (m *Model) OutputPort(i int) engine.Port { return m.engine.Outputs()[m.outputs[i].port] }

// Notes are what a reader of results should know: batches that are split, and the like.
func (m *Model) Notes() []string { return m.notes }

// Remade counts the instances that broke and were made anew.
func (m *Model) Remade() int64 { return m.remade.Load() }

// hasBatch says whether the first dim of all inputs and outputs is the batch.
func (m *Model) hasBatch() bool { return m.setup.Policy.MaxBatch > 0 }

// Prepare makes a call of a payload, or says why it does not fit the model. It must be done
// again when the shapes of the inputs have changed, and only then.
func (m *Model) Prepare(c *Call, p *Payload) error {
	if len(p.Inputs) != len(m.inputs) {
		return fmt.Errorf("%d inputs: the model has %d", len(p.Inputs), len(m.inputs))
	}
	size := -1
	p.given = p.given[:0]
	for i := range m.inputs {
		in, b := &m.inputs[i], &p.Inputs[i]
		if b.Shape == nil {
			continue
		}
		item := b.Shape
		if m.hasBatch() {
			if len(item) == 0 {
				return fmt.Errorf("input %q is a scalar: the first dim must be the number of items", in.name)
			}
			if size >= 0 && int64(size) != item[0] {
				return fmt.Errorf("input %q has %d items, another has %d", in.name, item[0], size)
			}
			size, item = int(item[0]), item[1:]
		}
		p.given = append(p.given, Given{Input: i, Shape: item})
	}
	class, err := m.setup.Signature.Admit(size, p.given)
	if err != nil {
		return err
	}
	for i := range m.inputs {
		in, b := &m.inputs[i], &p.Inputs[i]
		if want := in.unit.size(elements(b.Shape)); b.Shape != nil && in.unit.room(b) != want {
			return fmt.Errorf("input %q: a tensor of %v %s takes %s, and there are %d", in.name, in.kind, ShapeText(b.Shape), in.unit.text(want), in.unit.room(b))
		}
	}
	c.Size, c.Class, c.Data = max(1, size), class, p
	return nil
}

func (u unit) text(n int) string {
	if u.strings {
		return fmt.Sprintf("%d strings", n)
	}
	return fmt.Sprintf("%d bytes", n)
}

// mostRemakes is how often in a row an instance is made anew without a run that goes well.
const mostRemakes = 3

// worker is an instance with what belongs to it. One goroutine uses it.
type worker struct {
	model    *Model
	device   int
	instance engine.Instance
	borrower engine.Borrower // the same, if it is one
	remakes  int             // in a row
	padding  []padding
	shape    []int64 // used again and again
	times    RunTimes
}

// Begin makes the instance of a worker, on its goroutine.
func (m *Model) Begin(number, device int) error {
	w := &m.workers[number]
	*w = worker{model: m, device: device, padding: make([]padding, len(m.inputs))}
	if err := w.make(); err != nil {
		return fmt.Errorf("make instance %d of %d, on device %d: %w", number+1, len(m.workers), device, err)
	}
	return nil
}

// End gives the instance back.
func (m *Model) End(number int) error {
	w := &m.workers[number]
	if w.instance == nil {
		return nil
	}
	return w.instance.Close()
}

func (w *worker) make() (err error) {
	o := &w.model.options
	clear(w.padding)
	w.instance, err = w.model.engine.NewInstance(engine.Placement{Device: w.device, CubeCores: o.CubeCores, VectorCores: o.VectorCores})
	w.borrower, _ = w.instance.(engine.Borrower)
	return err
}

// Run computes a part of a batch.
func (m *Model) Run(b *Batch, part int) error {
	w := &m.workers[b.Workers[part]]
	err := w.guarded(b, part)
	switch {
	case err == nil:
		w.remakes = 0
		return nil
	case !errors.Is(err, engine.ErrBroken):
		return err
	}
	if again := w.remake(); again != nil {
		return fmt.Errorf("the instance on device %d is %w: %w; it had failed: %w", w.device, ErrOutOfService, again, err)
	}
	return err
}

// guarded runs a part. An engine that panics is broken.
func (w *worker) guarded(b *Batch, part int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the engine panicked: %v: %w", r, engine.ErrBroken)
		}
	}()
	return w.run(b, part)
}

// remake makes another instance for one that broke.
func (w *worker) remake() error {
	if w.remakes >= mostRemakes {
		return fmt.Errorf("it was made anew %d times and broke again each time", w.remakes)
	}
	w.remakes++
	closed := w.instance.Close()
	w.instance = nil
	if err := w.make(); err != nil {
		return errors.Join(fmt.Errorf("it could not be made anew: %w", err), closed)
	}
	w.model.remade.Add(1)
	return nil
}

// run computes the chunks of a part.
func (w *worker) run(b *Batch, part int) error {
	shared := b.Parts() > 1
	for _, r := range b.Requests {
		p, ok := r.Data.(*Payload)
		if !ok {
			return fmt.Errorf("a request carries %T, and not the payload of a model", r.Data)
		}
		if shared {
			p.mu.Lock()
		}
		p.begin(b, len(w.model.outputs))
		if shared {
			p.mu.Unlock()
		}
	}
	w.times = RunTimes{}
	from := cursorOf(b, part)
	for i := range b.Chunks {
		c := &b.Chunks[i]
		if c.Part != part {
			continue
		}
		if err := w.chunk(b, c, from, shared); err != nil {
			return err
		}
		from.advance(b, c.Items)
	}
	for i, r := range b.Requests {
		p := r.Data.(*Payload)
		if shared {
			p.mu.Lock()
		}
		p.end(b, &w.times, i == 0)
		if shared {
			p.mu.Unlock()
		}
	}
	return nil
}

// place is a row of a batch: of which request, and which of it.
type place struct{ request, row int }

// cursorOf is the first row of a part.
func cursorOf(b *Batch, part int) (p place) {
	for _, c := range b.Chunks {
		if c.Part < part {
			p.advance(b, c.Items)
		}
	}
	return p
}

// advance goes on by so many rows.
func (p *place) advance(b *Batch, items int) {
	p.row += items
	for p.request < len(b.Requests) && p.row >= b.Requests[p.request].items {
		p.row -= b.Requests[p.request].items
		p.request++
	}
}

// chunk runs one chunk, which begins at a place of the batch.
func (w *worker) chunk(b *Batch, c *Chunk, from place, shared bool) error {
	begin := w.model.now()
	for i := range w.model.inputs {
		if err := w.join(b, c, from, i); err != nil {
			return fmt.Errorf("input %q: %w", w.model.inputs[i].name, err)
		}
	}
	joined := w.model.now()
	times, err := w.instance.Run(w.model.options.Context)
	if err != nil {
		return err
	}
	ran := w.model.now()
	for o := range w.model.outputs {
		if err := w.cut(b, c, from, o, shared); err != nil {
			return fmt.Errorf("output %q: %w", w.model.outputs[o].name, err)
		}
	}
	t := &w.times
	t.Join += joined - begin
	t.Cut += w.model.now() - ran
	t.Engine.H2D += times.H2D
	t.Engine.Compute += times.Compute
	t.Engine.D2H += times.D2H
	return nil
}

// join writes the rows of a chunk into the memory of an input, and pads them to the gear.
func (w *worker) join(b *Batch, c *Chunk, from place, i int) error {
	in := &w.model.inputs[i]
	first := b.Requests[from.request].Data.(*Payload)
	own := first.Inputs[i].Shape
	if own == nil {
		return nil // left out
	}
	batch := 1
	w.shape = w.shape[:0]
	if w.model.hasBatch() {
		own, batch = own[1:], c.Batch
		w.shape = append(w.shape, int64(batch))
	}
	item := own
	if c.Gear >= 0 && in.gears != nil && in.gears[c.Gear] != nil {
		item = in.gears[c.Gear]
	}
	w.shape = append(w.shape, item...)
	if w.borrows(b, c, from, i, own, item) {
		return w.borrower.Borrow(in.port, first.Inputs[i])
	}
	buffer, err := w.instance.Input(in.port, w.shape)
	if err != nil {
		return err
	}
	isPadded := !slices.Equal(own, item)
	if isPadded && in.unit.bits < 8 && !in.unit.strings {
		return fmt.Errorf("items of %v cannot be padded from %s to %s", in.kind, ShapeText(own), ShapeText(item))
	}
	size, ownSize := in.unit.size(elements(item)), in.unit.size(elements(own))
	used := size * c.Items
	if len(buffer.Bytes)+len(buffer.Strings) != size*batch && batch > 1 {
		return fmt.Errorf("%d items of %v %s do not begin at bytes", batch, in.kind, ShapeText(item))
	}
	w.pad(i, &buffer, used, own, item, isPadded)
	at, left := 0, c.Items
	for left > 0 {
		r := b.Requests[from.request]
		rows := &r.Data.(*Payload).Inputs[i]
		n := min(left, r.items-from.row)
		if in.unit.room(rows) != r.items*ownSize {
			return fmt.Errorf("a request changed the size of its memory after it was prepared: %s, not %d", in.unit.text(in.unit.room(rows)), r.items*ownSize)
		}
		if !isPadded {
			in.unit.copy(&buffer, at, rows, from.row*size, n*size)
			at += n * size
		} else {
			for k := range n {
				in.unit.block(&buffer, at, item, rows, (from.row+k)*ownSize, own, own)
				at += size
			}
		}
		left -= n
		from = place{from.request + 1, 0}
	}
	return nil
}

// worthLending is from how many bytes on it is faster to have the engine look elsewhere than
// to copy.
const worthLending = 4 << 10

// borrows says whether the engine can read an input where the request has it: when that is
// all of the chunk, as it is.
func (w *worker) borrows(b *Batch, c *Chunk, from place, i int, own, item []int64) bool {
	r := b.Requests[from.request]
	rows := &r.Data.(*Payload).Inputs[i]
	return w.borrower != nil && len(rows.Bytes) >= worthLending && from.row == 0 && r.items == c.Items &&
		(c.Items == c.Batch || !w.model.hasBatch()) && slices.Equal(own, item)
}

// pad makes zero what no row will be written to, or the empty string.
func (w *worker) pad(i int, buffer *engine.Buffer, used int, own, item []int64, isPadded bool) {
	p := &w.padding[i]
	switch {
	case buffer.Strings != nil && isPadded:
		clear(buffer.Strings)
	case buffer.Strings != nil:
		clear(buffer.Strings[used:])
	case isPadded:
		p.within(buffer.Bytes, used, own, item)
	default:
		p.whole()
		p.rows(buffer.Bytes, used)
	}
}

// cut writes the rows of an output into those of the requests.
func (w *worker) cut(b *Batch, c *Chunk, from place, o int, shared bool) error {
	out := &w.model.outputs[o]
	buffer := w.instance.Output(out.port)
	item := buffer.Shape
	batch := 1
	if w.model.hasBatch() {
		if len(item) == 0 || item[0] != int64(c.Batch) {
			return fmt.Errorf("it has the shape %s for a batch of %d: its first dim must be the batch; set max_batch_size to 0 for such a model", ShapeText(item), c.Batch)
		}
		item, batch = item[1:], c.Batch
	}
	size := out.unit.size(elements(item))
	if out.unit.room(&buffer) != size*batch {
		return fmt.Errorf("%d items of %v %s do not begin at bytes", batch, out.kind, ShapeText(item))
	}
	at, left := 0, c.Items
	for left > 0 {
		r := b.Requests[from.request]
		p := r.Data.(*Payload)
		n := min(left, r.items-from.row)
		own := item
		if out.follow != nil && c.Gear >= 0 {
			own = w.followed(out, p, item)
		}
		if shared {
			p.mu.Lock()
		}
		err := p.room(o, w.model.hasBatch(), r.items, own, out.unit)
		if shared {
			p.mu.Unlock()
		}
		if err != nil {
			return err
		}
		ownSize := out.unit.size(elements(own))
		if ownSize == size { // own is nowhere larger: they are equal
			out.unit.copy(&p.Outputs[o], from.row*size, &buffer, at, n*size)
		} else {
			for k := range n {
				out.unit.block(&p.Outputs[o], (from.row+k)*ownSize, own, &buffer, at+k*size, item, own)
			}
		}
		at += n * size
		left -= n
		from = place{from.request + 1, 0}
	}
	return nil
}

// followed is the item of an output, cut to the sizes of the request.
func (w *worker) followed(out *modelOutput, p *Payload, item []int64) []int64 {
	w.shape = append(w.shape[:0], item...)
	for axis, f := range out.follow {
		if f.input < 0 || axis >= len(item) {
			continue
		}
		shape := p.Inputs[f.input].Shape
		if w.model.hasBatch() && len(shape) > 0 {
			shape = shape[1:]
		}
		if f.axis < len(shape) {
			w.shape[axis] = min(item[axis], shape[f.axis])
		}
	}
	return w.shape
}

// room sees to it that an output has the memory for its rows.
func (p *Payload) room(o int, hasBatch bool, items int, item []int64, u unit) error {
	out := &p.Outputs[o]
	if p.filled[o] {
		own := out.Shape
		if hasBatch {
			own = own[1:]
		}
		if !slices.Equal(own, item) {
			return fmt.Errorf("a request that ran in several chunks has items of %s and of %s", ShapeText(own), ShapeText(item))
		}
		return nil
	}
	p.filled[o] = true
	if out.Shape == nil {
		out.Shape = []int64{} // that of a scalar
	}
	out.Shape = out.Shape[:0]
	size := u.size(elements(item))
	if hasBatch {
		out.Shape = append(out.Shape, int64(items))
		size *= items
	}
	out.Shape = append(out.Shape, item...)
	if u.strings {
		out.Bytes = nil
		out.Strings = slices.Grow(out.Strings[:0], size)[:size]
		return nil
	}
	out.Strings = nil
	if cap(out.Bytes) < size {
		out.Bytes = make([]byte, size)
	}
	out.Bytes = out.Bytes[:size]
	return nil
}
