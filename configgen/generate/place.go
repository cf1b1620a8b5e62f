package generate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/files"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/onnx"
)

// How a file came into its place.
const (
	copied    = "copied"
	optimized = "optimized"
	linked    = "linked"
	rewritten = "rewritten"
	kept      = "kept"
)

// result tells the plan.
func (p *plan) result(text string) *Result {
	r := &Result{
		Name: p.Name, Version: p.Version, Backend: p.Backend, Form: p.form, MaxBatchSize: p.maxBatch,
		Config: filepath.Join(p.Repository, p.Name, configFile), Text: text,
		Files: []File{}, Inputs: []Tensor{}, Outputs: []Tensor{}, Gears: [][]int64{},
		Choices: append([]Choice{}, p.choices...), Notes: append([]string{}, p.notes...), Changes: []Change{}, Chosen: []string{}, Services: []File{},
		Optimized: p.graph.optimised, Lost: []Line{},
	}
	for _, in := range p.inputs {
		dims, _ := p.dims(in)
		r.Inputs = append(r.Inputs, Tensor{in.name, in.kind.String(), dims})
	}
	for _, out := range p.outputs {
		dims, _ := p.dims(out)
		r.Outputs = append(r.Outputs, Tensor{out.name, out.kind.String(), dims})
	}
	if p.gears != nil {
		r.Gears = p.gears.rows
	}
	return r
}

// source is a file that goes into the version folder.
type source struct {
	from, to string
	how      string
	bytes    int64
	// differs is set when another file is there already.
	differs bool
}

// placer puts a plan's files into their places, all or none.
type placer struct {
	*plan
	result  *Result
	folder  string // of the version
	stage   string // for what is written elsewhere first; "" when nothing is
	sources []source
	files   []*atomicfile.File
	beside  []*atomicfile.File // of the caller
	undo    []func()           // what was done that atomicfile does not know
	done    []func()           // what is left to do when all went well
}

// place writes the files, or says what would be written.
func (p *plan) place(ctx context.Context, r *Result) error {
	w := &placer{plan: p, result: r, folder: filepath.Join(p.Repository, p.Name, strconv.FormatInt(p.Version, 10))}
	defer func() {
		if w.stage != "" {
			os.RemoveAll(w.stage)
		}
	}()
	old, err := files.Read(r.Config, largestConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Input, "%w", err)
	}
	hasConfig := err == nil
	if !hasConfig || string(old) != r.Text {
		r.Diff = diffText(r.Config, old, hasConfig, r.Text)
	}
	if p.Force && hasConfig {
		r.Lost = lostLines(string(old), r.Text)
	}
	if err := w.findSources(); err != nil {
		return err
	}
	if p.Preview {
		return nil
	}
	if err := w.refuse(); err != nil {
		return err
	}
	if err := w.write(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	isSame := r.Diff == "" && len(w.beside) == 0 && !slices.ContainsFunc(w.sources, func(s source) bool { return s.how != kept })
	r.Written = !isSame
	return nil
}

// diffText is a unified diff of the config that is there and the new one.
func diffText(path string, old []byte, isThere bool, text string) string {
	from := path
	if !isThere {
		from = os.DevNull
	}
	return string(diff.Diff(filepath.ToSlash(from), old, filepath.ToSlash(path), []byte(text)))
}

// lostLines are the lines of a config that another one has not, but for comments that
// npuctl wrote and for what holds nothing but brackets.
func lostLines(old, text string) []Line {
	has := map[string]int{}
	for line := range strings.Lines(text) {
		has[strings.TrimSpace(line)]++
	}
	lost, number := []Line{}, 0
	for line := range strings.Lines(old) {
		number++
		line = strings.TrimSpace(line)
		if has[line]--; has[line] >= 0 || strings.Trim(line, "{}[], ") == "" || strings.HasPrefix(line, "#"+configgen.OwnMark) {
			continue
		}
		lost = append(lost, Line{number, line})
	}
	return lost
}

