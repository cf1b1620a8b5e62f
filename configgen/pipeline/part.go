package pipeline

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// The roles of a pipeline's models.
const (
	rolePreprocess  = "preprocess"
	roleModel       = "model"
	rolePostprocess = "postprocess"
	roleEnsemble    = "ensemble"
)

// part is one model of the repository.
type part struct {
	role   string
	config *configgen.Config
	// text is its config.pbtxt; nil for a model that is there already.
	text []byte
	// files are the others, in the model's folder.
	files []file
	notes []string
	// packages are what its Python needs beside numpy.
	packages []string
}

// file is a file to be: bytes, or a copy of another.
type file struct {
	path string // in the model's folder, with slashes
	data []byte
	from string // of a copy
}

func (p *part) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *part) input(name string) *configgen.Input {
	for i := range p.config.Input {
		if p.config.Input[i].Name == name {
			return &p.config.Input[i]
		}
	}
	return nil
}

func (p *part) output(name string) *configgen.Output {
	for i := range p.config.Output {
		if p.config.Output[i].Name == name {
			return &p.config.Output[i]
		}
	}
	return nil
}

func inputNames(c *configgen.Config) (names []string) {
	for _, in := range c.Input {
		names = append(names, in.Name)
	}
	return names
}

func outputNames(c *configgen.Config) (names []string) {
	for _, out := range c.Output {
		names = append(names, out.Name)
	}
	return names
}

// templates are the Python models as they are written.
//
//go:embed python
var templates embed.FS

// template gives the files of a Python model, for a version's folder.
func template(name string, version int64) ([]file, error) {
	var out []file
	folder := path.Join("python", name)
	entries, err := fs.ReadDir(templates, folder)
	if err != nil {
		return nil, fault.New(fault.Internal, "%w", err)
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".py" {
			continue
		}
		data, err := fs.ReadFile(templates, path.Join(folder, e.Name()))
		if err != nil {
			return nil, fault.New(fault.Internal, "%w", err)
		}
		out = append(out, file{path: path.Join(strconv.FormatInt(version, 10), e.Name()), data: data})
	}
	return out, nil
}

// parameter is a setting of a Python model, with what it does.
type parameter struct{ key, value, why string }

// environmentKey names a virtual environment to Triton's Python backend.
const environmentKey = "EXECUTION_ENV_PATH"

// pythonConfig writes the config.pbtxt of a Python model.
func (p *part) pythonConfig(head string, comments map[string]string, parameters []parameter, environment string) error {
	c := p.config
	c.Backend = "python"
	if environment != "" {
		parameters = append(parameters, parameter{environmentKey, environment, "A virtual environment of the server's Python version, or an archive of conda-pack, with the packages."})
	}
	for _, one := range parameters {
		c.Parameters = append(c.Parameters, configgen.Entry[string, configgen.Parameter]{Key: one.key, Value: configgen.Parameter{StringValue: one.value}})
	}
	doc := configgen.NewDocument(configFile, c)
	explain(doc.Root, "name", head)
	for field, why := range comments {
		explain(doc.Root, field, why)
	}
	for i, v := range doc.Root.Values("parameters") {
		v.Leading = append(v.Leading, wrap(parameters[i].why)...)
	}
	return p.print(doc)
}

// print keeps a config's text, and reads it back: a text that does not read is a fault
// of ours.
func (p *part) print(doc *configgen.Document) error {
	p.text = doc.Print()
	if _, err := configgen.Parse(configFile, p.text); err != nil {
		return fault.New(fault.Internal, "the config that was made does not read: %w", err)
	}
	return nil
}

const configFile = "config.pbtxt"

// explain puts a comment of any length above a field.
func explain(m *configgen.Message, field, text string) {
	for _, line := range wrap(text) {
		m.Explain(field, strings.TrimPrefix(line, " "))
	}
}

// commentWidth is how long a line of a comment gets.
const commentWidth = 88

// wrap breaks a comment into lines, each with a space in front. What could end a line
// or deceive its reader becomes a ?: names come from files that others wrote.
func wrap(text string) (lines []string) {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '#' {
			return '?'
		}
		return r
	}, text)
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > commentWidth {
			lines, line = append(lines, line), ""
		}
		line += " " + word
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// cpuInstances are instances of a Python model, each a process.
func cpuInstances(n int64) []configgen.InstanceGroup {
	return []configgen.InstanceGroup{{Count: int32(n), Kind: configgen.KindCPU}}
}

// numbers writes a list for a parameter.
func numbers[N int | int64 | float64](list []N) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ",")
}
