package generate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/terminal"
)

// plan is what a job makes of a model.
type plan struct {
	*Job
	*signature
	graph    *graph
	form     Form
	gears    *gearSet // of [Gears]
	maxBatch int32
	// batching is nil where requests are not grouped.
	batching *configgen.DynamicBatching
	// names are new names of output dims, by output.
	names map[string][]string
	// warmups are what instances run first, with the files that they read.
	warmups     []configgen.Warmup
	warmupFiles []*warmupData

	choices []Choice
	notes   []string
	// before are the errors that the standing config had by itself.
	before []findings.Finding
}

// plan decides everything that the config says.
func (j *Job) plan(s *signature) (*plan, error) {
	p := &plan{Job: j, signature: s, names: map[string][]string{}}
	for _, step := range []func() error{p.checkTensors, p.chooseForm, p.chooseMaxBatch, p.chooseBatching, p.nameOutputs, p.chooseWarmup} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.noteFirstAxes()
	p.noteStreams()
	return p, nil
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// isGE says whether the config is for the Ascend GE backend.
func (p *plan) isGE() bool { return p.Backend == GE }

// checkTensors deals with outputs that are no tensors.
func (p *plan) checkTensors() error {
	if len(p.left) == 0 {
		return nil
	}
	if p.isGE() {
		return fault.New(fault.Input, "%s: output %s is no tensor, which %s cannot give", p.path, p.left[0], GE).
			With("export the model without it (zipmap=False for scikit-learn and LightGBM)")
	}
	p.note("outputs that are no tensors are left out: %s; export with zipmap=False", strings.Join(p.left, ", "))
	return nil
}

// place is an open dim.
type place struct {
	port port
	axis int
}

func (a place) String() string {
	if name := a.port.dims[a.axis].name; name != "" {
		return fmt.Sprintf("%s (%s)", a.port.where(a.axis), name)
	}
	return a.port.where(a.axis)
}

// openDims lists the open dims of tensors, without the batch.
func (s *signature) openDims(ports []port) (out []place) {
	for _, p := range ports {
		for i, d := range p.dims {
			if d.size == open && !(s.batch && i == 0) {
				out = append(out, place{p, i})
			}
		}
	}
	return out
}

func (p *plan) chooseForm() (err error) {
	openInputs, openOutputs := p.openDims(p.inputs), p.openDims(p.outputs)
	isFixed := len(openInputs)+len(openOutputs) == 0
	switch {
	case p.Gears != "":
		p.form = Gears
		if p.gears, err = p.readGears(p.signature); err != nil {
			return err
		}
		if len(p.gears.added) > 0 {
			p.note("gears were added, so that every batch has one: %s", short(p.gears.added))
		}
	case p.Static && !isFixed:
		return notStatic(openInputs, openOutputs)
	case p.Static || isFixed && !p.batch:
		p.form = Static
		if p.Dynamic {
			p.note("every dim is fixed, so that --dynamic changes nothing")
		}
	default:
		p.form = Dynamic
	}
	return nil
}

// short writes a list that may be long.
func short(words []string) string {
	const most = 8
	if len(words) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], "; "), len(words)-most)
	}
	return strings.Join(words, "; ")
}

// notStatic is the failure of --static.
func notStatic(inputs, outputs []place) error {
	all := inputs
	what, remedy := "input", "fix them with --batch, --dim and --input-shape, or give sizes with --gears"
	if len(all) == 0 {
		all, what = outputs, "output"
		remedy = "its size depends on data; leave --static out"
	}
	list := make([]string, len(all))
	for i, a := range all {
		list[i] = a.String()
	}
	return fault.New(fault.Goal, "--static: open dims of %ss: %s; nothing was written", what, short(list)).With("%s", remedy)
}

// usualBatch is max_batch_size where nobody says otherwise.
const usualBatch = 8

