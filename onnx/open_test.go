package onnx_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

// Files that people hand in by mistake get an answer that helps.
func TestOpenSaysWhatAFileIsInstead(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "the file is empty"},
		{"text", "input: data\nmodel: resnet\n", "it is a text file"},
		{"text cut in a character", strings.Repeat("é", 300), "it is a text file"},
		{"checkpoint.pt", "PK\x03\x04\x00\x00", "PyTorch checkpoints"},
		{"old.pth", "\x80\x02\x8a\n", "torch.onnx.export"},
		{"keras.h5", "\x89HDF\r\n\x1a\n", "tf2onnx"},
		{"m.tflite", "\x1c\x00\x00\x00TFL3", "TensorFlow Lite"},
		{"m.ort", "\x1c\x00\x00\x00ORTM", "ONNX Runtime's own format"},
		{"m.om", "IMOD\x00", "offline model"},
		{"m.gguf", "GGUF\x03", "llama.cpp"},
		{"pointer", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
		{"m.onnx.gz", "\x1f\x8b\x08", "gzip"},
		{"x.npy", "\x93NUMPY\x01", "NumPy"},
		{"page", "<!DOCTYPE html>", "web page"},
		{"m.safetensors", "\x10\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\"", "safetensors"},
		{"a tensor", "\x08\x01\x10\x01\x4a\x04\x00\x00\x00\x00", "holds no graph"},
		{"noise", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "no protobuf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := onnx.Open(path)
			oneLine(t, err, c.want)
			oneLine(t, err, path)
		})
	}
}

func TestOpenOfWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	_, err := onnx.Open(folder)
	oneLine(t, err, "directory")
	_, err = onnx.Open(filepath.Join(folder, "none.onnx"))
	oneLine(t, err, "no such file")
}

// Every place at which a model can be cut gives an error of one line; most of them
// say that it is cut.
func TestOpenOfTruncatedModels(t *testing.T) {
	b := marshal(t, everything())
	cut, cuts := 0, 0
	for n := 0; n < len(b); n += 1 + n/300 {
		cuts++
		m, err := onnx.Parse(b[:n], "")
		if err == nil {
			// The fields that were cut off may be ones nobody needs.
			if _, err := m.Encode(); err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		oneLine(t, err, "")
		if strings.Contains(err.Error(), "cut short") {
			cut++
		}
	}
	if cut < cuts/2 {
		t.Errorf("only %d of %d cuts are told as such", cut, cuts)
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	node := func(op string, in, out []string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: &op, Input: in, Output: out, Attribute: attributes}
	}
	graph := func(nodes ...*onnxpb.NodeProto) *onnxpb.GraphProto { return &onnxpb.GraphProto{Node: nodes} }
	deep := graph()
	for range 200 {
		deep = graph(node("If", nil, nil, attribute("then_branch", onnxpb.AttributeProto_GRAPH, func(a *onnxpb.AttributeProto) { a.G = deep })))
	}
	deepType := tensorType(tensor.Float32)
	for range 200 {
		deepType = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OptionalType{OptionalType: &onnxpb.TypeProto_Optional{ElemType: deepType}}}
	}
	store := func(t *onnxpb.TensorProto) *onnxpb.GraphProto {
		return &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{t}}
	}
	for _, c := range []struct {
		name  string
		graph *onnxpb.GraphProto
		want  string
	}{
		{"undefined input", graph(node("Add", []string{"x"}, []string{"y"})), `Add node that makes "y": input "x" is made by nothing`},
		{"undefined output", &onnxpb.GraphProto{Output: []*onnxpb.ValueInfoProto{info("y", nil)}}, `the main graph: output "y" is made by nothing`},
		{"two outputs of one name", graph(node("A", nil, []string{"y"}), node("B", nil, []string{"y"})), `B node that makes "y"`},
		{"an input that a node makes", &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{info("x", nil)}, Node: []*onnxpb.NodeProto{node("A", nil, []string{"x"})}}, `two values bear the name "x"`},
		{"two initializers of one name", &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{rawTensor("w", tensor.Int8, []byte{1}, 1), rawTensor("w", tensor.Int8, []byte{1}, 1)}}, `two initializers bear the name "w"`},
		{"graphs nested too deep", deep, "nested deeper than 100"},
		{"types nested too deep", &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{info("x", deepType)}}, "nested deeper than 100"},
		{"negative dim", store(rawTensor("w", tensor.Int8, nil, -1)), `initializer "w": dims [-1] are not possible`},
		{"dims that overflow", store(rawTensor("w", tensor.Int8, nil, 1<<40, 1<<40)), "too large"},
		{"an overflow hidden by zero", store(rawTensor("w", tensor.Int8, []byte{}, 1<<40, 0, 1<<40)), "too large"},
		{"too few bytes", store(rawTensor("w", tensor.Float32, []byte{1, 2}, 4)), `initializer "w": 2 bytes of raw_data for FLOAT[4], which needs 16`},
		{"elements in two fields", store(&onnxpb.TensorProto{Name: str("w"), DataType: num(int32(1)), Dims: []int64{1}, RawData: []byte{0, 0, 0, 0}, FloatData: []float32{1}}), `initializer "w": its elements are stored twice, in float_data and raw_data`},
		{"elements in two typed fields", store(&onnxpb.TensorProto{Name: str("w"), DataType: num(int32(1)), Dims: []int64{1}, Int32Data: []int32{1}, FloatData: []float32{1}}), "stored twice, in float_data and int32_data"},
		{"an input of an impossible size", &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{info("x", tensorType(tensor.Float32, 1, -2))}}, `input "x": there is no dim of -2`},
		{"unknown type", store(rawTensor("w", tensor.Type(99), nil, 4)), "element type 99"},
		{"no type", store(&onnxpb.TensorProto{Name: str("w")}), "element type 0"},
		{"segments", store(&onnxpb.TensorProto{Name: str("w"), DataType: num(int32(1)), Segment: &onnxpb.TensorProto_Segment{}}), "segments"},
		{"sparse without indices", &onnxpb.GraphProto{SparseInitializer: []*onnxpb.SparseTensorProto{{Values: rawTensor("w", tensor.Int8, nil)}}}, `sparse initializer "w"`},
		{"attribute", graph(node("Constant", nil, []string{"c"}, attribute("value", onnxpb.AttributeProto_TENSOR, func(a *onnxpb.AttributeProto) { a.T = rawTensor("", tensor.Int8, nil, -5) }))), `Constant node that makes "c": attribute "value": dims`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := proto.Marshal(&onnxpb.ModelProto{Graph: c.graph})
			if err != nil {
				t.Fatal(err)
			}
			_, err = onnx.Parse(b, "")
			oneLine(t, err, c.want)
		})
	}
}

