package om

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/npuctl/npuctl/internal/fault"
)

const (
	headerBytes = 256
	magic       = "IMOD"

	// firstVersion is that of the header without a number of models.
	firstVersion = 0x10000000
	// currentVersion came with the number of models, later with 64-bit sizes.
	currentVersion = 0x20000000
)

// ModelType is the header's word for what was built.
type ModelType uint8

// The model types. Only IR is an .om for a server or edge chip.
const (
	TypeIR       ModelType = 0
	TypeStandard ModelType = 1
	TypeTiny     ModelType = 2
	TypeFlow     ModelType = 3 // dataflow; in the first generation a phone model
	TypeLite     ModelType = 4
	TypeBundle   ModelType = 5
)

// Header is the first 256 bytes of an .om.
type Header struct {
	Version      uint32
	Type         ModelType
	Encrypted    bool
	Online       bool   // built for training in the same process
	Name         string // at most 31 bytes; may be empty
	IRVersion    uint32
	ModelNum     uint32 // 1 where the header has no such field
	Platform     string // "1.11.z.0" in all that atc writes for Ascend
	PlatformType uint8
	// Dynamic is set for shapes that are open until the model runs.
	Dynamic bool
	// NeedsHost is set when the file carries host code, which runs only on the
	// operating system and processor that the attributes host_env_os and
	// host_env_cpu name.
	NeedsHost bool
	// Wide tells the tables with 64-bit sizes from the older ones with 32.
	Wide bool

	bodyBytes uint64 // what follows the header, as it says
}

// phone tells the models of HiAI, which share the container.
func (h Header) phone() bool {
	old := h.Version == firstVersion && (h.Type == TypeFlow || h.Type == TypeLite)
	return old || bytes.HasPrefix([]byte(h.Platform), []byte("3.51."))
}

// parseHeader reads the fields. Those from byte 156 on stand elsewhere in the first
// generation: where newer headers have the number of models, that one has the first
// letters of the platform.
func parseHeader(b []byte) (Header, error) {
	u32 := binary.LittleEndian.Uint32
	h := Header{
		Version:   u32(b[8:]),
		Encrypted: b[80] != 0,
		Type:      ModelType(b[82]),
		Online:    b[83] != 0,
		Name:      padded(b[84:116]),
		IRVersion: u32(b[152:]),
		bodyBytes: uint64(u32(b[76:])),
	}
	if size := u32(b[4:]); size != headerBytes {
		return h, fault.New(fault.Input, "the header says it has %d bytes; every known one has %d", size, headerBytes)
	}
	switch {
	case h.Version == firstVersion:
		h.ModelNum = 1
		h.Platform, h.PlatformType = padded(b[156:176]), b[176]
		return h, nil
	case h.Version < currentVersion:
		return h, fault.New(fault.Input, "format version 0x%08X is not known", h.Version)
	}
	h.ModelNum = u32(b[156:])
	h.Platform, h.PlatformType = padded(b[160:180]), b[180]
	h.NeedsHost, h.Dynamic = b[192] != 0, b[193] != 0 || h.ModelNum > 1
	length := binary.LittleEndian.Uint64(b[184:])
	h.Wide = length != 0 || h.Type == TypeFlow
	if length != 0 {
		h.bodyBytes = length
	}
	return h, nil
}

// checkLength holds the header's length against the file's, as the loader does.
func (h Header) checkLength(size int64) error {
	have := uint64(size - headerBytes)
	switch {
	case have < h.bodyBytes:
		return fault.New(fault.Input, "the file is cut short: its header announces %d bytes, %d are there", h.bodyBytes+headerBytes, size).
			With("copy it again or compile it again")
	case have > h.bodyBytes:
		return fault.New(fault.Input, "the file has %d bytes, its header announces %d", size, h.bodyBytes+headerBytes).
			With("something was added to it; compile it again")
	}
	return nil
}

// padded reads a text that zeros fill up.
func padded(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// VersionText is the version as people write it: "0x20000000".
func (h Header) VersionText() string { return fmt.Sprintf("0x%08x", h.Version) }
