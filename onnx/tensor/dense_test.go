package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func ExampleDense() {
	weights := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(weights, weights.Bytes(), "bytes")
	fmt.Println(tensor.Data[float32](weights)[4], tensor.Data[int64](weights) == nil)

	flat, _ := weights.Reshape(6)
	fmt.Println(flat.Shape(), flat.Rank(), flat.Len())
	fmt.Println(tensor.Scalar(tensor.F16From(0.1)))
	// Output:
	// FLOAT[2,3]{1, 2, 3, 4, 5, 6} 24 bytes
	// 5 true
	// [6] 1 6
	// FLOAT16[]{0.099975586}
}

func TestNewIsZero(t *testing.T) {
	for _, typ := range tensor.Types() {
		for _, shape := range [][]int{{}, {3}, {2, 0, 5}, {1, 2, 3}} {
			d, err := tensor.New(typ, shape...)
			if err != nil {
				t.Fatalf("New(%v, %v): %v", typ, shape, err)
			}
			if d.Type() != typ || !slices.Equal(d.Shape(), shape) || d.Rank() != len(shape) {
				t.Errorf("New(%v, %v) is %v", typ, shape, d)
			}
			if typ == tensor.String {
				for _, s := range tensor.Data[string](d) {
					if s != "" {
						t.Errorf("New(%v, %v) has element %q", typ, shape, s)
					}
				}
				continue
			}
			for _, b := range d.Raw() {
				if b != 0 {
					t.Errorf("New(%v, %v) has raw bytes % x", typ, shape, d.Raw())
				}
			}
		}
	}
}

func TestShapesThatAreRefused(t *testing.T) {
	tests := []struct {
		name     string
		typ      tensor.Type
		shape    []int
		tooLarge bool
	}{
		{"negative dim", tensor.Float32, []int{2, -1}, false},
		{"negative dim beside a zero", tensor.Float32, []int{0, -1}, false},
		{"product that overflows", tensor.Int8, []int{math.MaxInt, math.MaxInt, 4}, true},
		{"product that overflows to a small number", tensor.Int8, []int{1 << 32, 1 << 32}, true},
		{"product that a zero would hide", tensor.Int8, []int{1 << 32, 1 << 32, 0}, true},
		{"more bytes than allowed", tensor.Complex128, []int{1 << 31}, true},
		{"more strings than allowed", tensor.String, []int{1 << 31}, true},
		{"unknown type", tensor.Type(99), []int{1}, false},
		{"no type", tensor.Undefined, []int{1}, false},
	}
	for _, test := range tests {
		_, err := tensor.New(test.typ, test.shape...)
		if err == nil || errors.Is(err, tensor.ErrTooLarge) != test.tooLarge {
			t.Errorf("%s: error %v", test.name, err)
		}
	}
}

func TestMakeChecksTheShape(t *testing.T) {
	if _, err := tensor.Make([]int32{1, 2, 3}, 2, 2); err == nil {
		t.Error("3 elements made an array of shape [2,2]")
	}
	if _, err := tensor.Make([]int32{1}, -1); err == nil {
		t.Error("a negative dim made an array")
	}
	d, err := tensor.Make([]string(nil), 0, 3)
	if err != nil || d.Len() != 0 || tensor.Data[string](d) == nil {
		t.Errorf("empty array of strings: %v, %v", d, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Of took 1 element for a shape of 2")
		}
	}()
	tensor.Of([]bool{true}, 2)
}

func TestShapeIsCopied(t *testing.T) {
	shape := []int{2, 2}
	d := tensor.Of([]int8{1, 2, 3, 4}, shape...)
	shape[0] = 7
	if !slices.Equal(d.Shape(), []int{2, 2}) {
		t.Errorf("the array changed shape with the caller's slice: %v", d.Shape())
	}
}

func TestReshape(t *testing.T) {
	d := tensor.Of([]int16{1, 2, 3, 4, 5, 6}, 2, 3)
	r, err := d.Reshape(3, 1, 2)
	if err != nil || r.String() != "INT16[3,1,2]{1, 2, 3, 4, 5, 6}" {
		t.Errorf("reshaped to %v, %v", r, err)
	}
	if &tensor.Data[int16](d)[0] != &tensor.Data[int16](r)[0] {
		t.Error("Reshape copied the elements")
	}
	for _, shape := range [][]int{{5}, {-1, 6}, {}, {6, 0}} {
		if _, err := d.Reshape(shape...); err == nil {
			t.Errorf("6 elements took shape %v", shape)
		}
	}
}

func TestBytes(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want int64
	}{
		{tensor.Of([]float64{1, 2}, 2), 16},
		{tensor.Of([]tensor.I4{1, 2, 3}, 3), 2},
		{tensor.Of([]tensor.U2{1, 2, 3}, 3), 1},
		{tensor.Of([]string{"né", "", "x"}, 3), 4},
		{tensor.Of([]complex64{}, 0), 0},
	}
	for _, test := range tests {
		if got := test.d.Bytes(); got != test.want {
			t.Errorf("%v has %d bytes, want %d", test.d, got, test.want)
		}
	}
}

func TestString(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want string
	}{
		{tensor.Scalar(float32(1.5)), "FLOAT[]{1.5}"},
		{tensor.Scalar(float32(math.Inf(-1))), "FLOAT[]{-Inf}"},
		{tensor.Of([]int64{}, 0, 2), "INT64[0,2]{}"},
		{tensor.Of([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, 9), "INT64[9]{0, 1, 2, 3, 4, 5, 6, 7, …}"},
		{tensor.Scalar(uint64(math.MaxUint64)), "UINT64[]{18446744073709551615}"},
		{tensor.Of([]bool{true, false}, 2), "BOOL[2]{true, false}"},
		{tensor.Scalar("a\nb"), `STRING[]{"a\nb"}`},
		{tensor.Scalar(complex64(1 + 2i)), "COMPLEX64[]{(1+2i)}"},
		{tensor.Scalar(complex128(-2i)), "COMPLEX128[]{(0-2i)}"},
		{tensor.Scalar(tensor.I4(-8)), "INT4[]{-8}"},
		{tensor.Scalar(tensor.BF16From(3)), "BFLOAT16[]{3}"},
		{tensor.Scalar(0.1), "DOUBLE[]{0.1}"},
	}
	for _, test := range tests {
		if got := test.d.String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
