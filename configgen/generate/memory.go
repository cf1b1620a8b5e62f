package generate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/devicememory"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// Memory is what a model takes on each NPU, in bytes. It is an estimate: see package
// devicememory for what it counts.
type Memory struct {
	// Source is graph, or the .om that it was read from.
	Source string `json:"source"`
	// Emulated is set when that .om is one of the emulator's.
	Emulated bool `json:"emulated"`
	// Sizes says for what request: batch 8, gear 336,336.
	Sizes string `json:"sizes"`
	// Streams run beside each other on one NPU.
	Streams int `json:"streams"`
	// WeightBytes are those of one copy, WeightCopies how many there are on one NPU.
	WeightBytes  int64 `json:"weight_bytes"`
	WeightCopies int   `json:"weight_copies"`
	// WorkBytes, InputBytes and OutputBytes are those of one stream.
	WorkBytes   int64 `json:"work_bytes"`
	InputBytes  int64 `json:"input_bytes"`
	OutputBytes int64 `json:"output_bytes"`
	TotalBytes  int64 `json:"total_bytes"`
	// Open are the open dims that were counted as 1, Unknown how many results in between
	// were not counted: with either the total is the least that it can be.
	Open    []string `json:"open"`
	Unknown int      `json:"unknown_results"`
	// Chip is the chip that it was held against, ChipBytes its memory, 0 when nobody says.
	Chip      string `json:"chip"`
	ChipBytes int64  `json:"chip_bytes"`
}

// memoryRule is the id of what is found of memory.
const memoryRule = "chip-memory"

// fullShare is the share of a chip's memory from which on nothing is left for the
// driver, the runtime and the kernels.
const fullShare = 0.9

// halfPrecision are the modes that hold floats in 16 bits.
var halfPrecision = []string{"", "fp16", "force_fp16"}

// addMemory estimates the memory of a model for NPUs, and finds when it does not fit.
func (p *plan) addMemory(ctx context.Context, r *Result) error {
	if !p.isGE() {
		return nil
	}
	m := &Memory{Source: "graph", Open: []string{}}
	needs, err := p.needs(ctx, m)
	if err != nil {
		return err
	}
	if p.Compiled != "" && !p.hasInputs(needs.Inputs) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s has other inputs (%s) than the model: if it was compiled from another one, so are its needs of memory", p.Compiled, strings.Join(needs.Inputs, ", ")))
	}
	m.WeightBytes, m.WorkBytes, m.Unknown, m.Emulated = needs.Weights, needs.Work, needs.Unknown, needs.Emulated
	m.Streams = p.streams()
	if m.Streams == 0 {
		m.Streams = p.Instances // on one NPU; on more each has fewer
	}
	m.WeightCopies = m.Streams
	if p.form == Static {
		m.WeightCopies = 1
	}
	m.addBuffers(p)
	m.TotalBytes = sum(times(m.WeightBytes, int64(m.WeightCopies)), times(sum(m.WorkBytes, m.InputBytes, m.OutputBytes), int64(m.Streams)))
	if p.Chip != nil {
		m.Chip, m.ChipBytes = p.Chip.Name, p.Chip.MemoryBytes
	}
	r.Memory = m
	r.Findings = append(r.Findings, m.findings(r.Config)...)
	return nil
}

// needs are those of one graph: planned by a compiler, or estimated.
func (p *plan) needs(ctx context.Context, m *Memory) (devicememory.Needs, error) {
	sizes := p.largestSizes(m)
	if p.Compiled != "" {
		needs, err := devicememory.OfCompiled(p.Compiled)
		if err != nil {
			return needs, fault.New(fault.Input, "--om: %w", err)
		}
		if p.Chip != nil && needs.SoC != "" && needs.SoC != p.Chip.Name {
			return needs, fault.New(fault.Usage, "--om: %s was compiled for %s, and --soc is %s", p.Compiled, needs.SoC, p.Chip.Name)
		}
		m.Source = filepath.Base(p.Compiled)
		return needs, nil
	}
	model, err := modelfile.Open(p.graph.path)
	if err != nil {
		return devicememory.Needs{}, err
	}
	defer model.Close()
	if err := onnxpass.Specialize(model, onnxpass.Specialization{Shapes: sizes}); err != nil {
		return devicememory.Needs{}, fault.New(fault.Input, "estimate the memory: %w", err)
	}
	if err := model.Graph.Sort(); err != nil {
		return devicememory.Needs{}, fault.New(fault.Input, "%s: %w", p.Model, err)
	}
	half := slices.Contains(halfPrecision, p.Precision)
	return devicememory.OfGraph(ctx, model, devicememory.Precision{HalfFloats: half})
}

// hasInputs says whether the model's inputs have these names, in whatever order.
func (p *plan) hasInputs(names []string) bool {
	return len(names) == len(p.inputs) && !slices.ContainsFunc(p.inputs, func(in port) bool { return !slices.Contains(names, in.name) })
}

// graphBatch is the batch that one run of the graph takes.
func (p *plan) graphBatch() int64 {
	if p.maxBatch > 0 && p.form != Static {
		return int64(p.maxBatch)
	}
	return 1
}

