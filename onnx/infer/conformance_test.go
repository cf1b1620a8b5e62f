package infer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// knowledge is what inference is told of a test's inputs.
type knowledge int

const (
	fromDeclared knowledge = iota // the declared types
	fromBound                     // the small integer inputs are constants besides
	fromSymbols                   // and every dim of the others is a symbol of its own
)

// TestConformance holds what is inferred of the ONNX backend tests' outputs
// against the outputs recorded with them. Nothing may contradict a recorded
// output, whatever is known of the inputs: expressions must have the recorded
// value. One of them alone:
//
//	go test ./onnx/infer -run Conformance/test_slice_neg
func TestConformance(t *testing.T) {
	folders := testFolders(t)
	var scores [3]score
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			for f := range scores {
				holdAgainstRecorded(t, folder, knowledge(f), &scores[f])
			}
		})
	}
	declared, bound := scores[fromDeclared], scores[fromBound]
	t.Logf("from declared inputs: %v", declared)
	t.Logf("with small inputs bound: %v", bound)
	t.Logf("with symbols for dims: %v", scores[fromSymbols])
	if whole := declared.outputs > 2000; whole && (declared.share() < minDeclaredShare || bound.share() < minBoundShare) {
		t.Errorf("fewer outputs are determined than should be: %v, and bound %v", declared, bound)
	}
}

// The shares of outputs whose type and dims must be found, when all tests run.
const (
	minDeclaredShare = 0.80
	minBoundShare    = 0.90
)

// score counts outputs, and those of which type and every dim were found.
type score struct{ outputs, determined int }

func (s score) share() float64 { return float64(s.determined) / float64(max(s.outputs, 1)) }

func (s score) String() string {
	return fmt.Sprintf("%d of %d outputs fully determined (%.1f %%)", s.determined, s.outputs, 100*s.share())
}

// testFolders lists the folders that hold a model and its recorded data.
func testFolders(t *testing.T) []string {
	root := os.Getenv("NPUCTL_TESTDATA")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("NOT RUN: no folder for the ONNX test data: %v", err)
		}
		root = filepath.Join(cache, "npuctl", "testdata")
	}
	var folders []string
	for _, pattern := range []string{"debian/*/*/model.onnx", "onnx-1.23.2/*/model.onnx"} {
		models, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range models {
			folders = append(folders, filepath.Dir(m))
		}
	}
	if len(folders) == 0 {
		t.Skipf("NOT RUN: no ONNX test data in %s (set NPUCTL_TESTDATA)", root)
	}
	return folders
}

func holdAgainstRecorded(t *testing.T, folder string, in knowledge, s *score) {
	m, err := onnx.Open(filepath.Join(folder, "model.onnx"))
	if err != nil {
		t.Skipf("not opened: %v", err)
	}
	defer m.Close()
	if in != fromDeclared {
		bindSmallInputs(t, m, folder)
	}
	sizes := assignment{}
	if in == fromSymbols {
		sizes = symbolicInputs(m)
	}
	if err := m.Graph.Sort(); err != nil {
		t.Fatal(err)
	}
	i := New(m, Options{})
	if err := i.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, c := range i.Conflicts() {
		if in != fromSymbols || !c.Warning {
			t.Errorf("a conflict in a test that runs (form %d): %s", in, c.Message)
		}
	}
	for k, v := range m.Graph.Outputs() {
		p := readTensor(t, folder, fmt.Sprintf("output_%d.pb", k))
		if p == nil || !v.Type.IsTensor() {
			continue
		}
		s.outputs++
		if holdAgainst(t, v, i.Of(v), p, sizes) {
			s.determined++
		} else if os.Getenv("NPUCTL_VERBOSE") != "" {
			t.Logf("UNDETERMINED form %d: %s is %s, recorded %v", in, v.Name(), i.Of(v), p.Dims)
		}
	}
}

// readTensor reads a recorded tensor; nil when there is no such file.
func readTensor(t *testing.T, folder, name string) *onnxpb.TensorProto {
	data, err := os.ReadFile(filepath.Join(folder, "test_data_set_0", name))
	if err != nil {
		return nil
	}
	p := &onnxpb.TensorProto{}
	if err := proto.Unmarshal(data, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// symbolicInputs gives every dim of the inputs, 1s apart, a name of its own.
func symbolicInputs(m *onnx.Model) assignment {
	sizes := assignment{}
	for k, v := range m.Graph.Inputs() {
		if !v.Type.IsTensor() || v.Type.Shape == nil || v.Initializer() != nil {
			continue
		}
		s := &onnx.Shape{Dims: append([]onnx.Dim(nil), v.Type.Shape.Dims...)}
		for a, d := range s.Dims {
			if d.Known && d.Value != 1 {
				name := fmt.Sprintf("input%d_dim%d", k, a)
				sizes[newNamed(name).key] = d.Value
				s.Dims[a] = onnx.Dim{Param: name}
			}
		}
		v.Type = v.Type.WithShape(s)
	}
	return sizes
}

// holdAgainst says whether the whole type was found; what was found must be so.
// The test data keeps some element types as plain integers: the declared type
// says what is meant.
func holdAgainst(t *testing.T, v *onnx.Value, f *Info, p *onnxpb.TensorProto, sizes assignment) bool {
	elem := v.Type.Elem
	bad := f.Kind != onnx.KindTensor || f.Elem != tensor.Undefined && f.Elem != elem || f.Ranked && len(f.Dims) != len(p.Dims)
	whole := f.Ranked && f.Elem == elem
	for k := 0; k < len(f.Dims) && !bad; k++ {
		n, ok := sizes.of(f.Dims[k])
		bad = ok && n != p.Dims[k]
		whole = whole && ok
	}
	if bad {
		t.Errorf("output %q: inferred %s, recorded %s%v; %v", v.Name(), f, elem, p.Dims, sizes)
		return false
	}
	holdValues(t, v.Name(), f, p, sizes)
	return whole
}

// holdValues compares the elements that are known.
func holdValues(t *testing.T, name string, f *Info, p *onnxpb.TensorProto, sizes assignment) {
	if f.Values() == nil || int32(f.Elem) != p.GetDataType() {
		return
	}
	for k, want := range valuesOf(denseOf(t, p)) {
		got := f.Values()[k]
		if n, ok := sizes.of(got.Dim()); ok {
			got = Integer(Const(n))
		}
		if x, isFloat := got.Float(); isFloat && x != x || got.denominator > 1 || got.IsUnknown() {
			continue
		}
		if _, number := got.numerator.Known(); number && !got.Equal(want) {
			t.Errorf("output %q element %d: inferred %s, recorded %s", name, k, f.Values()[k], want)
		}
	}
}

// bindSmallInputs makes constants of the integer and boolean inputs of few elements.
func bindSmallInputs(t *testing.T, m *onnx.Model, folder string) {
	for k, v := range append([]*onnx.Value(nil), m.Graph.Inputs()...) {
		p := readTensor(t, folder, fmt.Sprintf("input_%d.pb", k))
		if p == nil || !v.Type.IsTensor() || v.Initializer() != nil || int32(v.Type.Elem) != p.GetDataType() {
			continue
		}
		if d := denseOf(t, p); tracked(d.Type(), int64(d.Len())) {
			m.Graph.StoreAs(v, onnx.NewTensor(d))
		}
	}
}

// denseOf reads a recorded tensor as the initializer of a model made around it.
func denseOf(t *testing.T, p *onnxpb.TensorProto) *tensor.Dense {
	p.Name = proto.String("t")
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(10), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{p}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(data, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.Graph.Initializers()[0].Initializer().Dense()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
