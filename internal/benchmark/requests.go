package benchmark

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// Requests say what requests hold.
type Requests struct {
	// Files are files of values, folders of them, or a JSON file as Triton's perf_analyzer
	// takes it; without any, values are made.
	Files []string
	// Zeros makes zeros, else values are random, from Seed on: as many different requests
	// as Distinct says; 0 is [DefaultDistinct].
	Zeros    bool
	Seed     uint64
	Distinct int
	// Sizes give open dims a size, the first of them the items of a request.
	Sizes onnxpass.Specialization
	// Shapes is a file of sizes, and how often each comes: see [readShapes].
	Shapes string
}

// DefaultDistinct is how many different requests are made of each shape: with one alone,
// caches would do better than they will.
const DefaultDistinct = 4

// mostSets and mostBytes bound the requests that are kept in memory at once.
const (
	mostSets  = 4096
	mostBytes = 8 << 30
)

// requests are what is sent, made before the load.
type requests struct {
	// list has the sets, the inputs of each in the order of the model's.
	list []set
	// groups are the sets of one shape, with how often they come.
	groups []group
	seed   uint64
	bytes  int64 // of all sets
	// items is the largest number of items of a request.
	items int
	// follows are the dims of outputs that are as large as dims of inputs.
	follows []executor.Follow
}

// set is a request.
type set struct {
	name   string
	inputs []engine.Buffer
	// shape is the same for sets of equal shapes.
	shape int
	items int
}

// group are sets that follow each other in the list.
type group struct {
	first, count int
	upTo         float64 // the share of requests that come from here or from the groups before
}

// add takes a set, as long as there is room.
func (r *requests) add(one set) error {
	for _, b := range one.inputs {
		r.bytes += int64(len(b.Bytes))
		for _, word := range b.Strings {
			r.bytes += int64(len(word))
		}
	}
	if len(r.list) == mostSets || r.bytes > mostBytes {
		return fault.New(fault.Usage, "too many or too large different requests: at most %d, of %d GiB together, are kept in memory", mostSets, mostBytes>>30).
			With("give fewer or smaller files or shapes, or a smaller --distinct or --batch")
	}
	r.list = append(r.list, one)
	return nil
}

// pick gives the set of a request: the same on every run of one seed.
func (r *requests) pick(number int64) int {
	if len(r.list) == 1 {
		return 0
	}
	if len(r.groups) == 1 {
		return int(number % int64(len(r.list)))
	}
	x := mixed(r.seed + uint64(number))
	u := float64(x>>11) / (1 << 53)
	i := sort.Search(len(r.groups)-1, func(i int) bool { return u < r.groups[i].upTo })
	g := r.groups[i]
	return g.first + int(number%int64(g.count))
}

// mixed scatters a number over all 64 bits (the finaliser of SplitMix64, by Steele, Lea
// and Flood).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// make makes the requests for a model that an engine has opened.
func (r Requests) make(path string, m engine.Model) (*requests, error) {
	s, err := openSource(path, m)
	if err != nil {
		return nil, err
	}
	defer s.graph.Close()
	return r.from(s)
}

// from makes the requests for a source.
func (r Requests) from(s *source) (*requests, error) {
	out := &requests{seed: r.Seed, follows: s.follows}
	s.seed, s.sizes = r.Seed, r.Sizes
	var err error
	if len(r.Files) > 0 {
		err = s.fromFiles(r.Files, out)
	} else {
		err = s.fromShapes(r, out)
	}
	if err != nil {
		return nil, err
	}
	out.number(s.hasBatch)
	return out, nil
}

// number finds the sets of equal shapes, and counts the items.
func (r *requests) number(hasBatch bool) {
	shapes := map[string]int{}
	for i := range r.list {
		s := &r.list[i]
		s.items = 1
		var text strings.Builder
		for _, b := range s.inputs {
			fmt.Fprint(&text, b.Shape, ";")
		}
		if hasBatch && len(s.inputs) > 0 && len(s.inputs[0].Shape) > 0 {
			s.items = int(s.inputs[0].Shape[0])
		}
		id, seen := shapes[text.String()]
		if !seen {
			id = len(shapes)
			shapes[text.String()] = id
		}
		s.shape = id
		r.items = max(r.items, s.items)
	}
}

