package pipeline

import (
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// The backends of a pipeline's model. Python is ONNX Runtime inside a Python model.
const Python = "python"

// Backends lists them.
func Backends() []string { return append(generate.Backends(), Python) }

// Spec is a pipeline's file. docs/pipelines.md says what each setting does.
type Spec struct {
	place
	Name         setting[string] `yaml:"name"`
	Version      setting[int64]  `yaml:"version"`
	MaxBatchSize setting[int64]  `yaml:"max_batch_size"`
	// Environment is a virtual environment with the packages of the Python models.
	Environment setting[string]   `yaml:"environment"`
	Preprocess  *preprocessSpec   `yaml:"preprocess"`
	Model       *modelSpec        `yaml:"model"`
	Postprocess *postprocessSpec  `yaml:"postprocess"`
	Outputs     setting[[]string] `yaml:"outputs"`
	Speech      *speechSpec       `yaml:"speech"`
}

type preprocessSpec struct {
	place
	Name      setting[string] `yaml:"name"`
	Instances setting[int64]  `yaml:"instances"`
	Input     setting[string] `yaml:"input"`
	To        setting[string] `yaml:"to"`

	Preset        setting[string]    `yaml:"preset"`
	Size          setting[[]int64]   `yaml:"size"`
	Resize        setting[string]    `yaml:"resize"`
	ShortSide     setting[int64]     `yaml:"short_side"`
	Interpolation setting[string]    `yaml:"interpolation"`
	Pad           setting[int64]     `yaml:"pad"`
	Colour        setting[string]    `yaml:"colour"`
	Layout        setting[string]    `yaml:"layout"`
	Scale         setting[float64]   `yaml:"scale"`
	Mean          setting[[]float64] `yaml:"mean"`
	Std           setting[[]float64] `yaml:"std"`
	Upright       setting[bool]      `yaml:"upright"`
	MaxPixels     setting[int64]     `yaml:"max_pixels"`
}

type modelSpec struct {
	place
	Path    setting[string] `yaml:"path"`
	Name    setting[string] `yaml:"name"`
	Backend setting[string] `yaml:"backend"`

	Batch       setting[int64]             `yaml:"batch"`
	Dims        setting[map[string]int64]  `yaml:"dims"`
	InputShapes setting[map[string]string] `yaml:"input_shapes"`
	Gears       setting[string]            `yaml:"gears"`
	Static      setting[bool]              `yaml:"static"`
	NoOptimize  setting[bool]              `yaml:"no_optimize"`

	Instances     setting[int64]         `yaml:"instances"`
	Devices       setting[[]int64]       `yaml:"devices"`
	Streams       setting[int64]         `yaml:"streams"`
	Precision     setting[string]        `yaml:"precision"`
	AICoreNum     setting[string]        `yaml:"aicore_num"`
	Preferred     setting[[]int64]       `yaml:"preferred"`
	MaxQueueDelay setting[time.Duration] `yaml:"max_queue_delay"`
	Providers     setting[[]string]      `yaml:"providers"`
	Threads       setting[int64]         `yaml:"threads"`
}

type postprocessSpec struct {
	place
	Kind      setting[string] `yaml:"kind"`
	Name      setting[string] `yaml:"name"`
	Instances setting[int64]  `yaml:"instances"`
	From      setting[string] `yaml:"from"`

	Normalise     setting[bool]    `yaml:"normalise"`
	K             setting[int64]   `yaml:"k"`
	Softmax       setting[bool]    `yaml:"softmax"`
	Labels        setting[string]  `yaml:"labels"`
	Format        setting[string]  `yaml:"format"`
	Confidence    setting[float64] `yaml:"confidence"`
	Overlap       setting[float64] `yaml:"overlap"`
	AcrossClasses setting[bool]    `yaml:"across_classes"`
	MaxBoxes      setting[int64]   `yaml:"max_boxes"`
	MaxCandidates setting[int64]   `yaml:"max_candidates"`
}

type speechSpec struct {
	place
	Encoder   setting[string]  `yaml:"encoder"`
	Decoder   setting[string]  `yaml:"decoder"`
	Words     setting[string]  `yaml:"words"`
	AudioRoot setting[string]  `yaml:"audio_root"`
	Instances setting[int64]   `yaml:"instances"`
	Devices   setting[[]int64] `yaml:"devices"`
	Beam      setting[int64]   `yaml:"beam"`
	CTCWeight setting[float64] `yaml:"ctc_weight"`
}

// ReadSpec reads a pipeline's file. What it gets wrong is a fault of the input that
// says file, line and column.
func ReadSpec(path string) (*Spec, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return ParseSpec(path, data)
}

// ParseSpec is ReadSpec of text; path is for messages, and for the paths in it, which
// are relative to it.
func ParseSpec(path string, data []byte) (*Spec, error) {
	s := &Spec{}
	if err := decodeFile(path, data, s); err != nil {
		return nil, err
	}
	return s, s.check()
}

// resolve gives a path in the file as one from here.
func (s *Spec) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.file), path)
}

