package om

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// Tensor is one input or output.
type Tensor struct {
	Name string `json:"name"`
	// Tensor is the ONNX tensor of an output whose name is put together from node,
	// port and tensor; empty otherwise.
	Tensor string `json:"tensor,omitempty"`
	// DType is the element type in the words of ONNX and NumPy: "float32".
	DType string `json:"dtype"`
	// Format is the layout: "ND", "NCHW", …
	Format string `json:"format"`
	// Dims are the sizes; -1 is open until a gear or the real size is set.
	Dims []int64 `json:"dims"`
	// PlainDims are the dims before static image preprocessing (AIPP); most often
	// they repeat Dims. Empty in files that do not say.
	PlainDims []int64 `json:"plain_dims,omitempty"`
	// Ranges are lowest and highest size of each dim, -1 for no limit; empty for
	// fixed shapes.
	Ranges [][2]int64 `json:"ranges,omitempty"`
	// Bytes is the size of its buffer: for the largest gear when there are gears, 0
	// when the shape is open.
	Bytes int64 `json:"bytes"`
}

// Gears are the sizes that a model was built for, of which one is chosen per run.
type Gears struct {
	// Kind is "batch", "image" (height and width) or "dims".
	Kind string `json:"kind"`
	// Rows are the gears; each has a value for every open dim.
	Rows [][]int64 `json:"rows"`
	// Order names the inputs whose open dims the values of a row fill, in turn.
	Order []string `json:"order,omitempty"`
}

// GearOutput is the shape of an output in one gear.
type GearOutput struct {
	Gear   int     `json:"gear"`   // row of the gears; -1 in all of them
	Output int     `json:"output"` // index of the output
	Dims   []int64 `json:"dims"`
}

// GearInput is the input through which a runner says which gear it wants. Runtime
// interfaces set it; a user's signature does not have it.
const GearInput = "ascend_mbatch_shape_data"

// Signature is what goes in and out of a model.
type Signature struct {
	Inputs, Outputs []Tensor
	// Hidden are inputs that the runtime fills itself: [GearInput].
	Hidden []Tensor
	// AllInputs are the inputs as the runtime counts them, hidden ones included.
	AllInputs []Tensor
	// Gears is nil for a model without.
	Gears       *Gears
	GearOutputs []GearOutput
	// FromGraph is set when the file does not state its signature, so that it was
	// gathered from the graph. Bytes are then those of dims and type.
	FromGraph bool
}

const (
	maxSignatureBytes = 64 << 20
	maxTensors        = 1 << 16
	maxNameBytes      = 1 << 16
	maxRank           = 1 << 10
)

// Signature reads inputs, outputs and gears of the root model.
func (f *File) Signature() (*Signature, error) {
	s, err := f.signature()
	if err != nil {
		return nil, named(f.Name, err)
	}
	s.present()
	return s, nil
}

func (f *File) signature() (*Signature, error) {
	if f.Kind == KindOM2 {
		meta, err := f.readMeta()
		if err != nil {
			return nil, err
		}
		return meta.signature()
	}
	if f.Header.Encrypted {
		return nil, fault.New(fault.Input, "the model is encrypted; its signature cannot be read")
	}
	if p, ok := f.Partition(0, ModelInOutInfo); ok {
		s, err := f.statedSignature(p)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", ModelInOutInfo, err)
		}
		return s, nil
	}
	if _, ok := f.Partition(0, ModelDef); !ok {
		return nil, fault.New(fault.Input, "there is no signature to be read: it is %s", f.Kind.Statement())
	}
	s, err := f.graphSignature()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", ModelDef, err)
	}
	return s, nil
}

// present takes hidden inputs aside and names the ONNX tensors of outputs.
func (s *Signature) present() {
	s.AllInputs = s.Inputs
	s.Inputs = nil
	for _, in := range s.AllInputs {
		if in.Name == GearInput {
			s.Hidden = append(s.Hidden, in)
			continue
		}
		s.Inputs = append(s.Inputs, in)
	}
	for i := range s.Outputs {
		s.Outputs[i].Tensor = onnxTensor(s.Outputs[i].Name)
	}
}

// onnxTensor takes the tensor from an output's name "node:port:tensor". The names of
// tensors may hold colons too, so the first number between colons is the port.
func onnxTensor(name string) string {
	_, rest, found := strings.Cut(name, ":")
	for found {
		var part string
		part, rest, found = strings.Cut(rest, ":")
		if _, err := strconv.ParseUint(part, 10, 32); err == nil && found {
			return rest
		}
	}
	return ""
}

// The blocks of MODEL_INOUT_INFO.
const (
	blockInputs = iota
	blockOutputs
	blockBatch
	blockImage
	blockDims
	blockGearOutputs
	blockOrder
)