// source is a model as values are made for it.
type source struct {
	path  string // for messages
	graph *onnx.Model
	ports []engine.Port
	// inputs are those of the graph, in the order of the ports.
	inputs   []*onnx.Value
	gears    *engine.Gears
	hasBatch bool
	follows  []executor.Follow
	seed     uint64
	sizes    onnxpass.Specialization
	// isPipeline is set for the inputs of an ensemble, whose strings are files.
	isPipeline bool
}

// openSource reads the graph of a model, or the signature of a compiled one.
func openSource(path string, m engine.Model) (s *source, err error) {
	s = &source{path: path, ports: m.Inputs(), gears: m.Gears(), hasBatch: executor.HasBatchAxis(m)}
	if compiledmodel.Is(path) {
		var file *compiledmodel.File
		if file, err = compiledmodel.Open(path); err == nil {
			s.graph, err = file.Model()
		}
	} else if s.graph, err = modelfile.Open(path); err == nil {
		s.follows = follows(s.graph)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range s.ports {
		v := findInput(s.graph, p.Name)
		if v == nil || !v.Type.IsTensor() {
			s.graph.Close()
			return nil, fault.New(fault.Input, "%s: input %q is no tensor, which no request can hold", path, p.Name)
		}
		s.inputs = append(s.inputs, v)
	}
	return s, nil
}

func findInput(m *onnx.Model, name string) *onnx.Value {
	for _, v := range m.Graph.Inputs() {
		if v.Name() == name {
			return v
		}
	}
	return nil
}

// follows finds the dims of outputs that are a dim of an input, whatever its size.
func follows(m *onnx.Model) (list []executor.Follow) {
	i := infer.New(m, infer.Options{})
	if err := i.Run(context.Background()); err != nil {
		return nil // then outputs stay as large as the gear, which is said of them
	}
	for _, out := range m.Graph.Outputs() {
		f := i.Of(out)
		if !f.Ranked {
			continue
		}
		for axis, d := range f.Dims {
			if input, from, ok := sameDim(m, i, d); ok {
				list = append(list, executor.Follow{Output: out.Name(), Axis: axis, Input: input, From: from})
			}
		}
	}
	return list
}

// sameDim finds an input's dim that is equal to d in every run, where d is no number.
func sameDim(m *onnx.Model, i *infer.Inference, d infer.Dim) (input string, axis int, ok bool) {
	if _, fixed := d.Known(); fixed || d.IsUnknown() {
		return "", 0, false
	}
	for _, v := range m.Graph.Inputs() {
		f := i.Of(v)
		if !f.Ranked {
			continue
		}
		for axis, own := range f.Dims {
			if own.Equal(d) {
				return v.Name(), axis, true
			}
		}
	}
	return "", 0, false
}

// fromShapes makes values of one shape, or of all in a file.
func (s *source) fromShapes(r Requests, out *requests) error {
	if err := s.needsFiles(); err != nil {
		return err
	}
	rows := []shapeRow{{weight: 1}}
	if r.Shapes != "" {
		var err error
		if rows, err = readShapes(r.Shapes); err != nil {
			return err
		}
	}
	total, sum := 0.0, 0.0
	for _, row := range rows {
		total += row.weight
	}
	declared := s.types()
	for _, row := range rows {
		s.restore(declared)
		sizes := r.Sizes
		sizes.Dims = maps.Clone(r.Sizes.Dims)
		if sizes.Dims == nil {
			sizes.Dims = map[string]int64{}
		}
		maps.Copy(sizes.Dims, row.dims)
		if err := s.specialize(sizes); err != nil {
			if r.Shapes != "" {
				return fault.New(fault.Usage, "%s:%d: %w", r.Shapes, row.line, err)
			}
			return err
		}
		first := len(out.list)
		if err := s.made(r, row.name, out); err != nil {
			return err
		}
		sum += row.weight
		out.groups = append(out.groups, group{first, len(out.list) - first, sum / total})
	}
	s.restore(declared)
	return nil
}

// types and restore keep what the model declares of its inputs and outputs, which sizes
// are written into.
func (s *source) types() (list []*onnx.Type) {
	for _, v := range slices.Concat(s.graph.Graph.Inputs(), s.graph.Graph.Outputs()) {
		list = append(list, v.Type)
	}
	return list
}

func (s *source) restore(types []*onnx.Type) {
	for i, v := range slices.Concat(s.graph.Graph.Inputs(), s.graph.Graph.Outputs()) {
		v.Type = types[i]
	}
}

// specialize writes sizes into the inputs. What nobody gives a size takes that of the
// first gear, where there are gears, and one item of a batch.
func (s *source) specialize(sizes onnxpass.Specialization) error {
	if err := onnxpass.Specialize(s.graph, sizes); err != nil {
		return err
	}
	next := 0
	for i, v := range s.inputs {
		if v.Type.Shape == nil {
			continue
		}
		dims := &onnx.Shape{Dims: slices.Clone(v.Type.Shape.Dims)}
		for axis := range dims.Dims {
			size := int64(-1)
			if s.gears != nil && s.gears.Dims[i][axis] < 0 {
				size = s.gears.Rows[0][next]
				next++
			}
			if s.hasBatch && axis == 0 {
				size = 1
			}
			if !dims.Dims[axis].Known && size >= 0 {
				dims.Dims[axis] = onnx.Dim{Value: size, Known: true}
			}
		}
		v.Type = v.Type.WithShape(dims)
	}
	return nil
}

// made makes values of the shapes that the inputs have now.
func (s *source) made(r Requests, name string, out *requests) error {
	distinct := r.Distinct
	switch {
	case r.Zeros || len(s.inputs) == 0:
		distinct = 1
	case distinct == 0:
		distinct = DefaultDistinct
	}
	for k := range distinct {
		values, err := s.random(r.Seed+uint64(k), -1)
		if err != nil {
			return err
		}
		one, err := s.set(values)
		if err != nil {
			return err
		}
		one.name = strings.TrimSpace(fmt.Sprintf("random request %d %s", k+1, name))
		if r.Zeros {
			for _, b := range one.inputs {
				clear(b.Bytes)
				clear(b.Strings)
			}
		}
		if err := out.add(one); err != nil {
			return err
		}
	}
	return nil
}

// set makes a request of values by name. Inputs without one are left out.
func (s *source) set(values map[string]eval.Value) (set, error) {
	one := set{inputs: make([]engine.Buffer, len(s.ports))}
	for i, p := range s.ports {
		v, ok := values[p.Name]
		if !ok || v == nil {
			if !p.Optional {
				return set{}, fault.New(fault.Usage, "input %q has no value", p.Name).With("give it a file with --inputs")
			}
			continue
		}
		d, ok := v.(*tensor.Dense)
		if !ok {
			return set{}, fault.New(fault.Input, "input %q is no tensor, which no request can hold", p.Name)
		}
		one.inputs[i] = bufferOf(d)
	}
	return one, nil
}

// bufferOf gives the elements of a tensor as engines take them.
func bufferOf(d *tensor.Dense) engine.Buffer {
	b := engine.Buffer{Shape: make([]int64, d.Rank())}
	for axis, n := range d.Shape() {
		b.Shape[axis] = int64(n)
	}
	if d.Type() == tensor.String {
		b.Strings = tensor.Data[string](d)
	} else {
		b.Bytes = d.Raw()
	}
	return b
}

// fromFiles reads requests: one of all files together, or one of each folder in a folder
// that holds nothing else, or those of a JSON file.
func (s *source) fromFiles(paths []string, out *requests) error {
	sets, err := expand(paths)
	if err != nil {
		return err
	}
	reader := valuefile.Reader{Side: valuefile.Inputs, Flag: "--inputs"}
	for _, v := range s.inputs {
		reader.Slots = append(reader.Slots, valuefile.Slot{Name: v.Name(), Type: v.Type})
	}
	for _, files := range sets {
		if read := s.reader(files); read != nil {
			if err := read(files[0], out); err != nil {
				return err
			}
			continue
		}
		values, err := reader.Read(files)
		if err != nil {
			return err
		}
		one, err := s.set(values)
		if err != nil {
			return err
		}
		one.name = files[0]
		if err := out.add(one); err != nil {
			return err
		}
	}
	out.groups = []group{{0, len(out.list), 1}}
	return nil
}

// pictures are the endings of files that are sent as they are.
var pictures = []string{".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"}

// hasEnding says whether a file has one of the endings.
func hasEnding(path string, endings ...string) bool {
	return slices.Contains(endings, strings.ToLower(filepath.Ext(path)))
}

// reader is what reads a file that is whole requests; nil for others.
func (s *source) reader(files []string) func(path string, out *requests) error {
	switch {
	case len(files) != 1:
		return nil
	case hasEnding(files[0], ".json"):
		return s.fromJSON
	case hasEnding(files[0], pictures...):
		return s.fromPicture
	}
	return nil
}

// mostPicture is the largest file that is sent as it is.
const mostPicture = 1 << 28

// fromPicture makes a request of the bytes of a file, for the one input that takes such, as
// a string or as bytes. Other inputs are random.
func (s *source) fromPicture(path string, out *requests) error {
	at := s.picturePort()
	if at < 0 {
		return fault.New(fault.Usage, "--inputs %s: %s does not take pictures as files", path, s.path).
			With("measure the ensemble that npuctl config ensemble makes, or give tensors")
	}
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostPicture) {
		err = fmt.Errorf("it is no file of at most %d bytes", mostPicture)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return fault.New(fault.Input, "--inputs %s: %w", path, err)
	}
	b := engine.Buffer{Shape: []int64{1}, Strings: []string{string(data)}}
	if s.ports[at].Type == tensor.Uint8 {
		b = engine.Buffer{Shape: []int64{int64(len(data))}, Bytes: data}
	}
	if s.hasBatch {
		b.Shape = append([]int64{1}, b.Shape...)
	}
	declared := s.types()
	defer s.restore(declared)
	if err := s.specialize(s.sizes); err != nil {
		return err
	}
	values, err := s.random(s.seed+uint64(len(out.list)), at)
	if err != nil {
		return err
	}
	one := set{name: path, inputs: make([]engine.Buffer, len(s.ports))}
	for i, p := range s.ports {
		if d, ok := values[p.Name].(*tensor.Dense); ok {
			one.inputs[i] = bufferOf(d)
		}
	}
	one.inputs[at] = b
	return out.add(one)
}

