package conformance

import (
	"fmt"
	"math"
	"math/cmplx"
	"os"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// readValue reads a file of ONNX test data: a TensorProto, SequenceProto or
// OptionalProto, which only the type it is meant for tells apart.
func readValue(path string, t *onnx.Type) (eval.Value, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v, err := decodeValue(data, t)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return v, nil
}

// Field numbers of onnx-data.proto: those of SequenceProto and OptionalProto
// agree but for tensors, sequences and optionals being many or one.
const (
	dataTensor   = 3
	dataSequence = 5
	dataOptional = 7
)

func decodeValue(data []byte, t *onnx.Type) (eval.Value, error) {
	if t == nil {
		return nil, fmt.Errorf("the model declares no type")
	}
	switch t.Kind {
	case onnx.KindTensor:
		return decodeTensor(data, t.Elem)
	case onnx.KindSequence:
		items, err := decodeItems(data, t.Inner)
		if err != nil {
			return nil, err
		}
		s := &eval.Sequence{Items: items}
		if t.Inner.IsTensor() {
			s.Elem = t.Inner.Elem
		}
		return s, nil
	case onnx.KindOptional:
		items, err := decodeItems(data, t.Inner)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return &eval.Optional{}, nil
		}
		return &eval.Optional{Value: items[0]}, nil
	}
	return nil, fmt.Errorf("values of type %s are not read", t)
}

// decodeItems gives the values inside a SequenceProto or OptionalProto.
func decodeItems(data []byte, inner *onnx.Type) ([]eval.Value, error) {
	field, ok := map[onnx.Kind]protowire.Number{
		onnx.KindTensor: dataTensor, onnx.KindSequence: dataSequence, onnx.KindOptional: dataOptional,
	}[inner.Kind]
	if !ok {
		return nil, fmt.Errorf("values of type %s are not read", inner)
	}
	var items []eval.Value
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if number == field {
			body, _ := protowire.ConsumeBytes(data[n:])
			v, err := decodeValue(body, inner)
			if err != nil {
				return nil, err
			}
			items = append(items, v)
		}
		data = data[n+size:]
	}
	return items, nil
}

// decodeTensor reads a TensorProto as the initializer of a model made around
// it, which is the way the package under test reads tensors. Old test data stores
// bfloat16 as uint16: elem says what is meant.
func decodeTensor(data []byte, elem tensor.Type) (*tensor.Dense, error) {
	const (
		modelIR, modelGraph, modelOpsets = 1, 7, 8
		opsetVersion                     = 2
		graphInitializer                 = 5
		tensorName                       = 8
	)
	named := protowire.AppendString(protowire.AppendTag(append([]byte{}, data...), tensorName, protowire.BytesType), "t")
	graph := protowire.AppendBytes(protowire.AppendTag(nil, graphInitializer, protowire.BytesType), named)
	opset := protowire.AppendVarint(protowire.AppendTag(nil, opsetVersion, protowire.VarintType), 20)
	model := protowire.AppendVarint(protowire.AppendTag(nil, modelIR, protowire.VarintType), 10)
	model = protowire.AppendBytes(protowire.AppendTag(model, modelOpsets, protowire.BytesType), opset)
	model = protowire.AppendBytes(protowire.AppendTag(model, modelGraph, protowire.BytesType), graph)
	m, err := onnx.Parse(model, "")
	if err != nil {
		return nil, err
	}
	d, err := m.Graph.Initializers()[0].Initializer().Dense()
	if err != nil {
		return nil, err
	}
	if d.Type() == tensor.Uint16 && elem == tensor.BFloat16 {
		return tensor.FromRaw(elem, d.Shape(), d.Raw())
	}
	return d, nil
}

// tolerance is how far a number may be from what it should be.
type tolerance struct{ rtol, atol, steps float64 }

// narrowSteps is the distance of neighbours, as a part of the number, in the types
// that tolerance.steps is about.
var narrowSteps = map[tensor.Type]float64{tensor.Float16: 1.0 / (1 << 10), tensor.BFloat16: 1.0 / (1 << 7)}

// sameElement holds element i against what it should be: real and complex numbers
// within the tolerance, NaN equal to NaN, everything else exactly.
func sameElement(got, want *tensor.Dense, i int, tol tolerance) bool {
	switch t := want.Type(); {
	case t == tensor.String:
		return tensor.Data[string](got)[i] == tensor.Data[string](want)[i]
	case t == tensor.Uint64:
		return tensor.Data[uint64](got)[i] == tensor.Data[uint64](want)[i]
	case t == tensor.Complex64:
		return near(complex128(tensor.Data[complex64](got)[i]), complex128(tensor.Data[complex64](want)[i]), tol)
	case t == tensor.Complex128:
		return near(tensor.Data[complex128](got)[i], tensor.Data[complex128](want)[i], tol)
	case t == tensor.Uint8 && tol.atol >= 1:
		return near(complex(floatAt(got, i), 0), complex(floatAt(want, i), 0), tolerance{atol: tol.atol})
	case t.IsFloat():
		tol.rtol = max(tol.rtol, tol.steps*narrowSteps[t])
		return near(complex(floatAt(got, i), 0), complex(floatAt(want, i), 0), tol)
	}
	g, _ := got.Strided(i, nil, nil)
	w, _ := want.Strided(i, nil, nil)
	return tensor.EqualBits(g, w)
}

func near(got, want complex128, tol tolerance) bool {
	if cmplx.IsNaN(got) || cmplx.IsNaN(want) {
		return cmplx.IsNaN(got) == cmplx.IsNaN(want)
	}
	if cmplx.IsInf(got) || cmplx.IsInf(want) {
		return got == want
	}
	return cmplx.Abs(got-want) <= tol.atol+tol.rtol*cmplx.Abs(want)
}

func floatAt(d *tensor.Dense, i int) float64 {
	one, err := d.Strided(i, nil, nil)
	if err != nil {
		return math.NaN()
	}
	v, _ := one.Float64s()
	return v[0]
}

func elementText(d *tensor.Dense, i int) string {
	one, err := d.Strided(i, nil, nil)
	if err != nil {
		return err.Error()
	}
	return one.String()
}
