//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include "api.h"
*/
import "C"

import (
	"context"
	"fmt"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// emptySequence makes an empty sequence of type t. The C API does not make any, but
// an operator does, so it is the result of running a model of one node.
func (c *call) emptySequence(t *Type) (*C.OrtValue, error) {
	if t.Inner.Kind != KindTensor {
		return nil, fmt.Errorf("an empty sequence of %vs cannot be made", t.Inner.Kind)
	}
	model, err := emptySequenceModel(t.Inner.Elem)
	if err != nil {
		return nil, fmt.Errorf("make an empty sequence: %w", err)
	}
	c.library.retain()
	session, err := c.library.fromBytes(model, Options{IntraOpThreads: 1})
	if err != nil {
		return nil, fmt.Errorf("make an empty sequence: %w", err)
	}
	defer session.Close()
	maker := call{session: session, library: c.library}
	defer maker.release()
	if err := maker.prepare(nil, nil); err != nil {
		return nil, fmt.Errorf("make an empty sequence: %w", err)
	}
	if err := maker.run(context.Background()); err != nil {
		return nil, fmt.Errorf("make an empty sequence: %w", err)
	}
	value := maker.outputs[0]
	maker.outputs = nil
	return c.keep(nil, &value)
}

// emptySequenceModel is a model whose only output is an empty sequence of tensors.
func emptySequenceModel(elem tensor.Type) ([]byte, error) {
	const (
		irVersion = 6
		opset     = 11 // which brought the operator
		name      = "sequence"
	)
	m := onnx.NewModel(irVersion, opset)
	m.Graph.Name = name
	made := m.Graph.Add("SequenceEmpty", nil, []string{name}, onnx.IntAttribute("dtype", int64(elem))).Output(0)
	made.Type = onnx.SequenceType(&onnx.Type{Kind: onnx.KindTensor, Elem: elem})
	m.Graph.AddOutput(made)
	return m.Encode()
}
