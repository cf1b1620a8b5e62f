package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// NewModel holds a model against a setup, before anything runs. What does not fit is a
// fault of the input, with the name of the input or output and the remedy.
//
// The setup is completed by what the model says: a signature where it has none, and the
// gears that the model was compiled for. Of a model whose batch is fixed that is one gear,
// so that a batch of n takes n runs of batch 1.
func NewModel(m engine.Model, s *Setup, o ModelOptions) (*Model, error) {
	if o.Context == nil {
		o.Context = context.Background()
	}
	r := &Model{engine: m, options: o, setup: s, begin: time.Now()}
	if s.Signature == nil {
		signature, err := SignatureOf(m, s.Policy.MaxBatch)
		if err != nil {
			return nil, misfit(err)
		}
		s.Signature = signature
	}
	for _, step := range []func() error{r.matchInputs, r.matchOutputs, r.matchBatch, r.matchGears, r.matchFollows, s.check} {
		if err := step(); err != nil {
			return nil, misfit(err)
		}
	}
	if s.Streams == 0 && s.StreamsPerBatch > 1 {
		s.Streams = s.evenStreams(1)
	}
	r.workers = make([]worker, len(s.Workers()))
	return r, nil
}

// misfit is a fault of the files that do not go together.
func misfit(err error) error { return fault.New(fault.Input, "%w", err) }

// SignatureOf makes a signature of what an engine says of a model, for those without a
// configuration. With a largest batch above 0 the first dim of all inputs is the batch.
func SignatureOf(m engine.Model, maxBatch int) (*Signature, error) {
	var inputs []Input
	for _, p := range m.Inputs() {
		dims := p.Dims
		switch {
		case dims == nil:
			return nil, fmt.Errorf("input %q: the model does not say how many dims it has; give a configuration that does", p.Name)
		case maxBatch > 0 && len(dims) == 0:
			return nil, fmt.Errorf("input %q is a scalar and has no dim for the batch; set max_batch_size to 0", p.Name)
		case maxBatch > 0:
			dims = dims[1:]
		}
		inputs = append(inputs, Input{Name: p.Name, Dims: slices.Clone(dims), Optional: p.Optional})
	}
	return NewSignature(inputs, maxBatch), nil
}

// HasBatchAxis says whether the first dim of all inputs and outputs can be the batch: it is
// open, or set by gears, in each of them.
func HasBatchAxis(m engine.Model) bool {
	isOpen := func(p engine.Port) bool { return len(p.Dims) > 0 && p.Dims[0] < 0 }
	has := len(m.Inputs()) > 0 && !slices.ContainsFunc(m.Inputs(), func(p engine.Port) bool { return !isOpen(p) })
	return has && !slices.ContainsFunc(m.Outputs(), func(p engine.Port) bool { return !isOpen(p) })
}

func findPort(ports []engine.Port, name, what string) (int, error) {
	var names []string
	for i, p := range ports {
		if p.Name == name {
			return i, nil
		}
		names = append(names, p.Name)
	}
	return 0, fmt.Errorf("the model has no %s %q; %s", what, name, suggest.Text(name, names))
}

// matchInputs finds the inputs of the signature in the model.
func (m *Model) matchInputs() error {
	ports := m.engine.Inputs()
	isUsed := make([]bool, len(ports))
	for i, in := range m.setup.Signature.Inputs {
		at, err := findPort(ports, in.Name, "input")
		if err != nil {
			return err
		}
		p := &ports[at]
		isUsed[at] = true
		switch {
		case in.Ragged:
			return fmt.Errorf("input %q takes ragged batches (allow_ragged_batch), which no engine here can run; take that out, or give the input fixed dims", in.Name)
		case in.Optional && !p.Optional:
			return fmt.Errorf("input %q is optional in the configuration, and the model has no default for it; set optional to false", in.Name)
		}
		if err := m.matchPort("input", Declared{Name: in.Name, Dims: in.Dims}, p); err != nil {
			return err
		}
		if m.options.Inputs != nil {
			if i >= len(m.options.Inputs) || m.options.Inputs[i].Name != in.Name {
				return fmt.Errorf("input %q is not input %d of those that are declared", in.Name, i)
			}
			if err := m.matchPort("input", m.options.Inputs[i], p); err != nil {
				return err
			}
		}
		m.inputs = append(m.inputs, modelInput{name: in.Name, port: at, kind: p.Type, unit: unitOf(p.Type)})
	}
	for at, p := range ports {
		if !isUsed[at] && !p.Optional {
			return fmt.Errorf("the model needs input %q (%v %s), which the configuration does not have; add it", p.Name, p.Type, ShapeText(p.Dims))
		}
	}
	return nil
}

