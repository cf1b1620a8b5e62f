//go:build cgo && (linux || darwin)

package onnxruntime

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestDeclaredTypes(t *testing.T) {
	l := library(t)
	scalar := []int64(nil)
	if l.minor >= 24 {
		scalar = []int64{} // told apart from an unknown rank
	}
	floats := Type{Kind: KindTensor, Elem: tensor.Float32, Shape: []int64{-1, 3, -1}, DimNames: []string{"batch", "", ""}}
	tests := []struct {
		name     string
		declared *onnxpb.TypeProto
		want     Type
	}{
		{"tensor", tensorOf(tensor.Float32, "batch", 3, nil), floats},
		{"string tensor", tensorOf(tensor.String, 2), Type{Kind: KindTensor, Elem: tensor.String, Shape: []int64{2}, DimNames: []string{""}}},
		{"empty tensor", tensorOf(tensor.Float16, 0), Type{Kind: KindTensor, Elem: tensor.Float16, Shape: []int64{0}, DimNames: []string{""}}},
		{"scalar", tensorOf(tensor.Int64), Type{Kind: KindTensor, Elem: tensor.Int64, Shape: scalar, DimNames: make([]string, len(scalar))[:len(scalar):len(scalar)]}},
		{"unknown rank", anyRank(tensor.Bool), Type{Kind: KindTensor, Elem: tensor.Bool}},
		{"sequence", sequenceOf(tensorOf(tensor.Float32, "batch", 3, nil)), Type{Kind: KindSequence, Inner: &floats}},
		{"optional", optionalOf(tensorOf(tensor.Float32, "batch", 3, nil)), Type{Kind: KindOptional, Inner: &floats}},
		{"optional sequence", optionalOf(sequenceOf(tensorOf(tensor.Float32, "batch", 3, nil))),
			Type{Kind: KindOptional, Inner: &Type{Kind: KindSequence, Inner: &floats}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := session(t, l, identity(t, test.declared))
			if scalar == nil && test.name == "scalar" {
				test.want.DimNames = nil
			}
			if got, want := s.Inputs(), []Info{{"x", test.want}}; !reflect.DeepEqual(got, want) {
				t.Errorf("inputs %+v, want %+v", got, want)
			}
			if got := s.Outputs(); len(got) != 1 || got[0].Name != "y" || got[0].Kind != test.want.Kind {
				t.Errorf("outputs %+v", got)
			}
		})
	}
}

// addWithDefault is the model y = x + b, where b is an input with a default.
func addWithDefault(t *testing.T) []byte {
	return model(t, &onnxpb.GraphProto{
		Node: []*onnxpb.NodeProto{node("Add", []string{"x", "b"}, []string{"y"})},
		Input: []*onnxpb.ValueInfoProto{
			declare("x", tensorOf(tensor.Float32, "n")), declare("b", tensorOf(tensor.Float32, 1))},
		Output:      []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Float32, "n"))},
		Initializer: []*onnxpb.TensorProto{initializer("b", tensor.Of([]float32{10}, 1))},
	})
}

