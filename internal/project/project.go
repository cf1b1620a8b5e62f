package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/yamlfile"
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
	// a text, or a list of numbers or of lists of numbers, or @ and a file with a plan,
	// relative to this one.
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
	line, column := p.Position(names...)
	if line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, line, column)
}

// Position is [Project.Place] as numbers: 0 where nothing of it stands in the file.
func (p *Project) Position(names ...string) (line, column int) {
	at := p.root
	for _, name := range names {
		next := yamlfile.Value(at, name)
		if next == nil {
			break
		}
		at = next
	}
	if at == nil || at == p.root {
		return 0, 0
	}
	return at.Line, at.Column
}

// Has says whether the file gives a value, named by its sections, be it a zero.
func (p *Project) Has(names ...string) bool {
	at := p.root
	for _, name := range names {
		if at = yamlfile.Value(at, name); at == nil {
			return false
		}
	}
	return at != nil && at.Tag != "!!null"
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

// Serve is the section serve: how the model is deployed. Its fields are the flags of
// `npuctl config`.
type Serve struct {
	Name          string `yaml:"name"`       // of the model in the repository
	Repository    string `yaml:"repository"` // folder, as --output
	Version       int64  `yaml:"version"`
	Backend       string `yaml:"backend"`
	VersionPolicy string `yaml:"version_policy"`

	MaxBatchSize  int64         `yaml:"max_batch_size"` // 0 writes the batch into the dims: see [Project.Has]
	Preferred     []int64       `yaml:"preferred"`
	MaxQueueDelay time.Duration `yaml:"max_queue_delay"` // how long a request waits for others
	NoBatching    bool          `yaml:"no_batching"`

	PriorityLevels       int64         `yaml:"priority_levels"`
	DefaultPriority      int64         `yaml:"default_priority"`
	QueueTimeout         time.Duration `yaml:"queue_timeout"`
	QueueTimeoutAction   string        `yaml:"queue_timeout_action"`
	AllowTimeoutOverride bool          `yaml:"allow_timeout_override"`
	MaxQueueSize         int64         `yaml:"max_queue_size"`
	PreserveOrdering     bool          `yaml:"preserve_ordering"`

	Instances int64    `yaml:"instances"` // on all devices together
	Devices   []int64  `yaml:"devices"`
	Streams   int64    `yaml:"streams"`
	Profiling string   `yaml:"profiling"`
	Dump      []string `yaml:"dump"`

	Warmup      string            `yaml:"warmup"`
	WarmupData  map[string]string `yaml:"warmup_data"` // file by input
	WarmupCount int64             `yaml:"warmup_count"`

	EAS          string `yaml:"eas"` // files to write, as are kserve and k8s
	KServe       string `yaml:"kserve"`
	K8s          string `yaml:"k8s"`
	Image        string `yaml:"image"`
	Storage      string `yaml:"storage"`
	Protocol     string `yaml:"protocol"`
	Service      string `yaml:"service"`
	NPUResource  string `yaml:"npu_resource"`
	NPUs         int64  `yaml:"npus"`
	Replicas     int64  `yaml:"replicas"`
	SharedMemory int64  `yaml:"shared_memory"` // GiB
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
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the project file %s: %w", path, err)
	}
	return Parse(data, path)
}

// Parse reads a project file from memory; path is for messages and for what is
// relative to it.
func Parse(data []byte, path string) (*Project, error) {
	p := &Project{Path: path}
	root, err := yamlfile.Parse(path, data)
	switch {
	case err != nil:
		return nil, err
	case root == nil:
		return p, nil
	}
	p.root = root
	d := yamlfile.NewDecoder(path)
	if err := d.Decode(root, p); err != nil {
		return nil, err
	}
	if file, ok := gears.IsFile(p.Gears.Text); ok {
		p.Gears.Text = gears.AtFile(p.Resolve(file))
	}
	return p, p.check(d, root)
}

// check holds together what single fields cannot.
func (p *Project) check(d *yamlfile.Decoder, root *yaml.Node) error {
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
			return d.Refuse(yamlfile.Key(root, rule.section), "%s", rule.text)
		}
	}
	for _, rule := range []struct {
		value         float64
		least, most   float64
		section, name string
	}{
		{float64(p.Model.Batch), 1, math.MaxInt32, "model", "batch"},
		{float64(p.Compile.Jobs), 1, math.MaxInt32, "compile", "jobs"},
		{float64(p.Compile.Timeout), math.SmallestNonzeroFloat64, math.MaxFloat64, "compile", "timeout"},
		{p.Bench.Rate, math.SmallestNonzeroFloat64, math.MaxFloat64, "bench", "rate"},
		{float64(p.Bench.Concurrency), 1, math.MaxInt32, "bench", "concurrency"},
		{float64(p.Serve.MaxBatchSize), 0, math.MaxInt32, "serve", "max_batch_size"},
		{float64(p.Serve.Instances), 0, math.MaxInt32, "serve", "instances"},
	} {
		at := yamlfile.Value(yamlfile.Value(root, rule.section), rule.name)
		if at == nil || at.Tag == "!!null" || rule.value >= rule.least && rule.value <= rule.most {
			continue
		}
		return d.Refuse(at, "%s is %s", rule.name, rangeText(rule.least, rule.most))
	}
	return p.checkSizes(d, yamlfile.Value(root, "model"))
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
func (p *Project) checkSizes(d *yamlfile.Decoder, model *yaml.Node) error {
	dims, shapes := yamlfile.Value(model, "dims"), yamlfile.Value(model, "input_shapes")
	for _, name := range slices.Sorted(maps.Keys(p.Model.Dims)) {
		if size := p.Model.Dims[name]; size < 0 || size > math.MaxInt32 {
			return d.Refuse(yamlfile.Value(dims, name), "%d is no size of a dim: it is %s", size, rangeText(0, math.MaxInt32))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Model.InputShapes)) {
		if _, err := onnxpass.ParseShape(p.Model.InputShapes[name]); err != nil {
			return d.Refuse(yamlfile.Value(shapes, name), "%v", err).With("give it as --input-shape does: \"1,3,224,224\"")
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
