//go:build cgo && (linux || darwin)

package onnxruntime

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// named declares a tensor of open dims that have names.
func named(name string, elem tensor.Type, dims ...string) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(elem)), Shape: shape}}}}
}

// bind makes a binding of one node from x to y.
func bind(t testing.TB, n *onnxpb.NodeProto, x, y *onnxpb.ValueInfoProto) *Binding {
	t.Helper()
	s := session(t, library(t), oneNode(t, n, []*onnxpb.ValueInfoProto{x}, []*onnxpb.ValueInfoProto{y}))
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// An output whose dims have the names of an input's stays where it is from run to run; one
// whose dims nothing tells is new each time. Both are right.
func TestBindingKeepsOutputs(t *testing.T) {
	stays := bind(t, node("Not", []string{"x"}, []string{"y"}), named("x", tensor.Bool, "n"), named("y", tensor.Bool, "n"))
	moves := bind(t, node("NonZero", []string{"x"}, []string{"y"}), named("x", tensor.Bool, "n"), named("y", tensor.Int64, "one", "m"))
	if !stays.stays[0] || moves.stays[0] {
		t.Errorf("%v, %v", stays.stays, moves.stays)
	}
	data := []byte{1, 1, 0}
	for _, b := range []*Binding{stays, moves} {
		if err := b.SetInput(0, []int64{3}, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, first := range []byte{0, 1, 1, 0} {
		data[0] = first
		for _, b := range []*Binding{stays, moves} {
			if err := b.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if y := stays.Output(0); len(y.Bytes) != 3 || y.Bytes[0] != 1-first || y.Bytes[1] != 0 || y.Bytes[2] != 1 {
			t.Errorf("%v: %+v", data, y)
		}
		if y := moves.Output(0); len(y.Shape) != 2 || y.Shape[1] != 1+int64(first) {
			t.Errorf("%v: %+v", data, y)
		}
	}
}

// A model that declares dims which it does not keep to is run all the same.
func TestBindingOfAModelThatLies(t *testing.T) {
	b := bind(t, node("Compress", []string{"x", "x"}, []string{"y"}), named("x", tensor.Bool, "n"), named("y", tensor.Bool, "n"))
	data := []byte{1, 0, 1}
	if err := b.SetInput(0, []int64{3}, data); err != nil {
		t.Fatal(err)
	}
	for _, first := range []byte{1, 0, 1} {
		data[0] = first
		if err := b.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if y := b.Output(0); y.Shape[0] != 1+int64(first) {
			t.Errorf("%v: %+v", data, y)
		}
	}
	if !b.distrusts {
		t.Error("it still believes what the model declares")
	}
}

// The end of a context stops the runs of that context, and no others.
func TestBindingContexts(t *testing.T) {
	b := bind(t, node("Neg", []string{"x"}, []string{"y"}), named("x", tensor.Int8, "n"), named("y", tensor.Int8, "n"))
	if err := b.SetInput(0, []int64{1}, []byte{1}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		for range 2 {
			if err := b.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := b.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if err := b.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

// Inputs are looked at, one that was forgotten is named, and a binding that nobody has any
// more gives back what it holds.
func TestBindingRefuses(t *testing.T) {
	b := bind(t, node("Neg", []string{"x"}, []string{"y"}), named("x", tensor.Float32, "n"), named("y", tensor.Float32, "n"))
	if err := b.Run(context.Background()); err == nil || !strings.Contains(err.Error(), `"x" is missing`) {
		t.Errorf("%v", err)
	}
	if err := b.SetInput(0, []int64{2}, make([]byte, 7)); err == nil || !strings.Contains(err.Error(), "7 bytes for FLOAT of shape [2], which has 8") {
		t.Errorf("%v", err)
	}
	forgotten, err := b.session.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	if err := forgotten.SetInput(0, []int64{2}, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
