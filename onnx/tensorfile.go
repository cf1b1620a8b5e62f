package onnx

import (
	"fmt"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// ParseTensor reads a TensorProto that stands alone, as inputs and outputs of ONNX
// test data do in files of their own; data must not change while the tensor is in
// use. External data is looked for in folder; "" means the working directory.
func ParseTensor(data []byte, folder string) (*Tensor, error) {
	d := decoder{source: &source{folder: folder, file: &mapping{data: data}}}
	t, err := d.tensor(data)
	if err != nil {
		return nil, fmt.Errorf("not a TensorProto, or damaged: %w", err)
	}
	return t, nil
}

// EncodeTensor gives an array as a TensorProto of that name.
func EncodeTensor(name string, d *tensor.Dense) []byte {
	e := encoder{}
	e.made(NewTensor(d), name)
	return e.flat()
}
