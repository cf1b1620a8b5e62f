package om

import (
	"encoding/binary"
	"fmt"
	"iter"
	"regexp"

	"github.com/npuctl/npuctl/internal/fault"
)

// Kernel is one binary that the model brings along.
type Kernel struct {
	Store PartitionType // TBEKernels or CustomAICPU
	Name  string        // that of the operator, or one that holds its type and a hash
	// Offset in the file and Bytes of the binary.
	Offset, Bytes int64
}

const (
	kernelMagic     = 0x5D776EFD
	kernelHeadBytes = 12
)

// Kernels walks the kernels of a model. Only their names are read. It ends at the
// first error.
func (f *File) Kernels(n int) iter.Seq2[Kernel, error] {
	return func(yield func(Kernel, error) bool) {
		for _, p := range f.ofModel(n) {
			if p.Type != TBEKernels && p.Type != CustomAICPU || f.Header.Encrypted {
				continue
			}
			for k, err := range f.store(p) {
				if err != nil {
					err = named(f.Name, fmt.Errorf("%v: %w", p.Type, err))
				}
				if !yield(k, err) || err != nil {
					return
				}
			}
		}
	}
}

// store walks one store: head, name and binary, again and again to its end.
func (f *File) store(p Partition) iter.Seq2[Kernel, error] {
	return func(yield func(Kernel, error) bool) {
		w, at, end := f.window(), p.Offset, p.Offset+p.Bytes
		for at < end {
			k, next, err := w.kernel(at, end)
			k.Store = p.Type
			if !yield(k, err) || err != nil {
				return
			}
			at = next
		}
	}
}

func (w *window) kernel(at, end int64) (k Kernel, next int64, err error) {
	head, err := w.at(at, kernelHeadBytes, end)
	if err != nil {
		return k, 0, err
	}
	u32 := binary.LittleEndian.Uint32
	if len(head) < kernelHeadBytes || u32(head) != kernelMagic {
		return k, 0, fault.New(fault.Input, "there is no kernel at byte %d", at)
	}
	nameBytes, binaryBytes := int64(u32(head[4:])), int64(u32(head[8:]))
	start := at + kernelHeadBytes
	if nameBytes > maxNameBytes || nameBytes+binaryBytes > end-start {
		return k, 0, fault.New(fault.Input, "the kernel at byte %d is longer than its store", at)
	}
	k.Offset, k.Bytes = start+nameBytes, binaryBytes
	k.Name, err = w.text(span{start, start + nameBytes})
	return k, k.Offset + k.Bytes, err
}

// hashedName is a kernel's name of newer compilers: type, hash and number.
var hashedName = regexp.MustCompile(`^te_([a-z0-9_]+?)_[0-9a-f]{16,}`)

// KernelCount is how many kernels serve an operator type.
type KernelCount struct {
	Store string `json:"store"` // the name of the partition
	// Type is the operator's; empty where the kernel's name does not lead to one.
	Type  string `json:"type"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// kernelNames lead from the names of kernels to operator types.
type kernelNames struct {
	operators map[string]string // operator name to type
	types     map[string]string // type in small letters to type
}

// kind finds the operator type that a kernel is for. Its name is the operator's, or
// begins with the type in small letters.
func (n kernelNames) kind(name string) string {
	if t, ok := n.operators[name]; ok {
		return t
	}
	m := hashedName.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	if t, ok := n.types[m[1]]; ok {
		return t
	}
	return m[1]
}