// findSources lists the model and its side files, and looks what is there already.
func (w *placer) findSources() error {
	how := copied
	switch {
	case w.graph.optimised != nil:
		how = optimized
	case w.Link:
		how = linked
	}
	model, sides := w.graph.path, w.graph.sides
	if len(w.names) > 0 {
		var err error
		if model, sides, err = w.rewrite(); err != nil {
			return err
		}
		how = rewritten
	}
	w.sources = []source{{from: model, to: filepath.Join(w.folder, modelFile), how: how}}
	for _, side := range sides {
		local := filepath.FromSlash(side)
		if !filepath.IsLocal(local) || filepath.Clean(local) == modelFile {
			return fault.New(fault.Input, "%s: its data is in %q, which cannot stand beside %s", w.Model, side, modelFile).With("npuctl optimize writes the model with other side files")
		}
		if w.isGE() && strings.HasSuffix(local, onnxSuffix) {
			return fault.New(fault.Input, "%s: its data is in %q, which %s might take for the model: it takes the first %s that it finds", w.Model, side, GE, onnxSuffix).
				With("npuctl optimize writes the model with other side files")
		}
		w.sources = append(w.sources, source{from: filepath.Join(filepath.Dir(model), local), to: filepath.Join(w.folder, local), how: how})
	}
	if err := w.addWarmupFiles(); err != nil {
		return err
	}
	for i := range w.sources {
		if err := w.sources[i].look(); err != nil {
			return fault.New(fault.Input, "%w", err)
		}
		s := w.sources[i]
		w.result.Files = append(w.result.Files, File{s.to, s.bytes, s.how})
	}
	return nil
}

// addWarmupFiles lists the files that warm-up requests read; what was an array is
// written as plain bytes first.
func (w *placer) addWarmupFiles() error {
	for _, d := range w.warmupFiles {
		s := source{from: d.from, to: filepath.Join(w.Repository, w.Name, warmupFolder, d.name), how: copied}
		if d.data != nil {
			if err := w.openStage(); err != nil {
				return err
			}
			s.from = filepath.Join(w.stage, d.name)
			if err := os.WriteFile(s.from, d.data, 0o644); err != nil {
				return fault.New(fault.Missing, "%w", err)
			}
		}
		w.sources = append(w.sources, s)
	}
	return nil
}

// openStage makes a folder for what is written before it takes its place.
func (w *placer) openStage() (err error) {
	if w.stage != "" {
		return nil
	}
	if w.stage, err = os.MkdirTemp("", "npuctl-config-"); err != nil {
		return fault.New(fault.Missing, "make a folder for the model: %w", err)
	}
	return nil
}

// onnxSuffix ends the names by which npu_ge knows models.
const onnxSuffix = ".onnx"

// checkFolders refuses folders that are links below the repository's own, since what is
// written through one belongs to somebody else, and files where folders have to be.
func (j *Job) checkFolders() error {
	model := filepath.Join(j.Repository, j.Name)
	for i, folder := range []string{j.Repository, model, filepath.Join(model, strconv.FormatInt(max(1, j.Version), 10)), filepath.Join(model, warmupFolder)} {
		look := os.Lstat
		if i == 0 {
			look = os.Stat // the repository itself may be reached by a link
		}
		switch info, err := look(folder); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fault.New(fault.Input, "%w", err)
		case info.Mode()&fs.ModeSymlink != 0:
			return fault.New(fault.Usage, "%s is a link, and nothing in a repository is written through one", folder).With("put a folder there, or give another --output or --name")
		case !info.IsDir():
			return fault.New(fault.Usage, "%s is a file, and has to be a folder", folder).With("take it away, or give another --output, --name or --version")
		}
	}
	return nil
}

// Inputs are the files that a job reads and must not replace. Those that hold the
// model's data are not among them: they are known only when it has been read.
func (j *Job) Inputs() []string {
	list := []string{j.Model}
	if j.Compiled != "" {
		list = append(list, j.Compiled)
	}
	if j.Warmup != nil {
		list = append(list, slices.Sorted(maps.Values(j.Warmup.Data))...)
	}
	return list
}

// SideFiles are the files beside a model that hold tensors of it; none where it cannot be
// read.
func SideFiles(path string) (files []string) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil
	}
	defer m.Close()
	_, sides := modelstats.Outside(m)
	for _, side := range sides {
		files = append(files, filepath.Join(filepath.Dir(path), filepath.FromSlash(side)))
	}
	return files
}

// isPlaceOf says whether writing to path, where a link gives way to a file, would
// replace the file itself that another path leads to.
func isPlaceOf(path, file string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false
	}
	there, err := os.Lstat(filepath.Join(folder, filepath.Base(path)))
	if err != nil {
		return false
	}
	target, err := os.Stat(real)
	if err != nil || !os.SameFile(there, target) {
		return false
	}
	parent, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return false
	}
	own, err := os.Stat(folder)
	return err == nil && os.SameFile(own, parent) // else it is another name of the file, a hard link
}

