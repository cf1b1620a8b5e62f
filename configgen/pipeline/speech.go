package pipeline

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// What speech/model.py does where nobody says otherwise.
const (
	usualBeam      = 10
	usualCTCWeight = 0.5
	sampleRate     = 16000
	usualRows      = 8 // utterances that run together, where the encoder leaves it open
	wordsFile      = "words.txt"
)

// Names that Wenet's exporter for servers gives tensors.
var (
	encoderInputs  = []string{"speech", "speech_lengths"}
	encoderOutputs = []string{"encoder_out", "encoder_out_lens", "beam_log_probs", "beam_log_probs_idx"}
	decoderInputs  = []string{"encoder_out", "encoder_out_lens", "hyps_pad_sos_eos", "hyps_lens_sos", "ctc_score"}
	decoderExtra   = []string{"r_hyps_pad_sos_eos"}
	decoderOutputs = []string{"best_index"}
)

// speechModel is an encoder or a decoder.
type speechModel struct {
	role, file      string
	inputs          []speechTensor
	outputs         []string
	gears, mode     string
	rows            int64 // of a batch; 0 is open
	beam            int64 // of a decoder; 0 is open
	packages, notes []string
}

// speechTensor is an input.
type speechTensor struct {
	name, kind string
	dims       []int64 // open is -1
}

// speechPart is speech recognition as one Python model.
func (j *PythonJob) speechPart(string) (*part, int64, error) {
	spec, err := ReadSpec(j.Model)
	if err != nil {
		return nil, 0, err
	}
	s := spec.Speech
	if s == nil {
		return nil, 0, spec.refuse("there is no speech: section").With("npuctl config ensemble makes pipelines of preprocess, model and postprocess")
	}
	version := spec.Version.or(j.Version)
	encoder, err := openSpeech("encoder", s.Encoder, spec, encoderInputs, nil, encoderOutputs)
	if err != nil {
		return nil, 0, err
	}
	decoder := &speechModel{role: "decoder"}
	if s.Decoder.given() {
		if decoder, err = openSpeech("decoder", s.Decoder, spec, decoderInputs, decoderExtra, decoderOutputs); err != nil {
			return nil, 0, err
		}
	}
	beam := s.Beam.or(usualBeam)
	if decoder.beam > 0 && decoder.beam != beam {
		if s.Beam.given() {
			return nil, 0, s.Beam.refuse("the decoder was built for %d texts", decoder.beam)
		}
		beam = decoder.beam
	}
	p := &part{role: roleModel, packages: encoder.packages, notes: slices.Concat(encoder.notes, decoder.notes)}
	if p.files, err = j.speechFiles(spec, version, encoder, decoder); err != nil {
		return nil, 0, err
	}
	rows := encoder.rows
	if rows == 0 {
		rows = usualRows
	}
	p.config = &configgen.Config{
		Name: spec.Name.or(j.Name), MaxBatchSize: int32(rows), InstanceGroup: cpuInstances(s.Instances.or(int64(j.Instances))),
		Input:           []configgen.Input{{Name: "WAV_PATH", DataType: configgen.TypeString, Dims: []int64{1}}},
		Output:          []configgen.Output{{Name: "TRANSCRIPTS", DataType: configgen.TypeString, Dims: []int64{1}}},
		DynamicBatching: &configgen.DynamicBatching{PreferredBatchSize: []int32{int32(rows)}}, VersionPolicy: latest(),
	}
	environment := j.environment()
	if environment == "" && spec.Environment.given() {
		environment = (&EnsembleJob{spec: spec}).environment()
	}
	settings := append([]parameter{
		{"audio_root", s.AudioRoot.Value, "Paths in requests are below this folder of the server; others are refused."},
		{"words", wordsFile, "The model's units, one a line, beside this file."},
		{"sample_rate", strconv.Itoa(sampleRate), "Of the recordings, which have one channel of 16 bits."},
		{"rows", strconv.FormatInt(rows, 10), "How many utterances run together."},
		{"beam", strconv.FormatInt(beam, 10), "How many texts are kept on the way."},
		{"ctc_weight", strconv.FormatFloat(s.CTCWeight.or(usualCTCWeight), 'g', -1, 64), "How much the encoder's own score counts beside the decoder's."},
		{"devices", speechDevices(s), "Numbers of NPUs; instances take them in turn."},
	}, append(encoder.parameters(), decoder.parameters()...)...)
	return p, version, p.pythonConfig(
		fmt.Sprintf("Made by npuctl config python of %s: speech recognition, from paths of WAV files to texts (model.py).", spec.fileName()),
		map[string]string{
			"instance_group":   "Each instance is a process with the models for itself. KIND_CPU: the server knows no NPUs; devices below chooses them.",
			"dynamic_batching": "Requests that wait are handed to model.py together, which sorts them by length.",
		}, settings, environment)
}

