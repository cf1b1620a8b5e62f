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
	// public are the names that clients see, and of what. They are settled first; the
	// tensors between steps get names that are left.
	public map[string]string
	// answers are what clients call the outputs of the part behind the model.
	answers map[string]string
	steps   map[*part]*configgen.Step
	order   []*part
}

// tensorType is what a tensor of the ensemble is, and who says so.
type tensorType struct {
	kind configgen.DataType
	dims []int64
	of   string // for messages
}

func newWiring(name string, maxBatch int32, parts []*part) *wiring {
	w := &wiring{
		maxBatch: maxBatch, tensors: map[string]tensorType{}, public: map[string]string{}, answers: map[string]string{},
		steps: map[*part]*configgen.Step{}, order: parts,
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
		_, taken := w.tensors[name]
		if _, seen := w.public[name]; !taken && !seen {
			return name
		}
		name += "_"
	}
}

// claim gives a name that clients see to a tensor.
func (w *wiring) claim(at place, name, of string) *fault.Error {
	if other, taken := w.public[name]; taken {
		return at.refuse("two things are called %q: %s, and %s", name, other, of)
	}
	w.public[name] = of
	return nil
}

func outputText(p *part, key string) string { return "the output " + key + " of " + p.config.Name }

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
		of = outputText(p, key)
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
	t, isThere := w.tensors[name]
	if isThere && t.of != outputText(p, key) {
		return fault.New(fault.Internal, "%s should be called %q, and so is %s", outputText(p, key), name, t.of)
	}
	if !isThere {
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
	e := &part{role: roleEnsemble, config: w.config}
	fed, err := j.fedInput(before, model)
	if err != nil {
		return nil, err
	}
	others := otherInputs(model, fed)
	if err := j.settleNames(w, e, others, model, behind); err != nil {
		return nil, err
	}
	if err := j.wireBefore(w, before, model, fed); err != nil {
		return nil, err
	}
	for _, name := range others {
		if err := w.input(model, name, name); err != nil {
			return nil, j.spec.Model.faultOf(err)
		}
		if before != nil {
			e.note("input %s of the model is an input of the pipeline: clients send it beside the pictures", name)
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

// fedInput is the model's input that gets pictures; "" where nothing makes any.
func (j *EnsembleJob) fedInput(before, model *part) (string, error) {
	if before == nil {
		return "", nil
	}
	to, err := findTarget(j.spec.Preprocess, model)
	if err != nil {
		return "", err
	}
	return to.Name, nil
}

// otherInputs are those that clients send themselves.
func otherInputs(model *part, fed string) (names []string) {
	for _, in := range model.config.Input {
		if in.Name != fed && !in.Optional {
			names = append(names, in.Name)
		}
	}
	return names
}

// usualPictures is what the pipeline's pictures are called where nobody says otherwise.
const usualPictures = "picture"

// settleNames gives each tensor that clients see its name, and refuses two of one name.
// What the model calls its own stays, and what the file says is held to; only outputs
// of the part behind the model make room, and that is told.
func (j *EnsembleJob) settleNames(w *wiring, e *part, inputs []string, model, behind *part) error {
	for _, name := range inputs {
		if err := w.claim(j.spec.Model.place, name, "the input "+name+" of "+model.config.Name); err != nil {
			return err.With("give one of them another name in the model's file")
		}
	}
	outputs, err := j.modelOutputs(model, behind)
	if err != nil {
		return err
	}
	for _, name := range outputs {
		at := j.spec.Model.place
		if j.spec.Outputs.given() {
			at = j.spec.Outputs.place
		}
		if err := w.claim(at, name, outputText(model, name)); err != nil {
			return err.With("leave one out of outputs, or give it another name in the model's file")
		}
	}
	pictures, isSet := j.pictures()
	if isSet {
		if err := w.claim(j.atPictures(), pictures, "the pictures"); err != nil {
			return err.With("give the pictures another name with input: in preprocess")
		}
	}
	if behind == nil {
		return nil
	}
	for _, out := range behind.config.Output {
		if isSet && out.Name == pictures {
			return j.atPictures().refuse("two things are called %q: the pictures, and %s", pictures, outputText(behind, out.Name)).
				With("give the pictures another name with input: in preprocess")
		}
		name := w.unused(out.Name)
		if name != out.Name {
			e.note("the output %s of postprocess is called %s: %s is %s", out.Name, name, out.Name, w.public[out.Name])
		}
		w.answers[out.Name] = name
		w.public[name] = outputText(behind, out.Name)
	}
	return nil
}

// pictures is what the pipeline's pictures are called, if it takes any.
func (j *EnsembleJob) pictures() (name string, isSet bool) {
	if j.spec.Preprocess == nil {
		return "", false
	}
	return j.spec.Preprocess.Input.or(usualPictures), true
}

func (j *EnsembleJob) atPictures() place {
	if in := j.spec.Preprocess.Input; in.given() {
		return in.place
	}
	return j.spec.Preprocess.place
}

// modelOutputs are the model's outputs that clients get as they are: those the file
// names, or all where nothing works on them.
func (j *EnsembleJob) modelOutputs(model, behind *part) ([]string, error) {
	wanted := j.spec.Outputs
	if !wanted.given() && behind == nil {
		return outputNames(model.config), nil
	}
	if behind == nil && len(wanted.Value) == 0 {
		return nil, wanted.refuse("outputs lists none, and a pipeline without outputs answers nothing").With("name some, or leave it out")
	}
	for i, name := range wanted.Value {
		if model.output(name) == nil {
			return nil, wanted.refuse("the model %s has no output %q", model.config.Name, name).With("%s", suggest.Text(name, outputNames(model.config)))
		}
		if slices.Contains(wanted.Value[:i], name) {
			return nil, wanted.refuse("outputs lists %q twice", name)
		}
	}
	return wanted.Value, nil
}

// wireBefore leads pictures to an input of the model.
func (j *EnsembleJob) wireBefore(w *wiring, before, model *part, fed string) error {
	if before == nil {
		return nil
	}
	spec := j.spec.Preprocess
	name, _ := j.pictures()
	if err := w.input(before, pictureFiles, name); err != nil {
		return spec.faultOf(err)
	}
	prepared := w.unused("prepared")
	out := before.output(pictureTensor)
	if err := w.give(before, pictureTensor, prepared, out.DataType, out.Dims); err != nil {
		return spec.faultOf(err)
	}
	if err := w.take(model, fed, prepared); err != nil {
		return spec.faultOf(err)
	}
	return nil
}

// wireBehind leads what the model gives to the part behind it.
func (j *EnsembleJob) wireBehind(w *wiring, before, model, behind *part) error {
	if behind == nil {
		return nil
	}
	spec := j.spec.Postprocess
	from, err := findSource(spec, model)
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
			if err := w.output(behind, out.Name, w.answers[out.Name]); err != nil {
				return j.spec.Postprocess.faultOf(err)
			}
		}
	}
	wanted, err := j.modelOutputs(model, behind)
	if err != nil {
		return err
	}
	for _, name := range wanted {
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