// statedSignature reads the partition that says it all: blocks of type, length and
// value, in any order.
func (f *File) statedSignature(p Partition) (*Signature, error) {
	if p.Bytes > maxSignatureBytes {
		return nil, fault.New(fault.Input, "it has %d bytes, far more than a signature can take", p.Bytes)
	}
	b, err := f.read(p.Offset, p.Bytes)
	if err != nil {
		return nil, err
	}
	s, gears := &Signature{}, Gears{}
	for c := (cursor{b: b}); len(c.b) > 0; {
		kind, value := c.u32(), cursor{}
		value.b = c.take(uint64(c.u32()))
		if c.short {
			return nil, fault.New(fault.Input, "block %d is longer than the partition", kind)
		}
		if err := s.readBlock(kind, &value, &gears); err != nil {
			return nil, fmt.Errorf("block %d: %w", kind, err)
		}
	}
	if gears.Kind != "" {
		s.Gears = &gears
	}
	return s, nil
}

// readBlock reads one block; those of later versions are passed over.
func (s *Signature) readBlock(kind uint32, c *cursor, gears *Gears) (err error) {
	switch kind {
	case blockInputs:
		s.Inputs, err = c.tensors()
	case blockOutputs:
		s.Outputs, err = c.tensors()
	case blockBatch:
		gears.Kind, gears.Rows = "batch", chunks(c.i64s(uint64(c.u32())), 1)
	case blockImage:
		gears.Kind, gears.Rows = "image", c.rows()
	case blockDims:
		gears.Kind, gears.Rows = "dims", c.rows()
	case blockGearOutputs:
		s.GearOutputs, err = gearOutputs(c.texts())
	case blockOrder:
		gears.Order = c.texts()
	}
	if err == nil && c.short {
		err = fault.New(fault.Input, "it says more than it has room for")
	}
	return err
}

// cursor takes values off the front of bytes. What is missing reads as zero and sets
// short, which is asked once at the end; sizes are held against what is left.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.short, c.b = true, nil
		return nil
	}
	taken := c.b[:n:n]
	c.b = c.b[n:]
	return taken
}

func (c *cursor) u32() uint32 {
	b := c.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *cursor) i32() int32 { return int32(c.u32()) }

func (c *cursor) u64() uint64 {
	b := c.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (c *cursor) i64s(n uint64) []int64 {
	if n > uint64(len(c.b))/8 {
		c.short = true
		return nil
	}
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(c.u64())
	}
	return values
}

// lengths reads a count and as many lengths.
func (c *cursor) lengths() []uint32 {
	n := uint64(c.u32())
	if n > uint64(len(c.b))/4 || n > maxTensors {
		c.short = true
		return nil
	}
	lengths := make([]uint32, n)
	for i := range lengths {
		lengths[i] = c.u32()
	}
	return lengths
}

// rows reads a count, the length of each row, and the rows.
func (c *cursor) rows() [][]int64 {
	var rows [][]int64
	for _, n := range c.lengths() {
		rows = append(rows, c.i64s(uint64(n)))
	}
	return rows
}

// texts reads a count, the length of each text, and the texts.
func (c *cursor) texts() []string {
	var texts []string
	for _, n := range c.lengths() {
		texts = append(texts, string(c.take(uint64(n))))
	}
	return texts
}

func chunks(values []int64, n int) [][]int64 {
	return slices.Collect(slices.Chunk(values, n))
}

// tensorHead is the fixed part of a descriptor.
const tensorHead = 32

func (c *cursor) tensors() ([]Tensor, error) {
	n := uint64(c.u32())
	if n > uint64(len(c.b))/tensorHead || n > maxTensors {
		return nil, fault.New(fault.Input, "it announces %d tensors in %d bytes", n, len(c.b))
	}
	tensors := make([]Tensor, n)
	for i := range tensors {
		tensors[i] = c.tensor()
		if c.short {
			return nil, fault.New(fault.Input, "tensor %d is longer than its block", i)
		}
	}
	return tensors, nil
}

func (c *cursor) tensor() Tensor {
	t := Tensor{Bytes: int64(min(c.u64(), math.MaxInt64))}
	t.Format = formatName(c.i32())
	t.DType = elementOf(aclElements, int64(c.i32())).name
	name, dims, plain, ranges := c.u32(), c.u32(), c.u32(), c.u32()
	t.Name = string(c.take(uint64(name)))
	t.Dims = c.i64s(uint64(dims) / 8)
	if t.Dims == nil {
		t.Dims = []int64{}
	}
	if plain > 0 {
		t.PlainDims = c.i64s(uint64(plain) / 8)
	}
	for _, r := range chunks(c.i64s(uint64(ranges)/16*2), 2) {
		t.Ranges = append(t.Ranges, [2]int64{r[0], r[1]})
	}
	return t
}

// gearOutputs reads texts of "gear,output,dim,dim,…".
func gearOutputs(texts []string) ([]GearOutput, error) {
	outputs := make([]GearOutput, 0, len(texts))
	for _, text := range texts {
		numbers, err := numbers(text)
		if err != nil || len(numbers) < 2 || numbers[0] < -1 || numbers[1] < 0 || numbers[0]|numbers[1] > math.MaxInt32 {
			return nil, fault.New(fault.Input, "%q is no shape of an output in a gear", text)
		}
		outputs = append(outputs, GearOutput{Gear: int(numbers[0]), Output: int(numbers[1]), Dims: numbers[2:]})
	}
	return outputs, nil
}

func numbers(text string) ([]int64, error) {
	var numbers []int64
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