// largestSizes are the shapes of the inputs for the largest run of the graph.
func (p *plan) largestSizes(m *Memory) map[string][]int64 {
	shapes := map[string][]int64{}
	for _, in := range p.inputs {
		shape := make([]int64, len(in.dims))
		for i := range in.dims {
			size, isKnown := p.largestSize(in, i)
			if !isKnown {
				m.Open = append(m.Open, place{in, i}.String())
			}
			shape[i] = size
		}
		shapes[in.name] = shape
	}
	switch {
	case p.gears != nil:
		m.Sizes = "gear " + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.gears.plan.Largest()), " ", ","), "[]")
	case p.maxBatch > 0:
		m.Sizes = fmt.Sprintf("batch %d", p.maxBatch)
	default:
		m.Sizes = "one request"
	}
	return shapes
}

// largestSize is the largest size of an input's dim in one run of the graph; 1 and
// false where nobody knows.
func (p *plan) largestSize(in port, axis int) (size int64, isKnown bool) {
	size = in.dims[axis].size
	switch {
	case size != open:
		return size, true
	case p.gears != nil:
		size, isKnown = p.gears.sizeAt(p.gears.plan.Largest(), in.name, axis)
		return max(size, 1), isKnown
	case p.batch && axis == 0 && p.maxBatch > 0:
		return p.graphBatch(), true
	}
	return 1, false
}

// addBuffers adds what the inputs and outputs of a request take on the device. A static
// graph with a batch has the whole batch there, and beside it the sample that it runs.
func (m *Memory) addBuffers(p *plan) {
	isSplit := p.form == Static && p.maxBatch > 0
	for _, in := range p.inputs {
		shape := make([]int64, len(in.dims))
		for i := range in.dims {
			shape[i], _ = p.largestSize(in, i)
		}
		bytes := tensorBytes(in.kind, shape)
		if isSplit {
			bytes = sum(times(bytes, int64(p.maxBatch)), bytes)
		}
		m.InputBytes = sum(m.InputBytes, bytes)
	}
	sizes := p.sizesByName()
	for _, out := range p.outputs {
		shape := make([]int64, len(out.dims))
		for i, d := range out.dims {
			size, isKnown := p.outputSize(d, i, sizes)
			if !isKnown {
				m.Open = append(m.Open, place{out, i}.String())
			}
			shape[i] = size
		}
		m.OutputBytes = sum(m.OutputBytes, tensorBytes(out.kind, shape))
	}
}

// outputSize is the size of an output's dim for the sizes of inputs; 1 and false where
// it does not follow from them.
func (p *plan) outputSize(d dim, axis int, sizes map[string]int64) (size int64, isKnown bool) {
	switch {
	case d.size != open:
		return d.size, true
	case p.batch && axis == 0 && p.maxBatch > 0:
		return int64(p.maxBatch), true
	}
	names := slices.Collect(maps.Keys(sizes))
	for _, text := range []string{d.name, d.computed} {
		if size, ok := evaluate(text, sizes); ok {
			return size, true
		}
		isKnown = isKnown || rules.IsDimExpression(text, names) // of an input's dim that counts as 1
	}
	return 1, isKnown
}

// sizesByName are the largest sizes of input dims by their names, 1 for those that
// nothing tells.
func (p *plan) sizesByName() map[string]int64 {
	sizes := map[string]int64{}
	for _, in := range p.inputs {
		for i, d := range in.dims {
			if size, _ := p.largestSize(in, i); d.name != "" {
				sizes[d.name] = max(size, sizes[d.name])
			}
		}
	}
	return sizes
}

func tensorBytes(kind configgen.DataType, shape []int64) int64 {
	bytes := max(kind.Bytes(), 1) // npu_ge counts a string as a byte
	for _, n := range shape {
		bytes = times(bytes, n)
	}
	return bytes
}

// times and sum stop at the largest number there is: sizes come from files.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func sum(list ...int64) (total int64) {
	for _, n := range list {
		if total > math.MaxInt64-n {
			return math.MaxInt64
		}
		total += n
	}
	return total
}

// findings tell when the model does not fit on the chip, or, where none is named, on any
// that is known.
func (m *Memory) findings(path string) []findings.Finding {
	name, bytes, isNamed := m.Chip, m.ChipBytes, m.Chip != ""
	if !isNamed {
		largest := slices.MaxFunc(soc.Chips(), func(a, b soc.Chip) int { return cmp.Compare(a.MemoryBytes, b.MemoryBytes) })
		name, bytes = "the largest chip that is known", largest.MemoryBytes
	}
	isTooMuch := m.TotalBytes > bytes
	if bytes == 0 || !isTooMuch && (!isNamed || float64(m.TotalBytes) < fullShare*float64(bytes)) {
		return nil
	}
	f := rules.Find(memoryRule, rules.English, path, terminal.Bytes(m.TotalBytes), name, terminal.Bytes(bytes))
	if !isTooMuch || !isNamed {
		f.Severity = findings.Warning
	}
	if !isTooMuch {
		f.Effect = "little is left for the driver, the runtime and kernels; loading may fail with an error of memory (EL0004, 207001)"
	}
	return []findings.Finding{f}
}
