package valuefile

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// The fields of SequenceProto and OptionalProto (onnx-data.proto), which number
// what they hold alike, and of MapProto.
const (
	heldName     protowire.Number = 1
	heldKind     protowire.Number = 2
	heldTensor   protowire.Number = 3
	heldSequence protowire.Number = 5
	heldMap      protowire.Number = 6
	heldOptional protowire.Number = 7

	mapKeyType    protowire.Number = 2
	mapKeys       protowire.Number = 3
	mapStringKeys protowire.Number = 4
	mapValues     protowire.Number = 5
)

// held lists in which field a sequence or an optional holds a kind of value, and
// the number of that kind in elem_type.
var held = map[onnx.Kind]struct {
	field  protowire.Number
	number uint64
}{
	onnx.KindTensor: {heldTensor, 1}, onnx.KindSequence: {heldSequence, 3}, onnx.KindMap: {heldMap, 4}, onnx.KindOptional: {heldOptional, 5},
}

// maxNesting bounds sequences of sequences.
const maxNesting = 16

// decode reads a value from a message of the kind that t says. External data of
// tensors is looked for in folder.
func decode(data []byte, t *onnx.Type, folder string, depth int) (eval.Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("values of type %s cannot be read", t)
	}
	if t == nil {
		return decodeTensor(data, tensor.Undefined, folder)
	}
	switch t.Kind {
	case onnx.KindTensor:
		return decodeTensor(data, t.Elem, folder)
	case onnx.KindSequence:
		items, err := decodeHeld(data, t.Inner, folder, depth)
		if err != nil {
			return nil, err
		}
		s := &eval.Sequence{Items: items}
		if t.Inner.IsTensor() {
			s.Elem = t.Inner.Elem
		}
		return s, nil
	case onnx.KindOptional:
		items, err := decodeHeld(data, t.Inner, folder, depth)
		if err != nil || len(items) == 0 {
			return &eval.Optional{}, err
		}
		return &eval.Optional{Value: items[len(items)-1]}, nil
	case onnx.KindMap:
		return decodeMap(data, t, folder)
	}
	return nil, fmt.Errorf("values of type %s cannot be read", t)
}

// decodeTensor reads a TensorProto. Old test data stores bfloat16 as uint16: where
// the model says bfloat16, that is meant.
func decodeTensor(data []byte, elem tensor.Type, folder string) (*tensor.Dense, error) {
	t, err := onnx.ParseTensor(data, folder)
	if err != nil {
		return nil, err
	}
	d, err := t.Dense()
	if err != nil {
		return nil, err
	}
	if d.Type() == tensor.Uint16 && elem == tensor.BFloat16 {
		return tensor.FromRaw(elem, d.Shape(), d.Raw())
	}
	return d, nil
}

// decodeHeld gives the values inside a SequenceProto or OptionalProto.
func decodeHeld(data []byte, inner *onnx.Type, folder string, depth int) (items []eval.Value, err error) {
	if inner == nil {
		return nil, errors.New("the model does not say what it holds")
	}
	field := held[inner.Kind].field
	if field == 0 {
		return nil, fmt.Errorf("values of type %s cannot be read", inner)
	}
	err = eachMessage(data, func(number protowire.Number, body []byte) error {
		if number != field {
			return nil
		}
		v, err := decode(body, inner, folder, depth+1)
		if err != nil {
			return fmt.Errorf("item %d: %w", len(items), err)
		}
		items = append(items, v)
		return nil
	})
	return items, err
}

// eachMessage calls f with every field of bytes in a message.
func eachMessage(data []byte, f func(number protowire.Number, body []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("damaged: %w", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return fmt.Errorf("damaged: %w", protowire.ParseError(size))
		}
		body := data[n : n+size]
		if kind == protowire.BytesType {
			body, _ = protowire.ConsumeBytes(body)
		}
		if kind == protowire.BytesType || kind == protowire.VarintType {
			if err := f(number, body); err != nil {
				return err
			}
		}
		data = data[n+size:]
	}
	return nil
}

