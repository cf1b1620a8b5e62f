package rules

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
)

// A config file that stands alone is judged in a repository made up around it:
//
//   - The model's folder has the config's name, or that of the file without its
//     extension where the name cannot be a folder's.
//   - It has version 1, or the versions that a specific policy names, each with an
//     empty model file: default_model_filename, else model.onnx. The Python backend's
//     model.py is one that works.
//   - Label files and warm-up data are there where the config points inside the
//     model's folder, unless their names say missing. What lies outside is not there.
//   - Each step of an ensemble has a model whose tensors follow from the step's maps:
//     the ensemble's own tensors have its types and dims, others are FP32 [16].
//
// Comments that begin with #@ say otherwise, one thing a line:
//
//	#@ model NAME mbs=8 in IMAGE:FP32[3,224,224] out PROB:FP32[1000] [decoupled]
//	#@ absent NAME…     this step's model is not there
//	#@ file NAME        the model file in each version folder
type imagination struct {
	*Model
	files imaginedFolder
	notes [][]string
}

var unfitForFolder = regexp.MustCompile(`[^\p{L}\p{N}_.-]`)

// imagine makes a repository around a lone config.
func imagine(configPath string, data []byte) *Repository {
	r := &Repository{Path: filepath.Dir(configPath), lone: true}
	m := &Model{Path: filepath.Dir(configPath), ConfigPath: configPath, HasConfig: true, imagined: true, of: r}
	m.parse(data)
	m.Name = folderName(m, configPath)
	i := &imagination{Model: m, files: imaginedFolder{"config.pbtxt": {text: string(data)}}}
	m.folder = i.files
	r.Models = append(r.Models, m)
	if m.Config == nil {
		return r
	}
	i.readNotes()
	i.modelFiles()
	i.sideFiles()
	m.Versions = versionsIn(m.folder)
	r.Models = append(r.Models, i.stepModels()...)
	return r
}

