package onnx

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/npuctl/npuctl/internal/atomicfile"
)

// ExternalData says where the bytes of tensors go when a model is saved.
type ExternalData int

const (
	// KeepExternal leaves each tensor where it was: inside the model file, or
	// outside. A model that grows beyond what one message can hold is split.
	KeepExternal ExternalData = iota
	// InlineExternal brings everything into the model file.
	InlineExternal
	// SplitExternal puts every initializer of at least 1 KiB into a side file.
	SplitExternal
)

// SaveOptions says how to write a model.
type SaveOptions struct {
	ExternalData ExternalData
	// BareExternal leaves out of the external_data of tensors that stay in their side
	// files whatever does not say where they lie: ATC takes any other entry, such as a
	// checksum, for the length.
	BareExternal bool
}

// maxMessage is the largest message protobuf readers accept.
const maxMessage = 1<<31 - 1

// Save writes the model to path. The file appears whole or not at all: it is
// written beside the target and takes its place at the end, together with its side
// file if it has one. Whatever fails, the files that were there stay as they were;
// only when the system itself stops between the two renames can an old model stand
// beside a new side file of the same name.
//
// External tensors stay in their side files when the saved model can reach these
// as the opened one did. Else one side file is written, named after the target with
// ".data" added; if that is a file which the opened model reads, and which saving
// would take from it, the name is the next free one of ".1.data", ".2.data" and so
// on. A side file that an overwritten model leaves behind is not deleted: other
// models may read it.
//
// A target that is a link is followed. One that holds data of the opened model
// itself is refused.
func (m *Model) Save(path string, o SaveOptions) error {
	if err := m.save(path, o); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func (m *Model) save(path string, o SaveOptions) error {
	path = atomicfile.Resolve(path)
	if m.source.isSide(path) {
		return errors.New("it holds external data of the model that is being saved; choose another name")
	}
	plan := m.planExternal(path, o.ExternalData)
	r, err := m.encode(plan.places, plan.keep, o.BareExternal)
	if err != nil {
		return err
	}
	if r.total() > maxMessage {
		switch o.ExternalData {
		case KeepExternal:
			o.ExternalData = SplitExternal
			return m.save(path, o)
		case InlineExternal:
			return fmt.Errorf("the model needs %d bytes, more than the 2 GiB one ONNX file can hold: save it with external data", r.total())
		}
		return fmt.Errorf("the model needs %d bytes besides its external data, more than the 2 GiB one ONNX file can hold", r.total())
	}
	var files []*atomicfile.File
	defer func() {
		for _, f := range files {
			f.Abort()
		}
	}()
	write := func(path string, stream func(*copier) error) error {
		f, err := atomicfile.Create(path)
		if err != nil {
			return err
		}
		files = append(files, f)
		if err := m.source.streamTo(f.File, stream); err != nil {
			return f.Told(err)
		}
		return nil
	}
	if len(plan.tensors) > 0 {
		if err := write(plan.path, plan.stream); err != nil {
			return fmt.Errorf("external data %s: %w", filepath.Base(plan.path), err)
		}
	}
	if err := write(path, r.stream); err != nil {
		return err
	}
	return atomicfile.Commit(files...)
}

// Encode gives the model as bytes, every tensor inside.
func (m *Model) Encode() ([]byte, error) {
	r, err := m.encode(nil, false, false)
	if err != nil {
		return nil, err
	}
	if r.total() > maxMessage {
		return nil, errors.New("the model is larger than the 2 GiB one ONNX message can hold")
	}
	var out []byte
	err = m.source.guarded(func() error { out = r.flat(); return nil })
	return out, err
}

// stream writes the rope; pieces that are still in a file go from file to file.
func (r *rope) stream(w *copier) error {
	at := 0
	for _, p := range r.large {
		if _, err := w.Write(r.small[at:p.at]); err != nil {
			return err
		}
		at = p.at
		if err := w.copy(p.data, p.from); err != nil {
			return err
		}
	}
	_, err := w.Write(r.small[at:])
	return err
}

// copier writes to a file, and lets the system copy what lies in another one.
type copier struct {
	*bufio.Writer
	file *os.File
}

// streamTo runs a writer of a whole file. Bytes that are written straight from a
// mapped file may be gone by now.
func (s *source) streamTo(f *os.File, stream func(*copier) error) error {
	w := &copier{bufio.NewWriterSize(f, 1<<16), f}
	err := s.guarded(func() error {
		if err := stream(w); err != nil {
			return err
		}
		return w.Flush()
	})
	if errors.Is(err, syscall.EFAULT) {
		return errChanged
	}
	return err
}

func (w *copier) copy(data []byte, from *mapping) error {
	offset, ok := from.offsetOf(data)
	if !ok || len(data) < largePiece {
		_, err := w.Write(data)
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return from.copyTo(w.file, offset, int64(len(data)))
}
