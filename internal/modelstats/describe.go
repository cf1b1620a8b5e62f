package modelstats

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnxpass"
)

// Description is what there is to say of a model. Its JSON form is the contract of
// `npuctl inspect --json`: fields are added, never renamed.
type Description struct {
	File         string `json:"file"`
	Bytes        int64  `json:"bytes"`         // of the model file
	BytesOutside int64  `json:"bytes_outside"` // of tensors in other files
	// OutsideFiles are the other files, relative to the model's folder.
	OutsideFiles []string `json:"outside_files"`

	IRVersion       int64             `json:"ir_version"`
	Opsets          []Opset           `json:"opsets"`
	Producer        string            `json:"producer"`
	ProducerVersion string            `json:"producer_version"`
	GraphName       string            `json:"graph_name"`
	Domain          string            `json:"domain,omitempty"`
	Version         int64             `json:"model_version,omitempty"`
	Doc             string            `json:"doc,omitempty"`
	Metadata        map[string]string `json:"metadata"`
	Functions       []string          `json:"functions"`

	Inputs  []Port `json:"inputs"`
	Outputs []Port `json:"outputs"`
	// DynamicAxes are the named dims of the inputs, each with where it occurs.
	DynamicAxes []Axis `json:"dynamic_axes"`

	Nodes     int            `json:"nodes"` // of all subgraphs and functions
	Operators map[string]int `json:"operators"`

	Parameters Parameters `json:"parameters"`
	MACs       MACs       `json:"macs"`
	Largest    []Stored   `json:"largest_tensors"`

	// Conflicts are what the model says twice, and differently. Runnable says that none of
	// them keeps it from ever running.
	Conflicts []string `json:"conflicts"`
	Runnable  bool     `json:"runnable"`
}

// Opset is a version of a domain's operators that the model means.
type Opset struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
}

