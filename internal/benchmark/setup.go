package benchmark

import (
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/executor/tritonconfig"
	"github.com/npuctl/npuctl/internal/fault"
)

// setup is what the executor decides by: the configuration, and what the flags say
// otherwise.
func (b *bench) setup(m engine.Model, at place, sets *requests) (setup executor.Setup, o executor.ModelOptions, err error) {
	s := &b.Serving
	if s.MaxBatch > 0 && sets.items > s.MaxBatch {
		return setup, o, fault.New(fault.Usage, "--max-batch %d: a request has %d items", s.MaxBatch, sets.items).With("allow as many, or give smaller requests (--batch)")
	}
	if at.config != "" {
		setup, o, err = b.configured(at)
	} else if executor.HasBatchAxis(m) || s.MaxBatch > 0 {
		setup.Policy.MaxBatch = max(s.MaxBatch, sets.items, 1)
	}
	if err != nil {
		return setup, o, err
	}
	if setup.Devices == nil {
		setup.Devices = make([]int, max(1, s.Instances))
	}
	b.place(setup.Devices)
	if err := s.change(&setup.Policy); err != nil {
		return setup, o, fault.New(fault.Usage, "%s: %w", at.model, err).With("leave out --max-batch, --preferred, --delay, --queue and --queue-timeout")
	}
	if at.config == "" && setup.Policy.MaxBatch > 0 && !setup.Policy.Dynamic {
		b.note("no batcher: requests run one by one; --max-batch N, or a configuration, switches it on")
	}
	return setup, o, sign(m, at, &setup)
}

// place puts instances onto the devices that there are, or that are said.
func (b *bench) place(instances []int) {
	on := b.Serving.Devices
	for i := range instances {
		switch {
		case b.about.Name == ONNXRuntime || b.about.Name == Reference:
			instances[i] = 0 // of the CPU there is one
		case len(on) > 0:
			instances[i] = on[i%len(on)]
		}
	}
}

// configured reads a configuration.
func (b *bench) configured(at place) (setup executor.Setup, o executor.ModelOptions, err error) {
	c, err := readConfig(at.config)
	if err != nil {
		return setup, o, err
	}
	setup, notes, err := tritonconfig.Read(c, tritonconfig.Options{Instances: b.Serving.Instances})
	if err == nil {
		o.Inputs, o.Outputs, err = tritonconfig.Declared(c)
	}
	if err != nil {
		return setup, o, fault.New(fault.Input, "%s: %w", at.config, err)
	}
	for _, note := range notes {
		b.note("%s: %s", at.config, note)
	}
	return setup, o, nil
}

// change writes what the flags say into a policy. All of it is the dynamic batcher's, the
// limits of the queue as well.
func (s *Serving) change(p *executor.Policy) error {
	if s.MaxBatch > 0 || s.Delay > 0 || len(s.Preferred) > 0 || s.QueueSize > 0 || s.QueueTimeout > 0 {
		if p.MaxBatch == 0 {
			return errNoBatch
		}
		p.Dynamic, p.MaxBatch = true, max(s.MaxBatch, p.MaxBatch)
	}
	p.Delay = max(p.Delay, s.Delay)
	if len(s.Preferred) > 0 {
		p.Preferred = s.Preferred
	}
	if s.QueueSize > 0 {
		p.Queue.MaxSize = s.QueueSize
	}
	if s.QueueTimeout > 0 {
		p.Queue.Timeout = s.QueueTimeout
	}
	return nil
}

// sign completes a setup with the inputs, and holds its policy together.
func sign(m engine.Model, at place, setup *executor.Setup) (err error) {
	p := &setup.Policy
	if setup.Signature == nil {
		if setup.Signature, err = executor.SignatureOf(m, p.MaxBatch); err != nil {
			return fault.New(fault.Input, "%s: %w", at.model, err)
		}
	}
	setup.Signature.MaxBatch = p.MaxBatch
	p.ComparesShapes, p.ComparesInputs = setup.Signature.ComparesShapes(), setup.Signature.ComparesInputs()
	if err := p.Check(); err != nil {
		return fault.New(fault.Usage, "%s: %w", at.model, err)
	}
	return nil
}

// devices are those on which the models are to run, so that they are loaded on no other:
// what is said, else what their configurations say, else the first.
func (b *bench) devices() (numbers []int, err error) {
	if len(b.Serving.Devices) > 0 {
		return b.Serving.Devices, nil
	}
	configs := slices.Clone(b.Compare)
	for _, at := range b.places {
		if at.plan != nil {
			for _, m := range at.plan.Models() {
				if m.HasEngine() {
					configs = append(configs, filepath.Join(m.Folder, "config.pbtxt"))
				}
			}
		}
		if at.config != "" {
			configs = append(configs, at.config)
		}
	}
	for _, path := range configs {
		c, err := readConfig(path)
		if err != nil {
			return nil, err
		}
		setup, _, err := tritonconfig.Read(c, tritonconfig.Options{})
		if err != nil {
			return nil, fault.New(fault.Input, "%s: %w", path, err)
		}
		numbers = append(numbers, setup.Devices...)
	}
	if len(numbers) == 0 {
		return []int{0}, nil
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}
