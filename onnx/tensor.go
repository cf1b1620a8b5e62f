package onnx

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Tensor is a stored tensor: a weight, a constant, a default. Its elements stay
// where the file has them (mapped, in an external file, in typed fields, as a
// sparse list) until Dense is called. Tensors are immutable.
type Tensor struct {
	elem tensor.Type
	dims []int
	name string

	encoded  []byte    // the TensorProto, or SparseTensorProto, as read; nil for one made in memory
	raw      []byte    // raw_data, a piece of encoded; nil when there is none
	external *external // where the elements lie, outside the model file
	sparse   *sparseTensor
	source   *source // the file that encoded is a piece of

	made  *tensor.Dense                // the elements of a tensor made in memory
	known atomic.Pointer[tensor.Dense] // those of a small one that has been asked for
}

// sparseTensor is a tensor stored as a list of its non-zero elements.
type sparseTensor struct{ values, indices *Tensor }

// maxSparseBytes bounds what a sparse tensor may unfold to: its size does not
// follow from the file's.
const maxSparseBytes = 256 << 20

// NewTensor stores a dense array.
func NewTensor(d *tensor.Dense) *Tensor {
	return &Tensor{elem: d.Type(), dims: d.Shape(), made: d}
}

// Type is the element type.
func (t *Tensor) Type() tensor.Type { return t.elem }

// Shape lists the dims. Not to be changed.
func (t *Tensor) Shape() []int { return t.dims }

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// Bytes is the size of the elements as raw_data, 0 for strings.
func (t *Tensor) Bytes() int64 {
	n, _ := t.elem.RawSize(int64(t.Len()))
	return n
}

// IsExternal says whether the elements lie in another file than the model's.
func (t *Tensor) IsExternal() bool { return t.external != nil }

// IsSparse says whether the elements are stored as a list of the non-zero ones.
func (t *Tensor) IsSparse() bool { return t.sparse != nil }

// SparseParts gives the two tensors that a sparse one is stored as: its non-zero
// elements, and their positions, INT64 of shape [n] or [n, rank]. Both are nil for a dense one.
func (t *Tensor) SparseParts() (values, indices *Tensor) {
	if t.sparse == nil {
		return nil, nil
	}
	return t.sparse.values, t.sparse.indices
}

// External says where the elements of an external tensor lie: the file, relative
// to the model's folder and with slashes, and the bytes in it. The location of any
// other tensor is "".
func (t *Tensor) External() (location string, offset, length int64) {
	if t.external == nil {
		return "", 0, 0
	}
	return t.external.side.location, t.external.offset, t.external.length
}

