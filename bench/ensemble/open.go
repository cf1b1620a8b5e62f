package ensemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble/part"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/executor/tritonconfig"
	"github.com/npuctl/npuctl/internal/fault"
)

// Options say what runs an ensemble.
type Options struct {
	// Engine opens the models that are none of package part. It stays the caller's.
	Engine engine.Engine
	// Config says otherwise than the config.pbtxt of these models.
	Config tritonconfig.Options
	// File, when set, gives the file that the engine is to open: an .om that was compiled of
	// the .onnx of the repository.
	File func(m *Model) (string, error)
	// Adjust, when set, changes how a model is run, before it is: the policy of its queue,
	// which dims of outputs follow inputs, cores.
	Adjust func(m *Model, s *executor.Setup, o *executor.ModelOptions) error
}

// Ensemble is a plan whose models are loaded. Goroutines may share it.
type Ensemble struct {
	Plan      *Plan
	notes     []string
	served    []*served // of the models of the plan
	of        []*served // of each step
	main      int       // the step that tells batches and gears; -1 for none
	signature *executor.Signature

	mu     sync.RWMutex // of closed, against inside
	closed bool
	inside sync.WaitGroup
}

// served is a model with its executor.
type served struct {
	*Model
	live   *executor.Live
	engine engine.Model    // nil for parts
	model  *executor.Model // nil for parts
	parts  *parts          // nil for models of an engine
	setup  executor.Setup
}

// Open loads all models and makes their instances. What fails is closed again.
func (p *Plan) Open(ctx context.Context, o Options) (*Ensemble, error) {
	e := &Ensemble{Plan: p, main: -1}
	e.signature = executor.NewSignature(p.inputs(), p.MaxBatch)
	for _, m := range p.Models() {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, e.shut())
		}
		s := &served{Model: m}
		e.served = append(e.served, s)
		if err := e.open(ctx, s, &o); err != nil {
			return nil, errors.Join(inModel(m, err), e.shut())
		}
	}
	for i, step := range p.Steps {
		s := e.served[slices.IndexFunc(e.served, func(s *served) bool { return s.Model == step.Model })]
		e.of = append(e.of, s)
		if s.model != nil && e.main < 0 {
			e.main = i
		}
	}
	return e, nil
}

func (p *Plan) inputs() (list []executor.Input) {
	for _, in := range p.Inputs {
		list = append(list, executor.Input{Name: in.Name, Dims: in.Dims, Optional: in.Optional})
	}
	return list
}

// inModel names the model of an error, and keeps its family.
func inModel(m *Model, err error) error {
	if f, ok := err.(*fault.Error); ok {
		return fault.New(f.Family, "model %s: %w", m.Name, f.Err).With("%s", f.Remedy)
	}
	return fault.New(fault.FamilyOf(err), "model %s: %w", m.Name, err)
}

func (e *Ensemble) note(m *Model, format string, args ...any) {
	e.notes = append(e.notes, m.Name+": "+fmt.Sprintf(format, args...))
}

// open makes the executor of a model.
func (e *Ensemble) open(ctx context.Context, s *served, o *Options) (err error) {
	options := o.Config
	if !s.HasEngine() {
		options = tritonconfig.Options{}
	}
	var notes []string
	if s.setup, notes, err = tritonconfig.Read(s.Config, options); err != nil {
		return fault.New(fault.Input, "%s: %w", s.configFile(), err)
	}
	for _, note := range notes {
		e.note(s.Model, "%s", note)
	}
	if !s.HasEngine() {
		return s.openParts()
	}
	return e.openModel(ctx, s, o)
}

func (e *Ensemble) openModel(ctx context.Context, s *served, o *Options) (err error) {
	if o.Engine == nil {
		return fault.New(fault.Usage, "there is no engine to run it")
	}
	path := s.File
	if o.File != nil {
		if path, err = o.File(s.Model); err != nil {
			return err
		}
	}
	var options executor.ModelOptions
	if options.Inputs, options.Outputs, err = tritonconfig.Declared(s.Config); err != nil {
		return fault.New(fault.Input, "%s: %w", s.configFile(), err)
	}
	e.fold(s, o.Engine.About())
	if o.Adjust != nil {
		if err := o.Adjust(s.Model, &s.setup, &options); err != nil {
			return err
		}
	}
	if s.engine, err = o.Engine.Open(ctx, path); err != nil {
		return err
	}
	if s.model, err = executor.NewModel(s.engine, &s.setup, options); err != nil {
		return err
	}
	for _, note := range s.model.Notes() {
		e.note(s.Model, "%s", note)
	}
	s.live, err = executor.NewLive(s.setup, s.model)
	return err
}

// fold takes the instances of a config for several devices to the one that an engine of
// the CPU has. An NPU that is not there is for the engine to refuse.
func (e *Ensemble) fold(s *served, about engine.About) {
	last := slices.Max(s.setup.Devices)
	if about.Name == "ascend" || about.Devices < 1 || last < about.Devices {
		return
	}
	for i := range s.setup.Devices {
		s.setup.Devices[i] %= about.Devices
	}
	e.note(s.Model, "its instances are for devices up to %d, and the engine %s has %d: they share what there is", last, about.Name, about.Devices)
}

func (s *served) openParts() error {
	p, err := part.New(s.Kind, s.Config, s.Folder)
	if err != nil {
		return fault.New(fault.Input, "%s: %w", s.configFile(), err)
	}
	s.parts = newParts(p, s.Config, s.setup.Signature)
	s.live, err = executor.NewLive(s.setup, s.parts)
	return err
}

// Notes are what a reader of results should know.
func (e *Ensemble) Notes() []string { return e.notes }

// ModelCounters are the counters of a model, in which all steps that are this model count.
type ModelCounters struct {
	Model *Model
	executor.Counters
	// Remade counts instances that broke and were made anew.
	Remade int64
}

// Counters gives those of all models, in the order of the plan.
func (e *Ensemble) Counters() (list []ModelCounters) {
	for _, s := range e.served {
		c := ModelCounters{Model: s.Model, Counters: s.live.Counters()}
		if s.model != nil {
			c.Remade = s.model.Remade()
		} else {
			failed := s.parts.failed.Load()
			c.OK, c.Failed = c.OK-failed, c.Failed+failed
		}
		list = append(list, c)
	}
	return list
}

// Gears are those of the model that tells batches (see [Call.Execution]), as texts.
func (e *Ensemble) Gears() (list []string) {
	if e.main < 0 {
		return nil
	}
	g := e.of[e.main].setup.Gears
	for i := range g.Len() {
		list = append(list, g.Text(i))
	}
	return list
}

// enter counts a request in, unless the ensemble is closed.
func (e *Ensemble) enter() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return false
	}
	e.inside.Add(1)
	return true
}

// Close refuses new requests, waits for those that are inside, and gives back all models.
// When the context ends before, it gives its error, and may be called again.
func (e *Ensemble) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	empty := make(chan struct{})
	go func() {
		e.inside.Wait()
		close(empty)
	}()
	select {
	case <-empty:
		return e.shut()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shut gives back what was opened. No request is inside.
func (e *Ensemble) shut() error {
	var errs []error
	for _, s := range e.served {
		if s.live != nil {
			errs = append(errs, s.live.Close(context.Background()))
		}
		if s.engine != nil {
			errs = append(errs, s.engine.Close())
		}
		s.engine = nil
	}
	return errors.Join(errs...)
}
