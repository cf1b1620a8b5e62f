package compilation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
)

// aside holds the results that were there before a command line of the user's ran. ATC
// writes where the line says, over what is there: so the old ones wait in a folder
// beside, and come back when it fails. That they are gone meanwhile also shows whether
// ATC has written anything.
type aside struct {
	places  []string        // where results may appear
	links   map[string]link // those of them that are links
	moved   []move          // the old ones
	folders []string
	weights *weights // nil when the line asks for none beside the .om
}

// weights is the folder of constants beside an .om, which other models share: what was
// in it stays where it is, and only what a failed run has added goes. ATC names each file
// by what is in it, so that it writes nothing else over an old one.
type weights struct {
	folder string
	before map[string]int64 // sizes by name; nil when there was no folder
}

func lookAtWeights(folder string) *weights {
	w := &weights{folder: folder}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return w
	}
	w.before = map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			w.before[e.Name()] = info.Size()
		}
	}
	return w
}

// restore takes away the files that have come since. One that was there and has another
// size now was being written again when the run ended, and is told.
func (w *weights) restore() (err error) {
	entries, readErr := os.ReadDir(w.folder)
	if readErr != nil {
		return nil // there is none
	}
	for _, e := range entries {
		path := filepath.Join(w.folder, e.Name())
		size, wasThere := w.before[e.Name()]
		info, infoErr := e.Info()
		switch {
		case infoErr != nil || !info.Mode().IsRegular():
		case !wasThere:
			err = errors.Join(err, os.Remove(path))
		case info.Size() != size:
			err = errors.Join(err, fmt.Errorf("%s was cut off while atc wrote it again (%d of %d bytes): compile again what needs it", path, info.Size(), size))
		}
	}
	if w.before == nil {
		_ = os.Remove(w.folder) // the system keeps one that holds anything
	}
	return err
}

// makesModel says whether a command line makes an .om of a model.
func (b *build) makesModel() bool {
	mode := b.list.value("mode")
	return (mode == "" || mode == "0") && b.model != "" && b.target != "" &&
		!slices.ContainsFunc([]string{"help", "h", "singleop", "om", "json"}, b.list.has)
}

func (list arguments) value(name string) string {
	value := ""
	for _, a := range list {
		if a.name == name {
			value = a.value // of several the last one counts
		}
	}
	return value
}

// sharesWeights says whether a command line writes into the folder of constants that
// models share.
func (b *build) sharesWeights() bool {
	return b.makesModel() && b.list.value("external_weight") == "1"
}

// setAside takes the old results out of the way. Where constants are shared nobody else
// may write them meanwhile: see [lockFolder].
func (b *build) setAside() (*aside, error) {
	a := &aside{links: map[string]link{}}
	if !b.makesModel() {
		return a, nil
	}
	if b.sharesWeights() {
		a.weights = lookAtWeights(filepath.Join(filepath.Dir(b.target), weightFolder))
	}
	for _, suffix := range omSuffixes {
		om := b.target + suffix
		a.places = append(a.places, om, strings.TrimSuffix(om, ".om")+"_weight_combined")
		if err := mayWrite(om + ".json"); err != nil {
			return a, err
		}
	}
	for _, path := range a.places {
		err := mayWrite(path)
		if err == nil {
			err = b.keepsInputs(path, []string{b.model})
		}
		real := path
		if to, linkErr := os.Readlink(path); linkErr == nil {
			real = atomicfile.Resolve(path)
			a.links[path] = link{to, real}
		}
		if err == nil {
			err = a.move(real)
		}
		if err != nil {
			return a, errors.Join(err, a.restore())
		}
	}
	return a, nil
}

// keptPattern is how the folders of old results are called. Nobody clears them away: a
// killed npuctl must not cost a result.
const keptPattern = ".npuctl-kept-*"

