package om

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/npuctl/npuctl/internal/fault"
)

// PartitionType says what a partition holds.
type PartitionType uint32

// The partitions that this package looks into or that make a file special.
const (
	ModelDef          PartitionType = 0 // the graph, a protobuf
	WeightsData       PartitionType = 1 // raw constants
	TaskInfo          PartitionType = 2 // what the device runs
	TBEKernels        PartitionType = 3 // kernels for the AI Core
	CustomAICPU       PartitionType = 4 // kernels for the AI CPU
	HostLibraries     PartitionType = 5 // shared objects for the host
	FlowModel         PartitionType = 6
	FlowSubmodel      PartitionType = 7
	ModelInOutInfo    PartitionType = 8 // the signature
	BundleModelInfo   PartitionType = 24
	EmulatedModel     PartitionType = 0x554D4531 // "UME1": our own emulator's
	maxPartitions                   = 8          // of a model
	maxFlowPartitions               = 4096
	maxModels                       = 1 << 16
)

// partitionNames are the format's own names.
var partitionNames = map[PartitionType]string{
	ModelDef: "MODEL_DEF", WeightsData: "WEIGHTS_DATA", TaskInfo: "TASK_INFO", TBEKernels: "TBE_KERNELS",
	CustomAICPU: "CUST_AICPU_KERNELS", HostLibraries: "SO_BINS", FlowModel: "FLOW_MODEL", FlowSubmodel: "FLOW_SUBMODEL",
	ModelInOutInfo: "MODEL_INOUT_INFO", 9: "STATIC_TASK_DESC", 10: "DYNAMIC_TASK_DESC", 11: "TASK_PARAM",
	12: "TILING_DATA", 20: "PRE_MODEL_DESC", 21: "PRE_MODEL_SQE", 22: "PRE_KERNEL_ARGS", 23: "PRE_MODEL_DESC_EXTEND",
	BundleModelInfo: "BUNDLE_MODEL_INFO", 25: "BUNDLE_MODEL_VAR_INFO", 26: "CUSTOM_OPS", EmulatedModel: "EMULATED_MODEL",
}

// nanoPartitions occur in nano models only. Their writer may leave gaps between
// partitions, so there the offsets of the table count.
var nanoPartitions = []PartitionType{9, 10, 11, 20, 21, 22, 23}

func (t PartitionType) String() string {
	if name, ok := partitionNames[t]; ok {
		return name
	}
	return fmt.Sprintf("partition %d", uint32(t))
}

// Partition is one part of a model. A file may hold several of one type.
type Partition struct {
	Model  int // 0 for the root model
	Type   PartitionType
	Offset int64 // from the beginning of the file
	Bytes  int64
}

func (p Partition) span() span { return span{p.Offset, p.Offset + p.Bytes} }

// Partitions lists all, in the order of the file.
func (f *File) Partitions() []Partition { return slices.Clone(f.partitions) }

// Partition finds the first of a type in a model.
func (f *File) Partition(model int, t PartitionType) (Partition, bool) {
	own := f.ofModel(model)
	i := slices.IndexFunc(own, func(p Partition) bool { return p.Type == t })
	if i < 0 {
		return Partition{}, false
	}
	return own[i], true
}

// ofModel finds the partitions of a model. There may be many models, so it does not
// look at all.
func (f *File) ofModel(model int) []Partition {
	search := func(model int) int {
		i, _ := slices.BinarySearchFunc(f.partitions, model, func(p Partition, model int) int { return cmp.Compare(p.Model, model) })
		return i
	}
	return f.partitions[search(model):search(model+1)]
}

// Section reads the bytes of a partition.
func (f *File) Section(p Partition) *io.SectionReader {
	return io.NewSectionReader(f.source, p.Offset, p.Bytes)
}

// readTables reads the table of every model. A table says sizes; where a partition
// begins follows from those before it.
func (f *File) readTables() error {
	if f.Header.ModelNum < 1 || f.Header.ModelNum > maxModels {
		return fault.New(fault.Input, "the header announces %d models", f.Header.ModelNum)
	}
	at := int64(headerBytes)
	for model := range int(f.Header.ModelNum) {
		table, end, err := f.readTable(model, at)
		if err != nil {
			return fmt.Errorf("partition table %d: %w", model, err)
		}
		f.partitions = append(f.partitions, table...)
		at = end
	}
	switch {
	case at == f.size:
	case f.Header.ModelNum > 1: // the loader refuses it
		return fault.New(fault.Input, "the models end at byte %d, the file at %d", at, f.size)
	default:
		f.remark("%d bytes after the last partition belong to none", f.size-at)
	}
	return nil
}

// readTable reads one table at an offset and says where the model ends.
func (f *File) readTable(model int, at int64) ([]Partition, int64, error) {
	headBytes, entryBytes := int64(4), int64(12)
	if f.Header.Wide {
		headBytes, entryBytes = 8, 24
	}
	head, err := f.read(at, headBytes)
	if err != nil {
		return nil, 0, err
	}
	count := int64(binary.LittleEndian.Uint32(head))
	if limit := f.partitionLimit(); count < 1 || count > limit {
		return nil, 0, fault.New(fault.Input, "it has %d entries; 1 to %d are possible", count, limit)
	}
	table, err := f.read(at+headBytes, count*entryBytes)
	if err != nil {
		return nil, 0, err
	}
	return f.place(model, at+headBytes+count*entryBytes, f.entries(table, entryBytes))
}

func (f *File) partitionLimit() int64 {
	if f.Header.Type == TypeFlow {
		return maxFlowPartitions
	}
	return maxPartitions
}

// entry is a row of a table.
type entry struct {
	kind         PartitionType
	offset, size uint64
}

func (f *File) entries(table []byte, entryBytes int64) []entry {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	var entries []entry
	for row := range slices.Chunk(table, int(entryBytes)) {
		e := entry{kind: PartitionType(u32(row)), offset: uint64(u32(row[4:])), size: uint64(u32(row[8:]))}
		if f.Header.Wide {
			e.offset, e.size = u64(row[8:]), u64(row[16:])
		}
		entries = append(entries, e)
	}
	return entries
}

// place lays the partitions of a table one behind the other from an offset on.
func (f *File) place(model int, start int64, entries []entry) ([]Partition, int64, error) {
	gaps := slices.ContainsFunc(entries, func(e entry) bool { return slices.Contains(nanoPartitions, e.kind) })
	partitions, at := make([]Partition, len(entries)), start
	for i, e := range entries {
		if gaps && e.offset <= math.MaxInt64 && start+int64(e.offset) > at && int64(e.offset) <= f.size-start {
			at = start + int64(e.offset)
		}
		if e.size > uint64(f.size-at) {
			return nil, 0, fault.New(fault.Input, "%v should have %d bytes; the file has %d from there on", e.kind, e.size, f.size-at)
		}
		partitions[i] = Partition{Model: model, Type: e.kind, Offset: at, Bytes: int64(e.size)}
		at += int64(e.size)
	}
	return partitions, at, nil
}

// read gives a range of the file, after looking whether the file has it.
func (f *File) read(at, n int64) ([]byte, error) {
	if n < 0 || at < 0 || at > f.size || n > f.size-at {
		return nil, fault.New(fault.Input, "the file ends at byte %d, %d from byte %d on are needed", f.size, n, at)
	}
	b := make([]byte, n)
	_, err := readFull(f.source, b, at)
	return b, err
}
