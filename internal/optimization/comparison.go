package optimization

import (
	"context"
	"errors"
	"strings"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// Comparison holds a model against the one that it was made from, as --check does before
// it writes.
type Comparison struct {
	// Original and Result are files.
	Original, Result string
	// Inputs are sets of values to run both on; nil makes Samples random ones from Seed,
	// with the sizes that Specialization fixes.
	Inputs         []map[string]eval.Value
	Samples        int
	Seed           uint64
	Specialization onnxpass.Specialization
	// Tolerance says how far the floats of an output of a type may be off, and whether
	// somebody wished it: else the original's own inexactness is allowed for, too. nil is
	// what the type allows.
	Tolerance func(output string, t tensor.Type) (tolerance compare.Tolerance, isWish bool)
	// Engine and Library are as the Judge and EngineLibrary of a [Job].
	Engine, Library string
	Progress        func(text string)
}

// Run compares. A difference is told in the report; an error says why nothing could be
// compared.
func (c Comparison) Run(ctx context.Context) (*Check, error) {
	j := Job{
		Input: c.Original, Specialization: c.Specialization, Check: c.Samples, CheckSeed: c.Seed,
		Judge: c.Engine, EngineLibrary: c.Library, Progress: c.Progress,
	}
	k, err := j.newChecker(ctx)
	if err != nil {
		return nil, err
	}
	k.result, k.given, k.tolerance = engine.Source{Path: c.Result}, c.Inputs, c.Tolerance
	report, err := k.judged(ctx)
	var unable *unableError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unable):
		return nil, fault.New(fault.Input, "nothing could be compared: %s", strings.ReplaceAll(err.Error(), "\n", "; ")).
			With("%s", joined(unable.remedy, "give other --inputs or another --engine: "+strings.Join(engine.GraphEngines(), ", ")))
	}
	return report, err
}
