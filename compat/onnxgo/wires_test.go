package onnxgo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	onnxgo "github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend/simple"
	"gonum.org/v1/gonum/graph"

	"github.com/npuctl/npuctl/onnx"
)

// recorder is onnx-go's simple graph, which forgets operators, with a memory for them.
type recorder struct {
	*simple.Graph
	operators map[int64]string // by the ID of the value that an operator makes
}

func (r *recorder) ApplyOperation(o onnxgo.Operation, made ...graph.Node) error {
	for _, n := range made {
		r.operators[n.ID()] = o.Name
	}
	return nil
}

// wires says for each value that a node makes which operator makes it from which
// values; "" stands for an input left out. The simple graph keeps one edge of
// several between the same two values, so inputs are a set.
type wires map[string]string

func describe(operator string, inputs map[string]bool) string {
	return fmt.Sprintf("%s%q", operator, slices.Sorted(maps.Keys(inputs)))
}

// theirWires reads a file with onnx-go.
func theirWires(data []byte) (w wires, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	r := &recorder{simple.NewSimpleGraph(), map[int64]string{}}
	if err := onnxgo.NewModel(r).UnmarshalBinary(data); err != nil {
		return nil, err
	}
	w = wires{}
	for id, operator := range r.operators {
		inputs := map[string]bool{}
		for from := r.From(id); from.Next(); {
			inputs[from.Node().(*simple.Node).GetName()] = true
		}
		if name := r.Node(id).(*simple.Node).GetName(); name != "" {
			w[name] = describe(operator, inputs)
		}
	}
	return w, nil
}

// ourWires reads the same with npuctl's package onnx.
func ourWires(data []byte) (wires, error) {
	m, err := onnx.Parse(data, ".")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	w := wires{}
	for _, n := range m.Graph.Nodes() {
		inputs := map[string]bool{}
		for _, v := range n.Inputs() {
			if v == nil {
				inputs[""] = true
			} else {
				inputs[v.Name()] = true
			}
		}
		if len(n.Inputs()) == 0 {
			inputs[n.Name+"/input"] = true // onnx-go invents one
		}
		for _, v := range n.Outputs() {
			if v != nil {
				w[v.Name()] = describe(n.OpType, inputs)
			}
		}
	}
	return w, nil
}

// testdata is where .ci/fetch-testdata puts the test models.
func testdata(t *testing.T) string {
	dir := os.Getenv("NPUCTL_TESTDATA")
	if dir == "" {
		cache := os.Getenv("NPUCTL_CACHE")
		if home, err := os.UserHomeDir(); cache == "" && err == nil {
			cache = filepath.Join(home, ".cache", "npuctl")
		}
		dir = filepath.Join(cache, "testdata")
	}
	dir = filepath.Join(dir, "debian")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: no test models in %s; .ci/fetch-testdata debian brings them", dir)
	}
	return dir
}

func TestSameNodesAndWires(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata(t), "*", "*", "model.onnx"))
	if err != nil || len(files) < 1000 {
		t.Fatalf("%d test models, %v; over 1000 expected", len(files), err)
	}
	same, unread := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := theirWires(data)
		if err != nil {
			unread++
			continue
		}
		ours, err := ourWires(data)
		if err != nil {
			t.Errorf("%s: onnx-go reads it, we do not: %v", file, err)
			continue
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s (-onnx-go +npuctl):\n%s", file, diff)
			continue
		}
		same++
	}
	t.Logf("%d models read alike; onnx-go cannot read %d", same, unread)
	if same < 1000 {
		t.Errorf("only %d models were compared", same)
	}
}
