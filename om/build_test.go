package om_test

import (
	"bytes"
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/om"
)

// This file writes small model files, as tests want them: right ones, and wrong ones
// by changing what is right.

// part is a partition to be written.
type part struct {
	kind om.PartitionType
	body []byte
}

// container is a file to be written. Each model is a list of partitions.
type container struct {
	version  uint32
	kind     om.ModelType
	name     string
	platform string
	dynamic  bool
	host     bool
	wide     bool
	models   [][]part
}

// current is a file as compilers of today write it.
func current(parts ...part) container {
	return container{version: 0x20000000, name: "net", platform: "1.11.z.0", wide: true, models: [][]part{parts}}
}

func (c container) bytes() []byte {
	var body []byte
	for _, parts := range c.models {
		body = append(body, table(parts, c.wide)...)
		for _, p := range parts {
			body = append(body, p.body...)
		}
	}
	head := make([]byte, 256)
	le := binary.LittleEndian
	copy(head, "IMOD")
	le.PutUint32(head[4:], 256)
	le.PutUint32(head[8:], c.version)
	head[82] = byte(c.kind)
	copy(head[84:115], c.name)
	if c.version == 0x10000000 {
		copy(head[156:], c.platform)
		head[176] = 1
	} else {
		le.PutUint32(head[156:], uint32(len(c.models)))
		copy(head[160:], c.platform)
		head[180], head[192], head[193] = 1, bit(c.host), bit(c.dynamic)
	}
	if c.wide {
		le.PutUint64(head[184:], uint64(len(body)))
	} else {
		le.PutUint32(head[76:], uint32(len(body)))
	}
	return append(head, body...)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func table(parts []part, wide bool) []byte {
	var b []byte
	b = u32(b, uint32(len(parts)))
	if wide {
		b = u32(b, 0)
	}
	offset := 0
	for _, p := range parts {
		b = u32(b, uint32(p.kind))
		if wide {
			b = u64(u64(u32(b, 0), uint64(offset)), uint64(len(p.body)))
		} else {
			b = u32(u32(b, uint32(offset)), uint32(len(p.body)))
		}
		offset += len(p.body)
	}
	return b
}

func u32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
func u64(b []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(b, n) }

// described is a tensor in the partition MODEL_INOUT_INFO.
type described struct {
	name          string
	dtype, format uint32
	bytes         uint64
	dims, plain   []int64
	ranges        []int64
}

// signature writes the blocks of inputs and outputs, then others.
func signature(inputs, outputs []described, blocks ...[]byte) part {
	b := append(block(0, descriptors(inputs)), block(1, descriptors(outputs))...)
	return part{om.ModelInOutInfo, append(b, bytes.Join(blocks, nil)...)}
}

func block(kind uint32, value []byte) []byte {
	return append(u32(u32(nil, kind), uint32(len(value))), value...)
}

func descriptors(tensors []described) []byte {
	b := u32(nil, uint32(len(tensors)))
	for _, t := range tensors {
		b = u32(u32(u64(b, t.bytes), t.format), t.dtype)
		b = u32(u32(u32(u32(b, uint32(len(t.name))), uint32(8*len(t.dims))), uint32(8*len(t.plain))), uint32(8*len(t.ranges)))
		b = append(b, t.name...)
		for _, list := range [][]int64{t.dims, t.plain, t.ranges} {
			b = numbers(b, list)
		}
	}
	return b
}

func numbers(b []byte, list []int64) []byte {
	for _, n := range list {
		b = u64(b, uint64(n))
	}
	return b
}

// rows writes a block of gears with several values.
func rows(kind uint32, gears ...[]int64) []byte {
	b := u32(nil, uint32(len(gears)))
	var values []byte
	for _, g := range gears {
		b, values = u32(b, uint32(len(g))), numbers(values, g)
	}
	return block(kind, append(b, values...))
}

// texts writes a block of texts.
func texts(kind uint32, list ...string) []byte {
	b := u32(nil, uint32(len(list)))
	for _, t := range list {
		b = u32(b, uint32(len(t)))
	}
	for _, t := range list {
		b = append(b, t...)
	}
	return block(kind, b)
}

// Protobuf, in the order of the field numbers as compilers write it.

func message(number protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), body)
}

func text(number protowire.Number, s string) []byte { return message(number, []byte(s)) }

func number(field protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(n))
}

