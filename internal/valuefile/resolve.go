package valuefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Slot is an input or output that a file may be for.
type Slot struct {
	Name string
	Type *onnx.Type
}

// Side is the side of a model that files are read for.
type Side string

// The sides; they are also what ONNX's test data numbers its files by.
const (
	Inputs  Side = "input"
	Outputs Side = "output"
)

// Reader reads the values of one side of a model.
type Reader struct {
	Side  Side
	Slots []Slot
	// Ignore names what else a folder may hold: the values of the other side.
	Ignore []string
	// Flag is the flag that named the files, for messages.
	Flag string
	// AnyType takes values of other types and shapes than the slots have, for a
	// caller who compares them.
	AnyType bool
}

// Read reads files and folders and gives the values by name. All that is wrong is
// told at once, one line each: a file that is for nothing is a fault of usage, a
// value of the wrong type or shape one of the file.
func (r Reader) Read(paths []string) (map[string]eval.Value, error) {
	f := finder{Reader: r, values: map[string]eval.Value{}, from: map[string]string{}}
	for _, path := range paths {
		f.path(path)
	}
	return f.values, f.failure()
}

// Missing lists the slots that got no value and have to have one.
func (r Reader) Missing(values map[string]eval.Value, optional func(name string) bool) (names []string) {
	for _, s := range r.Slots {
		if values[s.Name] == nil && !optional(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// finder finds out which slot each file is for.
type finder struct {
	Reader
	values map[string]eval.Value
	from   map[string]string // the file that each value came from
	usage  []error
	input  []error
}

func (f *finder) failure() error {
	all := errors.Join(append(slices.Clone(f.usage), f.input...)...)
	switch {
	case all == nil:
		return nil
	case len(f.usage) > 0:
		return fault.New(fault.Usage, "%w", all)
	}
	return fault.New(fault.Input, "%w", all)
}

func (f *finder) misuse(format string, args ...any) {
	f.usage = append(f.usage, fmt.Errorf(f.Flag+" "+format, args...))
}

func (f *finder) names() []string {
	names := make([]string, len(f.Slots))
	for i, s := range f.Slots {
		names[i] = s.Name
	}
	return names
}

func (f *finder) slot(name string) *Slot {
	i := slices.IndexFunc(f.Slots, func(s Slot) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Slots[i]
}

// path takes one argument of the flag: a file, a folder, or NAME=FILE.
func (f *finder) path(given string) {
	info, err := os.Stat(given)
	if err != nil {
		if name, path, ok := strings.Cut(given, "="); ok && f.slot(name) != nil {
			if _, err := os.Stat(path); err != nil {
				f.misuse("%s: %w", given, unwrapPath(err))
				return
			}
			f.file(path, f.slot(name))
			return
		}
		f.misuse("%s: %w", given, unwrapPath(err))
		return
	}
	if info.IsDir() {
		f.folder(given)
		return
	}
	f.file(given, nil)
}

// numbered reads the name of a file in the layout of ONNX's test data: input_0.
func numbered(stem string) (side Side, number int, ok bool) {
	for _, side := range []Side{Inputs, Outputs} {
		if number, ok := numberAfter(stem, string(side)+"_"); ok {
			return side, number, true
		}
	}
	return "", 0, false
}

// numberAfter reads the number that follows a prefix.
func numberAfter(name, prefix string) (number int, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil
}

// folder takes the files of a folder, by number or by name. Files of the other
// side, and of other kinds, are left alone.
func (f *finder) folder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		f.misuse("%s: %w", path, unwrapPath(err))
		return
	}
	var files []string
	for _, e := range entries {
		if isValueFile(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	byNumber := f.isNumbered(files)
	for _, name := range files {
		if f.isIgnored(stem(name)) {
			continue
		}
		var s *Slot
		if _, number, ok := numbered(stem(name)); byNumber && ok {
			if s = f.at(number); s == nil {
				f.misuse("%s: the model has %d %ss", filepath.Join(path, name), len(f.Slots), f.Side)
				continue
			}
		}
		f.file(filepath.Join(path, name), s)
	}
	if len(files) == 0 {
		f.misuse("%s: the folder holds no .npy, .npz, .bin or .pb file", path)
	}
}

func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// isNumbered says whether the files of a folder are in the layout of test data:
// there is a number 0, and the numbered names are not all names of slots.
func (f *finder) isNumbered(files []string) bool {
	hasZero, allNames := false, true
	for _, name := range files {
		side, number, ok := numbered(stem(name))
		if !ok || side != f.Side {
			continue
		}
		hasZero = hasZero || number == 0
		allNames = allNames && f.slot(stem(name)) != nil
	}
	return hasZero && !allNames
}

// isIgnored says whether a file belongs to the other side.
func (f *finder) isIgnored(stem string) bool {
	if f.slot(stem) != nil || f.slot(Unescape(stem)) != nil {
		return false
	}
	side, _, ok := numbered(stem)
	return ok && side != f.Side || slices.Contains(f.Ignore, Unescape(stem)) || slices.Contains(f.Ignore, stem)
}

// at is the slot of a number.
func (f *finder) at(number int) *Slot {
	if number >= len(f.Slots) {
		return nil
	}
	return &f.Slots[number]
}

// file takes one file, for slot s, or, when that is nil, for the one it is named after.
func (f *finder) file(path string, s *Slot) {
	switch {
	case !isValueFile(path):
		f.misuse("%s: it is no .npy, .npz, .bin or .pb file", path)
		return
	case strings.EqualFold(filepath.Ext(path), archive):
		f.archive(path)
		return
	}
	if s == nil {
		s = f.named(path)
	}
	if s == nil {
		f.misuse("%s: the model has no %s %q; %s", path, f.Side, Unescape(stem(path)), suggest.Text(Unescape(stem(path)), f.names()))
		return
	}
	v, err := read(path, s.Type)
	if err == nil {
		err = f.check(v, s)
	}
	f.set(s, path, v, err)
}

// named is the slot that a file is for by its name, or by the name inside of it,
// or because there is no other.
func (f *finder) named(path string) *Slot {
	name := stem(path)
	for _, candidate := range []string{name, Unescape(name), f.nameInside(path)} {
		if s := f.slot(candidate); s != nil {
			return s
		}
	}
	if side, number, ok := numbered(name); ok && side == f.Side {
		return f.at(number)
	}
	if len(f.Slots) == 1 {
		return &f.Slots[0]
	}
	return nil
}

// nameInside is the name that a TensorProto gives itself.
func (f *finder) nameInside(path string) string {
	if !strings.EqualFold(filepath.Ext(path), ".pb") {
		return ""
	}
	data, err := readAll(path)
	if err != nil {
		return ""
	}
	t, err := onnx.ParseTensor(data, filepath.Dir(path))
	if err != nil {
		return ""
	}
	return t.Name()
}

// positional is how numpy.savez calls arrays that are given without a name, before
// the number.
const positional = "arr_"

// archive takes every array of a .npz file.
func (f *finder) archive(path string) {
	find := func(name string) *Slot {
		for _, candidate := range []string{name, Unescape(name)} {
			if s := f.slot(candidate); s != nil {
				return s
			}
		}
		if number, ok := numberAfter(name, positional); ok {
			return f.at(number)
		}
		return nil
	}
	arrays, err := readArchive(path, func(name string) tensor.Type {
		if s := find(name); s != nil {
			return elemOf(s.Type)
		}
		return tensor.Undefined
	})
	if err != nil {
		f.input = append(f.input, fmt.Errorf("%s: %w", path, err))
		return
	}
	for _, name := range sortedKeys(arrays) {
		s := find(name)
		switch {
		case s != nil:
			v := wrap(arrays[name], s.Type)
			f.set(s, path, v, f.check(v, s))
		case !f.isIgnored(name):
			f.misuse("%s: the model has no %s %q; %s", path, f.Side, name, suggest.Text(name, f.names()))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// check holds a value against the type of its slot.
func (f *finder) check(v eval.Value, s *Slot) error {
	if f.AnyType {
		return nil
	}
	return fits(v, s.Type)
}

func (f *finder) set(s *Slot, path string, v eval.Value, err error) {
	if before, twice := f.from[s.Name]; twice {
		f.misuse("%s: %s %q is given by %s already", path, f.Side, s.Name, before)
		return
	}
	f.from[s.Name] = path
	if err != nil {
		f.input = append(f.input, fmt.Errorf("%s %q from %s: %w", f.Side, s.Name, path, err))
		return
	}
	f.values[s.Name] = v
}
