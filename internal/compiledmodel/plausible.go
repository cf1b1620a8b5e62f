package compiledmodel

import (
	"fmt"
	"math/bits"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// mostBytes is far beyond the memory of any device: no compiler makes a model that needs
// it.
const mostBytes = 1 << 40

// checkSizes refuses sizes that no model has. Whoever makes room for them would be told
// that memory is short, and look for it.
func (f *File) checkSizes(needs om.Needs) error {
	for _, n := range []struct {
		what  string
		bytes int64
	}{
		{"the memory to work in", needs.MemoryBytes}, {"the memory of inputs and outputs", needs.ZeroCopyBytes}, {"the weights", needs.WeightBytes},
	} {
		if n.bytes < 0 || n.bytes > mostBytes {
			return f.damaged("%s would take %d bytes", n.what, n.bytes)
		}
	}
	for gear := range max(f.Gears(), 1) {
		shapes, err := f.shapesOf(gear)
		if err != nil {
			return err
		}
		for i, in := range f.Signature.Inputs {
			if err := f.checkTensor("input", in, shapes[i]); err != nil {
				return err
			}
		}
	}
	for _, out := range f.Signature.Outputs {
		if err := f.checkTensor("output", out, out.Dims); err != nil {
			return err
		}
	}
	return nil
}

// shapesOf are the shapes of the inputs in a gear, or as the file has them without gears.
func (f *File) shapesOf(gear int) ([][]int64, error) {
	if f.Gears() > 0 {
		return f.GearShapes(gear)
	}
	shapes := make([][]int64, len(f.Signature.Inputs))
	for i, in := range f.Signature.Inputs {
		shapes[i] = in.Dims
	}
	return shapes, nil
}

func (f *File) checkTensor(side string, t om.Tensor, dims []int64) error {
	if t.Bytes < 0 || t.Bytes > mostBytes {
		return f.damaged("%s %q would take %d bytes", side, t.Name, t.Bytes)
	}
	width := uint64(1)
	if element, ok := tensor.ParseType(t.DType); ok {
		width = uint64(max(element.Width(), 1))
	}
	total := width
	for _, n := range dims {
		switch {
		case n < unknownRank:
			return f.damaged("%s %q has a dim of size %d", side, t.Name, n)
		case n < 0: // open
			continue
		}
		high, low := bits.Mul64(total, uint64(n))
		if high > 0 || low > mostBytes {
			return f.damaged("%s %q would be %v, of more than %d bytes", side, t.Name, dims, int64(mostBytes))
		}
		total = low
	}
	return nil
}

// unknownRank is the single dim by which a shape says that not even its rank is known.
const unknownRank = -2

func (f *File) damaged(format string, args ...any) error {
	return fault.New(fault.Input, "%s is damaged, or made for sizes that no device has: %s", f.Path, fmt.Sprintf(format, args...)).
		With("copy it again, or compile it again for other sizes")
}