// Bounds of what can be meant.
const (
	mostInstances = 1024
	mostPixels    = 1 << 30
	mostBoxes     = 100_000
)

// check refuses what no model could make right.
func (s *Spec) check() error {
	switch {
	case s.Speech != nil && (s.Model != nil || s.Preprocess != nil || s.Postprocess != nil):
		return s.Speech.refuse("speech stands for itself: it has no preprocess, model and postprocess beside it")
	case s.Speech == nil && s.Model == nil:
		return s.refuse("there is no model: section").With("give its path: model: { path: model.onnx }")
	}
	for _, check := range []func() error{s.checkTop, s.checkPreprocess, s.checkModel, s.checkPostprocess, s.checkSpeech} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// first gives the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkTop() error {
	return first(within(s.Version, 1, math.MaxInt32), within(s.MaxBatchSize, 0, math.MaxInt32), checkName(s.Name))
}

// checkName holds a model's name against what URLs carry.
func checkName(name setting[string]) error {
	isOdd := func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r)
	}
	if name.given() && (name.Value == "" || strings.HasPrefix(name.Value, ".") || strings.ContainsFunc(name.Value, isOdd)) {
		return name.refuse("%q is no name for a model: use A-Z a-z 0-9 . _ - and no dot in front", name.Value)
	}
	return nil
}

func (s *Spec) checkPreprocess() error {
	p := s.Preprocess
	if p == nil {
		return nil
	}
	return first(
		checkName(p.Name), within(p.Instances, 1, mostInstances), p.checkInput(),
		p.Preset.oneOf(presetNames()...), p.Resize.oneOf(resizes...), p.Interpolation.oneOf(interpolations...),
		p.Colour.oneOf(colours...), p.Layout.oneOf(layouts...),
		within(p.Pad, 0, 255), within(p.ShortSide, 1, math.MaxInt16), within(p.MaxPixels, 1, mostPixels), p.checkSize(),
	)
}

func (p *preprocessSpec) checkInput() error {
	if p.Input.given() && p.Input.Value == "" {
		return p.Input.refuse("the pictures need a name")
	}
	return nil
}

func (p *preprocessSpec) checkSize() error {
	for _, n := range p.Size.Value {
		if n < 1 || n > math.MaxInt16 {
			return p.Size.refuse("%d is no side of a picture", n)
		}
	}
	if p.Size.given() && len(p.Size.Value) > 2 {
		return p.Size.refuse("give one number, or height and width")
	}
	for _, x := range p.Std.Value {
		if x == 0 {
			return p.Std.refuse("std divides, and one of them is 0")
		}
	}
	return nil
}

func (s *Spec) checkModel() error {
	m := s.Model
	if m == nil {
		return nil
	}
	if !m.Path.given() && !m.Name.given() {
		return m.refuse("give the model's path, or the name of one that is in the repository")
	}
	if strings.HasSuffix(m.Path.Value, ".om") {
		return m.Path.refuse("%s is a compiled model, which npu_ge does not load", m.Path.Value).
			With("give the .onnx; npuctl config python makes a Python model of an .om, which model: { name: … } then takes")
	}
	if !m.Path.given() {
		return m.onlyWithPath()
	}
	return first(
		checkName(m.Name), m.Backend.oneOf(Backends()...), within(m.Instances, 1, mostInstances),
		within(m.Streams, 1, mostInstances), within(m.Threads, 0, mostInstances), m.ofBackend(),
	)
}