// matchOutputs finds the outputs that are wanted.
func (m *Model) matchOutputs() error {
	ports := m.engine.Outputs()
	wanted := m.options.Outputs
	if wanted == nil {
		for _, p := range ports {
			wanted = append(wanted, Declared{Name: p.Name, Dims: m.itemOf(p.Dims)})
		}
	}
	for _, d := range wanted {
		at, err := findPort(ports, d.Name, "output")
		if err != nil {
			return err
		}
		if err := m.matchPort("output", d, &ports[at]); err != nil {
			return err
		}
		m.outputs = append(m.outputs, modelOutput{name: d.Name, port: at, kind: ports[at].Type, unit: unitOf(ports[at].Type)})
	}
	return nil
}

// itemOf takes the batch off dims.
func (m *Model) itemOf(dims []int64) []int64 {
	if m.hasBatch() && len(dims) > 0 {
		return dims[1:]
	}
	return dims
}

// matchPort holds what is declared against what the model has.
func (m *Model) matchPort(what string, d Declared, p *engine.Port) error {
	if d.Type != tensor.Undefined && d.Type != p.Type {
		return fmt.Errorf("%s %q is %v in the configuration, and %v in the model; set data_type to that", what, d.Name, d.Type, p.Type)
	}
	if p.Dims == nil || d.Dims == nil {
		return nil
	}
	dims := p.Dims
	if m.hasBatch() {
		if len(dims) == 0 || len(dims) == len(d.Dims) {
			return fmt.Errorf("%s %q is %s in the model, which leaves no dim for the batch before %s; set max_batch_size to 0, or make the model with a first dim for the batch", what, d.Name, ShapeText(dims), ShapeText(d.Dims))
		}
		dims = dims[1:]
	}
	fits := len(dims) == len(d.Dims)
	for i := 0; fits && i < len(dims); i++ {
		fits = dims[i] < 0 || dims[i] == d.Dims[i]
	}
	if fits {
		return nil
	}
	hint := ""
	if !m.hasBatch() && len(p.Dims) == len(d.Dims)+1 {
		hint = ", or max_batch_size to more than 0 if the first is the batch"
	}
	return fmt.Errorf("%s %q is %s in the configuration, and %s in the model; set dims to that%s", what, d.Name, ShapeText(d.Dims), ShapeText(dims), hint)
}

// matchBatch looks for a batch that is fixed, and makes a gear of it.
func (m *Model) matchBatch() error {
	if !m.hasBatch() {
		return nil
	}
	fixed, by := int64(-1), ""
	for i := range m.inputs {
		p := m.InputPort(i)
		if p.Dims == nil || p.Dims[0] < 0 || p.Optional {
			continue // a default has one size, whatever the batch
		}
		if fixed >= 0 && p.Dims[0] != fixed {
			return fmt.Errorf("the first dim is %d of input %q and %d of input %q: it is not the batch of both; set max_batch_size to 0", fixed, by, p.Dims[0], p.Name)
		}
		fixed, by = p.Dims[0], p.Name
	}
	for i := range m.outputs {
		p := m.OutputPort(i)
		if fixed >= 0 && m.engine.Gears() == nil && p.Dims != nil && p.Dims[0] >= 0 && p.Dims[0] != fixed {
			return fmt.Errorf("output %q is %s in the model, for a batch of %d: its first dim is not the batch; set max_batch_size to 0", p.Name, ShapeText(p.Dims), fixed)
		}
	}
	if fixed < 0 || m.engine.Gears() != nil {
		return nil
	}
	if fixed == 0 {
		return fmt.Errorf("the first dim of input %q is 0: there is nothing to run", by)
	}
	own, err := BatchGears(m.setup.Signature, fixed)
	if err != nil {
		return err
	}
	if err := m.sameGears(own); err != nil {
		return err
	}
	m.setup.Gears = own
	return nil
}

// matchGears takes the gears that the model was compiled for.
func (m *Model) matchGears() error {
	if g := m.engine.Gears(); g != nil {
		own, err := m.compiledGears(g)
		if err != nil {
			return err
		}
		if err := m.sameGears(own); err != nil {
			return err
		}
		m.setup.Gears = own
	}
	g := m.setup.Gears
	if g == nil {
		return nil
	}
	if err := m.reachable(g); err != nil {
		return err
	}
	for i := range m.inputs {
		m.inputs[i].gears = g.items(i)
	}
	if largest := g.largestBatch(); m.hasBatch() && largest < int64(m.setup.Policy.MaxBatch) {
		m.notes = append(m.notes, fmt.Sprintf("max_batch_size %d: the largest gear has room for %d, and larger batches take several runs", m.setup.Policy.MaxBatch, largest))
	}
	return nil
}

