package pipeline

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// PythonJob is one model for Triton's Python backend.
type PythonJob struct {
	Options
	// Model is an .onnx, which ONNX Runtime runs; an .om, which ais_bench runs; or a
	// file with a speech section, which joins an encoder and a decoder of either kind.
	Model string
	// Name is the model's name in the server; "" takes that of the file. Version is the
	// number of the version folder; 0 is 1.
	Name    string
	Version int64
	// Instances is how many processes run it; 0 is 1. Devices are the NPUs that they
	// take in turn, of an .om; nil is the first.
	Instances int
	Devices   []int
	// Sizes fixes open dims of an .onnx; MaxBatch is its max_batch_size, nil chooses.
	Sizes    onnxpass.Specialization
	MaxBatch *int32
	// Providers are ONNX Runtime's, in order; nil is the CPU.
	Providers []string
}

// Run makes the model's part of the repository.
func (j PythonJob) Run(ctx context.Context) (*Result, error) {
	if err := j.complete(); err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp("", "npuctl-python-")
	if err != nil {
		return nil, fault.New(fault.Missing, "make a folder to check the model in: %w", err)
	}
	defer os.RemoveAll(stage)
	p, version, err := j.part(ctx, stage)
	if err != nil {
		return nil, err
	}
	return finish(ctx, j.Options, place{file: j.Model}, stage, version, []*part{p})
}

func (j *PythonJob) part(ctx context.Context, stage string) (p *part, version int64, err error) {
	switch ext := strings.ToLower(filepath.Ext(j.Model)); {
	case ext == ".yaml" || ext == ".yml":
		return j.speechPart(stage)
	case compiledmodel.Is(j.Model):
		p, err = j.compiledPart()
	default:
		p, err = j.onnxPart(ctx, stage)
	}
	return p, j.Version, err
}

func (j *PythonJob) complete() error {
	if j.Name == "" {
		j.Name = generate.NameOf(j.Model)
	}
	if j.Version == 0 {
		j.Version = 1
	}
	if j.Instances == 0 {
		j.Instances = 1
	}
	isCompiled := compiledmodel.Is(j.Model)
	ext := strings.ToLower(filepath.Ext(j.Model))
	hasSizes := j.Sizes.Batch != 0 || len(j.Sizes.Dims)+len(j.Sizes.Shapes) > 0
	switch {
	case (ext == ".yaml" || ext == ".yml") && (hasSizes || j.MaxBatch != nil || len(j.Providers)+len(j.Devices) > 0):
		return fault.New(fault.Usage, "%s says itself what sizes and devices there are", j.Model).With("leave the flags out, and write it there")
	case checkName(setting[string]{Value: j.Name, place: place{line: 1}}) != nil:
		return fault.New(fault.Usage, "--name %s: use A-Z a-z 0-9 . _ - and no dot in front", j.Name)
	case j.Version < 1:
		return fault.New(fault.Usage, "--version %d: versions count from 1", j.Version)
	case j.Instances < 1 || j.Instances > mostInstances:
		return fault.New(fault.Usage, "--instances %d: give 1 to %d", j.Instances, mostInstances)
	case len(j.Devices) > 0 && !isCompiled:
		return fault.New(fault.Usage, "--devices would be ignored: it is for an .om").With("leave it out; ONNX Runtime has --providers")
	case isCompiled && len(j.Providers) > 0:
		return fault.New(fault.Usage, "--providers would be ignored: they are ONNX Runtime's").With("leave them out; an .om has --devices")
	case isCompiled && j.MaxBatch != nil:
		return fault.New(fault.Usage, "--max-batch-size: an .om has the batch that it was compiled for, in whole shapes").With("leave it out")
	case isCompiled && hasSizes:
		return fault.New(fault.Usage, "--batch, --dim and --input-shape fix dims of an .onnx: an .om has its own")
	}
	for i, d := range j.Devices {
		if d < 0 || slices.Contains(j.Devices[:i], d) {
			return fault.New(fault.Usage, "--devices: %d: give numbers from 0 up, each once", d)
		}
	}
	return nil
}