// look says whether the file is there, and whether it is another one.
func (s *source) look() error {
	from, err := os.Stat(s.from)
	if err != nil {
		return err
	}
	s.bytes = from.Size()
	to, err := os.Stat(s.to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err := os.Lstat(s.to)
		s.differs = err == nil // a link that leads nowhere
		return nil
	case err != nil:
		return err
	case !to.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", s.to)
	}
	isSame := os.SameFile(from, to)
	if !isSame {
		if isSame, err = sameContent(s.from, s.to); err != nil {
			return err
		}
	}
	if s.differs = !isSame; isSame {
		s.how = kept
	}
	return nil
}

// sameContent compares two files.
func sameContent(a, b string) (bool, error) {
	f, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer f.Close()
	g, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer g.Close()
	return files.Same(f, g)
}

// refuse is the failure of a place that is taken.
func (w *placer) refuse() error {
	inputs := w.Inputs()
	for _, side := range w.sides {
		inputs = append(inputs, filepath.Join(filepath.Dir(w.Model), filepath.FromSlash(side)))
	}
	for _, s := range w.sources {
		if i := slices.IndexFunc(inputs, func(in string) bool { return s.how != kept && isPlaceOf(s.to, in) }); i >= 0 {
			return fault.New(fault.Usage, "%s would be replaced, and it is what this is made of; nothing was written", inputs[i]).With("give another --name, --version or --output")
		}
	}
	w.noteLeftovers()
	others := w.otherModels()
	if w.Force {
		if len(others) > 0 {
			w.result.Notes = append(w.result.Notes, fmt.Sprintf("%s takes the first .onnx that it finds in the model's folder; there is also %s", GE, strings.Join(others, ", ")))
		}
		return nil
	}
	for _, s := range w.sources {
		if s.differs && !w.ReplaceModel {
			return fault.New(fault.Usage, "%s is there and is another file; nothing was written", s.to).With("%s", w.waysIn())
		}
	}
	if len(others) > 0 {
		return fault.New(fault.Usage, "%s is there, and %s takes the first .onnx that it finds, whatever the version; nothing was written", others[0], GE).
			With("give the model another --name, or take the old file away; --force writes beside it")
	}
	return nil
}

// noteLeftovers tells of files beside a model that takes another one's place: data of the
// old one may be among them, and nothing takes them away.
func (w *placer) noteLeftovers() {
	if !slices.ContainsFunc(w.sources, func(s source) bool { return s.differs }) {
		return
	}
	entries, _ := os.ReadDir(w.folder) // none, where it cannot be read
	var left []string
	for _, e := range entries {
		isOurs := slices.ContainsFunc(w.sources, func(s source) bool { return s.to == filepath.Join(w.folder, e.Name()) })
		if e.Type().IsRegular() && !isOurs {
			left = append(left, e.Name())
		}
	}
	if len(left) > 0 {
		w.result.Notes = append(w.result.Notes, fmt.Sprintf("left in %s, where the new model does not read it: %s", w.folder, short(left)))
	}
}

// waysIn say how a model comes beside or over another one. npu_ge cannot tell versions.
func (w *placer) waysIn() string {
	beside := "--version N"
	if w.isGE() {
		beside = "--name"
	}
	return "--replace-model replaces it and keeps the config, --force makes the config anew, too; " + beside + " puts the model beside it"
}

// entriesLimit bounds how much of a folder is looked through.
const entriesLimit = 4096