func speechDevices(s *speechSpec) string {
	if s.Devices.given() {
		return numbers(s.Devices.Value)
	}
	return "0"
}

// openSpeech reads an encoder or a decoder.
func openSpeech(role string, file setting[string], spec *Spec, inputs, extra, outputs []string) (*speechModel, error) {
	m := &speechModel{role: role, file: spec.resolve(file.Value), mode: "static"}
	read := m.readONNX
	if compiledmodel.Is(m.file) {
		read = m.readCompiled
	}
	if err := read(); err != nil {
		return nil, file.faultOf(err)
	}
	for _, name := range inputs {
		if !slices.ContainsFunc(m.inputs, func(t speechTensor) bool { return t.name == name }) {
			return nil, file.refuse("the %s has no input %q", role, name).With("export it as Wenet does for servers; %s", suggest.Text(name, m.inputNames()))
		}
	}
	for _, t := range m.inputs {
		switch {
		case !slices.Contains(inputs, t.name) && !slices.Contains(extra, t.name):
			return nil, file.refuse("the %s has an input %q, which nothing here fills", role, t.name)
		case !slices.Contains([]string{"FP32", "FP16", "INT32", "INT64"}, t.kind):
			return nil, file.refuse("the input %q of the %s is of %s", t.name, role, t.kind)
		}
		m.learn(t)
	}
	for _, name := range outputs {
		if !slices.Contains(m.outputs, name) {
			return nil, file.refuse("the %s has no output %q", role, name).With("export it as Wenet does for servers; %s", suggest.Text(name, m.outputs))
		}
	}
	return m, nil
}

// learn takes sizes from an input that a search has to know.
func (m *speechModel) learn(t speechTensor) {
	if (t.name == "speech" || t.name == "encoder_out") && len(t.dims) > 0 && t.dims[0] > 0 {
		m.rows = t.dims[0]
	}
	if t.name == "ctc_score" && len(t.dims) > 1 && t.dims[1] > 0 {
		m.beam = t.dims[1]
	}
}

func (m *speechModel) inputNames() (names []string) {
	for _, t := range m.inputs {
		names = append(names, t.name)
	}
	return names
}

func (m *speechModel) readONNX() error {
	model, err := modelfile.Open(m.file)
	if err != nil {
		return err
	}
	defer model.Close()
	for _, v := range model.Graph.Inputs() {
		if v.Initializer() != nil {
			continue
		}
		if !v.Type.IsTensor() {
			return fault.New(fault.Input, "the input %s is no tensor", v.Name())
		}
		m.inputs = append(m.inputs, speechTensor{v.Name(), elementText(v.Type.Elem), shapeOf(v.Type)})
	}
	for _, v := range model.Graph.Outputs() {
		m.outputs = append(m.outputs, v.Name())
	}
	m.packages = []string{"onnxruntime"}
	return nil
}

// elementText is an element type in the words of sessions.py.
func elementText(t tensor.Type) string { return strings.TrimPrefix(kinds[t].String(), "TYPE_") }

func shapeOf(t *onnx.Type) (dims []int64) {
	if t.Shape == nil {
		return nil
	}
	for _, d := range t.Shape.Dims {
		if d.Known {
			dims = append(dims, d.Value)
			continue
		}
		dims = append(dims, -1)
	}
	return dims
}

