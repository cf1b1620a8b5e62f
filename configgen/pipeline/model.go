package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// modelFile is what a model's file is called in its version's folder.
const modelFile = "model.onnx"

// modelPart makes the model's part of a pipeline.
func (j *EnsembleJob) modelPart(ctx context.Context) (*part, error) {
	m := j.spec.Model
	if !m.Path.given() {
		return j.partThere(m)
	}
	job, err := j.generateJob(m)
	if err != nil {
		return nil, err
	}
	p, err := planned(ctx, job, filepath.Join(j.stage, "planned"))
	if err != nil {
		return nil, j.inSettings(err)
	}
	j.nameSettings(p)
	if m.Backend.Value != Python {
		return p, nil
	}
	o := onnxruntimeModel{
		instances: m.Instances.or(1), providers: m.Providers.Value, threads: m.Threads.Value,
		environment: j.environment(), version: j.version(),
	}
	return p, o.convert(p)
}

// generateJob is what package generate is to plan.
func (j *EnsembleJob) generateJob(m *modelSpec) (job generate.Job, err error) {
	job = generate.Job{
		Model: j.spec.resolve(m.Path.Value), Repository: j.Repository, Name: m.Name.or(j.name() + "_" + roleModel), Version: j.version(),
		Backend: m.Backend.Value, Gears: m.Gears.Value, Static: m.Static.Value, NoOptimize: m.NoOptimize.Value,
		Instances: int(m.Instances.or(1)), Streams: int(m.Streams.Value), Precision: m.Precision.Value, AICoreNum: m.AICoreNum.Value,
		MaxQueueDelay: m.MaxQueueDelay.Value,
	}
	if m.Backend.Value == Python {
		job.Backend, job.CPU = generate.ONNXRuntime, true
	}
	if n := j.spec.MaxBatchSize; n.given() {
		size := int32(n.Value)
		job.MaxBatch = &size
	}
	for _, n := range m.Devices.Value {
		if n < 0 || n > math.MaxInt16 {
			return job, m.Devices.refuse("%d is no number of a device", n)
		}
		job.Devices = append(job.Devices, int(n))
	}
	for _, n := range m.Preferred.Value {
		if n < 1 || n > math.MaxInt32 {
			return job, m.Preferred.refuse("%d is no size of a batch", n)
		}
		job.Preferred = append(job.Preferred, int32(n))
	}
	job.Sizes, err = m.sizes()
	return job, err
}

func (m *modelSpec) sizes() (sizes onnxpass.Specialization, err error) {
	sizes = onnxpass.Specialization{Batch: m.Batch.Value, Dims: m.Dims.Value, Shapes: map[string][]int64{}}
	for name, text := range m.InputShapes.Value {
		if sizes.Shapes[name], err = onnxpass.ParseShape(text); err != nil {
			return sizes, m.InputShapes.refuse("%s: %v", name, err)
		}
	}
	return sizes, nil
}

// planned runs package generate into a folder apart, and takes what it made. A model's
// file is linked there, and copied only where that cannot be.
func planned(ctx context.Context, job generate.Job, stage string) (*part, error) {
	repository := job.Repository
	job.Repository, job.Link = stage, true
	r, err := job.Run(ctx)
	if fault.FamilyOf(err) == fault.Missing {
		job.Link = false
		r, err = job.Run(ctx)
	}
	if err != nil {
		return nil, err
	}
	doc, err := configgen.Parse(r.Config, []byte(r.Text))
	if err != nil {
		return nil, fault.New(fault.Internal, "%w", err)
	}
	p := &part{role: roleModel, config: doc.Config(), text: []byte(r.Text), notes: r.Notes}
	if r.Optimized != nil {
		p.note("%s: %s", job.Model, r.Optimized)
	}
	folder := filepath.Dir(r.Config)
	for _, f := range r.Files {
		inside, err := filepath.Rel(folder, f.Path)
		if err != nil {
			return nil, fault.New(fault.Internal, "%w", err)
		}
		p.files = append(p.files, file{path: filepath.ToSlash(inside), from: f.Path})
	}
	return p, p.refuseSecond(repository)
}

