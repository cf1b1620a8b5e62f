package pipeline

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// wiring joins parts: every tensor of the ensemble with its type and dims.
type wiring struct {
	maxBatch int32
	config   *configgen.Config
	tensors  map[string]tensorType
	steps    map[*part]*configgen.Step
	order    []*part
}

// tensorType is what a tensor of the ensemble is, and who says so.
type tensorType struct {
	kind configgen.DataType
	dims []int64
	of   string // for messages
}

func newWiring(name string, maxBatch int32, parts []*part) *wiring {
	w := &wiring{
		maxBatch: maxBatch, tensors: map[string]tensorType{}, steps: map[*part]*configgen.Step{}, order: parts,
		config: &configgen.Config{Name: name, Platform: "ensemble", MaxBatchSize: maxBatch},
	}
	for _, p := range parts {
		w.steps[p] = &configgen.Step{ModelName: p.config.Name, ModelVersion: -1}
	}
	return w
}

// unused makes a name that no tensor of the ensemble has.
func (w *wiring) unused(name string) string {
	for {
		if _, taken := w.tensors[name]; !taken {
			return name
		}
		name += "_"
	}
}

// checkBatch holds a part's batch against that of the ensemble, as the server does. The
// parts of one pipeline have the model's; a model that is there may differ.
func (w *wiring) checkBatch(p *part) error {
	if n := p.config.MaxBatchSize; n != 0 && n < w.maxBatch {
		return fault.New(fault.Input, "the model %s takes batches up to %d, and the pipeline up to %d", p.config.Name, n, w.maxBatch)
	}
	return nil
}

// give makes an output of a step, or an input of the ensemble (p is nil), a tensor.
func (w *wiring) give(p *part, key, tensor string, kind configgen.DataType, dims []int64) error {
	if t, taken := w.tensors[tensor]; taken {
		return fault.New(fault.Input, "two things are called %q: that of %s, and one more", tensor, t.of).With("give one of them another name")
	}
	of := "the client"
	if p != nil {
		of = "the output " + key + " of " + p.config.Name
		s := w.steps[p]
		s.OutputMap = append(s.OutputMap, configgen.Entry[string, string]{Key: key, Value: tensor})
	}
	w.tensors[tensor] = tensorType{kind, dims, of}
	return nil
}

// take leads a tensor to an input of a step. Types have to be equal, and dims, where
// both are known; nothing converts between steps.
func (w *wiring) take(p *part, key, tensor string) error {
	in := p.input(key)
	t, ok := w.tensors[tensor]
	if in == nil || !ok {
		return fault.New(fault.Internal, "the step %s takes %s as %s, and one of them is not there", p.config.Name, tensor, key)
	}
	if t.kind != in.DataType || !agree(t.dims, in.Dims) {
		return fault.New(fault.Input, "%s is %s, and the input %s of %s takes %s", t.of, describe(t.kind, t.dims), key, p.config.Name, describe(in.DataType, in.Dims)).
			With("nothing converts between steps: make them equal")
	}
	s := w.steps[p]
	s.InputMap = append(s.InputMap, configgen.Entry[string, string]{Key: key, Value: tensor})
	return nil
}

// agree says whether dims can be of one tensor; -1 agrees with any.
func agree(a, b []int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x < 0 || y < 0 })
}

// input adds an input of the ensemble that goes to a step.
func (w *wiring) input(p *part, key, name string) error {
	in := p.input(key)
	if err := w.give(nil, "", name, in.DataType, in.Dims); err != nil {
		return err
	}
	w.config.Input = append(w.config.Input, configgen.Input{Name: name, DataType: in.DataType, Dims: in.Dims})
	return w.take(p, key, name)
}

// output adds an output of the ensemble that a step makes.
func (w *wiring) output(p *part, key, name string) error {
	out := p.output(key)
	if _, ok := w.tensors[name]; !ok {
		if err := w.give(p, key, name, out.DataType, out.Dims); err != nil {
			return err
		}
	}
	w.config.Output = append(w.config.Output, configgen.Output{Name: name, DataType: out.DataType, Dims: out.Dims})
	return nil
}