// move puts one file aside, into a folder beside it.
func (a *aside) move(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), keptPattern)
	if err != nil {
		return fault.New(fault.Missing, "keep the old %s: %w", path, err).With("name another --output")
	}
	a.folders = append(a.folders, folder)
	m := move{path, filepath.Join(folder, filepath.Base(path))}
	if err := os.Rename(m.from, m.to); err != nil {
		return fault.New(fault.Missing, "keep the old %s: %w", path, err).With("name another --output")
	}
	a.moved = append(a.moved, m)
	return nil
}

// link is a link of the user's: what it says, and the file that it leads to.
type link struct{ to, real string }

// isOld says whether the link of the user's stands at a place still.
func (a *aside) isOld(path string) bool {
	old, was := a.links[path]
	to, err := os.Readlink(path)
	return was && err == nil && to == old.to
}

// bringBackLinks makes the user's links again that a run has replaced.
func (a *aside) bringBackLinks() (err error) {
	for path, old := range a.links {
		if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, os.Symlink(old.to, path))
		}
	}
	return err
}

// restore takes away what a failed run has written, and brings back what was there.
func (a *aside) restore() (err error) {
	for _, path := range a.places {
		if a.isOld(path) { // a link stays one; what was written through it goes
			path = a.links[path].real
		}
		// A link that the run has made goes itself: what it leads to is somebody else's.
		if info, statErr := os.Lstat(path); statErr != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if removeErr := os.Remove(path); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("take away what atc left: %w", removeErr))
		}
	}
	err = errors.Join(err, a.bringBackLinks())
	if a.weights != nil {
		err = errors.Join(err, a.weights.restore())
	}
	for _, m := range a.moved {
		if renameErr := os.Rename(m.to, m.from); renameErr != nil {
			return errors.Join(err, fmt.Errorf("bring back what was there (it lies in %s): %w", m.to, renameErr))
		}
	}
	a.moved = nil
	a.drop()
	return err
}

// drop lets the old results go.
func (a *aside) drop() {
	for _, folder := range a.folders {
		_ = os.RemoveAll(folder)
	}
}

// verifyCommandLine finds what a run has made and holds it against the command line, as
// verify does it for our own.
func (b *build) verifyCommandLine(before *aside) (made string, err error) {
	made, odd := madeAt(b.target, before.isOld)
	if made == "" {
		return "", b.notMade(b.target, odd)
	}
	signature, origin, err := b.readBack(made)
	if err != nil {
		return "", err
	}
	kind, rows := "", [][]int64(nil)
	for _, k := range []atc.GearKind{atc.BatchGears, atc.ImageGears, atc.DimsGears} {
		if text := b.list.value(k.Flag()); text != "" {
			g, _ := atc.ParseGears(k, text) // it was checked before
			kind, rows = gearKinds[k], g.Rows
		}
	}
	wrong := append(b.compareChip(origin), compareGears(signature, kind, rows)...)
	m, err := modelfile.Open(b.model)
	if err != nil {
		return made, b.notAsked(wrong) // of another framework
	}
	defer m.Close()
	b.shapes.kind = DynamicKind // what sizes outputs have is ATC's to say
	if b.askedInputs(m) {
		wrong = append(wrong, b.compareInputs(signature, m)...)
	}
	return made, b.notAsked(append(wrong, b.compareOutputs(signature, m)...))
}

// askedInputs finds the inputs that a command line asks for; false where nobody can say.
func (b *build) askedInputs(m *onnx.Model) bool {
	if slices.ContainsFunc([]string{"insert_op_conf", "input_shape_range", "is_input_adjust_hw_layout"}, b.list.has) {
		return false
	}
	inputs, err := GearInputs(m)
	if err != nil {
		return false
	}
	given, d := atc.ParseInputShape(b.list.value("input_shape"))
	if d != nil && b.list.has("input_shape") {
		return false
	}
	for _, shape := range given {
		for i := range inputs {
			if inputs[i].Name != shape.Name || len(inputs[i].Dims) != len(shape.Axes) {
				continue
			}
			for k, axis := range shape.Axes {
				inputs[i].Dims[k].Open, inputs[i].Dims[k].Size = !axis.IsFixed(), axis.High
			}
		}
	}
	b.shapes.inputs = inputs
	return true
}
