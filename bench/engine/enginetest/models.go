package enginetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// Model is a model of the table.
type Model struct {
	Name string
	// Source is ONNX, as text of package text.
	Source string
	// Compile are the arguments of atc that leave its open dims open.
	Compile []string
	// Needs are the features that it takes.
	Needs []Feature
	// Inputs and Outputs are the signature.
	Inputs, Outputs []engine.Port
	// Sets are shapes by input: the model is run with one after the other. An input that
	// is not there is left out.
	Sets []map[string][]int64
	// Want computes the outputs.
	Want func(in map[string]engine.Buffer) map[string]engine.Buffer
}

// SaveONNX writes a model as .onnx; it is what [Suite.File] is by default.
func SaveONNX(t testing.TB, m Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := text.MustParse(t, m.Source).Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

const header = `<ir_version: 8, opset_import: ["": 13]> `

// copies is a model whose outputs are inputs, by name.
func copies(of map[string]string) func(map[string]engine.Buffer) map[string]engine.Buffer {
	return func(in map[string]engine.Buffer) map[string]engine.Buffer {
		out := map[string]engine.Buffer{}
		for output, input := range of {
			out[output] = in[input]
		}
		return out
	}
}

// port is short for a port of known dims.
func port(name string, t tensor.Type, dims ...int64) engine.Port {
	return engine.Port{Name: name, Type: t, Dims: append([]int64{}, dims...)}
}

var (
	fixed = Model{
		Name:    "fixed dims",
		Source:  header + `g (float[2,3] x, int32[3] k) => (float[2,3] y, int32[3] z) { y = Identity (x)  z = Identity (k) }`,
		Inputs:  []engine.Port{port("x", tensor.Float32, 2, 3), port("k", tensor.Int32, 3)},
		Outputs: []engine.Port{port("y", tensor.Float32, 2, 3), port("z", tensor.Int32, 3)},
		Sets:    []map[string][]int64{{"x": {2, 3}, "k": {3}}, {"x": {2, 3}, "k": {3}}},
		Want:    copies(map[string]string{"y": "x", "z": "k"}),
	}
	open = Model{
		Name:    "open dims",
		Source:  header + `g (float[n,3] x, int32[m] k) => (float[n,3] y, int32[m] z) { y = Identity (x)  z = Identity (k) }`,
		Compile: []string{"--input_shape=x:-1,3;k:-1"},
		Needs:   []Feature{OpenDims},
		Inputs:  []engine.Port{port("x", tensor.Float32, -1, 3), port("k", tensor.Int32, -1)},
		Outputs: []engine.Port{port("y", tensor.Float32, -1, 3), port("z", tensor.Int32, -1)},
		Sets: []map[string][]int64{
			{"x": {4, 3}, "k": {7}}, {"x": {1, 3}, "k": {2}}, {"x": {9, 3}, "k": {2}}, {"x": {4, 3}, "k": {7}}, {"x": {4, 3}, "k": {7}}},
		Want: copies(map[string]string{"y": "x", "z": "k"}),
	}
	empty = Model{
		Name: "no elements", Source: open.Source, Compile: open.Compile, Needs: []Feature{OpenDims, Empty},
		Inputs: open.Inputs, Outputs: open.Outputs, Want: open.Want,
		Sets: []map[string][]int64{{"x": {0, 3}, "k": {2}}, {"x": {2, 3}, "k": {2}}, {"x": {0, 3}, "k": {2}}},
	}
	scalar = Model{
		Name:    "scalars",
		Source:  header + `g (float x, int64 k) => (float y, int64 z) { y = Identity (x)  z = Identity (k) }`,
		Needs:   []Feature{Scalars},
		Inputs:  []engine.Port{port("x", tensor.Float32), port("k", tensor.Int64)},
		Outputs: []engine.Port{port("y", tensor.Float32), port("z", tensor.Int64)},
		Sets:    []map[string][]int64{{"x": {}, "k": {}}},
		Want:    copies(map[string]string{"y": "x", "z": "k"}),
	}
	types = Model{
		Name: "element types",
		Source: header + `g (float16[5] a, int8[5] b, uint8[5] c, int64[5] d, bool[5] e, double[5] f) => (float16[5] a2, int8[5] b2, uint8[5] c2, int64[5] d2, bool[5] e2, double[5] f2) {
			a2 = Identity (a)  b2 = Identity (b)  c2 = Identity (c)  d2 = Identity (d)  e2 = Identity (e)  f2 = Identity (f) }`,
		Needs: []Feature{ElementTypes},
		Inputs: []engine.Port{port("a", tensor.Float16, 5), port("b", tensor.Int8, 5), port("c", tensor.Uint8, 5),
			port("d", tensor.Int64, 5), port("e", tensor.Bool, 5), port("f", tensor.Float64, 5)},
		Outputs: []engine.Port{port("a2", tensor.Float16, 5), port("b2", tensor.Int8, 5), port("c2", tensor.Uint8, 5),
			port("d2", tensor.Int64, 5), port("e2", tensor.Bool, 5), port("f2", tensor.Float64, 5)},
		Sets: []map[string][]int64{{"a": {5}, "b": {5}, "c": {5}, "d": {5}, "e": {5}, "f": {5}}, {"a": {5}, "b": {5}, "c": {5}, "d": {5}, "e": {5}, "f": {5}}},
		Want: copies(map[string]string{"a2": "a", "b2": "b", "c2": "c", "d2": "d", "e2": "e", "f2": "f"}),
	}
	words = Model{
		Name:    "strings",
		Source:  header + `g (string[n] s) => (string[n] t) { t = Identity (s) }`,
		Needs:   []Feature{OpenDims, Strings},
		Inputs:  []engine.Port{port("s", tensor.String, -1)},
		Outputs: []engine.Port{port("t", tensor.String, -1)},
		Sets:    []map[string][]int64{{"s": {3}}, {"s": {1}}, {"s": {3}}},
		Want:    copies(map[string]string{"t": "s"}),
	}
	optional = Model{
		Name:    "optional inputs",
		Source:  header + `g (int64[2] x, float[2] d = {5, 7}) => (int64[2] y, float[2] z) { y = Identity (x)  z = Identity (d) }`,
		Needs:   []Feature{Optional},
		Inputs:  []engine.Port{port("x", tensor.Int64, 2), {Name: "d", Type: tensor.Float32, Dims: []int64{2}, Optional: true}},
		Outputs: []engine.Port{port("y", tensor.Int64, 2), port("z", tensor.Float32, 2)},
		Sets:    []map[string][]int64{{"x": {2}}, {"x": {2}, "d": {2}}, {"x": {2}}},
		Want: func(in map[string]engine.Buffer) map[string]engine.Buffer {
			d, ok := in["d"]
			if !ok {
				d = engine.Buffer{Shape: []int64{2}, Bytes: floats(5, 7)}
			}
			return map[string]engine.Buffer{"y": in["x"], "z": d}
		},
	}
	computed = Model{
		Name:    "arithmetic",
		Source:  header + `g (float[2,3] x, int32[3] k) => (float[2,3] y, int32[3] z) { r = Relu (x)  y = Add (r, x)  z = Add (k, k) }`,
		Needs:   []Feature{Arithmetic},
		Inputs:  fixed.Inputs,
		Outputs: fixed.Outputs,
		Sets:    fixed.Sets,
		Want: func(in map[string]engine.Buffer) map[string]engine.Buffer {
			x, k := in["x"], in["k"]
			y, z := make([]float32, 6), make([]byte, 12)
			for i := range y {
				v := math.Float32frombits(binary.LittleEndian.Uint32(x.Bytes[4*i:]))
				y[i] = v + max(v, 0)
			}
			for i := 0; i < len(z); i += 4 {
				binary.LittleEndian.PutUint32(z[i:], 2*binary.LittleEndian.Uint32(k.Bytes[i:]))
			}
			return map[string]engine.Buffer{"y": {Shape: x.Shape, Bytes: floats(y...)}, "z": {Shape: k.Shape, Bytes: z}}
		},
	}
	// found is a model whose outputs have shapes that its inputs do not tell.
	found = Model{
		Name:    "shapes that the elements decide",
		Source:  header + `g (float[n] x) => (int64[1,m] y) { y = NonZero (x) }`,
		Compile: []string{"--input_shape=x:-1"},
		Needs:   []Feature{OpenDims, Arithmetic, DecidedShapes},
		Inputs:  []engine.Port{port("x", tensor.Float32, -1)},
		Outputs: []engine.Port{port("y", tensor.Int64, 1, -1)},
		Sets:    []map[string][]int64{{"x": {4}}, {"x": {4}}, {"x": {9}}, {"x": {4}}},
		Want: func(in map[string]engine.Buffer) map[string]engine.Buffer {
			var at []byte
			for i := 0; i < len(in["x"].Bytes); i += 4 {
				if math.Float32frombits(binary.LittleEndian.Uint32(in["x"].Bytes[i:])) != 0 {
					at = binary.LittleEndian.AppendUint64(at, uint64(i/4))
				}
			}
			return map[string]engine.Buffer{"y": {Shape: []int64{1, int64(len(at) / 8)}, Bytes: at}}
		},
	}
)

// Models gives the table.
func Models() []Model {
	return []Model{fixed, open, empty, scalar, types, words, optional, computed, found}
}

// slow is a model that runs for minutes, in operators that are short.
var slow = Model{
	Name: "long run",
	Source: header + `g (int64 n) => (int64 y) <bool yes = {1}, int64 zero = {0}> {
		y = Loop <body = b (int64 i, bool c, int64 v) => (bool c2, int64 v2) { c2 = Identity (c)  v2 = Add (v, i) }> (n, yes, zero) }`,
	Needs: []Feature{Arithmetic},
}

func floats(values ...float32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// fill writes elements that differ by seed: small numbers, 0 among them.
func fill(b engine.Buffer, t tensor.Type, seed int) {
	for i := range b.Strings {
		b.Strings[i] = fmt.Sprintf("word %d of %d\x00é", i, seed)
	}
	width := max(1, t.Width())
	for i := 0; i < len(b.Bytes)/width; i++ {
		n := (i*7+seed*3)%11 - 5
		at := b.Bytes[i*width : (i+1)*width]
		switch t {
		case tensor.Float32:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(n)))
		case tensor.Float64:
			binary.LittleEndian.PutUint64(at, math.Float64bits(float64(n)))
		case tensor.Float16:
			binary.LittleEndian.PutUint16(at, uint16(tensor.F16From(float32(n))))
		case tensor.Bool:
			at[0] = byte(n & 1)
		default:
			for j := range at {
				at[j] = byte(n >> min(31, 8*j))
			}
		}
	}
}