// picturePort is the only input of strings or, where there is no other input, of bytes; -1
// when there is none.
func (s *source) picturePort() int {
	at := -1
	for i, p := range s.ports {
		if p.Type != tensor.String && (p.Type != tensor.Uint8 || len(s.ports) > 1) {
			continue
		}
		if at >= 0 {
			return -1
		}
		at = i
	}
	return at
}

// random makes values for all inputs that need some but one.
func (s *source) random(seed uint64, but int) (map[string]eval.Value, error) {
	var wanted []*onnx.Value
	for i, v := range s.inputs {
		if i != but && !s.ports[i].Optional {
			wanted = append(wanted, v)
		}
	}
	kind := feeds.Normal
	if compiledmodel.Is(s.path) || s.isPipeline {
		kind = feeds.Binary // no graph says which integers are indices, and of what: 0 and 1 suit most
	}
	values, err := feeds.New(s.graph, wanted).Make(feeds.Set{Seed: seed, Kind: kind})
	if err != nil {
		return nil, fault.New(fault.Input, "%s: make random inputs: %w", s.path, err).With("give inputs with --inputs")
	}
	return values, nil
}

// expand gives the files of each request: a folder that holds nothing but folders, or
// pictures, is a request for each.
func expand(paths []string) ([][]string, error) {
	var sets [][]string
	var together []string
	for _, path := range paths {
		entries, err := requestsIn(path)
		switch {
		case err != nil:
			return nil, err
		case len(entries) > 0:
			for _, entry := range entries {
				sets = append(sets, []string{entry})
			}
		case hasEnding(path, ".json") || hasEnding(path, pictures...):
			sets = append(sets, []string{path})
		default:
			together = append(together, path)
		}
	}
	if len(together) > 0 {
		sets = append(sets, together)
	}
	return sets, nil
}

// requestsIn lists what is in a folder that holds folders alone, or pictures alone.
func requestsIn(path string) (list []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Usage, "--inputs %s: there is no such file or folder", path)
	}
	if !info.IsDir() {
		return nil, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.New(fault.Usage, "--inputs: %w", err)
	}
	folders, images := 0, 0
	for _, e := range entries {
		if e.IsDir() {
			folders++
		} else if hasEnding(e.Name(), pictures...) {
			images++
		}
		list = append(list, filepath.Join(path, e.Name()))
	}
	if len(entries) > 0 && (folders == len(entries) || images == len(entries)) {
		return list, nil
	}
	return nil, nil
}
