// Package modelfile opens the model that a command line names, and refuses one that
// cannot be meant.
//
// Much that is odd is let pass: types in between that are stale, operators of later
// opsets, domains that nobody knows. Runtimes run such files. Refused is what every
// runtime refuses, and a format or opset newer than this build, of which nothing can
// be said for sure.
package modelfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnx/schema"
)

// Open opens a model; whatever is wrong with the file is a fault of the input,
// which begins with the file's name.
func Open(path string) (*onnx.Model, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, notOpened(path, err)
	}
	if err := check(m); err != nil {
		m.Close()
		f := fault.New(fault.Input, "%s: %w", path, err)
		var newer *newerError
		if errors.As(err, &newer) {
			f = f.With("%s", newer.remedy)
		}
		return nil, f
	}
	return m, nil
}

func notOpened(path string, err error) error {
	var system *fs.PathError
	if !errors.As(err, &system) || system.Path != path {
		return fault.New(fault.Input, "%w", err)
	}
	if target, isLink := danglingLink(path); isLink && errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Input, "%s: it is a link to %s, where there is no file", path, target)
	}
	return fault.New(fault.Input, "%s: %w", path, system.Err)
}

// danglingLink says whether path is a link, and to what.
func danglingLink(path string) (target string, isLink bool) {
	target, err := os.Readlink(path)
	return target, err == nil
}

// check finds the first thing for which a model is refused.
func check(m *onnx.Model) error {
	if err := checkVersions(m); err != nil {
		return err
	}
	if len(m.Graph.Outputs()) == 0 {
		return errors.New("the graph has no outputs, so there is nothing to compute; the export should list some")
	}
	if err := sort(m); err != nil {
		return err
	}
	if err := checkNodes(m); err != nil {
		return err
	}
	if err := checkBodies(m); err != nil {
		return err
	}
	return checkStored(m)
}

// sort brings all nodes into an order in which they can run; a cycle has none.
func sort(m *onnx.Model) error {
	if err := m.Graph.Sort(); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := f.Body.Sort(); err != nil {
			return fmt.Errorf("function %q: %w", f.Name, err)
		}
	}
	return nil
}

// checkNodes finds the first node that breaks the rules of its operator.
func checkNodes(m *onnx.Model) error {
	more := 0
	var first error
	for _, f := range m.ValidateNodes() {
		switch {
		case f.Severity != onnx.Error:
		case first == nil:
			first = fmt.Errorf("%s: %s", f.Node.Where(), f.Message)
		default:
			more++
		}
	}
	if more > 0 {
		first = fmt.Errorf("%w (the first of %d faults)", first, more+1)
	}
	return first
}

// Impossible gives the first of the conflicts that inference found which keeps a model
// from ever running, whatever its inputs are. The others are declarations that runtimes
// let pass, and branches that may never be taken.
func Impossible(conflicts []infer.Conflict) (message string, found bool) {
	i := slices.IndexFunc(conflicts, func(c infer.Conflict) bool { return !c.Warning })
	if i < 0 {
		return "", false
	}
	return conflicts[i].Message, true
}

// newerError is the failure of a file that is newer than this build.
type newerError struct{ what, remedy string }

func (e *newerError) Error() string { return e.what }

func checkVersions(m *onnx.Model) error {
	switch {
	case m.IRVersion < 1:
		return fmt.Errorf("ir_version %d: there is no such version of the format; the export should state one", m.IRVersion)
	case m.IRVersion > onnx.NewestIRVersion:
		return &newerError{
			fmt.Sprintf("ir_version %d is newer than this npuctl knows (%d)", m.IRVersion, onnx.NewestIRVersion),
			"update npuctl, or export for an older ONNX release",
		}
	}
	for _, o := range m.Opsets {
		if err := checkOpset(o); err != nil {
			return err
		}
	}
	for _, f := range m.Functions {
		for _, o := range f.Opsets {
			if err := checkOpset(o); err != nil {
				return fmt.Errorf("function %q: %w", f.Name, err)
			}
		}
	}
	return nil
}

// checkOpset holds an import of ONNX's own operators against what there is. Those of
// other domains are their owners' business, and what is not known of ai.onnx.ml is
// opaque, as it is in any other.
func checkOpset(o onnx.OpsetImport) error {
	if onnx.CanonicalDomain(o.Domain) != "" {
		return nil
	}
	newest := schema.Newest("")
	switch {
	case o.Version < 1:
		return fmt.Errorf("opset %d: there is no such opset; the export should import one from 1 to %d", o.Version, newest)
	case o.Version > int64(newest):
		return &newerError{
			fmt.Sprintf("opset %d is newer than this npuctl knows (%d)", o.Version, newest),
			fmt.Sprintf("update npuctl, or export with opset_version=%d or lower", newest),
		}
	}
	return nil
}