// onnxPart is ONNX Runtime in a Python model.
func (j *PythonJob) onnxPart(ctx context.Context, stage string) (*part, error) {
	p, err := planned(ctx, generate.Job{
		Model: j.Model, Repository: j.Repository, Name: j.Name, Version: j.Version, Backend: generate.ONNXRuntime, CPU: true,
		Sizes: j.Sizes, MaxBatch: j.MaxBatch,
	}, filepath.Join(stage, "planned"))
	if err != nil {
		return nil, err
	}
	o := onnxruntimeModel{instances: int64(j.Instances), providers: j.Providers, environment: j.environment(), version: j.Version}
	return p, o.convert(p)
}

func (j *PythonJob) environment() string {
	if j.Environment == "" {
		return ""
	}
	return absolute(j.Environment)
}

// compiledFile is what a compiled model is called in its version's folder.
const compiledFile = "model.om"

// gearModes are ais_bench's words for gears, by their kind.
var gearModes = map[string]string{"batch": "dymbatch", "image": "dymhw", "dims": "dymdims"}

// openBytes is the room for each output of a model whose shapes are open.
const openBytes = 64 << 20

// compiledPart is an .om in a Python model.
func (j *PythonJob) compiledPart() (*part, error) {
	m, err := compiledmodel.Open(j.Model)
	if err != nil {
		return nil, err
	}
	p := &part{role: roleModel, packages: []string{"ais_bench", "aclruntime"}}
	p.config = &configgen.Config{Name: j.Name, InstanceGroup: cpuInstances(int64(j.Instances)), VersionPolicy: latest()}
	if p.config.Input, p.config.Output, err = tensorsOf(m); err != nil {
		return nil, err
	}
	gears, cuts, err := gearParameters(m)
	if err != nil {
		return nil, err
	}
	mode := "static"
	switch {
	case m.Signature.Gears != nil:
		mode = gearModes[m.Signature.Gears.Kind]
	case m.Open:
		mode = "dymshape"
	}
	if p.files, err = template("compiled", j.Version); err != nil {
		return nil, err
	}
	p.files = append(p.files, file{path: path.Join(strconv.FormatInt(j.Version, 10), compiledFile), from: j.Model})
	p.note("npu_ge does not load compiled models: this is for the Python backend, with ais_bench and aclruntime")
	if m.Emulated {
		p.note("%s is of npuctl's emulator: it holds nothing for a device, and ais_bench will not run it", filepath.Base(j.Model))
	}
	return p, p.pythonConfig(
		fmt.Sprintf("Made by npuctl config python of %s: a compiled model on an NPU, inside the Python backend (model.py).", filepath.Base(j.Model)),
		map[string]string{
			"max_batch_size": "0: dims are whole shapes. The Python backend hands requests over one by one.",
			"instance_group": "Each instance is a process with the model for itself. KIND_CPU: the server knows no NPUs; devices below chooses them.",
		}, []parameter{
			{"model", compiledFile, "The file in each version's folder."},
			{"devices", j.deviceText(), "Numbers of NPUs; instances take them in turn."},
			{"mode", mode, "How ais_bench is told the sizes. Some releases spell dym… as dyn…."},
			{"gears", gears, "The shapes of the inputs in each gear. A request runs in the smallest that holds it, filled up with zeros."},
			{"cuts", cuts, "Where each dim of each output has its size from: 0.1 is dim 1 of input 0, and what was filled up there is cut off; - stays."},
			{"output_bytes", strconv.Itoa(openBytes), "Room for each output of a model whose shapes are open."},
		}, j.environment())
}

func latest() *configgen.VersionPolicy {
	return &configgen.VersionPolicy{Latest: &configgen.Latest{NumVersions: 1}}
}

func (j *PythonJob) deviceText() string {
	if len(j.Devices) == 0 {
		return "0"
	}
	return numbers(j.Devices)
}

