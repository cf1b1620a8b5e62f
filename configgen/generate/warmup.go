package generate

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
)

// Warmup says what each instance runs before the server is ready: one request for
// each gear or size of a batch that there is.
type Warmup struct {
	// Kind is zero or random ("" is zero). Random numbers are for inputs of floats:
	// numbers that stand for words or positions might lead outside their tables.
	Kind string
	// Data are files by input, NumPy's (.npy) or plain bytes.
	Data map[string]string
	// Count is how often each runs; 0 is once.
	Count int
}

const (
	warmupFolder = "warmup"
	// warmupName begins the names of warm-up requests that npuctl wrote.
	warmupName = "npuctl "
	// mostWarmups bounds how often one request runs: each instance does, before the
	// server is ready.
	mostWarmups = 100
	// largestWarmupFile bounds what is read of a file.
	largestWarmupFile = 1 << 30
)

func (j *Job) checkWarmup() error {
	w := j.Warmup
	switch {
	case w == nil:
		return nil
	case w.Kind != "" && w.Kind != "zero" && w.Kind != "random":
		return fault.New(fault.Usage, "--warmup %s: give zero or random; files are for --warmup-data", w.Kind)
	case w.Count < 0 || w.Count > mostWarmups:
		return fault.New(fault.Usage, "--warmup-count %d: give 1 to %d", w.Count, mostWarmups)
	}
	return nil
}

// warmupData is the content of one input, for the requests that it fits.
type warmupData struct {
	dims  []int64 // nil when the file does not say
	bytes int64
	// from is the file to copy; data is what to write where it is another form.
	from, name string
	data       []byte
	isUsed     bool
	// wanted are the shapes of one element of a batch that did not fit, as text.
	wanted []string
}

// misfit is the failure of a file that fits no request.
func (d *warmupData) misfit(input string) error {
	has := fmt.Sprintf("has %d bytes", d.bytes)
	if d.dims != nil {
		has = fmt.Sprintf("holds %v", d.dims)
	}
	return fault.New(fault.Input, "--warmup-data: %s %s, and one element of a batch of input %s is %s", d.from, has, input, short(d.wanted)).
		With("give one element: the server repeats it for larger batches")
}