// Port is an input or an output.
type Port struct {
	Name string `json:"name"`
	Type string `json:"type"` // as people write it: FLOAT[batch,3]
	// Elem and Dims tell a tensor's type apart: a dim is a number, a name or null;
	// Dims is null when not even the rank is declared.
	Elem string `json:"elem,omitempty"`
	Dims []any  `json:"dims"`
	// Default is set on an input that has a value when it is not given.
	Default bool   `json:"default,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// Axis is a dim with a name.
type Axis struct {
	Name   string   `json:"name"`
	Places []string `json:"places"` // input and axis: image[0]
}

// Parameters counts what the model stores.
type Parameters struct {
	Count  int64       `json:"count"`
	Bytes  int64       `json:"bytes"`
	ByType []TypeCount `json:"by_type"` // the largest first
}

// TypeCount is the share of one element type.
type TypeCount struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Stored is a tensor that the model stores.
type Stored struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
}

// MACs counts multiply-accumulates of one run.
type MACs struct {
	Known int64 `json:"known"`
	// Nodes is how many nodes do such work, calls of a function counted each;
	// Unknown how many of them have shapes that are known only when running.
	Nodes   int `json:"nodes"`
	Unknown int `json:"unknown_nodes"`
	// Opaque is how many nodes are of operators that are none of ONNX's: nobody can say
	// what those compute.
	Opaque int `json:"opaque_nodes"`
	// Loops is how many loops were counted as if they ran once.
	Loops int `json:"loops_counted_once"`
}

// largestShown is how many of the largest tensors are listed.
const largestShown = 10

// Describe describes a model, whose nodes it sorts. Sizes that a user decides are
// to be written into the types of the inputs before; specialized says that they were.
func Describe(ctx context.Context, m *onnx.Model, specialized bool) (*Description, error) {
	d := &Description{
		File: m.Path, IRVersion: m.IRVersion, Opsets: []Opset{}, Producer: m.ProducerName, ProducerVersion: m.ProducerVersion,
		GraphName: m.Graph.Name, Domain: m.Domain, Version: m.Version, Doc: m.Doc, Metadata: map[string]string{},
		Functions: []string{}, DynamicAxes: []Axis{}, OutsideFiles: []string{}, Operators: map[string]int{}, Conflicts: []string{},
	}
	if info, err := os.Stat(m.Path); err == nil {
		d.Bytes = info.Size()
	}
	for _, o := range m.Opsets {
		d.Opsets = append(d.Opsets, Opset{o.Domain, o.Version})
	}
	for _, p := range m.Metadata {
		d.Metadata[p.Key] = p.Value
	}
	for _, f := range m.Functions {
		d.Functions = append(d.Functions, QualifiedName(f.Domain, f.Name))
	}
	if err := m.Graph.Sort(); err != nil {
		return nil, err
	}
	inference := infer.New(m, infer.Options{StaleDeclarations: specialized})
	if err := inference.Run(ctx); err != nil {
		return nil, fmt.Errorf("infer shapes: %w", err)
	}
	d.signature(m, inference)
	d.store(m)
	for n := range m.Nodes() {
		d.Operators[QualifiedName(n.Domain, n.OpType)]++
		d.Nodes++
	}
	d.MACs = countMACs(m, inference)
	d.conflicts(inference.Conflicts())
	return d, nil
}

// conflicts takes down what inference found, first what keeps the model from running.
func (d *Description) conflicts(found []infer.Conflict) {
	d.Runnable = true
	for _, isHarmless := range []bool{false, true} {
		for _, c := range found {
			if c.Warning == isHarmless {
				d.Conflicts = append(d.Conflicts, c.Message)
				d.Runnable = d.Runnable && c.Warning
			}
		}
	}
}

// QualifiedName writes an operator with its domain, unless that is the default one.
func QualifiedName(domain, name string) string {
	if domain = onnx.CanonicalDomain(domain); domain != "" {
		return domain + "." + name
	}
	return name
}

func (d *Description) signature(m *onnx.Model, inference *infer.Inference) {
	d.Inputs, d.Outputs = []Port{}, []Port{}
	for _, v := range onnxpass.RealInputs(m) {
		p := portOf(v, v.Type)
		p.Default = v.Initializer() != nil
		d.Inputs = append(d.Inputs, p)
		d.axes(v)
	}
	for _, v := range m.Graph.Outputs() {
		d.Outputs = append(d.Outputs, portOf(v, refined(v.Type, inference.Of(v))))
	}
}

// refined is a declared type with what inference knows besides: the whole of one
// that is not declared, sizes where the declaration has neither a number nor a name.
func refined(declared *onnx.Type, inferred *infer.Info) *onnx.Type {
	found := inferred.Type()
	if declared == nil {
		return found
	}
	if !declared.IsTensor() || !found.IsTensor() || found.Shape == nil {
		return declared
	}
	if declared.Shape == nil {
		return found
	}
	if len(declared.Shape.Dims) != len(found.Shape.Dims) {
		return declared
	}
	dims := slices.Clone(declared.Shape.Dims)
	for i, dim := range found.Shape.Dims {
		if dim.Known && !dims[i].Known {
			dims[i] = dim
		}
	}
	return declared.WithShape(&onnx.Shape{Dims: dims})
}

func portOf(v *onnx.Value, t *onnx.Type) Port {
	p := Port{Name: v.Name(), Type: t.String(), Doc: v.Doc()}
	if !t.IsTensor() {
		return p
	}
	p.Elem = t.Elem.String()
	if t.Shape == nil {
		return p
	}
	p.Dims = []any{}
	for _, dim := range t.Shape.Dims {
		switch {
		case dim.Known:
			p.Dims = append(p.Dims, dim.Value)
		case dim.Param != "":
			p.Dims = append(p.Dims, dim.Param)
		default:
			p.Dims = append(p.Dims, nil)
		}
	}
	return p
}

// axes notes where the names of an input's dims occur.
func (d *Description) axes(v *onnx.Value) {
	if !v.Type.IsTensor() || v.Type.Shape == nil {
		return
	}
	for i, dim := range v.Type.Shape.Dims {
		if dim.Param == "" || dim.Known {
			continue
		}
		at := slices.IndexFunc(d.DynamicAxes, func(a Axis) bool { return a.Name == dim.Param })
		if at < 0 {
			at = len(d.DynamicAxes)
			d.DynamicAxes = append(d.DynamicAxes, Axis{Name: dim.Param})
		}
		d.DynamicAxes[at].Places = append(d.DynamicAxes[at].Places, fmt.Sprintf("%s[%d]", v.Name(), i))
	}
}

// store counts what the model stores, in initializers and Constant nodes.
func (d *Description) store(m *onnx.Model) {
	byType := map[string]*TypeCount{}
	d.Largest, d.Parameters.ByType = []Stored{}, []TypeCount{}
	for name, t := range StoredTensors(m) {
		count, bytes := int64(t.Len()), t.Bytes()
		d.Parameters.Count += count
		d.Parameters.Bytes += bytes
		share := byType[t.Type().String()]
		if share == nil {
			share = &TypeCount{Type: t.Type().String()}
			byType[share.Type] = share
		}
		share.Count += count
		share.Bytes += bytes
		d.Largest = append(d.Largest, Stored{name, onnx.TensorType(t.Type(), t.Shape()...).String(), bytes})
	}
	d.BytesOutside, d.OutsideFiles = Outside(m)
	for _, share := range byType {
		d.Parameters.ByType = append(d.Parameters.ByType, *share)
	}
	slices.SortFunc(d.Parameters.ByType, func(a, b TypeCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type))
	})
	slices.SortStableFunc(d.Largest, func(a, b Stored) int { return cmp.Compare(b.Bytes, a.Bytes) })
	d.Largest = slices.Clip(d.Largest[:min(len(d.Largest), largestShown)])
}

// Outside says how many bytes of tensors lie in other files than the model's, those
// that tensors share counted once, and in which files, relative to its folder.
func Outside(m *onnx.Model) (bytes int64, files []string) {
	files = []string{}
	type piece struct {
		location       string
		offset, length int64
	}
	seen := map[piece]bool{}
	for _, t := range StoredTensors(m) {
		location, offset, length := t.External()
		at := piece{location, offset, length}
		if location == "" || seen[at] {
			continue
		}
		seen[at] = true
		bytes += length
		if !slices.Contains(files, location) {
			files = append(files, location)
		}
	}
	return bytes, files
}

// StoredTensors yields every tensor that a model stores, with the name of the value
// it is: initializers, and what Constant nodes hold.
func StoredTensors(m *onnx.Model) func(yield func(string, *onnx.Tensor) bool) {
	return func(yield func(string, *onnx.Tensor) bool) {
		for g := range m.Graphs() {
			for _, v := range g.Initializers() {
				if !yield(v.Name(), v.Initializer()) {
					return
				}
			}
			for _, n := range g.Nodes() {
				t := n.ConstantValue()
				if t == nil || n.Output(0) == nil {
					continue
				}
				if !yield(n.Output(0).Name(), t) {
					return
				}
			}
		}
	}
}
