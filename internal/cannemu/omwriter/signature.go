package omwriter

import "encoding/binary"

// Port is one input or output of a model, as AscendCL reports it.
type Port struct {
	Name string
	// Bytes is the size of its buffer: that of the largest gear, 0 for a dynamic shape.
	Bytes uint64
	// Format and DataType are aclFormat and aclDataType numbers.
	Format, DataType int32
	// Dims are the sizes, -1 where gears or the caller decide.
	Dims []int64
	// DimsV2 are the sizes before static AIPP; GE repeats Dims where there is none.
	DimsV2 []int64
	// Ranges are the bounds of each dim of a dynamic shape, empty otherwise; an upper
	// bound of -1 is open.
	Ranges [][2]int64
}

// Signature is the content of MODEL_INOUT_INFO: what a caller has to know of a model.
// At most one of the three kinds of gears is set.
type Signature struct {
	Inputs, Outputs []Port
	// Batches are the gears of a dynamic batch size.
	Batches []uint64
	// Images are the gears of a dynamic image size: height and width.
	Images [][]uint64
	// Dims are the gears of dynamic dims: one value for each -1, in the order of ShapeOrder.
	Dims [][]uint64
	// OutputShapes says for each gear and output "gear,output,d0,d1,…"; gear is -1 for
	// an output that does not depend on it.
	OutputShapes []string
	// ShapeOrder lists the inputs in the order in which the user gave their shapes.
	ShapeOrder []string
}

// Blocks of MODEL_INOUT_INFO.
const (
	inputsBlock uint32 = iota
	outputsBlock
	batchBlock
	imageBlock
	dimsBlock
	outputShapesBlock
	shapeOrderBlock
)

func (s *Signature) encode() (out []byte) {
	le := binary.LittleEndian
	for _, block := range []struct {
		kind uint32
		body []byte
	}{
		{inputsBlock, encodePorts(s.Inputs)},
		{outputsBlock, encodePorts(s.Outputs)},
		{batchBlock, encodeBatches(s.Batches)},
		{imageBlock, encodeRows(s.Images)},
		{dimsBlock, encodeRows(s.Dims)},
		{outputShapesBlock, encodeTexts(s.OutputShapes)},
		{shapeOrderBlock, encodeTexts(s.ShapeOrder)},
	} {
		if len(block.body) == 0 {
			continue
		}
		out = le.AppendUint32(out, block.kind)
		out = le.AppendUint32(out, uint32(len(block.body)))
		out = append(out, block.body...)
	}
	return out
}

func encodePorts(ports []Port) (out []byte) {
	if len(ports) == 0 {
		return nil
	}
	le := binary.LittleEndian
	out = le.AppendUint32(out, uint32(len(ports)))
	for _, p := range ports {
		out = le.AppendUint64(out, p.Bytes)
		out = le.AppendUint32(out, uint32(p.Format))
		out = le.AppendUint32(out, uint32(p.DataType))
		out = le.AppendUint32(out, uint32(len(p.Name)))
		out = le.AppendUint32(out, uint32(8*len(p.Dims)))
		out = le.AppendUint32(out, uint32(8*len(p.DimsV2)))
		out = le.AppendUint32(out, uint32(16*len(p.Ranges)))
		out = append(out, p.Name...)
		out = appendInts(out, p.Dims...)
		out = appendInts(out, p.DimsV2...)
		for _, r := range p.Ranges {
			out = appendInts(out, r[0], r[1])
		}
	}
	return out
}

func appendInts(out []byte, values ...int64) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

func encodeBatches(batches []uint64) (out []byte) {
	if len(batches) == 0 {
		return nil
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(batches)))
	for _, b := range batches {
		out = binary.LittleEndian.AppendUint64(out, b)
	}
	return out
}

// encodeRows writes how many rows there are, how long each is, then all values.
func encodeRows(rows [][]uint64) (out []byte) {
	if len(rows) == 0 {
		return nil
	}
	le := binary.LittleEndian
	out = le.AppendUint32(out, uint32(len(rows)))
	for _, row := range rows {
		out = le.AppendUint32(out, uint32(len(row)))
	}
	for _, row := range rows {
		for _, v := range row {
			out = le.AppendUint64(out, v)
		}
	}
	return out
}

func encodeTexts(texts []string) (out []byte) {
	if len(texts) == 0 {
		return nil
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(texts)))
	for _, text := range texts {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
	}
	for _, text := range texts {
		out = append(out, text...)
	}
	return out
}
