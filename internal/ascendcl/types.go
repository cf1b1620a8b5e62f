package ascendcl

import (
	"fmt"
	"time"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// elementTypes are the numbers that AscendCL gives to element types (aclDataType).
// Types without a counterpart in ONNX are left out.
var elementTypes = map[int]tensor.Type{
	0:  tensor.Float32,
	1:  tensor.Float16,
	2:  tensor.Int8,
	3:  tensor.Int32,
	4:  tensor.Uint8,
	6:  tensor.Int16,
	7:  tensor.Uint16,
	8:  tensor.Uint32,
	9:  tensor.Int64,
	10: tensor.Uint64,
	11: tensor.Float64,
	12: tensor.Bool,
	16: tensor.Complex64,
	17: tensor.Complex128,
	27: tensor.BFloat16,
	29: tensor.Int4,
	35: tensor.Float8E5M2,
	36: tensor.Float8E4M3FN,
	37: tensor.Float8E8M0,
	40: tensor.Float4E2M1,
}

// Port is one input or output of a model, as the runtime describes it.
type Port struct {
	Name string
	Type tensor.Type // Undefined for a type that ONNX has not
	// Dims are the sizes; -1 is open until a gear or the real size is set.
	Dims []int
	// Bytes is the size of the buffer, for the largest gear; 0 when the shape is open.
	Bytes int
}

// GearKind is how a model is told which of its sizes to run with.
type GearKind int

// The kinds of gears. Their numbers are those of api.h.
const (
	NoGear    GearKind = iota // a model of fixed shapes
	BatchGear                 // Values holds the batch size
	ImageGear                 // Values holds height and width
	DimsGear                  // Values holds every dim of every input, in the order the model was compiled with
	OpenShape                 // no gears: the model takes any shape within its ranges
)

// Gear is the choice of one size.
type Gear struct {
	Kind   GearKind
	Values []int64
}

// mostDims is how many numbers the C structures hold (ACL_MAX_DIM_CNT).
const mostDims = 128

func (g Gear) check() error {
	if len(g.Values) > mostDims {
		return fmt.Errorf("a gear of %d numbers: AscendCL takes at most %d", len(g.Values), mostDims)
	}
	want := map[GearKind]int{NoGear: 0, OpenShape: 0, BatchGear: 1, ImageGear: 2, DimsGear: len(g.Values)}
	if n, ok := want[g.Kind]; !ok || n != len(g.Values) {
		return fmt.Errorf("a gear of kind %d with %d numbers", g.Kind, len(g.Values))
	}
	return nil
}

// Times are how long the parts of a run took on the device, by events in its stream; of
// a model of open shape, Compute is by the clock of the host.
type Times struct{ H2D, Compute, D2H time.Duration }
