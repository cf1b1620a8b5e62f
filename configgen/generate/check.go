package generate

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// check holds the config against the rules, alone and beside a model that has the
// signature of ours and nothing else, and the model's operators against those of CANN.
// An error that the config would have by our doing is a failure. One that it had before is
// its author's: see refuseKnown.
func (p *plan) check(r *Result, old *standing) ([]findings.Finding, error) {
	options := rules.Options{Chip: p.Chip}
	found, err := p.checkText(r.Config, r.Text, options)
	if err != nil {
		return nil, err
	}
	if old != nil && refused(found, nil) != nil {
		if p.before, err = p.checkText(r.Config, old.doc.Text, options); err != nil {
			return nil, err
		}
	}
	if err := refused(found, p.before); err != nil {
		return nil, err
	}
	if !p.isGE() {
		return found, nil
	}
	model, err := rules.Check([]string{p.graph.path}, options)
	if err != nil {
		return nil, err
	}
	for _, f := range model.Findings {
		f.File = p.Model           // which people know
		if indexOf(found, f) < 0 { // else it is told of the stand-in
			found = append(found, f)
		}
	}
	return found, nil
}

// refuseKnown refuses to write what is known not to load, but for what a table says of the
// model's operators, which is told only. Force writes it all the same.
func (p *plan) refuseKnown(r *Result, old *standing) error {
	if p.Force {
		return nil
	}
	for _, f := range r.Findings {
		if f.File == p.Model || f.Severity != findings.Error && !f.Refuses {
			continue
		}
		where, fix := f.Place(), f.Fix
		if i := indexOf(p.before, f); i >= 0 {
			where = p.before[i].Place()
		} else if f.Line > 0 {
			where += " of the config that would be written"
		}
		if fix != "" {
			fix += "; "
		}
		if old != nil {
			fix += "--force makes the config anew, and writes it whatever is found"
		} else {
			fix += "--force writes it all the same"
		}
		return fault.New(fault.Goal, "%s: %s (%s); nothing was written", where, f.Message, f.Rule).With("%s", fix)
	}
	return nil
}

// checkText holds a config against the rules: alone first, as what is wrong there would
// be told in other words beside the model.
func (p *plan) checkText(path, text string, options rules.Options) ([]findings.Finding, error) {
	alone := rules.CheckText(path, []byte(text), options).Findings
	if refused(alone, nil) != nil {
		return alone, nil
	}
	return p.checkBeside(text, options)
}

// refused gives a failure for the first error among findings that was not there before.
func refused(all, before []findings.Finding) error {
	for _, f := range all {
		if indexOf(before, f) < 0 && (f.Severity == findings.Error || f.Refuses) {
			return fault.New(fault.Input, "%s:%d:%d of the config that would be written: %s (%s)", f.File, f.Line, f.Column, f.Message, f.Rule).With("%s", f.Fix)
		}
	}
	return nil
}

// indexOf is where a finding stands among others, wherever in the file it is; -1 when it
// is not there.
func indexOf(list []findings.Finding, f findings.Finding) int {
	return slices.IndexFunc(list, func(g findings.Finding) bool { return g.Rule == f.Rule && g.Message == f.Message })
}

// checkBeside checks the config in a repository of its own, made for the check.
func (p *plan) checkBeside(text string, options rules.Options) ([]findings.Finding, error) {
	folder, err := os.MkdirTemp("", "npuctl-config-")
	if err != nil {
		return nil, fault.New(fault.Missing, "make a folder to check the config in: %w", err)
	}
	defer os.RemoveAll(folder)
	model := filepath.Join(folder, p.Name)
	version := filepath.Join(model, strconv.FormatInt(p.Version, 10))
	err = os.MkdirAll(version, 0o755)
	for _, other := range p.otherVersions() {
		if err == nil && other != filepath.Base(version) {
			err = os.Mkdir(filepath.Join(model, other), 0o755)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(model, configFile), []byte(text), 0o644)
	}
	if err == nil {
		err = p.standInFiles(model)
	}
	if err == nil {
		err = p.standIn().Save(filepath.Join(version, modelFile), onnx.SaveOptions{})
	}
	if err != nil {
		return nil, fault.New(fault.Missing, "write the config to check it: %w", err)
	}
	result, err := rules.Check([]string{model}, options)
	if err != nil {
		return nil, err
	}
	for i := range result.Findings {
		f := &result.Findings[i]
		if rest, ok := strings.CutPrefix(f.File, folder); ok {
			f.File = filepath.Clean(p.Repository + rest)
		}
	}
	return result.Findings, nil
}

// standInFiles makes files of the size of those that the config speaks of: warm-up data,
// and what lies beside a config that was there, such as labels.
func (p *plan) standInFiles(model string) error {
	sizes := map[string]int64{}
	for _, d := range p.warmupFiles {
		sizes[filepath.Join(warmupFolder, d.name)] = d.bytes
	}
	real := filepath.Join(p.Repository, p.Name)
	for _, folder := range []string{".", warmupFolder, "initial_state"} {
		entries, _ := os.ReadDir(filepath.Join(real, folder)) // none, where it cannot be read
		for _, e := range entries[:min(len(entries), entriesLimit)] {
			if info, err := os.Stat(filepath.Join(real, folder, e.Name())); err == nil && info.Mode().IsRegular() && e.Name() != configFile {
				sizes[filepath.Join(folder, e.Name())] = info.Size()
			}
		}
	}
	for name, size := range sizes {
		if err := standInFile(filepath.Join(real, name), filepath.Join(model, name), size); err != nil {
			return err
		}
	}
	return nil
}

// smallFile is what is copied; of larger files only the size counts.
const smallFile = 1 << 20

func standInFile(from, to string, size int64) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	data := []byte(nil)
	if size <= smallFile {
		data, _ = os.ReadFile(from) // its size alone counts then
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return err
	}
	return os.Truncate(to, size)
}

// otherVersions are the version folders that are in the repository already.
func (p *plan) otherVersions() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(p.Repository, p.Name)) // none, where it cannot be read
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 63); err == nil && e.IsDir() && e.Name() == strconv.FormatInt(n, 10) {
			names = append(names, e.Name())
		}
	}
	return names
}

// standIn is a model with the signature of ours.
func (p *plan) standIn() *onnx.Model {
	m := onnx.NewModel(8, 13)
	for _, in := range p.inputs {
		m.Graph.AddInput(in.name, typeOf(in, nil))
	}
	for _, out := range p.outputs {
		v := m.Graph.Find(out.name)
		if v == nil {
			v = m.Graph.Add("Identity", []*onnx.Value{m.Graph.Inputs()[0]}, []string{out.name}).Output(0)
			v.Type = typeOf(out, p.names[out.name])
		}
		m.Graph.AddOutput(v)
	}
	return m
}

// typeOf is a tensor's type, with new names of dims where there are any.
func typeOf(t port, names []string) *onnx.Type {
	shape := &onnx.Shape{Dims: []onnx.Dim{}}
	for i, d := range t.dims {
		axis := onnx.Dim{Value: d.size, Known: d.size != open, Param: d.name}
		if axis.Known {
			axis.Param = ""
		} else {
			axis.Value = 0
		}
		if names != nil && names[i] != "" {
			axis.Param = names[i]
		}
		shape.Dims = append(shape.Dims, axis)
	}
	return onnx.TensorType(elemOf(t.kind)).WithShape(shape)
}

func elemOf(kind configgen.DataType) tensor.Type {
	for elem, k := range types {
		if k == kind {
			return elem
		}
	}
	return tensor.Undefined
}
