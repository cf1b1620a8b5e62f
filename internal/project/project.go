package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
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
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
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
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fault.New(fault.Input, "%s: %s", path, strings.TrimPrefix(strings.ReplaceAll(err.Error(), "yaml: ", ""), "unmarshal errors:\n"))
	}
	if len(document.Content) == 0 {
		return p, nil
	}
	d := decoder{path: path, budget: maxNodes}
	if err := d.decode(document.Content[0], p); err != nil {
		return nil, err
	}
	return p, p.check(&d, document.Content[0])
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
		{p.Model.Batch < 0, "model", "batch is at least 1"},
		{p.Compile.Jobs < 0, "compile", "jobs is at least 1"},
		{p.Bench.Rate < 0 || p.Bench.Concurrency < 0, "bench", "rate and concurrency are more than 0"},
		{p.Serve.MaxBatchSize < 0 || p.Serve.Instances < 0, "serve", "max_batch_size and instances are not negative"},
	} {
		if rule.broken {
			return d.refuse(keyOf(root, rule.section), "%s", rule.text)
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
	return filepath.Join(filepath.Dir(p.Path), path)
}
