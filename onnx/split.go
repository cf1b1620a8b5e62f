package onnx

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/npuctl/npuctl/onnx/tensor"
)

const (
	// minSplit is the size in bytes of the smallest tensor worth a place in a side file.
	minSplit = 1024
	// externalAlign is the alignment of tensors in a side file, so that a
	// reader can map each: a page, and what Windows asks for is a multiple.
	externalAlign = 4096
)

// externalPlan says which tensors lie outside of a model that is being saved.
type externalPlan struct {
	keep    bool                  // external tensors stay where they are
	places  map[*Tensor]placement // of those that go into the new side file
	path    string                // the new side file
	tensors []*Tensor             // what it holds, in the order of the offsets; none means no new file
}

func (m *Model) planExternal(target string, mode ExternalData) *externalPlan {
	plan := &externalPlan{places: map[*Tensor]placement{}}
	if mode == InlineExternal {
		return plan
	}
	if mode == KeepExternal && m.source.reachable(target) {
		plan.keep = true
		return plan
	}
	plan.path = m.source.sideName(target)
	same := map[external]placement{} // tensors may share their bytes
	var end int64
	for t, splits := range m.storedTensors() {
		_, done := plan.places[t]
		if done || t.external == nil && !(splits && mode == SplitExternal && t.Bytes() >= minSplit) {
			continue
		}
		if t.external != nil {
			if place, ok := same[*t.external]; ok {
				plan.places[t] = place
				continue
			}
		}
		start := (end + externalAlign - 1) / externalAlign * externalAlign
		place := placement{filepath.Base(plan.path), start, t.Bytes()}
		end = start + place.length
		plan.places[t] = place
		plan.tensors = append(plan.tensors, t)
		if t.external != nil {
			same[*t.external] = place
		}
	}
	return plan
}

// storedTensors yields every tensor that the model stores and that may lie outside.
// Those of initializers are worth splitting off; readers do not agree on external
// data anywhere else.
func (m *Model) storedTensors() iter.Seq2[*Tensor, bool] {
	return func(yield func(t *Tensor, splits bool) bool) {
		each := func(t *Tensor, splits bool) bool {
			if t.sparse != nil {
				return yield(t.sparse.values, false) && yield(t.sparse.indices, false)
			}
			return yield(t, splits && t.elem != tensor.String)
		}
		for g := range m.Graphs() {
			for _, v := range g.initializers {
				if !each(v.init, true) {
					return
				}
			}
		}
		for a := range m.attributes() {
			for _, t := range a.tensors {
				if !each(t, false) {
					return
				}
			}
		}
	}
}

// attributes yields every attribute of the model, defaults of functions included.
func (m *Model) attributes() iter.Seq[*Attribute] {
	return func(yield func(*Attribute) bool) {
		for n := range m.Nodes() {
			for _, a := range n.attributes {
				if !yield(a) {
					return
				}
			}
		}
		for _, f := range m.Functions {
			for _, a := range f.Defaults {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// isSide says whether path is one of the side files.
func (s *source) isSide(path string) bool {
	info, err := os.Stat(path)
	return err == nil && s.holds(info)
}

func (s *source) holds(info os.FileInfo) bool {
	if s == nil {
		return false
	}
	for _, side := range s.sides {
		if os.SameFile(side.info, info) {
			return true
		}
	}
	return false
}

// reachable says whether a model at target finds all side files by the locations they have.
func (s *source) reachable(target string) bool {
	if s == nil {
		return true
	}
	moved := newSource(target, nil)
	for location, side := range s.sides {
		_, info, err := moved.resolve(location)
		if err != nil || !os.SameFile(side.info, info) {
			return false
		}
	}
	return true
}

// sideName chooses the name of target's new side file. The usual one may belong
// to the model that was opened: unless that is the one to be overwritten, it must
// keep its data.
func (s *source) sideName(target string) string {
	name := target + ".data"
	info, err := os.Stat(name)
	if err != nil || s == nil || s.path == "" || s.isModel(target) || !s.holds(info) && !s.isModel(name) {
		return name
	}
	for i := 1; ; i++ {
		name = fmt.Sprintf("%s.%d.data", target, i)
		if _, err := os.Lstat(name); err != nil {
			return name
		}
	}
}

// isModel says whether path is the file that the model was read from.
func (s *source) isModel(path string) bool {
	a, err1 := os.Stat(s.path)
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// stream writes the side file.
func (p *externalPlan) stream(w *copier) error {
	var at int64
	for _, t := range p.tensors {
		place := p.places[t]
		if _, err := w.Write(make([]byte, place.offset-at)); err != nil {
			return err
		}
		raw, err := t.Raw()
		if err != nil {
			return err
		}
		if int64(len(raw)) != place.length {
			return fmt.Errorf("tensor %q has %d bytes instead of %d", t.name, len(raw), place.length)
		}
		if err := w.copy(raw, t.home()); err != nil {
			return err
		}
		at = place.offset + place.length
	}
	return nil
}

// home is the file that the tensor's bytes may be a piece of.
func (t *Tensor) home() *mapping {
	if t.external != nil {
		return t.external.mapping()
	}
	return t.source.mapping()
}
