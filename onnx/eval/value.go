package eval

import (
	"errors"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Value is what an edge carries at run time: a *tensor.Dense, *Sequence,
// *Optional or *Map. nil stands for an input or output that is left out.
type Value any

// Sequence is a list of values of one type.
type Sequence struct {
	// Elem is the element type of the tensors inside, Undefined when it is not known.
	Elem  tensor.Type
	Items []Value
}

// Optional is a value that may be missing: Value is nil then.
type Optional struct{ Value Value }

// Map is what ai.onnx.ml operators such as ZipMap give: keys of one type, int64
// or string, each with a value.
type Map struct {
	Keys   *tensor.Dense // rank 1
	Values *tensor.Dense // rank 1, one for each key
}

// ErrUndefined marks results that the specification leaves open: see [Call.Undefined].
var ErrUndefined = errors.New("the ONNX specification leaves the result undefined")

// ErrUnsupported marks operators, versions and element types that the interpreter lacks.
var ErrUnsupported = errors.New("not in the built-in interpreter")

// ErrBudget marks runs that would need more memory than they were given.
var ErrBudget = errors.New("over the memory budget")
