package onnx

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// The fields of TensorProto.
const (
	tensorDims     protowire.Number = 1
	tensorElem     protowire.Number = 2
	tensorSegment  protowire.Number = 3
	tensorFloats   protowire.Number = 4
	tensorInt32s   protowire.Number = 5
	tensorStrings  protowire.Number = 6
	tensorInt64s   protowire.Number = 7
	tensorName     protowire.Number = 8
	tensorRaw      protowire.Number = 9
	tensorDoubles  protowire.Number = 10
	tensorUint64s  protowire.Number = 11
	tensorExternal protowire.Number = 13
	tensorLocation protowire.Number = 14
)

// The fields of SparseTensorProto.
const (
	sparseValues  protowire.Number = 1
	sparseIndices protowire.Number = 2
	sparseDims    protowire.Number = 3
)

// locationExternal is the data_location of a tensor whose elements lie in a side file.
const locationExternal = 1

// maxElements bounds the number of elements a stored tensor may claim; sizes
// above it overflow somewhere sooner or later.
const maxElements = 1 << 46

func checkDims(dims []int) error {
	n := 1
	for _, d := range dims {
		if d < 0 || d > maxElements {
			return fmt.Errorf("dims %v are not possible", dims)
		}
		if d > 0 && n > maxElements/d {
			return fmt.Errorf("dims %v are too large", dims)
		}
		n *= max(d, 1)
	}
	return nil
}