// onlyWithPath refuses settings of a model that is made beside one that is there.
func (m *modelSpec) onlyWithPath() error {
	for _, row := range []struct {
		name string
		place
	}{
		{"backend", m.Backend.place}, {"batch", m.Batch.place}, {"dims", m.Dims.place}, {"input_shapes", m.InputShapes.place},
		{"gears", m.Gears.place}, {"static", m.Static.place}, {"no_optimize", m.NoOptimize.place}, {"instances", m.Instances.place}, {"devices", m.Devices.place},
		{"streams", m.Streams.place}, {"precision", m.Precision.place}, {"aicore_num", m.AICoreNum.place}, {"preferred", m.Preferred.place},
		{"max_queue_delay", m.MaxQueueDelay.place}, {"providers", m.Providers.place}, {"threads", m.Threads.place},
	} {
		if row.given() {
			return row.refuse("%s is for a model that is made of a file: the one in the repository stays as it is", row.name).With("give path, or leave it out")
		}
	}
	return nil
}

// ofBackend refuses what the backend would ignore.
func (m *modelSpec) ofBackend() error {
	backend := m.Backend.or(generate.GE)
	for _, row := range []struct {
		name string
		place
		backend string
	}{
		{"providers", m.Providers.place, Python}, {"threads", m.Threads.place, Python},
		{"gears", m.Gears.place, generate.GE}, {"static", m.Static.place, generate.GE}, {"no_optimize", m.NoOptimize.place, generate.GE}, {"streams", m.Streams.place, generate.GE},
		{"precision", m.Precision.place, generate.GE}, {"aicore_num", m.AICoreNum.place, generate.GE},
	} {
		if row.given() && row.backend != backend {
			return row.refuse("%s would be ignored: it is for backend: %s", row.name, row.backend).With("leave it out")
		}
	}
	return nil
}

// The kinds of postprocess, each with the settings that are its own.
const (
	kindFeatures = "features"
	kindTopK     = "topk"
	kindBoxes    = "boxes"
)

func (s *Spec) checkPostprocess() error {
	p := s.Postprocess
	if p == nil {
		return nil
	}
	kinds := []string{kindFeatures, kindTopK, kindBoxes}
	if !p.Kind.given() {
		return p.refuse("postprocess has no kind").With("%s", suggest.Text("", kinds))
	}
	if err := first(p.Kind.oneOf(kinds...), checkName(p.Name), within(p.Instances, 1, mostInstances)); err != nil {
		return err
	}
	for _, row := range []struct {
		name string
		place
		kinds string
	}{
		{"normalise", p.Normalise.place, kindFeatures}, {"k", p.K.place, kindTopK}, {"softmax", p.Softmax.place, kindTopK},
		{"labels", p.Labels.place, kindTopK + " " + kindBoxes}, {"format", p.Format.place, kindBoxes},
		{"confidence", p.Confidence.place, kindBoxes}, {"overlap", p.Overlap.place, kindBoxes}, {"across_classes", p.AcrossClasses.place, kindBoxes},
		{"max_boxes", p.MaxBoxes.place, kindBoxes}, {"max_candidates", p.MaxCandidates.place, kindBoxes},
	} {
		if row.given() && !strings.Contains(row.kinds, p.Kind.Value) {
			return row.refuse("%s would be ignored: it is for kind: %s", row.name, strings.ReplaceAll(row.kinds, " ", " and ")).With("leave it out")
		}
	}
	return first(
		within(p.K, 1, math.MaxInt16), p.Format.oneOf(formats...), within(p.Confidence, 0, 1), within(p.Overlap, 0, 1),
		within(p.MaxBoxes, 1, mostBoxes), within(p.MaxCandidates, 1, mostBoxes),
	)
}

func (s *Spec) checkSpeech() error {
	p := s.Speech
	if p == nil {
		return nil
	}
	for _, row := range []struct {
		name  string
		value setting[string]
	}{{"encoder", p.Encoder}, {"words", p.Words}, {"audio_root", p.AudioRoot}} {
		if row.value.Value == "" {
			return p.refuse("speech needs %s", row.name)
		}
	}
	if !filepath.IsAbs(p.AudioRoot.Value) && !strings.HasPrefix(p.AudioRoot.Value, "/") {
		return p.AudioRoot.refuse("%q is not absolute: it is a folder on the server, and requests name files in it", p.AudioRoot.Value)
	}
	return first(within(p.Instances, 1, mostInstances), within(p.Beam, 1, 100), within(p.CTCWeight, 0, 1))
}

// faultOf gives an error of another package a place in the file.
func (p place) faultOf(err error) error {
	if f, ok := err.(*fault.Error); ok {
		return fault.New(f.Family, "%s: %w", p, f.Err).With("%s", f.Remedy)
	}
	return fault.New(fault.FamilyOf(err), "%s: %w", p, err)
}
