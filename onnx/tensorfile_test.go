package onnx

import (
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestTensorAlone(t *testing.T) {
	for _, want := range []*tensor.Dense{
		tensor.Scalar(float32(1.5)),
		tensor.Of([]int64{1, 2, 3, 4, 5, 6}, 2, 3),
		tensor.Of([]string{"a", "", "ü"}, 3),
		tensor.Of([]tensor.I4{-8, 7, 1}, 3),
		tensor.Of([]float32{}, 0, 4),
		tensor.Of(make([]float64, 3*largePiece/8), 3, largePiece/8),
	} {
		parsed, err := ParseTensor(EncodeTensor("x", want), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := parsed.Dense()
		if err != nil {
			t.Fatal(err)
		}
		if !tensor.EqualBits(got, want) || parsed.Name() != "x" {
			t.Errorf("%s of name %q, want %s", got, parsed.Name(), want)
		}
	}
	for name, data := range map[string][]byte{"cut short": EncodeTensor("x", tensor.Of([]int64{1}, 1))[:5], "no protobuf": []byte("hello")} {
		if _, err := ParseTensor(data, ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
