package tensor

// Word is the set of types in which elements can be moved without knowing what
// they mean: one for each storage width, and string.
type Word interface {
	uint8 | uint16 | uint32 | uint64 | [2]uint64 | string
}

// Words returns the elements of d as storage words, without copying, or nil when
// the elements of d are not stored in words of type T. It is what a kernel that
// only moves elements (Transpose, Gather, Concat, Where, …) reads and writes;
// [Movers] picks T.
func Words[T Word](d *Dense) []T {
	if d.typ.word() != wordOf[T]() {
		return nil
	}
	return view[T](d)
}

// word numbers the types of [Word] in their order there.
type word uint8

const (
	word8 word = iota
	word16
	word32
	word64
	word128
	wordString
	wordCount
)

func (t Type) word() word {
	switch t.Width() {
	case 1:
		return word8
	case 2:
		return word16
	case 4:
		return word32
	case 8:
		return word64
	case 16:
		return word128
	}
	return wordString
}

func wordOf[T Word]() word {
	var zero T
	switch any(zero).(type) {
	case uint8:
		return word8
	case uint16:
		return word16
	case uint32:
		return word32
	case uint64:
		return word64
	case [2]uint64:
		return word128
	}
	return wordString
}

// Movers holds the instances of one generic function over [Word]. A kernel that
// moves elements is written once, made into a table once, and called by element
// type:
//
//	var reverse = tensor.NewMovers(reverseWords[uint8], reverseWords[uint16], reverseWords[uint32],
//		reverseWords[uint64], reverseWords[[2]uint64], reverseWords[string])
//
//	func reverseWords[T tensor.Word](dst, src *tensor.Dense) {
//		to, from := tensor.Words[T](dst), tensor.Words[T](src)
//		…
//	}
//
//	reverse.For(src.Type())(dst, src)
type Movers[F any] struct{ byWord [wordCount]F }

// NewMovers returns the table of the six instances of one function.
func NewMovers[F any](w8, w16, w32, w64, w128, str F) Movers[F] {
	return Movers[F]{[wordCount]F{w8, w16, w32, w64, w128, str}}
}

// For returns the instance that moves elements of type t, which must be valid.
func (m *Movers[F]) For(t Type) F { return m.byWord[t.word()] }

// Numbers holds the instances of one generic function over [Number], for kernels
// that compute. A field left out is a type the kernel does not have.
type Numbers[F any] struct {
	Float32, Float64              F
	Int8, Int16, Int32, Int64     F
	Uint8, Uint16, Uint32, Uint64 F
}

// For returns the instance that computes on elements of type t: the zero F when
// the field was left out or t is not one of the ten types.
func (n *Numbers[F]) For(t Type) F {
	switch t {
	case Float32:
		return n.Float32
	case Float64:
		return n.Float64
	case Int8:
		return n.Int8
	case Int16:
		return n.Int16
	case Int32:
		return n.Int32
	case Int64:
		return n.Int64
	case Uint8:
		return n.Uint8
	case Uint16:
		return n.Uint16
	case Uint32:
		return n.Uint32
	case Uint64:
		return n.Uint64
	}
	var none F
	return none
}
