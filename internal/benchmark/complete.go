package benchmark

import (
	"fmt"

	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/project"
)

// Complete fills in what the command line leaves out: from the project file p, which may be
// nil, and the model from the folder when it is the only one there. isGiven says which
// flags the user gave: they win. What is returned says what was chosen and why.
func (j *Job) Complete(folder string, p *project.Project, isGiven func(flag string) bool) (chosen []string, err error) {
	if len(j.Models) == 0 {
		if chosen, err = j.chooseModel(folder, p); err != nil {
			return nil, err
		}
	} else if p == nil || len(j.Models) > 1 || p.ModelPath() != j.Models[0] {
		return nil, nil // the file speaks of another model
	}
	if p == nil {
		return chosen, nil
	}
	b := &p.Bench
	isLoad := isGiven("concurrency") || isGiven("rate") || isGiven("ramp") || isGiven("trace") || isGiven("slo")
	for _, o := range []struct {
		name  string
		apply bool
		set   func()
		value any
	}{
		{"engine", b.Engine != "" && !isGiven("engine"), func() { j.Engine.Name = b.Engine }, b.Engine},
		{"concurrency", b.Concurrency > 0 && !isLoad, func() { j.Load.Concurrency = []int{int(b.Concurrency)} }, b.Concurrency},
		{"rate", b.Rate > 0 && !isLoad, func() { j.Load.Rates = []float64{b.Rate} }, b.Rate},
		{"duration", b.Duration > 0 && !isGiven("duration"), func() { j.Load.Duration = b.Duration }, b.Duration},
		{"warmup", b.Warmup > 0 && !isGiven("warmup"), func() { j.Load.Warmup = b.Warmup }, b.Warmup},
		{"inputs", b.Inputs != "" && !isGiven("inputs"), func() { j.Requests.Files = []string{b.Inputs} }, b.Inputs},
	} {
		if o.apply {
			o.set()
			chosen = append(chosen, fmt.Sprintf("%s %v: %s says so", o.name, o.value, project.FileName))
		}
	}
	return chosen, nil
}

// chooseModel takes the model of the project file, or the only one there is.
func (j *Job) chooseModel(folder string, p *project.Project) (chosen []string, err error) {
	if p != nil && p.ModelPath() != "" {
		j.Models = []string{p.ModelPath()}
		return []string{fmt.Sprintf("model %s: %s says so", j.Models[0], project.FileName)}, nil
	}
	lone, err := compilation.LoneModel(folder)
	if err != nil {
		return nil, err
	}
	j.Models = []string{lone}
	return []string{fmt.Sprintf("model %s: it is the only one here", lone)}, nil
}