func float(field protowire.Number, x float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, field, protowire.Fixed32Type), math.Float32bits(x))
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// attribute writes an entry of an attribute map.
func attribute(field protowire.Number, name string, value any) []byte {
	return message(field, join(text(1, name), message(2, attributeValue(value))))
}

func attributeValue(value any) []byte {
	switch v := value.(type) {
	case string:
		return text(2, v)
	case int:
		return number(3, int64(v))
	case bool:
		return number(5, int64(bit(v)))
	case float32:
		return float(4, v)
	case []float32:
		var list []byte
		for _, x := range v {
			list = append(list, float(4, x)...)
		}
		return message(1, append(list, number(20, 3)...))
	case []byte:
		return message(7, v)
	case []string:
		var list []byte
		for _, s := range v {
			list = append(list, text(2, s)...)
		}
		return message(1, append(list, number(20, 1)...))
	case []int64:
		var packed []byte
		for _, n := range v {
			packed = protowire.AppendVarint(packed, uint64(n))
		}
		return message(1, append(message(3, packed), number(20, 2)...))
	case []bool:
		var packed []byte
		for _, b := range v {
			packed = append(packed, bit(b))
		}
		return message(1, append(message(5, packed), number(20, 4)...))
	}
	panic("no such attribute in this builder")
}

// tensor writes a descriptor in GE's numbering of types.
func tensor(field protowire.Number, dtype int64, layout string, size int64, dims ...int64) []byte {
	var packed []byte
	for _, d := range dims {
		packed = protowire.AppendVarint(packed, uint64(d))
	}
	return message(field, join(number(2, dtype), message(3, message(1, packed)), text(4, layout), number(10, size)))
}

// operator writes an OpDef; its parts are attributes (field 10), inputs (33) and
// outputs (34).
func operator(name, kind string, parts ...[]byte) []byte {
	return message(6, join(text(1, name), text(2, kind), join(parts...)))
}

func graph(name string, operators ...[]byte) []byte {
	return message(7, join(text(1, name), join(operators...)))
}

// modelDef writes the partition of the graph; attributes have field 11.
func modelDef(name string, parts ...[]byte) part {
	return part{om.ModelDef, join(text(1, name), number(2, 2), text(3, "1.11.z.0"), join(parts...))}
}

func kernels(kind om.PartitionType, names ...string) part {
	var b []byte
	for _, name := range names {
		binary := "\x7fELF" + name
		b = append(u32(u32(u32(b, 0x5D776EFD), uint32(len(name))), uint32(len(binary))), name+binary...)
	}
	return part{kind, b}
}

// resnet is a file of today with all its parts.
func resnet() container {
	return current(
		signature(
			[]described{{name: "input", bytes: 602112, dims: []int64{1, 3, 224, 224}, plain: []int64{1, 3, 224, 224}}},
			[]described{{name: "PartitionedCall_/fc/Gemm_MatMulV2_9:0:logits", format: 2, bytes: 4000, dims: []int64{1, 1000}}},
		),
		resnetGraph(),
		part{om.WeightsData, make([]byte, 64)},
		kernels(om.TBEKernels, "conv1", "relu1", "te_matmulv2_0123456789abcdef0123_1"),
		kernels(om.CustomAICPU, "where"),
		part{om.TaskInfo, []byte{1, 2, 3}},
	)
}

func resnetGraph() part {
	return modelDef("resnet", graph("main",
		operator("input", "Data", attribute(10, "index", 0), tensor(33, 1, "NCHW", 602112, 1, 3, 224, 224)),
		operator("conv1", "Conv2D"), operator("relu1", "Relu"), operator("fc", "MatMulV2"),
		operator("Node_Output", "NetOutput", tensor(33, 1, "ND", 4064, 1, 1000))),
		attribute(11, "tasks", make([]byte, 300)),
		attribute(11, "soc_version", "Ascend310P3"), attribute(11, "atc_version", "7.6.0.1.220"),
		attribute(11, "opp_version", "7.6"), attribute(11, "framework_type", "5"),
		attribute(11, "atc_cmdline", "/cann/bin/atc.bin --model=a b.onnx --framework=5 --output o --soc_version=Ascend310P3"),
		attribute(11, "attr_model_out_nodes_name", []string{"fc:0:logits"}),
		attribute(11, "memory_size", 1<<20), attribute(11, "weight_size", 64), attribute(11, "stream_num", 3), attribute(11, "event_num", 1),
		attribute(11, "om_info_list", []int64{64, 200, 30, 3, 0}),
	)
}