// tensorsOf lists the tensors of an .om. Dims that gears set are open.
func tensorsOf(m *compiledmodel.File) (in []configgen.Input, out []configgen.Output, err error) {
	for _, t := range m.Signature.Inputs {
		kind, err := kindOf(m, t)
		if err != nil {
			return nil, nil, err
		}
		in = append(in, configgen.Input{Name: t.Name, DataType: kind, Dims: configDims(t.Dims)})
	}
	if len(in) == 0 || len(m.Signature.Outputs) == 0 {
		return nil, nil, fault.New(fault.Input, "%s: the server serves no model without inputs and outputs", m.Path)
	}
	for i, t := range m.Signature.Outputs {
		kind, err := kindOf(m, t)
		if err != nil {
			return nil, nil, err
		}
		dims := slices.Clone(t.Dims)
		for gear := range m.Gears() {
			merge(dims, outputShape(m, i, gear))
		}
		out = append(out, configgen.Output{Name: compiledmodel.OutputName(t), DataType: kind, Dims: configDims(dims)})
	}
	return in, out, nil
}

// merge opens the dims that differ.
func merge(dims, other []int64) {
	for axis := range dims {
		if axis < len(other) && dims[axis] != other[axis] {
			dims[axis] = -1
		}
	}
}

// configDims are dims as a config wants them: at least one, and -1 where they are open.
func configDims(dims []int64) []int64 {
	if len(dims) == 0 {
		return []int64{1}
	}
	out := slices.Clone(dims)
	for i, n := range out {
		if n < 1 {
			out[i] = -1
		}
	}
	return out
}

// kinds are the element types that NumPy and the server both know.
var kinds = map[tensor.Type]configgen.DataType{
	tensor.Bool: configgen.TypeBool, tensor.Float16: configgen.TypeFP16, tensor.Float32: configgen.TypeFP32, tensor.Float64: configgen.TypeFP64,
	tensor.Uint8: configgen.TypeUint8, tensor.Uint16: configgen.TypeUint16, tensor.Uint32: configgen.TypeUint32, tensor.Uint64: configgen.TypeUint64,
	tensor.Int8: configgen.TypeInt8, tensor.Int16: configgen.TypeInt16, tensor.Int32: configgen.TypeInt32, tensor.Int64: configgen.TypeInt64,
}

func kindOf(m *compiledmodel.File, t om.Tensor) (configgen.DataType, error) {
	element, _ := tensor.ParseType(t.DType)
	if kind, ok := kinds[element]; ok {
		return kind, nil
	}
	return 0, fault.New(fault.Input, "%s: %s has elements of %s, a type that NumPy does not know", m.Path, t.Name, t.DType)
}

// outputShape is the shape of an output in a gear; nil when the file does not say.
func outputShape(m *compiledmodel.File, output, gear int) []int64 {
	for _, g := range m.Signature.GearOutputs {
		if g.Output == output && (g.Gear == gear || g.Gear < 0) {
			return g.Dims
		}
	}
	return nil
}

// gearParameters writes gears and cuts for compiled/model.py.
func gearParameters(m *compiledmodel.File) (gears, cuts string, err error) {
	var rows []string
	shapes := make([][][]int64, m.Gears())
	for gear := range m.Gears() {
		if shapes[gear], err = m.GearShapes(gear); err != nil {
			return "", "", err
		}
		words := make([]string, len(shapes[gear]))
		for i, dims := range shapes[gear] {
			words[i] = numbers(dims)
		}
		rows = append(rows, strings.Join(words, ";"))
	}
	var outputs []string
	for i, t := range m.Signature.Outputs {
		words := make([]string, len(t.Dims))
		for axis := range t.Dims {
			words[axis] = cutOf(m, shapes, i, axis)
		}
		outputs = append(outputs, strings.Join(words, ","))
	}
	return strings.Join(rows, "|"), strings.Join(outputs, ";"), nil
}

// cutOf finds the input dim that an output dim follows: equal in every gear, and not
// the same in all of them. One gear tells nothing.
func cutOf(m *compiledmodel.File, shapes [][][]int64, output, axis int) string {
	if len(shapes) < 2 {
		return "-"
	}
	for i := range shapes[0] {
		for a := range shapes[0][i] {
			follows, varies := true, false
			for gear := range shapes {
				out := outputShape(m, output, gear)
				follows = follows && axis < len(out) && out[axis] == shapes[gear][i][a]
				varies = varies || shapes[gear][i][a] != shapes[0][i][a]
			}
			if follows && varies {
				return fmt.Sprintf("%d.%d", i, a)
			}
		}
	}
	return "-"
}