// ExternalExtras lists the keys of external_data, of a tensor that lies in a side file,
// that say something else than its place: checksum and the like.
func (t *Tensor) ExternalExtras() (keys []string) {
	if t.external == nil {
		return nil
	}
	for _, p := range externalEntries(t.encoded) {
		if isNoPlace(p) {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// Name is the name the stored tensor itself bears; in an initializer that is the value's.
func (t *Tensor) Name() string { return t.name }

// Raw gives the elements as packed little-endian bytes, ONNX's raw_data,
// without making them where the file has them in this form; nil for strings.
// The bytes may be a piece of the mapped file and must not be changed.
func (t *Tensor) Raw() ([]byte, error) {
	switch {
	case t.external != nil:
		raw, err := t.external.read()
		return raw, t.wrap(err)
	case t.raw != nil:
		return t.raw, t.wrap(t.checkSize())
	}
	d, err := t.Dense()
	if err != nil {
		return nil, err
	}
	return d.Raw(), nil
}

// Dense gives the elements as an array, which may share memory with the mapped
// file and must not be changed. The stored sizes have been held against the
// dims; what does not fit is an error. It may be called from many goroutines at once.
func (t *Tensor) Dense() (*tensor.Dense, error) {
	if t.made != nil {
		return t.made, nil
	}
	if d := t.known.Load(); d != nil {
		return d, nil
	}
	var d *tensor.Dense
	err := t.source.guarded(func() (err error) {
		d, err = t.decode()
		return err
	})
	if err != nil {
		return nil, t.wrap(err)
	}
	if d.Bytes() <= keepDense {
		t.known.Store(d)
	}
	return d, nil
}

// wrap says which tensor an error is about.
func (t *Tensor) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("tensor %q %s%v: %w", t.name, t.elem, t.dims, err)
}

// keepDense is the size in bytes up to which a decoded tensor is kept: shape
// arithmetic asks for the same small constants again and again.
const keepDense = 4096

// checkSize finds out early that the file of a large tensor has been cut short.
func (t *Tensor) checkSize() error {
	if t.encoded == nil || len(t.raw) <= keepDense {
		return nil
	}
	return t.source.mapping().checkSize()
}

func (t *Tensor) decode() (*tensor.Dense, error) {
	if err := t.checkSize(); err != nil {
		return nil, err
	}
	switch {
	case t.sparse != nil:
		return t.sparse.unfold(t.elem, t.dims)
	case t.external != nil:
		raw, err := t.external.read()
		if err != nil {
			return nil, err
		}
		return tensor.FromRaw(t.elem, t.dims, raw)
	case t.elem == tensor.String:
		return t.decodeStrings()
	case t.raw != nil:
		return tensor.FromRaw(t.elem, t.dims, t.raw)
	}
	raw, err := t.typedFields()
	if err != nil {
		return nil, err
	}
	return tensor.FromRaw(t.elem, t.dims, raw)
}

func (t *Tensor) decodeStrings() (*tensor.Dense, error) {
	var data []string
	f := fields{rest: t.encoded}
	for f.next() {
		if f.number == tensorStrings && f.isBytes() {
			data = append(data, string(f.bytes))
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return tensor.Make(data, t.dims...)
}

// typedField says where elements of a type are that are not in raw_data: the
// field of TensorProto, the wire type of its entries, and the bytes one of them
// stands for. The 4- and 2-bit types keep whole packed bytes, the 16-bit floats
// their bit patterns.
func typedField(elem tensor.Type) (field protowire.Number, kind protowire.Type, width int) {
	switch elem {
	case tensor.Float32, tensor.Complex64:
		return tensorFloats, protowire.Fixed32Type, 4
	case tensor.Float64, tensor.Complex128:
		return tensorDoubles, protowire.Fixed64Type, 8
	case tensor.Int64:
		return tensorInt64s, protowire.VarintType, 8
	case tensor.Uint64:
		return tensorUint64s, protowire.VarintType, 8
	case tensor.Uint32:
		return tensorUint64s, protowire.VarintType, 4
	case tensor.Int32:
		return tensorInt32s, protowire.VarintType, 4
	case tensor.Int16, tensor.Uint16, tensor.Float16, tensor.BFloat16:
		return tensorInt32s, protowire.VarintType, 2
	}
	return tensorInt32s, protowire.VarintType, 1
}

// typedFields gives the elements stored in float_data, int32_data and so on as
// raw bytes, which may be a piece of the mapped file.
func (t *Tensor) typedFields() (raw []byte, err error) {
	field, kind, width := typedField(t.elem)
	var entry [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(entry[:], v)
		raw = append(raw, entry[:width]...)
	}
	f := fields{rest: t.encoded}
	for f.next() {
		switch {
		case f.number != field:
		case f.kind == kind:
			put(f.bits)
		case f.kind != protowire.BytesType:
		case kind != protowire.VarintType:
			raw = merged(raw, f.bytes)
		default:
			for b := f.bytes; len(b) > 0; {
				v, n := protowire.ConsumeVarint(b)
				if n < 0 {
					return nil, protowire.ParseError(n)
				}
				put(v)
				b = b[n:]
			}
		}
	}
	return raw, f.err
}

func (s *sparseTensor) unfold(elem tensor.Type, dims []int) (*tensor.Dense, error) {
	size, ok := elem.RawSize(int64(product(dims)))
	if !ok || size > maxSparseBytes {
		return nil, fmt.Errorf("the sparse tensor unfolds to more than %d MiB", maxSparseBytes>>20)
	}
	values, err := s.values.Raw()
	if err != nil {
		return nil, err
	}
	at, err := s.positions(dims)
	if err != nil {
		return nil, err
	}
	width := elem.Bits() / 8
	if width == 0 || len(values) != len(at)*width {
		return nil, fmt.Errorf("%d bytes of values for %d indices of %s", len(values), len(at), elem)
	}
	raw := make([]byte, size)
	for i, p := range at {
		copy(raw[p*width:(p+1)*width], values[i*width:])
	}
	return tensor.FromRaw(elem, dims, raw)
}

// positions gives the row-major position of each stored value: indices are
// either those positions, or one coordinate row per value.
func (s *sparseTensor) positions(dims []int) ([]int, error) {
	d, err := s.indices.Dense()
	if err != nil {
		return nil, err
	}
	flat, ok := d.Int64s()
	if !ok {
		return nil, fmt.Errorf("indices are %s, not INT64", d.Type())
	}
	rank, total := 1, product(dims)
	if d.Rank() == 2 {
		rank = len(dims)
		if d.Shape()[1] != rank {
			return nil, fmt.Errorf("indices %v for %d dims", d.Shape(), rank)
		}
	}
	if rank == 0 {
		return nil, fmt.Errorf("a sparse scalar")
	}
	at := make([]int, len(flat)/rank)
	for i := range at {
		if d.Rank() != 2 {
			at[i] = int(flat[i])
		} else {
			for k, dim := range dims {
				c := int(flat[i*rank+k])
				if c < 0 || c >= dim {
					return nil, fmt.Errorf("index %d is outside dim %d", c, dim)
				}
				at[i] = at[i]*dim + c
			}
		}
		if at[i] < 0 || at[i] >= total {
			return nil, fmt.Errorf("index %d is outside %v", at[i], dims)
		}
	}
	return at, nil
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// constantOf is the tensor that an attribute of a Constant node stands for.
func constantOf(a *Attribute) *Tensor {
	switch a.Kind() {
	case AttributeTensor, AttributeSparseTensor:
		return a.Tensor()
	case AttributeFloat:
		return NewTensor(tensor.Scalar(a.Float()))
	case AttributeInt:
		return NewTensor(tensor.Scalar(a.Int()))
	case AttributeString:
		return NewTensor(tensor.Scalar(a.String()))
	case AttributeFloats:
		return NewTensor(tensor.Of(a.Floats(), len(a.Floats())))
	case AttributeInts:
		return NewTensor(tensor.Of(a.Ints(), len(a.Ints())))
	case AttributeStrings:
		return NewTensor(tensor.Of(a.Strings(), len(a.Strings())))
	}
	return nil
}