// What a tensor claims is held against what there is before any memory is taken.
func TestTensorsThatLie(t *testing.T) {
	wide := &onnxpb.TensorProto{DataType: num(int32(tensor.Float32)), Dims: []int64{1 << 20, 1 << 20}}
	typed := &onnxpb.TensorProto{DataType: num(int32(tensor.Int64)), Dims: []int64{3}, Int64Data: []int64{1, 2}}
	many := &onnxpb.TensorProto{DataType: num(int32(tensor.Uint8)), Dims: []int64{1}, Int32Data: []int32{1, 2, 3}}
	other := &onnxpb.TensorProto{DataType: num(int32(tensor.Float64)), Dims: []int64{1}, FloatData: []float32{1}}
	texts := &onnxpb.TensorProto{DataType: num(int32(tensor.String)), Dims: []int64{1 << 40}, StringData: [][]byte{nil}}
	none := &onnxpb.TensorProto{DataType: num(int32(tensor.String)), Dims: []int64{2}}
	for name, p := range map[string]*onnxpb.TensorProto{"no data": wide, "too few": typed, "too many": many, "another field": other, "strings": texts, "no strings": none} {
		t.Run(name, func(t *testing.T) {
			p.Name = str("w")
			m := parse(t, marshal(t, &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{p}}}))
			before := allocated()
			_, err := m.Graph.Find("w").Initializer().Dense()
			oneLine(t, err, `tensor "w"`)
			if used := allocated() - before; used > 1<<20 {
				t.Errorf("%d bytes were allocated on the way to the error", used)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestSparseTensors(t *testing.T) {
	dense := func(elem tensor.Type, dims []int64, values int64, indices []int64, shape ...int64) *onnx.Tensor {
		size, _ := elem.RawSize(values)
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i + 1)
		}
		m := parse(t, marshal(t, &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{SparseInitializer: []*onnxpb.SparseTensorProto{{
			Dims: dims, Values: rawTensor("w", elem, raw, values),
			Indices: &onnxpb.TensorProto{DataType: num(int32(tensor.Int64)), Dims: shape, Int64Data: indices},
		}}}}))
		return m.Graph.Find("w").Initializer()
	}
	for _, c := range []struct {
		name string
		t    *onnx.Tensor
		want string
	}{
		{"positions", dense(tensor.Int8, []int64{2, 3}, 2, []int64{1, 5}, 2), "INT8[2,3]{0, 1, 0, 0, 0, 2}"},
		{"coordinates", dense(tensor.Int8, []int64{2, 3}, 2, []int64{0, 2, 1, 0}, 2, 2), "INT8[2,3]{0, 0, 1, 2, 0, 0}"},
		{"nothing", dense(tensor.Int8, []int64{2}, 0, nil, 0), "INT8[2]{0, 0}"},
		{"outside", dense(tensor.Int8, []int64{2, 3}, 1, []int64{6}, 1), "index 6 is outside"},
		{"negative", dense(tensor.Int8, []int64{2, 3}, 1, []int64{-1}, 1), "index -1 is outside"},
		{"coordinate outside", dense(tensor.Int8, []int64{2, 3}, 1, []int64{0, 3}, 1, 2), "index 3 is outside dim 3"},
		{"too few indices", dense(tensor.Int8, []int64{2, 3}, 2, []int64{1}, 1), "2 bytes of values for 1 indices"},
		{"another rank", dense(tensor.Int8, []int64{2, 3}, 1, []int64{0, 0, 0}, 1, 3), "indices [1 3] for 2 dims"},
		{"bomb", dense(tensor.Float64, []int64{1 << 30, 1 << 10}, 1, []int64{0}, 1), "unfolds to more than"},
		{"scalar", dense(tensor.Int8, nil, 1, nil, 1, 0), "sparse scalar"},
		{"packed type", dense(tensor.Int4, []int64{4}, 2, []int64{0, 1}, 2), "of INT4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.t.Dense()
			if err != nil {
				oneLine(t, err, c.want)
			} else if d.String() != c.want {
				t.Errorf("%s, want %s", d, c.want)
			}
		})
	}
}