// ensemblePart joins the parts. before and behind may be nil.
func (j *EnsembleJob) ensemblePart(before, model, behind *part) (*part, error) {
	parts := slices.DeleteFunc([]*part{before, model, behind}, func(p *part) bool { return p == nil })
	w := newWiring(j.name(), j.maxBatch(model), parts)
	for _, p := range parts {
		if err := w.checkBatch(p); err != nil {
			return nil, j.spec.Model.faultOf(err)
		}
	}
	fed, err := j.wireBefore(w, before, model)
	if err != nil {
		return nil, err
	}
	e := &part{role: roleEnsemble, config: w.config}
	for _, in := range model.config.Input {
		if in.Name == fed || in.Optional {
			continue
		}
		if err := w.input(model, in.Name, in.Name); err != nil {
			return nil, j.spec.Model.faultOf(err)
		}
		if before != nil {
			e.note("input %s of the model is an input of the pipeline: clients send it beside the pictures", in.Name)
		}
	}
	if err := j.wireBehind(w, before, model, behind); err != nil {
		return nil, err
	}
	if err := j.wireOutputs(w, model, behind); err != nil {
		return nil, err
	}
	w.config.Ensemble = &configgen.Ensemble{}
	for _, p := range parts {
		w.config.Ensemble.Step = append(w.config.Ensemble.Step, *w.steps[p])
	}
	return e, j.printEnsemble(e)
}

// wireBefore leads pictures to the model, and says which input they go to.
func (j *EnsembleJob) wireBefore(w *wiring, before, model *part) (fed string, err error) {
	if before == nil {
		return "", nil
	}
	spec := j.spec.Preprocess
	to, err := findTarget(spec, model)
	if err != nil {
		return "", err
	}
	name := spec.Input.or("picture")
	if err := w.input(before, pictureFiles, name); err != nil {
		return "", spec.faultOf(err)
	}
	prepared := w.unused("prepared")
	out := before.output(pictureTensor)
	if err := w.give(before, pictureTensor, prepared, out.DataType, out.Dims); err != nil {
		return "", spec.faultOf(err)
	}
	if err := w.take(model, to.Name, prepared); err != nil {
		return "", spec.faultOf(err)
	}
	return to.Name, nil
}

// wireBehind leads what the model gives to the part behind it.
func (j *EnsembleJob) wireBehind(w *wiring, before, model, behind *part) error {
	if behind == nil {
		return nil
	}
	spec := j.spec.Postprocess
	from, err := findSource(spec, model, map[string]int{kindFeatures: 1, kindTopK: 1, kindBoxes: 2}[spec.Kind.Value])
	if err != nil {
		return err
	}
	name := w.unused(raw)
	if slices.Contains(j.spec.Outputs.Value, from.Name) {
		name = from.Name // the client gets it, too
	}
	if err := w.give(model, from.Name, name, from.DataType, from.Dims); err != nil {
		return spec.faultOf(err)
	}
	if err := w.take(behind, raw, name); err != nil {
		return spec.faultOf(err)
	}
	if behind.input(geometry) == nil {
		return nil
	}
	place := w.unused(geometry)
	out := before.output(geometry)
	return first(w.give(before, geometry, place, out.DataType, out.Dims), w.take(behind, geometry, place))
}

// wireOutputs gives clients what the last part makes, and what else the file asks for.
func (j *EnsembleJob) wireOutputs(w *wiring, model, behind *part) error {
	if behind != nil {
		for _, out := range behind.config.Output {
			if err := w.output(behind, out.Name, w.unused(out.Name)); err != nil {
				return j.spec.Postprocess.faultOf(err)
			}
		}
	}
	wanted := j.spec.Outputs.Value
	if behind == nil && !j.spec.Outputs.given() {
		wanted = outputNames(model.config)
	}
	for _, name := range wanted {
		if model.output(name) == nil {
			return j.spec.Outputs.refuse("the model %s has no output %q", model.config.Name, name).With("%s", suggest.Text(name, outputNames(model.config)))
		}
		if err := w.output(model, name, name); err != nil {
			return j.spec.Outputs.faultOf(err)
		}
	}
	return nil
}

// maxBatch is that of the ensemble: the file's, or the model's.
func (j *EnsembleJob) maxBatch(model *part) int32 {
	if n := j.spec.MaxBatchSize; n.given() {
		return int32(n.Value)
	}
	return model.config.MaxBatchSize
}

// printEnsemble writes the config of the ensemble.
func (j *EnsembleJob) printEnsemble(e *part) error {
	doc := configgen.NewDocument(configFile, e.config)
	explain(doc.Root, "name", fmt.Sprintf("Made by npuctl config ensemble of %s. A request goes through these models inside the server.", j.spec.fileName()))
	batch := "Requests carry the batch as the first dim of every tensor; dims below leave it out."
	if e.config.MaxBatchSize == 0 {
		doc.Root.Explain("input", "The model has no batch axis to leave open: dims are whole shapes.")
	} else {
		explain(doc.Root, "max_batch_size", batch)
	}
	explain(doc.Root, "ensemble_scheduling", "In the maps, key is the model's tensor, and value the ensemble's.")
	e.files = []file{{path: strconv.FormatInt(j.version(), 10) + "/"}} // the server wants the folder, and nothing in it
	return e.print(doc)
}
