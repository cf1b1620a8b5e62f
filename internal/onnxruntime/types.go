package onnxruntime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// ErrClosed is wrapped by the errors of calls on a closed [Library] or [Session].
var ErrClosed = errors.New("already closed")

// Optimization says how far ONNX Runtime may rewrite a model before it runs it.
type Optimization int

// The levels of ONNX Runtime. Each does what the one before does, and more.
const (
	OptimizeNone     Optimization = iota // the graph as it is written
	OptimizeBasic                        // rewrites that stay within ONNX operators
	OptimizeExtended                     // fusions into operators of ONNX Runtime's own
	OptimizeAll                          // memory layouts of this machine as well
)

// Options say how a model is loaded. The zero Options are a judge's: the model
// runs as it is written.
type Options struct {
	// IntraOpThreads is the number of threads that share one operator's work;
	// 0 leaves it to ONNX Runtime, which takes one a core.
	IntraOpThreads int
	// InterOpThreads is the number of operators that may run at the same time;
	// 0 and 1 run one after the other.
	InterOpThreads int
	Optimization   Optimization
	// OptimizedModelPath, when set, is where the rewritten model is saved while
	// the session is made.
	OptimizedModelPath string
	// Deterministic asks for kernels that give the same bits on every run.
	Deterministic bool
	// ExternalDataFolder is where the external data of a model lies that is
	// given as bytes; it needs ONNX Runtime 1.21. A model that is given by path
	// has it beside the file.
	ExternalDataFolder string
	// Config holds further entries of ONNX Runtime's session configuration, such
	// as "session.intra_op.allow_spinning": "0".
	Config map[string]string
}

// Kind says what a value is.
type Kind int

// The kinds of values. The numbers are those of ONNXType in the C API.
const (
	KindUnknown Kind = iota
	KindTensor
	KindSequence
	KindMap
	KindOpaque
	KindSparseTensor
	KindOptional
)

var kindNames = [...]string{"unknown", "tensor", "sequence", "map", "opaque", "sparse tensor", "optional"}

// String returns the name of the kind: "tensor", "sequence", …
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Type is the declared type of an input or output.
type Type struct {
	Kind Kind
	// Elem is the element type of a tensor and the key type of a map.
	Elem tensor.Type
	// Shape holds the dims of a tensor, -1 where one is not fixed; it is nil when
	// not even the rank is declared. Libraries before 1.24 cannot tell a scalar
	// from that, so there a scalar's is nil, too.
	Shape []int64
	// DimNames holds for every dim of Shape its symbolic name, or "".
	DimNames []string
	// Inner is what a sequence or an optional holds, and the type of a map's values.
	Inner *Type
}

// Info is one input, output or overridable initializer of a model.
type Info struct {
	Name string
	Type
}

// Value is what goes into a run and comes out of one:
//
//   - *tensor.Dense, a tensor
//   - Sequence, a sequence of tensors or maps
//   - *Map, a map
//   - nil, an optional that holds nothing; one that holds something is that
//     something itself
type Value any

// Sequence is a list of values of one type.
type Sequence []Value

// Map is a map with scalar keys and values, as ai.onnx.ml's ZipMap makes them:
// Keys and Values have rank 1 and the same length.
type Map struct {
	Keys, Values *tensor.Dense
}

// Tensor is an output of a [Binding]. Strings have Strings, all other types Bytes,
// little-endian; both are memory that the next run uses again.
type Tensor struct {
	Type    tensor.Type
	Shape   []int64
	Bytes   []byte
	Strings []string
}

// Code is the kind of failure that ONNX Runtime reports.
type Code int

// The codes of OrtErrorCode.
const (
	CodeOK Code = iota
	CodeFail
	CodeInvalidArgument // an input has the wrong name, type or shape
	CodeNoSuchFile
	CodeNoModel
	CodeEngineError
	CodeRuntimeException
	CodeInvalidProtobuf // the model is not an ONNX file
	CodeModelLoaded
	CodeNotImplemented // ONNX Runtime has no kernel for an operator or type
	CodeInvalidGraph   // the model breaks a rule of ONNX
	CodeExecutionProviderFail
	CodeModelLoadCanceled
	CodeModelRequiresCompilation
	CodeNotFound
)

var codeNames = [...]string{
	"OK", "FAIL", "INVALID_ARGUMENT", "NO_SUCHFILE", "NO_MODEL", "ENGINE_ERROR", "RUNTIME_EXCEPTION",
	"INVALID_PROTOBUF", "MODEL_LOADED", "NOT_IMPLEMENTED", "INVALID_GRAPH", "EP_FAIL", "MODEL_LOAD_CANCELED",
	"MODEL_REQUIRES_COMPILATION", "NOT_FOUND",
}

// String returns the name of the code in the C API, without its prefix.
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", int(c))
	}
	return codeNames[c]
}

// Error is a failure inside ONNX Runtime.
type Error struct {
	Code    Code
	Message string // as ONNX Runtime put it
}

// Error returns the message and the code.
func (e *Error) Error() string {
	return fmt.Sprintf("ONNX Runtime says: %s (%s)", strings.TrimSpace(e.Message), e.Code)
}