// What only tells of values in between does not keep a file from being opened, and
// -1 is how some exporters spell an open dim.
func TestOpenTakesOddDeclarations(t *testing.T) {
	b := marshal(t, &onnxpb.ModelProto{IrVersion: num(int64(8)), Graph: &onnxpb.GraphProto{
		Input:     []*onnxpb.ValueInfoProto{info("x", tensorType(tensor.Float32, 2, -1))},
		Node:      []*onnxpb.NodeProto{{OpType: str("Relu"), Input: []string{"x"}, Output: []string{"y"}}},
		ValueInfo: []*onnxpb.ValueInfoProto{info("y", tensorType(tensor.Float32, 2, -7))},
	}})
	m, err := onnx.Parse(b, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Graph.Find("x").Type.String(); got != "FLOAT[2,?]" {
		t.Errorf("x is %s", got)
	}
	again, err := m.Encode()
	if err != nil || string(again) != string(b) {
		t.Errorf("the model does not come back as it was (%v)", err)
	}
}

// All typed fields give the same elements as raw_data would.
func TestTypedFields(t *testing.T) {
	p := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: everyTensor()}}
	m := parse(t, marshal(t, p))
	for name, want := range map[string]string{
		"typed_float":   "FLOAT[2]{1, 2}",
		"typed_complex": "COMPLEX64[1]{(1+2i)}",
		"typed_double":  "DOUBLE[1]{1.5}",
		"typed_int32":   "INT32[2]{-1, 2}",
		"typed_half":    "FLOAT16[1]{1}",
		"typed_int4":    "INT4[3]{1, 2, 3}",
		"typed_uint2":   "UINT2[5]{0, 1, 2, 3, 1}",
		"typed_fp8":     "FLOAT8E4M3FN[2]{1, NaN}",
		"typed_int64":   "INT64[2]{-3, 4}",
		"typed_uint64":  "UINT64[1]{9223372036854775808}",
		"typed_uint32":  "UINT32[1]{7}",
		"typed_strings": `STRING[2]{"a", "\xff\x00"}`,
		"typed_empty":   "FLOAT[0]{}",
	} {
		d, err := m.Graph.Find(name).Initializer().Dense()
		if err != nil || d.String() != want {
			t.Errorf("%s: %v, %v, want %s", name, d, err, want)
		}
	}
	for _, v := range m.Graph.Initializers() {
		if _, err := v.Initializer().Dense(); err != nil {
			t.Errorf("%s: %v", v.Name(), err)
		}
	}
}

func TestConstantForms(t *testing.T) {
	m := text.MustParse(t, `<ir_version: 8, opset_import: ["": 18]> (float[1] in, float[1] default = {1}) => () {
		a = Constant <value = float[1] {2}> ()
		b = Constant <value_float = 1.5> ()
		c = Constant <value_ints = [1, 2]> ()
		d = Constant <value_string = "s"> ()
		e = Constant <sparse_value = sparse_tensor(float[2]) {float[1] {3}, int64[1] {1}}> ()
		f = Constant <value_floats: floats = []> ()
		g = Constant <value_strings = ["a", "b"]> ()
		h = Constant <value_int = 4> ()
		none = Constant ()
		two = Constant <value_int = 1, value_float = 1.0> ()
		other = Neg (in)
	}`)
	want := map[string]string{
		"a": "FLOAT[1]{2}", "b": "FLOAT[]{1.5}", "c": "INT64[2]{1, 2}", "d": `STRING[]{"s"}`, "e": "FLOAT[2]{0, 3}",
		"f": "FLOAT[0]{}", "g": `STRING[2]{"a", "b"}`, "h": "INT64[]{4}",
	}
	for v := range m.Graph.Values() {
		got := ""
		if c := v.Constant(); c != nil {
			d, err := c.Dense()
			if err != nil {
				t.Fatal(err)
			}
			got = d.String()
		}
		if got != want[v.Name()] {
			t.Errorf("%s is %q, want %q", v.Name(), got, want[v.Name()])
		}
	}
}