func (p *plan) chooseMaxBatch() error {
	openOutputs := p.openDims(p.outputs)
	wrongAxis := p.isGE() && p.batch && len(openOutputs) > 0
	if p.MaxBatch == nil {
		p.defaultMaxBatch(wrongAxis)
		return nil
	}
	p.maxBatch = *p.MaxBatch
	if p.maxBatch == 0 {
		p.choose("max_batch_size", "As asked: requests carry the batch as the first dim, and are not grouped.")
		return nil
	}
	switch {
	case !p.batch:
		return fault.New(fault.Usage, "--max-batch-size %d: the model has no batch axis: %s", p.maxBatch, p.noBatch).
			With("leave it out; the config then says all dims")
	case wrongAxis:
		return fault.New(fault.Usage, "--max-batch-size %d: %s would compute the open output dim %s from the wrong axis", p.maxBatch, GE, openOutputs[0]).
			With("leave it out: the batch becomes an open dim, or fix the dim with --dim and --input-shape")
	case p.gears != nil && int64(p.maxBatch) != p.gears.largest:
		return fault.New(fault.Usage, "--max-batch-size %d: the largest batch of --gears is %d, and no other batch runs", p.maxBatch, p.gears.largest).
			With("make them equal, or leave --max-batch-size out")
	}
	p.choose("max_batch_size", p.batchText("As asked."))
	return nil
}

// batchText says what max_batch_size means here.
func (p *plan) batchText(first string) string {
	axis := "the first axis of all tensors"
	if name := p.inputs[0].dims[0].name; name != "" {
		axis = fmt.Sprintf("the first axis of all tensors (%s)", name)
	}
	return first + " The batch is " + axis + "; dims below leave it out."
}

func (p *plan) defaultMaxBatch(wrongAxis bool) {
	switch {
	case wrongAxis:
		p.choose("max_batch_size", "0, and the batch is an open dim: with more, npu_ge would compute open output dims from the wrong axis, and it merges no requests of such a model anyway.")
		if p.gears != nil {
			p.note("a request whose batch is above %d has no gear and fails", p.gears.largest)
		}
	case !p.batch:
		p.choose("max_batch_size", "0, for the model has no batch axis to leave open: "+p.noBatch+". Dims are whole shapes.")
	case p.gears != nil && p.gears.largest <= math.MaxInt32:
		p.maxBatch = int32(p.gears.largest)
		p.choose("max_batch_size", p.batchText("The largest gear."))
	default:
		p.maxBatch = usualBatch
		p.choose("max_batch_size", p.batchText(fmt.Sprintf("%d, where nobody said otherwise (--max-batch-size).", usualBatch)))
	}
}

// noMerge says why requests are not merged, and is "" when they are.
func (p *plan) noMerge() string {
	switch {
	case p.maxBatch == 0:
		return "max_batch_size is 0"
	case p.maxBatch == 1:
		return "max_batch_size is 1"
	case !p.isGE():
		return ""
	case p.form == Static:
		return "a static graph runs a batch one by one"
	}
	// What merges multiplies dims, and takes an open one for -1.
	if list := p.openDims(p.inputs); len(list) > 0 {
		return fmt.Sprintf("%s merges requests of fixed shapes only, and %s is open", GE, list[0])
	}
	return ""
}

func (p *plan) chooseBatching() error {
	reason := p.noMerge()
	for i := range p.Preferred {
		if n := p.Preferred[i]; reason == "" && n > p.maxBatch {
			return fault.New(fault.Usage, "--preferred %d is above max_batch_size %d", n, p.maxBatch).With("raise --max-batch-size, or leave the size out")
		}
	}
	switch {
	case reason != "" && p.asksBatching():
		return fault.New(fault.Usage, "--preferred, --max-queue-delay and flags of the queue: requests are not merged: %s", reason).With("leave them out, or change that")
	case reason != "" || p.NoBatching:
		return nil
	}
	p.batching = &configgen.DynamicBatching{PreferredBatchSize: p.Preferred, MaxQueueDelay: uint64(p.MaxQueueDelay / time.Microsecond)}
	why := "Requests that wait are sent as one batch"
	if p.Preferred == nil {
		p.batching.PreferredBatchSize = []int32{p.maxBatch}
	}
	if p.MaxQueueDelay > 0 {
		why += fmt.Sprintf("; a request waits up to %s for others.", p.MaxQueueDelay)
	} else {
		why += "; none waits for others (--max-queue-delay)."
	}
	if p.isGE() {
		why += " npu_ge merges only where preferred sizes are set."
	}
	if p.gears != nil {
		why += " Every size up to the largest is a gear."
	}
	why += p.Queue.apply(p.batching)
	p.choose("dynamic_batching", why)
	return nil
}