func folderName(m *Model, configPath string) string {
	name := ""
	if m.Config != nil {
		name = m.Config.Name
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > 200 {
		stem := strings.TrimSuffix(filepath.Base(configPath), filepath.Ext(configPath))
		return unfitForFolder.ReplaceAllString(stem, "_")
	}
	return strings.ToValidUTF8(name, "\uFFFD") // no folder has a name that is no text
}

// readNotes reads the lines that begin with #@.
func (i *imagination) readNotes() {
	for line := range strings.SplitSeq(i.Doc.Text, "\n") {
		if note, ok := strings.CutPrefix(line, "#@"); ok {
			if words := strings.Fields(note); len(words) > 1 {
				i.notes = append(i.notes, words)
			}
		}
	}
}

func (i *imagination) note(kind string) []string {
	for _, words := range i.notes {
		if words[0] == kind {
			return words[1:]
		}
	}
	return nil
}

// worksInPython is the model.py of a made-up Python model.
const worksInPython = "class TritonPythonModel:\n    def execute(self, requests):\n        return [answer(r) for r in requests]\n"

func (i *imagination) modelFiles() {
	c := i.Config
	name, text := "model.onnx", ""
	if c.Backend == "python" {
		name, text = "model.py", worksInPython
	}
	if c.DefaultModelFilename != "" {
		name = c.DefaultModelFilename
	}
	if file := i.note("file"); file != nil {
		name = file[0]
	}
	for _, version := range i.imaginedVersions() {
		folder := strconv.FormatInt(version, 10)
		clean, ok := inside(folder + "/" + name)
		if !ok || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || clean == folder {
			clean = folder + "/model.onnx"
		}
		i.files[folder+"/.there"] = imaginedFile{}
		i.files[clean] = imaginedFile{text: text}
	}
}

// imaginedVersions are those that a specific policy names, within reason, or 1.
func (i *imagination) imaginedVersions() (out []int64) {
	if policy := i.Config.VersionPolicy; policy != nil && policy.Specific != nil {
		for _, v := range policy.Specific.Versions {
			if v >= 0 && v < 1<<62 && len(out) < 16 {
				out = append(out, v)
			}
		}
	}
	if out == nil {
		return []int64{1}
	}
	return out
}

// sideFiles makes label files and warm-up data.
func (i *imagination) sideFiles() {
	for _, out := range i.Config.Output {
		i.sideFile("", out.LabelFilename, imaginedFile{text: strings.Repeat("label\n", 10)})
	}
	for _, w := range i.Config.Warmup {
		for _, in := range w.Inputs {
			if in.Value.InputDataFile == nil {
				continue
			}
			file := imaginedFile{size: 1 << 40} // as large as need be
			if _, ok := elementCount(in.Value.Dims); !ok {
				file.size = 0
			}
			i.sideFile("warmup/", *in.Value.InputDataFile, file)
		}
	}
}

// sideFile makes one file, unless its name leads out of the folder it belongs to, is
// a folder's, or says that it is missing.
func (i *imagination) sideFile(folder, name string, file imaginedFile) {
	if name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.HasPrefix(path.Base(name), "missing") {
		return
	}
	clean, ok := inside(name)
	if !ok {
		return
	}
	if kind, _ := i.files.stat(folder + clean); kind == nothing {
		i.files[folder+clean] = file
	}
}

// stepModels makes the models of an ensemble's steps.
func (i *imagination) stepModels() (out []*Model) {
	if i.Config.Ensemble == nil {
		return nil
	}
	absent := i.note("absent")
	for _, step := range i.Config.Ensemble.Step {
		name := step.ModelName
		isKnown := slices.ContainsFunc(out, func(m *Model) bool { return m.Name == name })
		if name == "" || strings.Contains(name, "/") || name == "." || name == ".." || name == i.Name || isKnown || slices.Contains(absent, name) {
			continue
		}
		c := i.guessStep(name)
		for _, words := range i.notes {
			if words[0] == "model" && words[1] == name {
				c = i.toldStep(words[2:])
			}
		}
		c.Name, c.Backend = name, geBackend
		m := &Model{Name: name, Path: name, ConfigPath: i.ConfigPath, Config: c, HasConfig: true, imagined: true, of: i.of,
			folder: imaginedFolder{"1/model.onnx": {}}}
		m.Versions = versionsIn(m.folder)
		out = append(out, m)
	}
	return out
}

// stepTensor is a tensor of the ensemble.
type stepTensor struct {
	kind configgen.DataType
	dims []int64
}

// guessStep makes a step's model from the maps of all steps that use it.
func (i *imagination) guessStep(name string) *configgen.Config {
	known := map[string]stepTensor{}
	for _, in := range i.Config.Input {
		known[in.Name] = stepTensor{in.DataType, in.Dims}
	}
	for _, out := range i.Config.Output {
		known[out.Name] = stepTensor{out.DataType, out.Dims}
	}
	look := func(name string) stepTensor {
		t, ok := known[name]
		if !ok || t.kind < configgen.TypeBool || t.kind > configgen.TypeBF16 {
			t.kind = configgen.TypeFP32
		}
		if len(t.dims) == 0 {
			t.dims = []int64{16}
		}
		return t
	}
	c := &configgen.Config{MaxBatchSize: max(0, i.Config.MaxBatchSize)}
	for _, step := range i.Config.Ensemble.Step {
		if step.ModelName != name {
			continue
		}
		for _, e := range byKey(step.InputMap) {
			if t := look(e.Value); !slices.ContainsFunc(c.Input, func(in configgen.Input) bool { return in.Name == e.Key }) {
				c.Input = append(c.Input, configgen.Input{Name: e.Key, DataType: t.kind, Dims: t.dims})
			}
		}
		for _, e := range byKey(step.OutputMap) {
			if t := look(e.Value); !slices.ContainsFunc(c.Output, func(out configgen.Output) bool { return out.Name == e.Key }) {
				c.Output = append(c.Output, configgen.Output{Name: e.Key, DataType: t.kind, Dims: t.dims})
			}
		}
	}
	return c
}

func byKey(entries []configgen.Entry[string, string]) []configgen.Entry[string, string] {
	out := slices.Clone(entries)
	slices.SortFunc(out, func(a, b configgen.Entry[string, string]) int { return strings.Compare(a.Key, b.Key) })
	return out
}

var toldTensor = regexp.MustCompile(`^(.+):(\w+)\[([-\d,]*)\](\?)?$`)

// toldStep reads what a comment says of a step's model.
func (i *imagination) toldStep(words []string) *configgen.Config {
	c := &configgen.Config{MaxBatchSize: max(0, i.Config.MaxBatchSize)}
	isInput := false
	for _, word := range words {
		switch {
		case word == "in" || word == "out":
			isInput = word == "in"
		case word == "decoupled":
			c.TransactionPolicy = &configgen.TransactionPolicy{Decoupled: true}
		case strings.HasPrefix(word, "mbs="):
			n, _ := strconv.ParseInt(word[4:], 10, 32)
			c.MaxBatchSize = int32(n)
		default:
			i.toldTensor(c, word, isInput)
		}
	}
	return c
}

func (i *imagination) toldTensor(c *configgen.Config, word string, isInput bool) {
	parts := toldTensor.FindStringSubmatch(word)
	if parts == nil {
		return
	}
	kind, ok := dataTypeOf("TYPE_" + parts[2])
	if !ok {
		return
	}
	var dims []int64
	for text := range strings.SplitSeq(parts[3], ",") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			dims = append(dims, n)
		}
	}
	if isInput {
		c.Input = append(c.Input, configgen.Input{Name: parts[1], DataType: kind, Dims: dims, Optional: parts[4] != ""})
		return
	}
	c.Output = append(c.Output, configgen.Output{Name: parts[1], DataType: kind, Dims: dims})
}

// dataTypeOf gives the type of a name such as TYPE_FP32.
func dataTypeOf(name string) (configgen.DataType, bool) {
	for t := configgen.TypeInvalid; t <= configgen.TypeBF16; t++ {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// elementCount multiplies dims as the server does, in 64 bits that wrap; an open dim
// makes it -1. ok is false when the true product does not fit.
func elementCount(dims []int64) (count int64, ok bool) {
	ok = true
	for n, d := range dims {
		if d == -1 {
			return -1, true
		}
		if n == 0 {
			count = d
			continue
		}
		product := count * d
		if d != 0 && product/d != count {
			ok = false
		}
		count = product
	}
	return count, ok
}

func dimsText(dims []int64) string {
	parts := make([]string, len(dims))
	for i, d := range dims {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
