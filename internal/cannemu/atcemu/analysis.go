package atcemu

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnxpass"
)

// Folding here only finds shapes and is thrown away, so its limits are those of memory.
const (
	maxFolded = 512 << 20
	maxGrowth = 2 << 30
)

// analysis is what the compiler finds out about a model: GE folds constants and infers
// shapes, and so do we, on a copy.
type analysis struct {
	model *onnx.Model // folded
	infos *infer.Inference
	// isDynamic says that a shape is known only when the model runs.
	isDynamic bool
	reason    string // why, for people
	// outputs are the types of the outputs, in order.
	outputs []*onnx.Type
	// gears are the output types of each gear.
	gears [][]*onnx.Type
}

// analyse folds the carried model and infers every shape.
func analyse(ctx context.Context, r *request, c *carried, data []byte) (*analysis, error) {
	a := &analysis{}
	var err error
	var report *onnxpass.Report
	if a.model, report, err = fold(ctx, data, nil); err != nil {
		return nil, err
	}
	if a.infos, err = inferAll(ctx, a.model); err != nil {
		return nil, err
	}
	if err := conflict(report); err != nil {
		return nil, err
	}
	a.outputs = outputTypes(a.model, a.infos)
	a.isDynamic = len(report.Dynamic) > 0
	if a.isDynamic {
		a.reason = fmt.Sprintf("%s %s: %s", report.Dynamic[0].Name, report.Dynamic[0].Type, report.Dynamic[0].Reason)
	}
	if r.gears.Kind == atc.NoGears {
		return a, nil
	}
	a.isDynamic = false
	return a, a.everyGear(ctx, r, c, data)
}

// fold gives a copy of an encoded model with the constants folded; set, when not nil,
// fixes shapes before.
func fold(ctx context.Context, data []byte, set func(*onnx.Model)) (*onnx.Model, *onnxpass.Report, error) {
	m, err := onnx.Parse(data, "")
	if err != nil {
		return nil, nil, err
	}
	if set != nil {
		set(m)
	}
	report, err := onnxpass.Optimize(ctx, m, onnxpass.Options{MaxResultGrowth: maxFolded, MaxTotalGrowth: maxGrowth, Specialized: true})
	return m, report, err
}

func inferAll(ctx context.Context, m *onnx.Model) (*infer.Inference, error) {
	infos := infer.New(m, infer.Options{StaleDeclarations: true})
	return infos, infos.Run(ctx)
}

// conflict is the failure of a model whose shapes contradict each other.
func conflict(report *onnxpass.Report) error {
	for _, c := range report.Conflicts {
		if !c.Warning {
			name := ""
			if c.Node != nil {
				name = c.Node.Where()
			}
			return internalFailure(fmt.Sprintf("infer shape failed, node:%s, %s", name, c.Message), "InferShapeAndType", "shape_refiner.cc")
		}
	}
	return nil
}

func outputTypes(m *onnx.Model, infos *infer.Inference) (types []*onnx.Type) {
	for _, v := range m.Graph.Outputs() {
		types = append(types, infos.Of(v).Type())
	}
	return types
}

// everyGear infers the shapes of each gear. What depends on data beyond the gear
// cannot be compiled.
func (a *analysis) everyGear(ctx context.Context, r *request, c *carried, data []byte) error {
	for i, row := range r.gears.Rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		types, why, err := a.oneGear(ctx, data, r.gearDims(c, row))
		if err != nil {
			return err
		}
		if why != "" {
			return internalFailure(fmt.Sprintf("gear %d %v leaves a shape open: %s", i, row, why), "Build", "graph_manager.cc")
		}
		a.gears = append(a.gears, types)
	}
	return nil
}

// oneGear infers the outputs' types with the inputs at given sizes: on the folded copy
// if that suffices, else by folding anew. why says what is open nevertheless.
func (a *analysis) oneGear(ctx context.Context, data []byte, dims [][]int64) (types []*onnx.Type, why string, err error) {
	setInputs(a.model, dims)
	infos, err := inferAll(ctx, a.model)
	if err != nil {
		return nil, "", err
	}
	if isStatic(a.model, infos) {
		return outputTypes(a.model, infos), "", nil
	}
	m, report, err := fold(ctx, data, func(m *onnx.Model) { setInputs(m, dims) })
	if err != nil {
		return nil, "", err
	}
	if len(report.Dynamic) > 0 {
		d := report.Dynamic[0]
		return nil, fmt.Sprintf("%s %s: %s", d.Name, d.Type, d.Reason), nil
	}
	if infos, err = inferAll(ctx, m); err != nil {
		return nil, "", err
	}
	return outputTypes(m, infos), "", nil
}

func isStatic(m *onnx.Model, infos *infer.Inference) bool {
	for v := range m.Graph.Values() {
		if v.Producer() != nil && !infos.Of(v).IsStatic() {
			return false
		}
	}
	return true
}

// setInputs fixes the sizes of a model's inputs.
func setInputs(m *onnx.Model, dims [][]int64) {
	for i, v := range onnxpass.RealInputs(m) {
		shape := make([]onnx.Dim, len(dims[i]))
		for k, n := range dims[i] {
			shape[k] = onnx.KnownDim(int(n))
		}
		v.Type = v.Type.WithShape(&onnx.Shape{Dims: shape})
	}
}

// gearDims gives the sizes of all inputs at one gear: the values stand for the open
// dims in the order in which the user gave the shapes.
func (r *request) gearDims(c *carried, row []int64) [][]int64 {
	at := map[*carriedInput][]int64{}
	next := 0
	for _, in := range c.inShapeOrder(r.shapes) {
		dims := make([]int64, len(in.dims))
		for k, b := range in.dims {
			dims[k] = b.Low
			if b.IsFixed() {
				continue
			}
			dims[k] = r.gearValue(row, k, &next)
		}
		at[in] = dims
	}
	var out [][]int64
	for _, in := range c.inputs {
		out = append(out, at[in])
	}
	return out
}

// gearValue is the size of an open axis: the batch for every one, height or width by
// the axis, else the next of the row.
func (r *request) gearValue(row []int64, axis int, next *int) int64 {
	switch r.gears.Kind {
	case atc.BatchGears:
		return row[0]
	case atc.ImageGears:
		return row[axis-2]
	}
	*next++
	return row[*next-1]
}

// inShapeOrder lists the inputs as the user did in the options, those left out behind.
func (c *carried) inShapeOrder(shapes []atc.InputShape) (list []*carriedInput) {
	for _, s := range shapes {
		if in := c.find(s.Name); in != nil && !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	for _, in := range c.inputs {
		if !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	return list
}

// nodeName is how GE calls the node: by its name, or by type and place.
func nodeName(n *onnx.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return nodeNameAt(n, slices.Index(n.Graph().Nodes(), n))
}

// nodeNameAt is the name of a node whose place in its graph is known: looking for it is
// slow in large graphs.
func nodeNameAt(n *onnx.Node, place int) string {
	if n.Name != "" {
		return n.Name
	}
	return n.OpType + "_" + strconv.Itoa(place)
}

// domainType is the operator as the parser looks it up: ai.onnx::13::Add.
func domainType(n *onnx.Node) string {
	domain := n.CanonicalDomain()
	if domain == "" {
		domain = "ai.onnx"
	}
	return strings.Join([]string{domain, strconv.Itoa(n.Opset()), n.OpType}, "::")
}
