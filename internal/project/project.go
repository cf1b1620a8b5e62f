package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnxpass"
)

// FileName is the name of the project file, looked for in the working directory.
const FileName = "npuctl.yaml"

// Project is what npuctl.yaml says. Fields that it leaves out are zero.
type Project struct {
	// Model is the model and the sizes of its open dims.
	Model Model `yaml:"model"`
	// SoC lists the chips to compile for, as --soc takes them.
	SoC []string `yaml:"soc"`

	Optimize Optimize `yaml:"optimize"`
	Compile  Compile  `yaml:"compile"`
	// Gears are the sizes to compile for beside each other, as --gears takes them:
	// a text, or a list of numbers or of lists of numbers.
	Gears Gears `yaml:"gears"`
	Serve Serve `yaml:"serve"`
	Bench Bench `yaml:"bench"`

	// Path is the file it was read from.
	Path string `yaml:"-"`

	root *yaml.Node // of the file, for places in messages
}

// Place says where in the file a value stands, named by its sections, as in
// Place("compile", "precision"): npuctl.yaml:4:14. Of what the file does not have it is
// the nearest section's place, at worst the file's name.
func (p *Project) Place(names ...string) string {
	at := p.root
	for _, name := range names {
		next := valueOf(at, name)
		if next == nil {
			break
		}
		at = next
	}
	if at == nil || at == p.root {
		return p.Path
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, at.Line, at.Column)
}

// Model is the section model; a text alone is its path.
type Model struct {
	Path        string            `yaml:"path"`         // relative to the file
	Batch       int64             `yaml:"batch"`        // as --batch
	Dims        map[string]int64  `yaml:"dims"`         // as --dim, by name
	InputShapes map[string]string `yaml:"input_shapes"` // as --input-shape, by input: "1,3,224,224"
	Bind        map[string]string `yaml:"bind"`         // as --bind, by input
}

// Optimize is the section optimize.
type Optimize struct {
	Off    bool     `yaml:"off"`    // as compile --no-optimize
	Passes []string `yaml:"passes"` // as --passes
	Skip   []string `yaml:"skip"`   // as --skip
}

// Compile is the section compile; its fields are the flags of `npuctl compile`.
type Compile struct {
	Output       string        `yaml:"output"`
	CANN         string        `yaml:"cann"`
	Static       bool          `yaml:"static"`
	Dynamic      bool          `yaml:"dynamic"`
	Precision    string        `yaml:"precision"`
	KeepDType    string        `yaml:"keep_dtype"`
	Mixlist      string        `yaml:"mixlist"`
	FusionSwitch string        `yaml:"fusion_switch"`
	AICoreNum    string        `yaml:"aicore_num"`
	InputFormat  string        `yaml:"input_format"`
	OutputType   string        `yaml:"output_type"`
	FP16Inputs   []string      `yaml:"fp16_inputs"`
	ATCArgs      []string      `yaml:"atc_args"`
	Timeout      time.Duration `yaml:"timeout"`
	Jobs         int64         `yaml:"jobs"`
}

// Serve is the section serve: how the model is deployed.
type Serve struct {
	Name          string        `yaml:"name"`           // of the model in the repository
	Repository    string        `yaml:"repository"`     // folder
	MaxBatchSize  int64         `yaml:"max_batch_size"` // 0: the model's own batch is all there is
	Instances     int64         `yaml:"instances"`      // on each device
	Devices       []int64       `yaml:"devices"`
	MaxQueueDelay time.Duration `yaml:"max_queue_delay"` // how long a request waits for others
}

// Bench is the section bench: how the model is measured.
type Bench struct {
	Engine      string        `yaml:"engine"`
	Concurrency int64         `yaml:"concurrency"` // requests under way at once
	Rate        float64       `yaml:"rate"`        // requests a second; excludes concurrency
	Duration    time.Duration `yaml:"duration"`
	Warmup      time.Duration `yaml:"warmup"`
	Inputs      string        `yaml:"inputs"` // file or folder of inputs
}

// maxFile bounds the size of a project file.
const maxFile = 1 << 20

// Find reads the project file of a folder; nil when there is none.
func Find(folder string) (*Project, error) {
	path := filepath.Join(folder, FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { // a link to nothing is a mistake
		return nil, nil
	}
	return Read(path)
}

// Read reads a project file. An error says file, line and column.
func Read(path string) (*Project, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxFile)
	}
	if err != nil {
		return nil, fault.New(fault.Input, "read the project file %s: %w", path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the project file %s: %w", path, err)
	}
	return Parse(data, path)
}

