//go:build cgo && (linux || darwin)

package onnxruntime

/*
#include "api.h"
*/
import "C"

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
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
	element := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(elem))}}}
	return proto.Marshal(&onnxpb.ModelProto{
		IrVersion:   proto.Int64(irVersion),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(opset)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String(name),
			Node: []*onnxpb.NodeProto{{
				OpType: proto.String("SequenceEmpty"),
				Output: []string{name},
				Attribute: []*onnxpb.AttributeProto{{
					Name: proto.String("dtype"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(elem))}},
			}},
			Output: []*onnxpb.ValueInfoProto{{
				Name: proto.String(name),
				Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
					SequenceType: &onnxpb.TypeProto_Sequence{ElemType: element}}},
			}},
		},
	})
}
