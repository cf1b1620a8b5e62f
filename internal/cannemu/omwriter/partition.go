package omwriter

import (
	"encoding/binary"
	"slices"
)

// PartitionType is the number of a kind of partition.
type PartitionType uint32

// The partitions that are written here.
const (
	ModelDefPartition     PartitionType = 0
	WeightsPartition      PartitionType = 1
	TaskInfoPartition     PartitionType = 2
	KernelsPartition      PartitionType = 3
	AICPUKernelsPartition PartitionType = 4
	SharedObjectPartition PartitionType = 5
	SignaturePartition    PartitionType = 8
	// EmulationPartition is the emulator's own: "UME1" as a number. CANN passes over
	// types that it does not look for.
	EmulationPartition PartitionType = 0x554D4531
)

// Partition is one partition: its bytes are those of the pieces in order.
type Partition struct {
	Type   PartitionType
	Pieces [][]byte
}

// NewPartition makes a partition of bytes.
func NewPartition(t PartitionType, pieces ...[]byte) Partition {
	return Partition{Type: t, Pieces: pieces}
}

// Size is how many bytes the partition has.
func (p Partition) Size() (size int64) {
	for _, piece := range p.Pieces {
		size += int64(len(piece))
	}
	return size
}

// Model is one model of a file: its partitions in the order of the file.
type Model struct{ Partitions []Partition }

func (m *Model) size() (size int64) {
	for _, p := range m.Partitions {
		size += p.Size()
	}
	return size
}

// Parts are the contents of a model that [NewModel] puts in order. Those left out are
// not written; a ModelDef is always there.
type Parts struct {
	Signature     *Signature
	ModelDef      *ModelDef
	Weights       [][]byte // one after the other
	Kernels       Kernels
	AICPUKernels  Kernels
	Tasks         *Tasks
	SharedObjects SharedObjects
	Emulation     Emulation
}

// NewModel makes a model whose partitions stand in the order in which GE writes
// them: SO_BINS, MODEL_INOUT_INFO, MODEL_DEF, WEIGHTS_DATA, TBE_KERNELS,
// CUST_AICPU_KERNELS, TASK_INFO; the emulator's own comes last. It sets the attribute
// om_info_list of the ModelDef to the sizes that came out.
func NewModel(p Parts) Model {
	kernels, aicpu, objects := p.Kernels.encode(), p.AICPUKernels.encode(), p.SharedObjects.encode()
	var tasks []byte
	if p.Tasks != nil {
		tasks = p.Tasks.encode()
	}
	definition := *p.ModelDef
	definition.Attributes = append(slices.Clone(definition.Attributes), Attribute{"om_info_list",
		Ints{NewPartition(WeightsPartition, p.Weights...).Size(), int64(len(kernels)), int64(len(aicpu)), int64(len(tasks)), int64(len(objects))}})
	var m Model
	add := func(t PartitionType, present bool, pieces ...[]byte) {
		if present {
			m.Partitions = append(m.Partitions, NewPartition(t, pieces...))
		}
	}
	add(SharedObjectPartition, len(objects) > 0, objects)
	if p.Signature != nil {
		add(SignaturePartition, true, p.Signature.encode())
	}
	add(ModelDefPartition, true, definition.encode())
	add(WeightsPartition, p.Weights != nil, p.Weights...)
	add(KernelsPartition, p.Kernels != nil, kernels)
	add(AICPUKernelsPartition, p.AICPUKernels != nil, aicpu)
	add(TaskInfoPartition, p.Tasks != nil, tasks)
	add(EmulationPartition, p.Emulation != nil, p.Emulation.encode()...)
	return m
}

// storeMagic begins every item of a store of binaries.
const storeMagic = 0x5D776EFD

// Kernel is one binary that a device would run.
type Kernel struct {
	Name   string
	Binary []byte
}

// Kernels is the content of TBE_KERNELS or CUST_AICPU_KERNELS.
type Kernels []Kernel

func (k Kernels) encode() (out []byte) {
	le := binary.LittleEndian
	for _, item := range k {
		out = le.AppendUint32(out, storeMagic)
		out = le.AppendUint32(out, uint32(len(item.Name)))
		out = le.AppendUint32(out, uint32(len(item.Binary)))
		out = append(append(out, item.Name...), item.Binary...)
	}
	return out
}

// SharedObject is a library with code for the host.
type SharedObject struct {
	Name, Vendor string
	// Kind is 0 for the space registry, 1 for OpMaster, 2 for autofuse, 3 for a custom operator.
	Kind   uint16
	Binary []byte
}

// SharedObjects is the content of SO_BINS.
type SharedObjects []SharedObject

func (s SharedObjects) encode() (out []byte) {
	if s == nil {
		return nil
	}
	le := binary.LittleEndian
	out = le.AppendUint32(out, uint32(len(s)))
	for _, item := range s {
		out = le.AppendUint32(out, storeMagic)
		out = le.AppendUint16(out, uint16(len(item.Name)))
		out = le.AppendUint16(out, item.Kind)
		out = le.AppendUint32(out, uint32(len(item.Vendor)))
		out = le.AppendUint32(out, uint32(len(item.Binary)))
		out = append(append(append(out, item.Name...), item.Vendor...), item.Binary...)
	}
	return out
}

// Entry is one named piece of the emulator's partition.
type Entry struct {
	Key   string
	Value []byte
}

// Keys of the emulator's partition.
const (
	// EmulatedModel is a whole ONNX model that computes what the signature says.
	EmulatedModel = "model"
	// EmulationInfo is JSON for people.
	EmulationInfo = "info"
)

// emulationMagic begins the emulator's partition.
const emulationMagic = "NPUCEMU1"

// Emulation is the content of the emulator's own partition.
type Emulation []Entry

// encode gives the partition in pieces, so that a large model is not copied.
func (e Emulation) encode() (pieces [][]byte) {
	le := binary.LittleEndian
	pieces = append(pieces, le.AppendUint32([]byte(emulationMagic), uint32(len(e))))
	for _, entry := range e {
		head := le.AppendUint32(nil, uint32(len(entry.Key)))
		head = le.AppendUint32(head, uint32(len(entry.Value)))
		pieces = append(pieces, append(head, entry.Key...), entry.Value)
	}
	return pieces
}