func TestOverridableInitializers(t *testing.T) {
	s := session(t, library(t), addWithDefault(t))
	if in, defaults := s.Inputs(), s.OverridableInitializers(); len(in) != 1 || in[0].Name != "x" || len(defaults) != 1 || defaults[0].Name != "b" {
		t.Fatalf("inputs %+v, overridable initializers %+v", in, defaults)
	}
	x := tensor.Of([]float32{1, 2}, 2)
	for _, test := range []struct {
		inputs map[string]Value
		want   []float32
	}{
		{map[string]Value{"x": x}, []float32{11, 12}},
		{map[string]Value{"x": x, "b": tensor.Of([]float32{-1}, 1)}, []float32{0, 1}},
	} {
		got, err := s.Run(context.Background(), test.inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !tensor.EqualBits(got[0].(*tensor.Dense), tensor.Of(test.want, 2)) {
			t.Errorf("%v gives %v, want %v", test.inputs, got[0], test.want)
		}
	}
}

func TestOptionsOptimizedModel(t *testing.T) {
	l := library(t)
	double := model(t, &onnxpb.GraphProto{
		Node: []*onnxpb.NodeProto{
			node("Identity", []string{"x"}, []string{"a"}), node("Identity", []string{"a"}, []string{"b"}), node("Relu", []string{"b"}, []string{"y"})},
		Input:  []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 2))},
		Output: []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Float32, 2))},
	})
	path := filepath.Join(t.TempDir(), "optimized.onnx")
	for level, nodes := range map[Optimization]int{OptimizeNone: 3, OptimizeBasic: 1, OptimizeExtended: 1, OptimizeAll: 1} {
		s, err := l.NewSessionFromBytes(double, Options{Optimization: level, OptimizedModelPath: path, IntraOpThreads: 1})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var saved onnxpb.ModelProto
		if err := proto.Unmarshal(content, &saved); err != nil {
			t.Fatal(err)
		}
		if got := len(saved.GetGraph().GetNode()); got != nodes {
			t.Errorf("optimization %d leaves %d nodes, want %d", level, got, nodes)
		}
	}
}

func TestOptionsOfThreadsAndConfig(t *testing.T) {
	l := library(t)
	for _, o := range []Options{
		{},
		{IntraOpThreads: 2, InterOpThreads: 2, Deterministic: true, Optimization: OptimizeAll},
		{Config: map[string]string{"session.intra_op.allow_spinning": "0", "session.inter_op.allow_spinning": "0"}},
	} {
		s, err := l.NewSessionFromBytes(addWithDefault(t), o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if _, err := run(t, s, tensor.Of([]float32{1, 2}, 2)); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		s.Close()
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	l := library(t)
	for want, o := range map[string]Options{
		"threads cannot be negative: -1 intra-op": {IntraOpThreads: -1},
		"-2 inter-op":               {InterOpThreads: -2},
		"no optimization level 7":   {Optimization: 7},
		"set configuration":         {Config: map[string]string{"": "empty key"}},
		"INVALID_ARGUMENT":          {Config: map[string]string{"": ""}},
		"Processor id must consist": {IntraOpThreads: 2, Config: map[string]string{"session.intra_op_thread_affinities": "nonsense"}},
	} {
		s, err := l.NewSessionFromBytes(addWithDefault(t), o)
		if err == nil {
			s.Close()
			t.Errorf("%+v was taken", o)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", o, err, want)
		}
	}
}

// externalAdd is y = x + w, where w lies in the file weights.bin.
func externalAdd(t *testing.T, weights *tensor.Dense) (model_, data []byte) {
	w := initializer("w", weights)
	data, w.RawData = w.RawData, nil
	w.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
	w.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
	return model(t, &onnxpb.GraphProto{
		Node:        []*onnxpb.NodeProto{node("Add", []string{"x", "w"}, []string{"y"})},
		Input:       []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 64))},
		Output:      []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Float32, 64))},
		Initializer: []*onnxpb.TensorProto{w},
	}), data
}

func TestExternalData(t *testing.T) {
	l := library(t)
	folder := t.TempDir()
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(i)
	}
	file, data := externalAdd(t, tensor.Of(weights, 64))
	path := filepath.Join(folder, "model.onnx")
	for name, content := range map[string][]byte{"model.onnx": file, "weights.bin": data} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, load := range map[string]func() (*Session, error){
		"path":  func() (*Session, error) { return l.NewSession(path, Options{}) },
		"bytes": func() (*Session, error) { return l.NewSessionFromBytes(file, Options{ExternalDataFolder: folder}) },
	} {
		s, err := load()
		if name == "bytes" && l.minor < externalDataMinor {
			if err == nil || !strings.Contains(err.Error(), "needs ONNX Runtime 1.21; this is "+l.Version()) {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := run(t, s, tensor.Of(make([]float32, 64), 64))
		if err != nil || !bytes.Equal(got.(*tensor.Dense).Raw(), data) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		s.Close()
	}
}