// readWarmup reads the files that are given for inputs.
func (p *plan) readWarmup() (map[string]*warmupData, error) {
	out := map[string]*warmupData{}
	for _, name := range slices.Sorted(maps.Keys(p.Warmup.Data)) {
		path := p.Warmup.Data[name]
		i := slices.IndexFunc(p.inputs, func(in port) bool { return in.name == name })
		if i < 0 {
			var names []string
			for _, in := range p.inputs {
				names = append(names, in.name)
			}
			return nil, fault.New(fault.Usage, "--warmup-data %s: there is no such input", name).With("%s", suggest.Text(name, names))
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fault.New(fault.Input, "--warmup-data: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > largestWarmupFile {
			return nil, fault.New(fault.Input, "--warmup-data: %s is no file of at most 1 GiB", path)
		}
		d := &warmupData{bytes: info.Size(), from: path, name: valuefile.Escape(name) + ".bin"}
		if strings.EqualFold(filepath.Ext(path), ".npy") {
			if err := d.readArray(p.inputs[i]); err != nil {
				return nil, err
			}
		}
		out[name] = d
	}
	return out, nil
}

func (d *warmupData) readArray(in port) error {
	f, err := os.Open(d.from)
	if err != nil {
		return fault.New(fault.Input, "--warmup-data: %w", err)
	}
	defer f.Close()
	array, err := npy.ReadNPYAs(bufio.NewReader(f), elemOf(in.kind))
	if err != nil {
		return fault.New(fault.Input, "--warmup-data: %s: %w", d.from, err)
	}
	if kind := types[array.Type()]; kind != in.kind {
		return fault.New(fault.Input, "--warmup-data: %s holds %s, and input %s takes %s", d.from, kind, in.name, in.kind)
	}
	d.data = array.Raw()
	d.bytes = int64(len(d.data))
	d.dims = []int64{}
	for _, n := range array.Shape() {
		d.dims = append(d.dims, int64(n))
	}
	return nil
}

// warmupSample is the shape of one warm-up request.
type warmupSample struct {
	name  string
	batch int64
	// gear are the sizes of open dims by input and axis; nil leaves them open.
	gear []int64
}

// warmupSamples are a request for each size that there is.
func (p *plan) warmupSamples() (out []warmupSample) {
	if p.gears != nil {
		for _, gear := range p.gears.plan.Gears {
			s := warmupSample{name: "gear " + gears.Text(gear), batch: 1, gear: gear}
			if p.maxBatch > 0 {
				s.batch = gear[p.gears.batchAxis]
			}
			out = append(out, s)
		}
		return out
	}
	batches := []int64{1}
	if p.maxBatch > 1 && p.form != Static { // a static graph runs a batch as that many batches of 1
		if p.batching != nil {
			for _, n := range p.batching.PreferredBatchSize {
				batches = append(batches, int64(n))
			}
		}
		batches = append(batches, int64(p.maxBatch))
	}
	slices.Sort(batches)
	for _, n := range slices.Compact(batches) {
		out = append(out, warmupSample{name: fmt.Sprintf("batch %d", n), batch: n})
	}
	return out
}

// chooseWarmup makes the warm-up requests.
func (p *plan) chooseWarmup() error {
	if p.Warmup == nil {
		return nil
	}
	data, err := p.readWarmup()
	if err != nil {
		return err
	}
	isSpared := false
	for _, s := range p.warmupSamples() {
		w := configgen.Warmup{Name: warmupName + s.name, BatchSize: uint32(s.batch), Count: uint32(p.Warmup.Count)}
		for _, in := range p.inputs {
			value, isZeroed, err := p.warmupInput(in, s, data[in.name])
			if err != nil {
				return err
			}
			isSpared = isSpared || isZeroed
			w.Inputs = append(w.Inputs, configgen.Entry[string, configgen.WarmupInput]{Key: in.name, Value: value})
		}
		p.warmups = append(p.warmups, w)
	}
	for _, in := range p.inputs {
		d := data[in.name]
		if d == nil {
			continue
		}
		if !d.isUsed {
			return d.misfit(in.name)
		}
		p.warmupFiles = append(p.warmupFiles, d)
	}
	if isSpared {
		p.note("warm-up: inputs of whole numbers are zeros, for random ones could lead outside tables; --warmup-data gives real ones")
	}
	p.choose("model_warmup", fmt.Sprintf("Each instance runs these before the server is ready: %s.", terminal.Counted(len(p.warmups), "size")))
	return nil
}

// warmupInput is one input of a warm-up request. isZeroed is set where zeros stand for
// random numbers.
func (p *plan) warmupInput(in port, s warmupSample, d *warmupData) (v configgen.WarmupInput, isZeroed bool, err error) {
	dims, err := p.warmupDims(in, s, d)
	if err != nil {
		return v, false, err
	}
	v = configgen.WarmupInput{DataType: in.kind, Dims: dims}
	yes := true
	if d != nil && d.fits(dims, in, p.maxBatch > 0) {
		d.isUsed = true
		v.InputDataFile = &d.name
		return v, false, nil
	}
	if d != nil {
		size := fmt.Sprint(dims)
		if d.dims == nil {
			size = fmt.Sprintf("%d bytes", tensorBytes(in.kind, dims))
		}
		if !slices.Contains(d.wanted, size) {
			d.wanted = append(d.wanted, size)
		}
	}
	isFloat := slices.Contains([]configgen.DataType{configgen.TypeFP16, configgen.TypeFP32, configgen.TypeFP64, configgen.TypeBF16}, in.kind)
	if p.Warmup.Kind == "random" && isFloat {
		v.RandomData = &yes
		return v, false, nil
	}
	v.ZeroData = &yes
	return v, p.Warmup.Kind == "random", nil
}

// warmupDims are the dims of an input in a warm-up request: whole ones, or without the
// batch as in the config.
func (p *plan) warmupDims(in port, s warmupSample, d *warmupData) (dims []int64, err error) {
	given := d.shapeOf(len(in.dims), p.maxBatch > 0)
	for i, dim := range in.dims {
		if i == 0 && p.maxBatch > 0 {
			continue
		}
		size := dim.size
		if size == open && s.gear != nil {
			size, _ = p.gears.sizeAt(s.gear, in.name, i)
		}
		if size == open && given != nil {
			size = given[i]
		}
		if size == open {
			return nil, fault.New(fault.Usage, "--warmup: %s is open, and a warm-up needs sizes", place{in, i}).
				With("fix it with --dim or --input-shape, give --gears, or a .npy file with --warmup-data %s=FILE.npy", in.name)
		}
		dims = append(dims, size)
	}
	if len(dims) == 0 {
		dims = []int64{1} // as the config says it
	}
	return dims, nil
}

// shapeOf is the shape that the file says, with the batch in front; nil when it says
// none of that rank.
func (d *warmupData) shapeOf(rank int, hasBatch bool) []int64 {
	switch {
	case d == nil:
		return nil
	case len(d.dims) == rank && d.dims != nil:
		return d.dims
	case hasBatch && len(d.dims) == rank-1 && d.dims != nil:
		return append([]int64{1}, d.dims...)
	}
	return nil
}

// fits says whether the file holds one element of a batch of these dims.
// An array has that shape, or a batch of 1 in front of it, where there is one.
func (d *warmupData) fits(dims []int64, in port, hasBatch bool) bool {
	shape := d.dims
	if hasBatch && len(shape) == len(in.dims) && len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	isSingle := len(shape) == 0 && slices.Equal(dims, []int64{1}) // a number, which the config calls [1]
	if d.dims != nil && !slices.Equal(shape, dims) && !isSingle {
		return false
	}
	size := in.kind.Bytes()
	for _, n := range dims {
		if n > 0 && size > largestWarmupFile/n {
			return false
		}
		size *= n
	}
	return size == d.bytes
}
