package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
)

// Options are what both jobs take.
type Options struct {
	// Repository is the folder to which the models' folders go.
	Repository string
	// Environment is a virtual environment with the packages of the Python models;
	// "" leaves it to the file, or to the server's Python.
	Environment string
	// Force replaces files that differ; Preview writes nothing.
	Force, Preview bool
}

// EnsembleJob is a pipeline to be made of its file.
type EnsembleJob struct {
	Options
	// Pipeline is the file.
	Pipeline string

	spec  *Spec
	stage string // a folder for the time being
}

// Result is what was written, or would be.
type Result struct {
	// Name is that of the model which clients call.
	Name         string            `json:"name"`
	Version      int64             `json:"version"`
	MaxBatchSize int32             `json:"max_batch_size"`
	Inputs       []generate.Tensor `json:"inputs"`
	Outputs      []generate.Tensor `json:"outputs"`
	// Models are the models of the repository, in the order in which a request meets
	// them, and the ensemble last.
	Models []Model `json:"models"`
	// Packages are what the Python models need in the server's Python beside numpy.
	Packages []string           `json:"packages"`
	Notes    []string           `json:"notes"`
	Findings []findings.Finding `json:"findings"`
	// Written is false after a preview and when everything was there already.
	Written bool `json:"written"`
	// Diff is how text files that are there would change, as unified diffs.
	Diff string `json:"diff"`
}

// Model is one model of the repository.
type Model struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Backend string `json:"backend"`
	// Config is the path of config.pbtxt; Text what it holds, "" for a model that was
	// there and stays as it is.
	Config string          `json:"config"`
	Text   string          `json:"text"`
	Files  []generate.File `json:"files"`
}

func (j *EnsembleJob) name() string {
	if j.spec.Name.given() {
		return j.spec.Name.Value
	}
	return generate.NameOf(j.spec.file)
}

func (s *Spec) fileName() string { return filepath.Base(s.file) }

func (j *EnsembleJob) version() int64 { return j.spec.Version.or(1) }

// environment is the path of a virtual environment, absolute: the server does not run
// where the file lies. Triton's own words for the model's folder are left alone.
func (j *EnsembleJob) environment() string {
	switch {
	case j.Environment != "":
		return absolute(j.Environment)
	case !j.spec.Environment.given():
		return ""
	case strings.HasPrefix(j.spec.Environment.Value, "$$"):
		return j.spec.Environment.Value
	}
	return absolute(j.spec.resolve(j.spec.Environment.Value))
}

func absolute(path string) string {
	if strings.HasPrefix(path, "$$") {
		return path
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// Run makes the pipeline's part of the repository. Nothing is written unless all of it
// passes npuctl validate.
func (j EnsembleJob) Run(ctx context.Context) (*Result, error) {
	var err error
	if j.spec, err = ReadSpec(j.Pipeline); err != nil {
		return nil, err
	}
	if j.spec.Speech != nil {
		return nil, j.spec.Speech.refuse("speech is one Python model, and no ensemble").With("npuctl config python %s makes it", j.Pipeline)
	}
	if j.spec.Preprocess == nil && j.spec.Postprocess == nil {
		return nil, j.spec.refuse("the pipeline is the model alone").With("add preprocess or postprocess, or use npuctl config")
	}
	if j.stage, err = os.MkdirTemp("", "npuctl-pipeline-"); err != nil {
		return nil, fault.New(fault.Missing, "make a folder to check the pipeline in: %w", err)
	}
	defer os.RemoveAll(j.stage)
	parts, err := j.parts(ctx)
	if err != nil {
		return nil, err
	}
	return finish(ctx, j.Options, j.spec.place, j.stage, j.version(), parts)
}

// parts makes all models, the ensemble last.
func (j *EnsembleJob) parts(ctx context.Context) (all []*part, err error) {
	model, err := j.modelPart(ctx)
	if err != nil {
		return nil, err
	}
	var before, behind *part
	if j.spec.Postprocess != nil {
		if behind, err = j.postprocessPart(model); err != nil {
			return nil, err
		}
	}
	if j.spec.Preprocess != nil {
		if before, err = j.preprocessPart(model, behind != nil && behind.input(geometry) != nil); err != nil {
			return nil, err
		}
	}
	ensemble, err := j.ensemblePart(before, model, behind)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc([]*part{before, model, behind, ensemble}, func(p *part) bool { return p == nil })
	for i, p := range all {
		for _, q := range all[:i] {
			if p.config.Name == q.config.Name {
				return nil, j.spec.refuse("two models are called %s: %s and %s", p.config.Name, q.role, p.role).With("give one of them another name")
			}
		}
	}
	return all, nil
}

// finish checks parts and puts them into their places. of is what they are made of.
func finish(ctx context.Context, o Options, of place, stage string, version int64, parts []*part) (*Result, error) {
	r := resultOf(o, version, parts)
	var err error
	if r.Findings, err = check(o, stage, parts); err != nil {
		return nil, of.faultOf(err)
	}
	return r, put(ctx, o, parts, r)
}

func resultOf(o Options, version int64, parts []*part) *Result {
	last := parts[len(parts)-1].config
	r := &Result{
		Name: last.Name, Version: version, MaxBatchSize: last.MaxBatchSize,
		Inputs: []generate.Tensor{}, Outputs: []generate.Tensor{}, Models: []Model{}, Packages: []string{}, Notes: []string{}, Findings: []findings.Finding{},
	}
	for _, in := range last.Input {
		r.Inputs = append(r.Inputs, generate.Tensor{Name: in.Name, Type: in.DataType.String(), Dims: in.Dims})
	}
	for _, out := range last.Output {
		r.Outputs = append(r.Outputs, generate.Tensor{Name: out.Name, Type: out.DataType.String(), Dims: out.Dims})
	}
	for _, p := range parts {
		backend := p.config.Backend
		if backend == "" {
			backend = p.config.Platform
		}
		r.Models = append(r.Models, Model{
			Name: p.config.Name, Role: p.role, Backend: backend, Config: filepath.Join(o.Repository, p.config.Name, configFile), Text: string(p.text), Files: []generate.File{},
		})
		r.Notes = append(r.Notes, p.notes...)
		for _, name := range p.packages {
			if !slices.Contains(r.Packages, name) {
				r.Packages = append(r.Packages, name)
			}
		}
	}
	return r
}