// nameOutputs sees to it that npu_ge can compute every open output dim.
func (p *plan) nameOutputs() error {
	if !p.isGE() {
		return nil
	}
	known := p.dimNames()
	for _, a := range p.openDims(p.outputs) {
		d := a.port.dims[a.axis]
		switch {
		case rules.IsDimExpression(d.name, known):
			p.choose("output."+a.port.name, fmt.Sprintf("Dim %d is computed for each request, by its name in the model: %s.", a.axis, d.name))
		case rules.IsDimExpression(d.computed, known):
			p.rename(a, d)
		case slices.ContainsFunc(p.inputs, func(in port) bool { return slices.ContainsFunc(in.dims, func(i dim) bool { return i.name == d.name }) }) && d.name != "":
			return fault.New(fault.Input, "%s: dim %d of output %s is %s, the first dim of all inputs, which %s takes for the batch: it computes other output dims without it", p.path, a.axis, a.port.name, d.name, GE).
				With("fix it with --batch; put the batch first in the output; or use --backend %s", ONNXRuntime)
		default:
			return fault.New(fault.Input, "%s: nothing says how large dim %d of output %s is, which %s must know before it runs (its name is %q)", p.path, a.axis, a.port.name, GE, d.name).
				With("fix open input dims with --batch, --dim and --input-shape; name it in the export by an expression over input dims; or use --backend %s", ONNXRuntime)
		}
	}
	return nil
}

// dimNames are the names of input dims that npu_ge finds. Where all inputs begin with
// one open dim, it takes that for the batch, and its name away.
func (p *plan) dimNames() (names []string) {
	takesBatch := !slices.ContainsFunc(p.inputs, func(in port) bool {
		return len(in.dims) == 0 || in.dims[0].size != open || in.dims[0].name != p.inputs[0].dims[0].name
	})
	for _, in := range p.inputs {
		for i, d := range in.dims {
			if d.name != "" && !(takesBatch && i == 0) {
				names = append(names, d.name)
			}
		}
	}
	return names
}

// rename gives an output dim a name that npu_ge can compute.
func (p *plan) rename(a place, d dim) {
	names := p.names[a.port.name]
	if names == nil {
		names = make([]string, len(a.port.dims))
		p.names[a.port.name] = names
	}
	names[a.axis] = d.computed
	p.choose("output."+a.port.name, fmt.Sprintf("Dim %d is computed for each request as %s, which is its name in the model file here.", a.axis, d.computed))
	p.note("output %s: the copy of the model calls dim %d %s, so that %s can compute it (before: %q)", a.port.name, a.axis, d.computed, GE, d.name)
}

// noteFirstAxes tells of outputs whose first axis npu_ge mistakes for the batch.
func (p *plan) noteFirstAxes() {
	if !p.isGE() || p.maxBatch > 0 {
		return
	}
	for _, in := range p.inputs {
		if len(in.dims) == 0 {
			p.note("input %s is a scalar, which published versions of %s do not expect: give it the shape [1] in the model", in.name, GE)
			return
		}
		if !sameSize(in.dims[0], p.inputs[0].dims[0]) {
			return // then npu_ge takes no axis for the batch
		}
	}
	first := p.inputs[0].dims[0]
	for _, out := range p.outputs {
		if len(out.dims) > 0 && (out.dims[0].size == first.size && (first.size != open || p.batch)) {
			continue
		}
		p.note("output %s does not begin with the inputs' first dim, which published versions of %s take for granted: the answer may be cut short; check it, or let the model give it a first dim of its own", out.name, GE)
	}
}

func sameSize(a, b dim) bool { return a.size == b.size && (a.size != open || a.name == b.name) }

// manyStreams is how many streams a card the backend's makers advise at most.
const manyStreams = 8

// streams is device_exec_blocks; 0 leaves it to the backend.
func (p *plan) streams() int {
	switch {
	case p.Streams > 0:
		return p.Streams
	case len(p.Devices) > 0:
		return min(manyStreams, (p.Instances+len(p.Devices)-1)/len(p.Devices))
	}
	return 0
}

func (p *plan) noteStreams() {
	if !p.isGE() {
		return
	}
	streams := p.streams()
	switch {
	case streams > manyStreams || streams == 0 && p.Instances > manyStreams:
		p.note("more than %d streams a card seldom pay; --streams sets them apart from --instances", manyStreams)
	case len(p.Devices) > 0 && streams*len(p.Devices) < p.Instances:
		p.note("%d instances share %s: some always wait", p.Instances, terminal.Counted(streams*len(p.Devices), "stream"))
	}
}

// choose keeps the reason for a field.
func (p *plan) choose(field, why string) { p.choices = append(p.choices, Choice{field, why}) }
