package benchmark

import (
	"context"
	"errors"
	"fmt"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/executor/tritonconfig"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// pipeline opens an ensemble, or a model of the Python backend, with all that it leads to.
func (b *bench) pipeline(ctx context.Context, e engine.Engine, at place, gearsBefore int) (*target, error) {
	if b.Raw {
		return nil, fault.New(fault.Usage, "--raw measures one model, and %s is a pipeline", at.path).With("name the folder of the model in it, or leave --raw out")
	}
	inputs, outputs, err := tritonconfig.Declared(at.plan.Config)
	if err != nil {
		return nil, fault.New(fault.Input, "%s: %w", at.path, err)
	}
	sets, err := b.Requests.from(pipelineSource(at, inputs))
	if err != nil {
		return nil, err
	}
	opened, err := at.plan.Open(ctx, ensemble.Options{
		Engine: e, Config: tritonconfig.Options{Instances: b.Serving.Instances}, Adjust: b.adjust,
	})
	if err != nil {
		return nil, err
	}
	for _, note := range opened.Notes() {
		b.note("%s: %s", at.path, note)
	}
	fill := func(c *ensemble.Call, r load.Request) error {
		c.Inputs = sets.list[sets.pick(r.Number)].inputs
		return nil
	}
	t := &target{
		Target: opened.Target(ensemble.Traffic{Fill: fill, Gears: gearsBefore}),
		gears:  opened.Gears(), sets: sets, ready: func(int) error { return nil },
		close:    func() error { return drained(ctx, at.path, opened.Close) },
		verifier: pipelineVerifier(opened, sets, outputs),
	}
	if files := at.files(); len(files) > 0 {
		t.file = files[0]
	}
	if err := tried(ctx, t.verifier); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// tried sends every request once, so that what a pipeline cannot take is told before any
// load: a file may turn out to be no picture.
func tried(ctx context.Context, v *verifier) error {
	send := v.client()
	for i := range v.sets.list {
		if _, err := send(ctx, i); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.New(fault.Input, "%s: %w", v.sets.list[i].name, err)
		}
	}
	return nil
}

// adjust changes how a model of a pipeline is run: what the flags say goes for those that an
// engine runs.
func (b *bench) adjust(m *ensemble.Model, s *executor.Setup, o *executor.ModelOptions) error {
	if !m.HasEngine() {
		return nil
	}
	b.place(s.Devices)
	o.CubeCores, o.VectorCores = b.Engine.CubeCores, b.Engine.VectorCores
	o.Context = b.ctx
	if graph, err := modelfile.Open(m.File); err == nil { // a compiled model has no graph
		o.Follows = follows(graph)
		graph.Close()
	}
	if err := b.Serving.change(&s.Policy); err != nil {
		return fault.New(fault.Usage, "model %s: %w", m.Name, err)
	}
	if s.Signature != nil {
		s.Signature.MaxBatch = s.Policy.MaxBatch
	}
	return nil
}

// pipelineSource is what values are made for: the inputs that a pipeline declares.
func pipelineSource(at place, inputs []executor.Declared) *source {
	s := &source{path: at.path, graph: onnx.NewModel(10, 21), hasBatch: at.plan.MaxBatch > 0, isPipeline: true}
	for _, in := range inputs {
		dims := in.Dims
		if s.hasBatch {
			dims = append([]int64{-1}, dims...)
		}
		shape := &onnx.Shape{}
		for axis, n := range dims {
			if n < 0 {
				shape.Dims = append(shape.Dims, onnx.Dim{Param: fmt.Sprintf("%s_%d", in.Name, axis)})
				continue
			}
			shape.Dims = append(shape.Dims, onnx.KnownDim(int(n)))
		}
		s.ports = append(s.ports, engine.Port{Name: in.Name, Type: in.Type, Dims: dims})
		s.inputs = append(s.inputs, s.graph.Graph.AddInput(in.Name, &onnx.Type{Kind: onnx.KindTensor, Elem: in.Type, Shape: shape}))
	}
	return s
}

// needsFiles says of a source with an input of strings that random ones would be refused.
func (s *source) needsFiles() error {
	for _, p := range s.ports {
		if p.Type == tensor.String && s.isPipeline {
			return fault.New(fault.Usage, "%s: input %q takes files, such as pictures, and random ones would be none", s.path, p.Name).
				With("give some with --inputs: a picture, or a folder of them")
		}
	}
	return nil
}

func pipelineVerifier(e *ensemble.Ensemble, sets *requests, outputs []executor.Declared) *verifier {
	v := &verifier{sets: sets}
	for _, o := range outputs {
		v.outputs = append(v.outputs, output{o.Name, o.Type})
	}
	v.client = func() func(ctx context.Context, set int) ([]engine.Buffer, error) {
		c := e.NewCall()
		return func(ctx context.Context, set int) ([]engine.Buffer, error) {
			c.Inputs = sets.list[set].inputs
			err := e.Do(ctx, c)
			return c.Outputs, err
		}
	}
	return v
}