func (m *speechModel) readCompiled() error {
	c, err := compiledmodel.Open(m.file)
	if err != nil {
		return err
	}
	if c.Open {
		return fault.New(fault.Input, "%s was built for open shapes, which this model does not use", m.file).With("compile it with gears")
	}
	in, out, err := tensorsOf(c)
	if err != nil {
		return err
	}
	for i, t := range in {
		dims := slices.Clone(c.Signature.Inputs[i].Dims)
		m.inputs = append(m.inputs, speechTensor{t.Name, strings.TrimPrefix(t.DataType.String(), "TYPE_"), dims})
	}
	for _, t := range out {
		m.outputs = append(m.outputs, t.Name)
	}
	if m.gears, err = m.compiledGears(c); err != nil {
		return err
	}
	m.packages = []string{"ais_bench", "aclruntime"}
	if c.Emulated {
		m.notes = append(m.notes, fmt.Sprintf("%s is of npuctl's emulator: it holds nothing for a device, and ais_bench will not run it", filepath.Base(m.file)))
	}
	return nil
}

// compiledGears lists the shapes that an .om runs in: its gears, or its only shapes.
func (m *speechModel) compiledGears(c *compiledmodel.File) (string, error) {
	if c.Signature.Gears == nil {
		words := make([]string, len(m.inputs))
		for i, t := range m.inputs {
			words[i] = numbers(t.dims)
		}
		return strings.Join(words, ";"), nil
	}
	m.mode = gearModes[c.Signature.Gears.Kind]
	for gear := range c.Gears() {
		shapes, err := c.GearShapes(gear)
		if err != nil {
			return "", err
		}
		for i, t := range m.inputs {
			if t.name == "speech" && len(shapes[i]) > 0 {
				m.rows = max(m.rows, shapes[i][0])
			}
		}
	}
	gears, _, err := gearParameters(c)
	return gears, err
}

// parameters are the settings of sessions.py. There is one decoder, or none.
func (m *speechModel) parameters() []parameter {
	inputs := make([]string, len(m.inputs))
	for i, t := range m.inputs {
		inputs[i] = t.name + ":" + t.kind
	}
	name, why := "", "None: the encoder's best text is the answer."
	if m.file != "" {
		name, why = m.role+filepath.Ext(m.file), "The file in each version's folder."
	}
	return []parameter{
		{m.role, name, why},
		{m.role + "_inputs", strings.Join(inputs, ","), "In the model's order."},
		{m.role + "_outputs", strings.Join(m.outputs, ","), "In the model's order."},
		{m.role + "_mode", m.mode, "How ais_bench is told the sizes. Some releases spell dym… as dyn…."},
		{m.role + "_gears", m.gears, "The shapes of the inputs in each gear; batches are filled up to one of them."},
	}
}

// speechFiles lists the files of the model.
func (j *PythonJob) speechFiles(spec *Spec, version int64, models ...*speechModel) ([]file, error) {
	files, err := template("speech", version)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if m.file == "" {
			continue
		}
		if err := standsAlone(m.file); err != nil {
			return nil, spec.Speech.faultOf(err)
		}
		files = append(files, file{path: path.Join(strconv.FormatInt(version, 10), m.role+filepath.Ext(m.file)), from: m.file})
	}
	words, lines, err := readLabels(spec.resolve(spec.Speech.Words.Value))
	if err != nil {
		return nil, spec.Speech.Words.faultOf(err)
	}
	if lines < 2 {
		return nil, spec.Speech.Words.refuse("%s has %d lines: the model's units are wanted, one a line", spec.Speech.Words.Value, lines)
	}
	return append(files, file{path: wordsFile, data: words}), nil
}

// standsAlone refuses models with data in other files, which would not come along.
func standsAlone(path string) error {
	if compiledmodel.Is(path) {
		return nil
	}
	m, err := modelfile.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, sides := modelstats.Outside(m); len(sides) > 0 {
		return fault.New(fault.Input, "%s keeps its data in %s", path, sides[0]).With("npuctl optimize writes it as one file")
	}
	return nil
}
