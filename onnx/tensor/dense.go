package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// MaxElements bounds the number of elements of one array, whatever its type.
// The product of the dims that are not zero must stay within it, so that strides
// of empty arrays do not overflow either.
const MaxElements int64 = 1 << 40

// MaxBytes bounds the memory that one array may take: [New] refuses more. It
// leaves room for any weight of a real model, and a shape made up by a hostile
// file fails with an error rather than by exhausting the address space.
const MaxBytes int64 = 1 << 34

// ErrTooLarge is wrapped by the errors about shapes beyond [MaxElements] or
// [MaxBytes].
var ErrTooLarge = errors.New("array too large")

// Dense is a row-major array of elements of one type. The dims and elements must
// not change once the array is shared: two arrays may stand on the same memory
// ([Dense.Reshape]), and that memory may be a mapped file that cannot be written
// ([FromRaw]).
type Dense struct {
	typ   Type
	shape []int
	// base points at the first of count elements. An untyped pointer lets one
	// struct hold any element type and be read at its storage width.
	base  unsafe.Pointer
	count int
}

// New returns an array of zeros (empty strings for String). It fails when the
// type is invalid, a dim is negative or the array is beyond [MaxElements] or
// [MaxBytes].
func New(t Type, shape ...int) (*Dense, error) {
	if !t.Valid() {
		return nil, fmt.Errorf("make array: element type %d is not known", int32(t))
	}
	count, err := Count(shape)
	if err != nil {
		return nil, fmt.Errorf("make %v array: %w", t, err)
	}
	width := int64(t.Width())
	if t == String {
		width = int64(unsafe.Sizeof(""))
	}
	if size := int64(count) * width; size > min(MaxBytes, math.MaxInt) {
		return nil, fmt.Errorf("make %v array of shape %v: %w: %d bytes, the limit is %d",
			t, shape, ErrTooLarge, size, min(MaxBytes, math.MaxInt))
	}
	return &Dense{typ: t, shape: slices.Clone(shape), base: allocate(t, count), count: count}, nil
}

// allocate returns zeroed memory for count elements, aligned for their storage
// word.
func allocate(t Type, count int) unsafe.Pointer {
	switch t.Width() {
	case 1:
		return unsafe.Pointer(unsafe.SliceData(make([]uint8, count)))
	case 2:
		return unsafe.Pointer(unsafe.SliceData(make([]uint16, count)))
	case 4:
		return unsafe.Pointer(unsafe.SliceData(make([]uint32, count)))
	case 8:
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, count)))
	case 16:
		return unsafe.Pointer(unsafe.SliceData(make([][2]uint64, count)))
	}
	return unsafe.Pointer(unsafe.SliceData(make([]string, count)))
}

// Make returns an array that takes ownership of data, without copying. It fails
// when the dims do not multiply to len(data). Elements of types narrower than a
// byte must be in range: Make does not look.
func Make[T Element](data []T, shape ...int) (*Dense, error) {
	t := TypeOf[T]()
	count, err := Count(shape)
	if err != nil {
		return nil, fmt.Errorf("make %v array: %w", t, err)
	}
	if count != len(data) {
		return nil, fmt.Errorf("make %v array: %d elements do not fill shape %v", t, len(data), shape)
	}
	base := unsafe.Pointer(unsafe.SliceData(data))
	if !aligned(t, base) {
		base = unsafe.Pointer(unsafe.SliceData(slices.Clone(data)))
	}
	return &Dense{typ: t, shape: slices.Clone(shape), base: base, count: count}, nil
}

// Of is [Make] for literals and for shapes that the caller has just computed
// from data. It panics when the dims do not multiply to len(data), which is a
// fault in the calling code; use Make where the shape comes from outside.
func Of[T Element](data []T, shape ...int) *Dense {
	d, err := Make(data, shape...)
	if err != nil {
		panic(err)
	}
	return d
}

// Scalar returns an array of rank 0 that holds v.
func Scalar[T Element](v T) *Dense { return Of([]T{v}) }

// Data returns the elements of d in row-major order, without copying, or nil
// when their Go type is not T. The slice of an empty array is empty, not nil.
func Data[T Element](d *Dense) []T {
	if d.typ != TypeOf[T]() {
		return nil
	}
	return view[T](d)
}

// view reads the memory of d as elements of type T, whose size must be that of
// d's elements.
func view[T any](d *Dense) []T {
	if d.count == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(d.base), d.count)
}

// Type returns the element type.
func (d *Dense) Type() Type { return d.typ }

// Shape returns the dims, outermost first; it is empty for a scalar. The caller
// must not change it.
func (d *Dense) Shape() []int { return d.shape }

// Rank returns the number of dims.
func (d *Dense) Rank() int { return len(d.shape) }

// Len returns the number of elements.
func (d *Dense) Len() int { return d.count }

// Bytes returns the size of the elements as raw_data in bytes; for strings, the
// sum of their lengths.
func (d *Dense) Bytes() int64 {
	if d.typ == String {
		var sum int64
		for _, s := range view[string](d) {
			sum += int64(len(s))
		}
		return sum
	}
	size, _ := d.typ.RawSize(int64(d.count))
	return size
}

// Reshape returns an array of the same elements under another shape, which must
// have as many of them. It shares the elements with d.
func (d *Dense) Reshape(shape ...int) (*Dense, error) {
	count, err := Count(shape)
	if err != nil {
		return nil, fmt.Errorf("reshape %v: %w", d.shape, err)
	}
	if count != d.count {
		return nil, fmt.Errorf("reshape %v to %v: %d elements cannot become %d", d.shape, shape, d.count, count)
	}
	return &Dense{typ: d.typ, shape: slices.Clone(shape), base: d.base, count: count}, nil
}