func decodeMap(data []byte, t *onnx.Type, folder string) (eval.Value, error) {
	var ints []int64
	var texts []string
	var values []eval.Value
	err := eachMessage(data, func(number protowire.Number, body []byte) (err error) {
		switch number {
		case mapKeys: // one key, or several packed
			for len(body) > 0 {
				v, n := protowire.ConsumeVarint(body)
				if n < 0 {
					return protowire.ParseError(n)
				}
				ints, body = append(ints, int64(v)), body[n:]
			}
		case mapStringKeys:
			texts = append(texts, string(body))
		case mapValues:
			values, err = decodeHeld(body, t.Inner, folder, 0)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	keys := tensor.Of(ints, len(ints))
	if t.Elem == tensor.String {
		keys = tensor.Of(texts, len(texts))
	}
	if len(values) != keys.Len() {
		return nil, fmt.Errorf("a map of %d keys and %d values", keys.Len(), len(values))
	}
	joined, err := joinScalars(values, t.Inner)
	return &eval.Map{Keys: keys, Values: joined}, err
}

// joinScalars makes one vector of the values of a map.
func joinScalars(values []eval.Value, t *onnx.Type) (*tensor.Dense, error) {
	if !t.IsTensor() {
		return nil, fmt.Errorf("maps to %s cannot be read", t)
	}
	var raw []byte
	var texts []string
	for _, v := range values {
		d, ok := v.(*tensor.Dense)
		if !ok || d.Len() != 1 || d.Type() != t.Elem {
			return nil, fmt.Errorf("a map whose values are not single %s", t.Elem)
		}
		raw = append(raw, d.Raw()...)
		texts = append(texts, tensor.Data[string](d)...)
	}
	if t.Elem == tensor.String {
		return tensor.Make(texts, len(values))
	}
	return tensor.FromRaw(t.Elem, []int{len(values)}, raw)
}

// encode gives a value as the message of its kind.
func encode(name string, v eval.Value) ([]byte, error) {
	switch v := v.(type) {
	case *tensor.Dense:
		return onnx.EncodeTensor(name, v), nil
	case *eval.Sequence:
		return encodeHeld(name, v.Items)
	case *eval.Optional:
		if v.Value == nil {
			return encodeHeld(name, nil)
		}
		return encodeHeld(name, []eval.Value{v.Value})
	case *eval.Map:
		return encodeMap(name, v)
	}
	return nil, fmt.Errorf("values of type %T cannot be written", v)
}

func kindOf(v eval.Value) onnx.Kind {
	switch v.(type) {
	case *eval.Sequence:
		return onnx.KindSequence
	case *eval.Optional:
		return onnx.KindOptional
	case *eval.Map:
		return onnx.KindMap
	}
	return onnx.KindTensor
}

func encodeHeld(name string, items []eval.Value) ([]byte, error) {
	out := protowire.AppendString(protowire.AppendTag(nil, heldName, protowire.BytesType), name)
	for i, item := range items {
		kind := held[kindOf(item)]
		if i == 0 {
			out = protowire.AppendVarint(protowire.AppendTag(out, heldKind, protowire.VarintType), kind.number)
		}
		body, err := encode("", item)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, kind.field, protowire.BytesType), body)
	}
	return out, nil
}

func encodeMap(name string, m *eval.Map) ([]byte, error) {
	out := protowire.AppendString(protowire.AppendTag(nil, heldName, protowire.BytesType), name)
	out = protowire.AppendVarint(protowire.AppendTag(out, mapKeyType, protowire.VarintType), uint64(m.Keys.Type()))
	for _, k := range tensor.Data[int64](m.Keys) {
		out = protowire.AppendVarint(protowire.AppendTag(out, mapKeys, protowire.VarintType), uint64(k))
	}
	for _, k := range tensor.Data[string](m.Keys) {
		out = protowire.AppendString(protowire.AppendTag(out, mapStringKeys, protowire.BytesType), k)
	}
	var items []eval.Value
	for i := range m.Values.Len() {
		one, err := m.Values.Strided(i, nil, nil)
		if err != nil {
			return nil, err
		}
		items = append(items, one)
	}
	body, err := encodeHeld("", items)
	return protowire.AppendBytes(protowire.AppendTag(out, mapValues, protowire.BytesType), body), err
}
