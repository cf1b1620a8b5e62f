package ensemble

import (
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// Plan is an ensemble, or a model alone, that was read and checked: what goes where.
type Plan struct {
	Name string
	// Config is that of the ensemble, or of the model.
	Config *configgen.Config
	// IsEnsemble is false for a model alone.
	IsEnsemble bool
	// Inputs and Outputs are what a request has, in the order of config.pbtxt. Where
	// MaxBatch is above 0 a first dim, of the items of the request, comes before the dims.
	Inputs, Outputs []Tensor
	MaxBatch        int
	// Steps stand in an order in which they could run one after another.
	Steps []*Step

	path    string // of the config
	tensors []*wire
}

// Tensor is an input or output of a plan.
type Tensor struct {
	Name     string
	Type     configgen.DataType
	Dims     []int64
	Optional bool

	wire int
}

// Step is a model on the way of a request.
type Step struct {
	*Model

	number  int   // in the file
	inputs  []int // for each input of the model its wire; -1 for one that is left out
	outputs []int // for each output its wire; -1 for one that nobody takes
	after   []int // the steps that it waits for, by their place in Steps
	before  []int // those that wait for it
}

// mostSteps and mostTensors are more than any ensemble has. They bound what a hostile file
// costs to check.
const (
	mostSteps   = 256
	mostTensors = 256
)

// wire is a tensor between steps.
type wire struct {
	name string
	from *Step // nil for an input of the request
	out  int   // of from
	used bool
}

// Read reads a model of a repository, with all models that it leads to, and checks the
// graph. Nothing is loaded. Faults name the file, the step and the tensor.
func Read(path, name string) (*Plan, error) {
	r := &repository{path: path, models: map[string]*Model{}}
	c, err := r.config(name)
	if err != nil {
		return nil, err
	}
	p := &Plan{Name: name, Config: c, MaxBatch: int(c.MaxBatchSize), path: filepath.Join(path, name, "config.pbtxt"), IsEnsemble: c.Ensemble != nil}
	if c.MaxBatchSize < 0 {
		return nil, p.refuse("max_batch_size is %d", c.MaxBatchSize)
	}
	if p.IsEnsemble {
		err = p.ofEnsemble(r)
	} else {
		err = p.ofModel(r)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ReadFolder is Read by the folder of a model in its repository.
func ReadFolder(folder string) (*Plan, error) {
	full, err := filepath.Abs(folder)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	repository := filepath.Dir(filepath.Clean(folder))
	if filepath.Base(filepath.Clean(folder)) != filepath.Base(full) {
		repository = filepath.Dir(full) // "." and the like
	}
	return Read(repository, filepath.Base(full))
}

// Models are the models of the steps, each once.
func (p *Plan) Models() (list []*Model) {
	for _, s := range p.Steps {
		if !slices.Contains(list, s.Model) {
			list = append(list, s.Model)
		}
	}
	return list
}

func (p *Plan) refuse(format string, args ...any) *fault.Error {
	return refused(p.path, format, args...)
}

// ofModel makes the plan of a model alone.
func (p *Plan) ofModel(r *repository) error {
	m, err := r.model(p.Name, -1)
	if err != nil {
		return err
	}
	s := &Step{Model: m}
	p.Steps = []*Step{s}
	for _, in := range m.Config.Input {
		p.Inputs = append(p.Inputs, Tensor{in.Name, in.DataType, in.Dims, in.Optional, len(p.tensors)})
		s.inputs = append(s.inputs, len(p.tensors))
		p.tensors = append(p.tensors, &wire{name: in.Name, used: true})
	}
	for i, out := range m.Config.Output {
		p.Outputs = append(p.Outputs, Tensor{out.Name, out.DataType, out.Dims, false, len(p.tensors)})
		s.outputs = append(s.outputs, len(p.tensors))
		p.tensors = append(p.tensors, &wire{name: out.Name, from: s, out: i, used: true})
	}
	return nil
}

// ofEnsemble makes the plan of a graph.
func (p *Plan) ofEnsemble(r *repository) error {
	c := p.Config
	if len(c.Ensemble.Step) == 0 || len(c.Input) == 0 || len(c.Output) == 0 {
		return p.refuse("an ensemble has inputs, outputs and steps").With("npuctl validate says what is missing")
	}
	if len(c.Ensemble.Step) > mostSteps || len(c.Input) > mostTensors || len(c.Output) > mostTensors {
		return p.refuse("it has %d steps, %d inputs and %d outputs: at most %d and %d are run here", len(c.Ensemble.Step), len(c.Input), len(c.Output), mostSteps, mostTensors)
	}
	for _, in := range c.Input {
		if err := p.addInput(in); err != nil {
			return err
		}
	}
	for i := range c.Ensemble.Step {
		if err := p.addStep(r, i, &c.Ensemble.Step[i]); err != nil {
			return err
		}
	}
	for i := range c.Ensemble.Step {
		if err := p.addInputs(p.Steps[i], &c.Ensemble.Step[i]); err != nil {
			return err
		}
	}
	for _, out := range c.Output {
		if err := p.addOutput(out); err != nil {
			return err
		}
	}
	return p.finish()
}

// find gives the number of a tensor, or -1.
func (p *Plan) find(name string) int {
	return slices.IndexFunc(p.tensors, func(w *wire) bool { return w.name == name })
}

func (p *Plan) addInput(in configgen.Input) error {
	if p.find(in.Name) >= 0 {
		return p.refuse("two inputs are called %q", in.Name)
	}
	if in.Reshape != nil {
		return p.refuse("input %q: reshape is not done here", in.Name).With("give the dims of the step that takes it")
	}
	p.Inputs = append(p.Inputs, Tensor{in.Name, in.DataType, in.Dims, in.Optional, len(p.tensors)})
	p.tensors = append(p.tensors, &wire{name: in.Name})
	return nil
}

// addStep finds the model of a step, and what it gives.
func (p *Plan) addStep(r *repository, i int, step *configgen.Step) error {
	c, err := r.config(step.ModelName)
	if err == nil && c.Ensemble != nil {
		return p.refuse("step %d: %s is an ensemble itself, which is not run here", i, step.ModelName).With("put its steps in its place")
	}
	var m *Model
	if err == nil {
		m, err = r.model(step.ModelName, step.ModelVersion)
	}
	if err != nil {
		if f, ok := err.(*fault.Error); ok {
			return p.refuse("step %d: %w", i, f.Err).With("%s", f.Remedy)
		}
		return p.refuse("step %d: %w", i, err)
	}
	if n := max(len(m.Config.Input), len(m.Config.Output), len(step.InputMap), len(step.OutputMap)); n > mostTensors {
		return p.refuse("step %d: %d tensors: at most %d are run here", i, n, mostTensors)
	}
	s := &Step{Model: m, number: i}
	p.Steps = append(p.Steps, s)
	if n := m.Config.MaxBatchSize; n != 0 && n < p.Config.MaxBatchSize {
		return p.refuse("step %d: %s takes batches up to %d, and the ensemble up to %d", i, m.Name, n, p.Config.MaxBatchSize).
			With("lower the max_batch_size of the ensemble, or raise that of the model")
	}
	for at, out := range m.Config.Output {
		entry := slices.IndexFunc(step.OutputMap, func(e configgen.Entry[string, string]) bool { return e.Key == out.Name })
		if entry < 0 {
			s.outputs = append(s.outputs, -1)
			continue
		}
		name := step.OutputMap[entry].Value
		if other := p.find(name); other >= 0 {
			return p.refuse("step %d: %s writes %q, which %s", i, m.Name, name, p.tensors[other].origin()).With("give one of them another name")
		}
		s.outputs = append(s.outputs, len(p.tensors))
		p.tensors = append(p.tensors, &wire{name: name, from: s, out: at})
	}
	return p.onlyKnown(i, "output", outputNames(m.Config), m.Name, step.OutputMap)
}

func (w *wire) origin() string {
	if w.from == nil {
		return "is an input of the ensemble"
	}
	return "comes from " + w.from.Name + " already"
}

// addInputs leads tensors to a step.
func (p *Plan) addInputs(s *Step, step *configgen.Step) error {
	for _, in := range s.Config.Input {
		entry := slices.IndexFunc(step.InputMap, func(e configgen.Entry[string, string]) bool { return e.Key == in.Name })
		switch {
		case entry >= 0:
		case in.Optional:
			s.inputs = append(s.inputs, -1)
			continue
		default:
			return p.refuse("step %d: nothing is mapped to input %q of %s", s.number, in.Name, s.Name).With("add it to input_map")
		}
		name := step.InputMap[entry].Value
		at := p.find(name)
		if at < 0 {
			return p.refuse("step %d: %s takes %q, which is no input of the ensemble, and no step makes it", s.number, s.Name, name).
				With("add it to the output_map of a step, or to the inputs")
		}
		p.tensors[at].used = true
		s.inputs = append(s.inputs, at)
		if err := p.checkWire(p.tensors[at], "input "+in.Name+" of "+s.Name, in.DataType, in.Dims, s.Config.MaxBatchSize > 0); err != nil {
			return err
		}
	}
	return p.onlyKnown(s.number, "input", inputNames(s.Config), s.Name, step.InputMap)
}

func (p *Plan) addOutput(out configgen.Output) error {
	at := p.find(out.Name)
	if at < 0 {
		return p.refuse("no step makes the output %q", out.Name).With("add it to the output_map of a step")
	}
	if out.Reshape != nil {
		return p.refuse("output %q: reshape is not done here", out.Name).With("give the dims of the step that makes it")
	}
	p.tensors[at].used = true
	p.Outputs = append(p.Outputs, Tensor{out.Name, out.DataType, out.Dims, false, at})
	return p.checkWire(p.tensors[at], "the output "+out.Name, out.DataType, out.Dims, p.Config.MaxBatchSize > 0)
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
