package omwriter

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/npuctl/npuctl/internal/atomicfile"
)

// Generation says by which release's habits the container is written.
type Generation int

const (
	// Current is what CANN 8 writes: wide table, 64-bit length.
	Current Generation = iota
	// CANN5 is version 0x20000000 with the 32-bit length and the tiny table.
	CANN5
	// First is version 0x10000000 of 2020: as CANN5, and without the field model_num,
	// in whose place the platform's version begins.
	First
)

// Numbers of the header.
const (
	headerSize    = 256
	magic         = 0x444F4D49 // "IMOD"
	firstVersion  = 0x10000000
	version       = 0x20000000
	nameSize      = 31 // and a zero
	platformSize  = 20
	protoVersion  = 2
	platformType  = 1
	wideEntry     = 24
	tinyEntry     = 12
	maxPartitions = 8
)

// DefaultPlatform is the platform version that real Ascend files carry.
const DefaultPlatform = "1.11.z.0"

// File is an .om file.
type File struct {
	Generation Generation
	// Name is the model's name; what does not fit into 31 bytes is cut off.
	Name string
	// Platform is the platform version, at most 20 bytes; "" means [DefaultPlatform].
	Platform string
	// Kind is the header's modeltype: 0 for what atc compiles.
	Kind byte
	// NeedsHost says that host code is inside, which runs on one system and processor.
	NeedsHost bool
	// IsDynamic marks a model with shapes that are unknown until it runs.
	IsDynamic bool
	// Models are the parts; a static model is one, a dynamic one may have sub-models.
	Models []Model
}

// Write writes the file to w.
func (f *File) Write(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(f.header()); err != nil {
		return err
	}
	for i := range f.Models {
		if err := f.writeModel(out, &f.Models[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Save writes the file to path, whole or not at all, with the mode 0600 that atc
// gives its results. The folder is made when it is missing.
func (f *File) Save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, func(out *os.File) error {
		if err := out.Chmod(fs.FileMode(0o600)); err != nil {
			return err
		}
		return f.Write(out)
	})
}

func (f *File) check() error {
	if len(f.Models) == 0 {
		return fmt.Errorf("write an .om file: no model in it")
	}
	if len(f.platform()) > platformSize {
		return fmt.Errorf("write an .om file: platform version %q is longer than %d bytes", f.Platform, platformSize)
	}
	for i := range f.Models {
		n := len(f.Models[i].Partitions)
		if n == 0 || n > maxPartitions {
			return fmt.Errorf("write an .om file: model %d has %d partitions, of 1 to %d", i, n, maxPartitions)
		}
	}
	if f.Generation != Current && f.bodySize() > math.MaxUint32 {
		return fmt.Errorf("write an .om file: %d bytes are too many for its 32-bit length", f.bodySize())
	}
	return nil
}

func (f *File) platform() string {
	if f.Platform == "" {
		return DefaultPlatform
	}
	return f.Platform
}

// Size is the size of the whole file in bytes.
func (f *File) Size() int64 { return headerSize + f.bodySize() }

func (f *File) bodySize() (size int64) {
	for _, m := range f.Models {
		size += f.tableSize(len(m.Partitions)) + m.size()
	}
	return size
}

func (f *File) tableSize(n int) int64 {
	if f.Generation == Current {
		return 8 + wideEntry*int64(n)
	}
	return 4 + tinyEntry*int64(n)
}

// header lays the 256 bytes out. Version 0x10000000 has the platform 4 bytes earlier,
// and none of the fields behind it.
func (f *File) header() []byte {
	h := make([]byte, headerSize)
	le := binary.LittleEndian
	le.PutUint32(h[0:], magic)
	le.PutUint32(h[4:], headerSize)
	le.PutUint32(h[8:], version)
	h[82] = f.Kind
	copy(h[84:84+nameSize], f.Name)
	le.PutUint32(h[152:], protoVersion)
	if f.Generation == First {
		le.PutUint32(h[8:], firstVersion)
		le.PutUint32(h[76:], uint32(f.bodySize()))
		copy(h[156:156+platformSize], f.platform())
		h[176] = platformType
		return h
	}
	le.PutUint32(h[156:], uint32(len(f.Models)))
	copy(h[160:160+platformSize], f.platform())
	h[180] = platformType
	if f.Generation == CANN5 {
		le.PutUint32(h[76:], uint32(f.bodySize()))
	} else {
		le.PutUint64(h[184:], uint64(f.bodySize()))
	}
	h[192], h[193] = flag(f.NeedsHost), flag(f.IsDynamic)
	return h
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (f *File) writeModel(w io.Writer, m *Model) error {
	if _, err := w.Write(f.table(m)); err != nil {
		return err
	}
	for _, p := range m.Partitions {
		for _, piece := range p.Pieces {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// table is the list of partitions. Offsets count from the table's end.
func (f *File) table(m *Model) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, uint32(len(m.Partitions)))
	if f.Generation == Current {
		out = le.AppendUint32(out, 0)
	}
	var offset int64
	for _, p := range m.Partitions {
		out = le.AppendUint32(out, uint32(p.Type))
		if f.Generation == Current {
			out = le.AppendUint32(out, 0)
			out = le.AppendUint64(out, uint64(offset))
			out = le.AppendUint64(out, uint64(p.Size()))
		} else {
			out = le.AppendUint32(out, uint32(offset))
			out = le.AppendUint32(out, uint32(p.Size()))
		}
		offset += p.Size()
	}
	return out
}