// compiledGears are gears in the order of the signature.
func (m *Model) compiledGears(g *engine.Gears) (*Gears, error) {
	var list []GearInput
	for port, dims := range g.Dims {
		i := slices.IndexFunc(m.inputs, func(in modelInput) bool { return in.port == port })
		if i < 0 {
			return nil, fmt.Errorf("the model has gears for input %q, which the configuration does not have; add it", m.engine.Inputs()[port].Name)
		}
		list = append(list, GearInput{Input: i, Dims: dims})
	}
	return NewGears(m.setup.Signature, list, g.Rows)
}

// sameGears holds gears of the model against those that the setup has already.
func (m *Model) sameGears(own *Gears) error {
	set := m.setup.Gears
	if set == nil {
		return nil
	}
	want, got := set.texts(m), own.texts(m)
	if slices.Equal(want, got) {
		return nil
	}
	return fmt.Errorf("the configuration has the gears %s, and the model was made for %s; compile it again, or change the configuration", strings.Join(want, "; "), strings.Join(got, "; "))
}

// texts writes the shapes of all inputs in each gear, sorted.
func (g *Gears) texts(m *Model) (list []string) {
	for gear := range g.rows {
		var words []string
		for i := range m.inputs {
			item := m.setup.Signature.Inputs[i].Dims
			if own := g.items(i); own != nil && own[gear] != nil {
				item = own[gear]
			}
			if g.batchAxis {
				item = append([]int64{g.batchOf(gear)}, item...)
			}
			words = append(words, ShapeText(item))
		}
		list = append(list, strings.Join(words, ","))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// batchOf is the room of a gear: the smallest first dim.
func (g *Gears) batchOf(gear int) int64 {
	least, next := int64(-1), 0
	for _, in := range g.inputs {
		for axis, d := range in.Dims {
			if d < 0 {
				d = g.rows[gear][next]
				next++
			}
			if axis == 0 && (least < 0 || d < least) {
				least = d
			}
		}
	}
	return least
}

func (g *Gears) largestBatch() (largest int64) {
	for gear := range g.rows {
		largest = max(largest, g.batchOf(gear))
	}
	return largest
}

// items gives the item of an input in each gear; nil when they leave it as it is.
func (g *Gears) items(input int) (list [][]int64) {
	for _, row := range g.rows {
		next := 0
		for _, in := range g.inputs {
			dims := make([]int64, len(in.Dims))
			for axis, d := range in.Dims {
				if d < 0 {
					d = row[next]
					next++
				}
				dims[axis] = d
			}
			if in.Input == input {
				list = append(list, dims[boolToInt(g.batchAxis):])
			}
		}
	}
	return list
}

// reachable holds that a request of fixed dims has a gear at all, and that a gear has one
// batch for all inputs.
func (m *Model) reachable(g *Gears) error {
	for gear := range g.rows {
		if g.batchAxis && g.batchOf(gear) < 1 {
			return fmt.Errorf("gear %s has no room for a batch", g.Text(gear))
		}
	}
	var given []Given
	for i, in := range m.setup.Signature.Inputs {
		if slices.ContainsFunc(in.Dims, func(d int64) bool { return d < 0 }) {
			return nil // it depends on the request
		}
		given = append(given, Given{Input: i, Shape: in.Dims})
	}
	class, err := m.setup.Signature.Admit(min(1, m.setup.Signature.MaxBatch), given)
	if err != nil || g.Fits(class) {
		return err
	}
	var list []string
	for gear := range g.rows {
		list = append(list, gears.Text(g.rows[gear]))
	}
	return fmt.Errorf("no gear is large enough for %s; there are %s: compile the model with one that is, or set dims to less", m.setup.Signature.text(class), strings.Join(list, "; "))
}

// matchFollows finds the axes that outputs take the size of.
func (m *Model) matchFollows() error {
	skip := boolToInt(m.hasBatch())
	for _, f := range m.options.Follows {
		o := slices.IndexFunc(m.outputs, func(out modelOutput) bool { return out.name == f.Output })
		i := slices.IndexFunc(m.inputs, func(in modelInput) bool { return in.name == f.Input })
		if o < 0 || i < 0 || f.Axis < skip || f.From < skip {
			continue // the batch is cut anyway, and who is not there need not follow
		}
		out := &m.outputs[o]
		for len(out.follow) <= f.Axis-skip {
			out.follow = append(out.follow, follow{input: -1})
		}
		out.follow[f.Axis-skip] = follow{input: i, axis: f.From - skip}
	}
	return nil
}
