package infer

import (
	"context"
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options says what an Inference may believe.
type Options struct {
	// StaleDeclarations is set by a caller who gave the graph inputs other dims
	// than the file has. Of the declared types of custom operators' outputs nothing is
	// concluded then but element type and rank.
	StaleDeclarations bool
}

// Inference holds what is known of the values of a model. It is not safe for
// concurrent use.
type Inference struct {
	model   *onnx.Model
	options Options

	infos   []*Info // by value ID
	block   []Info  // infos are made in blocks
	nothing Info    // what Of gives for a value nobody has asked about; never written to

	names     map[string]*symbol // the dims that the model names
	named     map[*symbol]Cause
	causes    []Cause         // of nameless symbols, by serial number less one
	sizes     map[string]bool // keys of expressions that are dims, so not negative, though nothing proves it
	agreed    map[*symbol]agreement
	conflicts []Conflict
	seen      map[conflictKey]bool

	table     operatorTable
	common    map[string]*entry // operators of the default domain outside of functions
	operators map[operatorKey]*entry
	spare     []*call     // to be used again
	scope     *scope      // of the function call whose body is being inferred; nil outside of one
	current   *onnx.Node  // that is being inferred
	reading   *onnx.Value // the input of the main graph whose declaration is being read
	depth     int         // nested subgraphs and calls
	undecided int         // of them, those that may never run
	followed  int         // elements kept so far
	visits    int         // nodes inferred so far, repeats counted
	limit     int         // of visits inside subgraphs and calls
}

// scope holds the attributes that a call of a local function binds.
type scope struct{ attributes map[string]*onnx.Attribute }

// New makes an Inference that knows the model's inputs and constants. Sizes that
// the caller has decided are to be written into the inputs' types before.
func New(m *onnx.Model, o Options) *Inference {
	i := &Inference{
		model: m, options: o,
		infos:     make([]*Info, m.MaxID()),
		names:     map[string]*symbol{},
		named:     map[*symbol]Cause{},
		sizes:     map[string]bool{},
		agreed:    map[*symbol]agreement{},
		seen:      map[conflictKey]bool{},
		common:    map[string]*entry{},
		operators: map[operatorKey]*entry{},
		table:     table(),
	}
	nodes := 0
	for range m.Nodes() {
		nodes++
	}
	i.limit = visitsPerNode*nodes + 10000
	for _, v := range m.Graph.Inputs() {
		i.Of(v)
	}
	return i
}

// Run infers the whole main graph and everything inside its nodes. The nodes must
// be in order: see [onnx.Graph.Sort]. Function bodies are inferred for each call;
// what is known of their values for every call is found by running
// [Inference.Node] over their nodes.
func (i *Inference) Run(ctx context.Context) error {
	for k, n := range i.model.Graph.Nodes() {
		if k%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		i.Node(n)
	}
	return nil
}

// Node infers the outputs of one node, and everything inside it, from what is
// known of its inputs. A node may be inferred again after it or its inputs have changed.
func (i *Inference) Node(n *onnx.Node) {
	e := i.entryOf(n)
	if i.visits++; i.depth == 0 && (e.graphs || e.function != nil) {
		i.grantVisits(n, e)
	}
	if t := n.ConstantValue(); t != nil && n.Output(0) != nil {
		i.stored(n.Output(0), t)
		return
	}
	outer := i.current
	c := i.borrow(n, e)
	i.current = n
	defer func() {
		i.current = outer
		i.giveBack(c)
	}()
	switch {
	case c.unresolved():
	case e.function != nil:
		c.callFunction(e.function)
	case e.rule != nil:
		e.rule(c)
	case e.schema == nil:
		c.believeDeclaration()
	}
	c.finish(e)
}

// stored infers a Constant node that carries a tensor: a third of the nodes of
// some exports, with nothing to find out.
func (i *Inference) stored(v *onnx.Value, t *onnx.Tensor) {
	f := constantInfo(t)
	i.put(v, f)
	if v.IsOutput() {
		i.checkDeclared(v, &f)
	}
}

// Of gives what is known of a value, never nil and not to be changed. What has
// been stored, and inputs of the main graph, are known from the start.
func (i *Inference) Of(v *onnx.Value) *Info {
	if v == nil {
		return &i.nothing
	}
	f := i.at(v.ID())
	if *f == nil || (*f).constant == nil && (*f).values == nil && v.Initializer() != nil {
		i.begin(v, f)
	}
	if *f == nil {
		return &i.nothing
	}
	return *f
}

// at gives the place of a value in the table, which grows as passes make values.
func (i *Inference) at(id int) **Info {
	if id >= len(i.infos) {
		i.infos = append(i.infos, make([]*Info, max(id+1-len(i.infos), 64))...)
	}
	return &i.infos[id]
}

// begin writes down what a value says of itself.
func (i *Inference) begin(v *onnx.Value, at **Info) {
	if t := v.Constant(); t != nil {
		*at = i.keep(constantInfo(t))
		return
	}
	g := v.Graph()
	if *at == nil && v.IsInput() && g == i.model.Graph {
		i.reading = v
		f := i.declared(v.Type, true)
		i.reading = nil
		if f.Elem == tensor.Undefined && f.Kind == onnx.KindTensor && v.Initializer() != nil {
			f.Elem = v.Initializer().Type()
		}
		*at = i.keep(f)
	}
}

func (i *Inference) keep(f Info) *Info {
	if len(i.block) == 0 {
		i.block = make([]Info, 128)
	}
	p := &i.block[0]
	i.block = i.block[1:]
	*p = f
	return p
}

func constantInfo(t *onnx.Tensor) Info {
	f := Info{Elem: t.Type(), Ranked: true, Dims: make([]Dim, len(t.Shape())), constant: t}
	for k, n := range t.Shape() {
		f.Dims[k] = Const(int64(n))
	}
	return f
}

// Set replaces what is known of a value, for passes that make values.
func (i *Inference) Set(v *onnx.Value, f Info) {
	i.settle(&f)
	i.put(v, f)
}

// put writes what is known of a value into the table.
func (i *Inference) put(v *onnx.Value, f Info) {
	at := i.at(v.ID())
	if *at != nil {
		i.followed -= len((*at).values)
	}
	i.followed += len(f.values)
	*at = i.keep(f)
}

// SetConstant says that a value always holds d, though nothing in the graph stores
// it: a result that has been computed ahead.
func (i *Inference) SetConstant(v *onnx.Value, d *tensor.Dense) {
	i.Set(v, constantInfo(onnx.NewTensor(d)))
}

// Forget drops what is known of a value.
func (i *Inference) Forget(v *onnx.Value) { *i.at(v.ID()) = nil }

// declared reads a declared type. Names become symbols when define is set, or
// when a graph input has defined them; other dims are nameless.
func (i *Inference) declared(t *onnx.Type, define bool) Info {
	if t == nil {
		return Info{}
	}
	f := Info{Kind: t.Kind, Elem: t.Elem}
	if t.Inner != nil {
		inner := i.declared(t.Inner, define && t.Kind != onnx.KindSequence)
		if t.Kind == onnx.KindSequence {
			blur(&inner)
		}
		f.Inner = &inner
	}
	if t.Shape == nil || len(t.Shape.Dims) > maxRank {
		return f
	}
	f.Ranked, f.Dims = true, make([]Dim, len(t.Shape.Dims))
	for k, d := range t.Shape.Dims {
		f.Dims[k] = i.declaredDim(d, define)
	}
	return f
}

// blur forgets dims that are no numbers: for the elements of a sequence a blank
// or a name may be something else each time.
func blur(f *Info) {
	for k, d := range f.Dims {
		if _, known := d.Known(); !known {
			f.Dims[k] = Unknown()
		}
	}
}

func (i *Inference) declaredDim(d onnx.Dim, define bool) Dim {
	if d.Known {
		return Const(d.Value)
	}
	if d.Param == "" {
		return i.fresh()
	}
	s := i.names[d.Param]
	if s == nil {
		if !define {
			return i.fresh()
		}
		s = newNamed(d.Param)
		i.names[d.Param] = s
		i.named[s] = Cause{Symbol: d.Param, Input: i.reading}
	}
	return s.dim()
}

// Named gives the symbol of a dim that a graph input names.
func (i *Inference) Named(name string) (Dim, bool) {
	s := i.names[name]
	if s == nil {
		return Dim{}, false
	}
	return s.dim(), true
}

// fresh makes a symbol for a size of which nothing is known.
func (i *Inference) fresh() Dim { return i.nameless(true) }

// freshElement makes a symbol for an integer of which nothing is known.
func (i *Inference) freshElement() Dim { return i.nameless(false) }

func (i *Inference) nameless(size bool) Dim {
	s := newNameless(i.serial()+1, size)
	i.causes = append(i.causes, Cause{Symbol: s.text, Node: i.current, Input: i.reading})
	return s.dim()
}

// serial is the number of the last nameless symbol.
func (i *Inference) serial() int { return len(i.causes) }

// isSize says whether d cannot be negative, by proof or because it is the dim of some value.
func (i *Inference) isSize(d Dim) bool {
	p := prover{fuel: maxSubstitutions, sizes: i.sizes}
	return p.nonNegative(d)
}

// positivePart gives max(d, 0), which is d for sizes.
func (i *Inference) positivePart(d Dim) Dim {
	if len(i.sizes) > 0 && i.isSize(d) {
		return d
	}
	return d.positivePart()
}

// min gives the smaller of d and e.
func (i *Inference) min(d, e Dim) Dim { return d.Sub(i.positivePart(d.Sub(e))) }

// noteSizes remembers that dims cannot be negative, and writes max(x,0) as x where that is known of x.
func (i *Inference) noteSizes(dims []Dim) []Dim {
	for k, d := range dims {
		if d.form == nil {
			continue
		}
		if x := d.capped(); len(i.sizes) > 0 && x.form != d.form && i.sizes[x.key()] {
			dims = slices.Clone(dims)
			dims[k] = x
		} else if len(i.sizes) < maxSizes && !d.sumOfSizes() && !d.NonNegative() {
			i.sizes[d.key()] = true
		}
	}
	return dims
}

// maxSizes bounds what noteSizes remembers.
const maxSizes = 10000

// overLimit says whether subgraphs nest, or calls multiply, beyond reason.
func (i *Inference) overLimit() bool { return i.depth > maxDepth || i.visits > i.limit }

// visitsPerNode is how often a node is inferred at most, on average: a body is
// inferred a few times for a loop and once for every call. More comes from nests
// that multiply.
const visitsPerNode = 64

// grantVisits sees to it that a node of the main graph may infer what is inside
// it, however much has been spent on others.
func (i *Inference) grantVisits(n *onnx.Node, e *entry) {
	inside := 0
	for _, g := range n.Subgraphs() {
		inside += countNodes(g)
	}
	if e.function != nil {
		inside += countNodes(e.function.Body)
	}
	i.limit = max(i.limit, i.visits+visitsPerNode*inside+100)
}

func countNodes(g *onnx.Graph) int {
	count := 0
	for _, n := range g.Nodes() {
		count++
		for _, inner := range n.Subgraphs() {
			count += countNodes(inner)
		}
	}
	return count
}

// maxDepth bounds nested subgraphs and calls; functions may not call themselves.
const maxDepth = 100