// Parse reads a project file from memory; path is for messages and for what is
// relative to it.
func Parse(data []byte, path string) (*Project, error) {
	p := &Project{Path: path}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	if err := documents.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, notYAML(path, err)
	}
	if len(document.Content) == 0 {
		return p, nil
	}
	d := decoder{path: path, budget: maxNodes}
	switch err := documents.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, notYAML(path, err)
	default:
		return nil, d.refuse(&more, "a second document begins here, and one is all that is read").With("take away the line --- before it")
	}
	p.root = document.Content[0]
	if err := d.decode(p.root, p); err != nil {
		return nil, err
	}
	return p, p.check(&d, p.root)
}

func notYAML(path string, err error) error {
	return fault.New(fault.Input, "%s: %s", path, strings.TrimPrefix(strings.ReplaceAll(err.Error(), "yaml: ", ""), "unmarshal errors:\n"))
}

// check holds together what single fields cannot.
func (p *Project) check(d *decoder, root *yaml.Node) error {
	for _, rule := range []struct {
		broken  bool
		section string
		text    string
	}{
		{p.Compile.Static && p.Compile.Dynamic, "compile", "static and dynamic exclude each other: keep one"},
		{p.Compile.Static && p.Gears.Text != "", "gears", "gears and compile.static exclude each other: keep one"},
		{p.Compile.Dynamic && p.Gears.Text != "", "gears", "gears and compile.dynamic exclude each other: keep one"},
		{p.Bench.Rate > 0 && p.Bench.Concurrency > 0, "bench", "rate and concurrency exclude each other: keep one"},
		{len(p.Optimize.Passes) > 0 && len(p.Optimize.Skip) > 0, "optimize", "passes and skip exclude each other: keep one"},
	} {
		if rule.broken {
			return d.refuse(keyOf(root, rule.section), "%s", rule.text)
		}
	}
	for _, rule := range []struct {
		value         float64
		least, most   float64
		section, name string
	}{
		{float64(p.Model.Batch), 1, math.MaxInt32, "model", "batch"},
		{float64(p.Compile.Jobs), 1, math.MaxInt32, "compile", "jobs"},
		{p.Bench.Rate, math.SmallestNonzeroFloat64, math.MaxFloat64, "bench", "rate"},
		{float64(p.Bench.Concurrency), 1, math.MaxInt32, "bench", "concurrency"},
		{float64(p.Serve.MaxBatchSize), 0, math.MaxInt32, "serve", "max_batch_size"},
		{float64(p.Serve.Instances), 0, math.MaxInt32, "serve", "instances"},
	} {
		at := valueOf(valueOf(root, rule.section), rule.name)
		if at == nil || at.Tag == "!!null" || rule.value >= rule.least && rule.value <= rule.most {
			continue
		}
		return d.refuse(at, "%s is %s", rule.name, rangeText(rule.least, rule.most))
	}
	return p.checkSizes(d, valueOf(root, "model"))
}

func rangeText(least, most float64) string {
	switch {
	case most == math.MaxFloat64:
		return "more than 0"
	case least == 0:
		return fmt.Sprintf("not negative, and at most %.0f", most)
	}
	return fmt.Sprintf("at least %.0f, and at most %.0f", least, most)
}

// checkSizes holds the sizes of dims and inputs against what there can be.
func (p *Project) checkSizes(d *decoder, model *yaml.Node) error {
	dims, shapes := valueOf(model, "dims"), valueOf(model, "input_shapes")
	for _, name := range slices.Sorted(maps.Keys(p.Model.Dims)) {
		if size := p.Model.Dims[name]; size < 0 || size > math.MaxInt32 {
			return d.refuse(valueOf(dims, name), "%d is no size of a dim: it is %s", size, rangeText(0, math.MaxInt32))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Model.InputShapes)) {
		if _, err := onnxpass.ParseShape(p.Model.InputShapes[name]); err != nil {
			return d.refuse(valueOf(shapes, name), "%v", err).With("give it as --input-shape does: \"1,3,224,224\"")
		}
	}
	return nil
}

// ModelPath is the model's path, seen from the working directory; "" without one.
func (p *Project) ModelPath() string { return p.Resolve(p.Model.Path) }

// Resolve gives a path of the file, which is relative to it, as seen from the
// working directory.
func (p *Project) Resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	slash := "" // says that it is a folder
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator)) {
		slash = string(filepath.Separator)
	}
	return filepath.Join(filepath.Dir(p.Path), path) + slash
}