// tensor reads a TensorProto. Its elements stay where they are; that their
// number fits the dims is found out here for raw_data and external data, and when
// they are asked for otherwise.
func (d *decoder) tensor(message []byte) (*Tensor, error) {
	t := &Tensor{encoded: message, source: d.source}
	var entries [][]byte
	isExternal := false
	var stored fieldSet // the fields that hold elements
	f := fields{rest: message}
	for f.next() {
		if holdsElements(&f) {
			stored |= numbers(f.number)
		}
		switch {
		case f.number == tensorDims:
			t.dims = appendVarints(t.dims, &f)
		case f.number == tensorElem && f.isVarint():
			t.elem = tensor.Type(int32(f.bits))
		case f.number == tensorLocation && f.isVarint():
			isExternal = f.bits == locationExternal
		case !f.isBytes():
		case f.number == tensorName:
			t.name = string(f.bytes)
		case f.number == tensorRaw:
			t.raw = f.bytes
		case f.number == tensorExternal:
			entries = append(entries, f.bytes)
		case f.number == tensorSegment:
			return nil, errors.New("the tensor is stored in segments, which no ONNX version has put to use")
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	if err := checkDims(t.dims); err != nil {
		return nil, err
	}
	if !t.elem.Valid() {
		return nil, fmt.Errorf("element type %d is not one ONNX has (1 to %d)", int32(t.elem), len(tensor.Types()))
	}
	size, sized := t.elem.RawSize(int64(t.Len()))
	switch {
	case bits.OnesCount64(uint64(stored)) > 1:
		return nil, fmt.Errorf("its elements are stored twice, in %s, and readers differ in which they take", elementFieldNames(stored))
	case isExternal && !sized:
		return nil, fmt.Errorf("%s elements cannot be external", t.elem)
	case isExternal:
		var err error
		t.external, err = d.source.external(entries, size)
		return t, err
	case t.raw != nil && sized && int64(len(t.raw)) != size:
		return nil, fmt.Errorf("%d bytes of raw_data for %s%v, which needs %d", len(t.raw), t.elem, t.dims, size)
	}
	return t, nil
}

// inlineElements names the fields that hold elements inside of the message.
var inlineElements = map[protowire.Number]string{
	tensorFloats: "float_data", tensorInt32s: "int32_data", tensorStrings: "string_data", tensorInt64s: "int64_data",
	tensorRaw: "raw_data", tensorDoubles: "double_data", tensorUint64s: "uint64_data",
}

// holdsElements says whether a field of a TensorProto stores at least one element.
func holdsElements(f *fields) bool {
	switch {
	case f.number < tensorFloats || inlineElements[f.number] == "":
		return false
	case f.number == tensorStrings:
		return f.isBytes() // an empty one, too
	case f.isBytes():
		return len(f.bytes) > 0
	}
	return f.number != tensorRaw
}

func elementFieldNames(stored fieldSet) string {
	var names []string
	for number, name := range inlineElements {
		if stored.has(number) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

func (d *decoder) sparseTensor(message []byte) (*Tensor, error) {
	t := &Tensor{encoded: message, source: d.source}
	var values, indices []byte
	f := fields{rest: message}
	for f.next() {
		switch {
		case f.number == sparseDims:
			t.dims = appendVarints(t.dims, &f)
		case f.number == sparseValues && f.isBytes():
			values = merged(values, f.bytes)
		case f.number == sparseIndices && f.isBytes():
			indices = merged(indices, f.bytes)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	if values == nil || indices == nil {
		return nil, errors.New("a sparse tensor without values or indices")
	}
	if err := checkDims(t.dims); err != nil {
		return nil, err
	}
	s := &sparseTensor{}
	var err error
	if s.values, err = d.tensor(values); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if s.indices, err = d.tensor(indices); err != nil {
		return nil, fmt.Errorf("indices: %w", err)
	}
	t.elem, t.name, t.sparse = s.values.elem, s.values.name, s
	return t, nil
}

// tensor writes t under a name, in a place of its own if the plan has one for it.
func (e *encoder) tensor(t *Tensor, name string) error {
	if t.sparse != nil {
		return e.sparse(t, name)
	}
	place, moves := e.external[t]
	switch {
	case t.encoded == nil && !moves:
		e.made(t, name)
		return nil
	case moves:
		e.place(t, name, place)
		return nil
	case t.external != nil && !e.keepExternal:
		return e.inlined(t, name)
	case e.bares(t):
		e.bared(t, name)
		return nil
	case name == t.name:
		e.add(t.encoded, t.source.mapping())
		return nil
	}
	e.patch(t.encoded, t.source.mapping(), ownFields{bytes: numbers(tensorName)}, func(protowire.Number) { e.string(tensorName, name) })
	return nil
}

// made writes a tensor that was made in memory.
func (e *encoder) made(t *Tensor, name string) {
	e.tensorHead(t)
	if t.elem == tensor.String {
		for _, s := range tensor.Data[string](t.made) {
			e.string(tensorStrings, s)
		}
	}
	if name != "" {
		e.string(tensorName, name)
	}
	if t.elem != tensor.String {
		e.bytes(tensorRaw, t.made.Raw(), nil)
	}
}

func (e *encoder) tensorHead(t *Tensor) {
	for _, d := range t.dims {
		e.varint(tensorDims, uint64(d))
	}
	e.varint(tensorElem, uint64(t.elem))
}

// elementFields are the fields of TensorProto that hold elements or say where they are.
var elementFields = []protowire.Number{
	tensorFloats, tensorInt32s, tensorStrings, tensorInt64s, tensorRaw, tensorDoubles, tensorUint64s, tensorExternal, tensorLocation,
}

// place writes a tensor whose elements go into a side file.
func (e *encoder) place(t *Tensor, name string, p placement) {
	all := numbers(append(slices.Clone(elementFields), tensorDims, tensorElem, tensorName)...)
	own := ownFields{bytes: all, other: all &^ numbers(tensorName)}
	e.patch(t.encoded, t.source.mapping(), own, func(n protowire.Number) {
		switch n {
		case tensorDims:
			e.tensorHead(t)
		case tensorName:
			e.string(tensorName, name)
		case tensorExternal:
			p.describe(&e.rope)
		case tensorLocation:
			e.varint(tensorLocation, locationExternal)
		}
	})
}

// inlined writes a tensor whose elements come into the model file from a side file.
func (e *encoder) inlined(t *Tensor, name string) error {
	raw, err := t.Raw()
	if err != nil {
		return err
	}
	e.patch(t.encoded, t.source.mapping(), ownFields{
		bytes: numbers(tensorName, tensorRaw, tensorExternal), other: numbers(tensorLocation),
	}, func(n protowire.Number) {
		switch n {
		case tensorName:
			e.string(tensorName, name)
		case tensorRaw:
			e.bytes(tensorRaw, raw, t.external.mapping())
		}
	})
	return nil
}

// placeKeys are the entries of external_data that say where elements lie.
var placeKeys = []string{"location", "offset", "length"}

// bares says whether a tensor that stays in a side file has entries to be left out.
func (e *encoder) bares(t *Tensor) bool {
	return e.bareExternal && len(t.ExternalExtras()) > 0
}

func isNoPlace(p Property) bool { return !slices.Contains(placeKeys, p.Key) }

// bared writes a tensor that stays in a side file with its place alone.
func (e *encoder) bared(t *Tensor, name string) {
	e.patch(t.encoded, t.source.mapping(), ownFields{bytes: numbers(tensorName, tensorExternal)}, func(n protowire.Number) {
		if n == tensorName {
			e.string(tensorName, name)
			return
		}
		for _, p := range slices.DeleteFunc(externalEntries(t.encoded), isNoPlace) {
			e.property(tensorExternal, p)
		}
	})
}

func externalEntries(message []byte) (all []Property) {
	for f := (fields{rest: message}); f.next(); {
		if f.number == tensorExternal && f.isBytes() {
			all = append(all, decodeProperty(f.bytes))
		}
	}
	return all
}

// sparse writes a sparse tensor; the name is that of its values.
func (e *encoder) sparse(t *Tensor, name string) (err error) {
	values, indices := t.sparse.values, t.sparse.indices
	if name == t.name && !e.rewrites(values) && !e.rewrites(indices) {
		e.add(t.encoded, t.source.mapping())
		return nil
	}
	write := func(part *Tensor, n protowire.Number, name string) {
		e.message(n, func() {
			if err == nil {
				err = e.tensor(part, name)
			}
		})
	}
	e.patch(t.encoded, t.source.mapping(), ownFields{bytes: numbers(sparseValues, sparseIndices)}, func(n protowire.Number) {
		if n == sparseValues {
			write(values, n, name)
		} else {
			write(indices, n, indices.name)
		}
	})
	return err
}

// rewrites says whether a tensor that was read cannot be copied as it was.
func (e *encoder) rewrites(t *Tensor) bool {
	_, moves := e.external[t]
	return moves || t.encoded == nil || t.external != nil && !e.keepExternal || e.bares(t) || t.sparse != nil && (e.rewrites(t.sparse.values) || e.rewrites(t.sparse.indices))
}