// refuseSecond sees to it that npu_ge finds one .onnx in the model's folder.
func (p *part) refuseSecond(repository string) error {
	if p.config.Backend != generate.GE {
		return nil
	}
	folder := filepath.Join(repository, p.config.Name)
	others := generate.OtherModels(folder, func(path string) bool {
		return slices.ContainsFunc(p.files, func(f file) bool { return filepath.Join(folder, filepath.FromSlash(f.path)) == path })
	})
	if len(others) > 0 {
		return fault.New(fault.Usage, "%s is there, and %s takes the first .onnx that it finds, whatever the version", others[0], generate.GE).
			With("give the model another name, or take the old file away")
	}
	return nil
}

// partThere takes a model that is in the repository already.
func (j *EnsembleJob) partThere(m *modelSpec) (*part, error) {
	path := filepath.Join(j.Repository, m.Name.Value, configFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, m.Name.refuse("there is no %s", path).With("give the model's path, and it is made")
	}
	if err != nil {
		return nil, m.Name.faultOf(fault.New(fault.Input, "%w", err))
	}
	doc, err := configgen.Parse(path, data)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	c := doc.Config()
	if len(c.Input) == 0 || len(c.Output) == 0 {
		return nil, m.Name.refuse("%s does not list inputs and outputs", path).With("npuctl config writes them")
	}
	c.Name = m.Name.Value
	return &part{role: roleModel, config: c}, nil
}

// onnxruntimeModel is ONNX Runtime in a Python model.
type onnxruntimeModel struct {
	instances, threads int64
	providers          []string
	environment        string
	version            int64
}

// convert makes a Python model of one that was planned for the onnxruntime backend.
func (o onnxruntimeModel) convert(p *part) error {
	for _, f := range p.files {
		if base := path.Base(f.path); strings.HasSuffix(base, ".py") {
			return fault.New(fault.Input, "its data is in %s, which would be taken for a part of the Python model", base)
		}
	}
	old := p.config
	providers := o.providers
	if len(providers) == 0 {
		providers = []string{"CPUExecutionProvider"}
	}
	p.config = &configgen.Config{
		Name: old.Name, MaxBatchSize: old.MaxBatchSize, VersionPolicy: old.VersionPolicy, DynamicBatching: old.DynamicBatching,
		Input: old.Input, Output: old.Output, InstanceGroup: cpuInstances(o.instances),
	}
	model, err := template("onnxruntime", o.version)
	if err != nil {
		return err
	}
	p.files = append(model, p.files...)
	p.packages = []string{"onnxruntime"}
	return p.pythonConfig("Made by npuctl: an ONNX model on ONNX Runtime, inside the Python backend (model.py).", map[string]string{
		"instance_group":   "Each instance is a process with the model for itself.",
		"dynamic_batching": "Requests that wait are handed to model.py together, which runs them as one batch.",
	}, []parameter{
		{"model", modelFile, "The file in each version's folder."},
		{"providers", strings.Join(providers, ","), "Where ONNX Runtime runs it; the first of these that it has."},
		{"threads", strconv.FormatInt(o.threads, 10), "For one run; 0 leaves the number to ONNX Runtime."},
	}, o.environment)
}

// endsInSoftmax says whether an output of a model comes straight from a Softmax, or a
// Sigmoid.
func endsInSoftmax(path, output string) bool {
	m, err := modelfile.Open(path)
	if err != nil {
		return false // whoever opened it before has said so
	}
	defer m.Close()
	i := slices.IndexFunc(m.Graph.Outputs(), func(v *onnx.Value) bool { return v.Name() == output })
	if i < 0 {
		return false
	}
	n := m.Graph.Outputs()[i].Producer()
	return n != nil && (n.OpType == "Softmax" || n.OpType == "Sigmoid")
}

// describe writes a tensor for messages.
func describe(kind configgen.DataType, dims []int64) string {
	return fmt.Sprintf("%s [%s]", strings.TrimPrefix(kind.String(), "TYPE_"), strings.ReplaceAll(numbers(dims), ",", ", "))
}