// OtherModels lists the .onnx files below a model's folder that are not ours: npu_ge takes
// the first one that it finds.
func OtherModels(folder string, isOurs func(path string) bool) (out []string) {
	seen := 0
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if seen++; err != nil || seen > entriesLimit {
			return fs.SkipAll // what cannot be read holds nothing that could be told
		}
		if !entry.IsDir() && strings.HasSuffix(path, onnxSuffix) && !isOurs(path) {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// otherModels lists further .onnx files in the model's folder, for npu_ge.
func (w *placer) otherModels() []string {
	if !w.isGE() {
		return nil
	}
	return OtherModels(filepath.Join(w.Repository, w.Name), func(path string) bool {
		return slices.ContainsFunc(w.sources, func(s source) bool { return s.to == path })
	})
}

// write brings everything into its place, the config last.
func (w *placer) write(ctx context.Context) (err error) {
	defer func() {
		w.abort()
		if err != nil {
			for _, back := range slices.Backward(w.undo) {
				back()
			}
		}
	}()
	if err := w.makeFolders(); err != nil {
		return fault.New(fault.Missing, "%w", err)
	}
	if w.Beside != nil {
		if w.beside, err = w.Beside(w.result); err != nil {
			return err
		}
	}
	for _, s := range w.sources {
		if err := w.bring(ctx, s); err != nil {
			return err
		}
	}
	if w.result.Diff != "" {
		config, err := w.create(w.result.Config)
		if err != nil {
			return err
		}
		if _, err := config.WriteString(w.result.Text); err != nil {
			return fault.New(fault.Missing, "write %s: %w", w.result.Config, err)
		}
	}
	if err := atomicfile.Commit(slices.Concat(w.files, w.beside)...); err != nil {
		return fault.New(fault.Missing, "write %s: %w", w.folder, err)
	}
	for _, finish := range w.done {
		finish()
	}
	return nil
}

func (w *placer) abort() {
	for _, f := range slices.Concat(w.files, w.beside) {
		f.Abort()
	}
}

// makeFolders makes the folders of all files; those that were not there go again when
// something fails.
func (w *placer) makeFolders() error {
	for _, s := range w.sources {
		made, err := files.MakeFolder(filepath.Dir(s.to))
		for _, folder := range made {
			w.undo = append(w.undo, func() { os.Remove(folder) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// create begins a file of the repository. A link there gives way to it: what it points
// to belongs to somebody else.
func (w *placer) create(path string) (*atomicfile.File, error) {
	if to, err := os.Readlink(path); err == nil {
		w.result.Notes = append(w.result.Notes, fmt.Sprintf("%s was a link to %s, which stays as it is; now it is a file of its own", path, to))
	}
	f, err := atomicfile.Replace(path)
	if err != nil {
		return nil, fault.New(fault.Missing, "write %s: %w", path, err)
	}
	w.files = append(w.files, f)
	return f, nil
}

// bring begins one file. Copies take their places all at once later; a link takes its
// own, and goes again when something fails.
func (w *placer) bring(ctx context.Context, s source) error {
	switch s.how {
	case kept:
		return nil
	case linked:
		return w.link(s)
	}
	in, err := os.Open(s.from)
	if err != nil {
		return fault.New(fault.Input, "%w", err)
	}
	defer in.Close()
	out, err := w.create(s.to)
	if err != nil {
		return err
	}
	if err := files.Copy(ctx, out.File, in); err != nil {
		return fault.New(fault.Missing, "copy %s: %w", s.from, err)
	}
	return nil
}

// link makes a hard link of the file itself, where a symbolic link leads to it.
func (w *placer) link(s source) error {
	from, err := filepath.EvalSymlinks(s.from)
	if err != nil {
		return fault.New(fault.Input, "%w", err)
	}
	beside := fmt.Sprintf("%s.%d.tmp", s.to, os.Getpid())
	if err := os.Link(from, beside); err != nil {
		return fault.New(fault.Missing, "--link: %w", err).With("leave --link out: the file is copied then")
	}
	if s.differs {
		old := beside + ".old"
		if err := os.Rename(s.to, old); err != nil {
			os.Remove(beside)
			return fault.New(fault.Missing, "%w", err)
		}
		w.undo = append(w.undo, func() { _ = os.Rename(old, s.to) })
		w.done = append(w.done, func() { os.Remove(old) })
	}
	if err := os.Rename(beside, s.to); err != nil {
		os.Remove(beside)
		return fault.New(fault.Missing, "%w", err)
	}
	w.undo = append(w.undo, func() { os.Remove(s.to) })
	return nil
}

// rewrite saves the model with new names of output dims in a folder for the time
// being, from which it is copied; it gives the files beside it.
func (w *placer) rewrite() (model string, sides []string, err error) {
	if err := w.openStage(); err != nil {
		return "", nil, err
	}
	m, err := onnx.Open(w.graph.path)
	if err != nil {
		return "", nil, fault.New(fault.Input, "%w", err)
	}
	defer m.Close()
	for _, v := range m.Graph.Outputs() {
		if names := w.names[v.Name()]; names != nil {
			v.Type = w.renamedType(v, names)
		}
	}
	return saveIn(w.stage, m)
}

// renamedType is the declared type of an output with new names, or its whole type
// where the file declares no shape.
func (w *placer) renamedType(v *onnx.Value, names []string) *onnx.Type {
	if v.Type == nil || v.Type.Shape == nil {
		i := slices.IndexFunc(w.outputs, func(p port) bool { return p.name == v.Name() })
		return typeOf(w.outputs[i], names)
	}
	shape := &onnx.Shape{Dims: slices.Clone(v.Type.Shape.Dims)}
	for i, name := range names {
		if name != "" && !shape.Dims[i].Known {
			shape.Dims[i].Param = name
		}
	}
	return v.Type.WithShape(shape)
}
