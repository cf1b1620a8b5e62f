package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/optimization"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
)

// optimizeFlags are the flags of `npuctl optimize` as they are typed.
type optimizeFlags struct {
	sizes                     sizeFlags
	output, external          string
	inPlace, static, verify   bool
	bindings                  []string
	only, skip                []string
	resultGrowth, totalGrowth string
	check                     int
	checkSeed                 uint64
	judge, library            string
	listPasses                bool
	timeout                   timeLimit
}

func newOptimizeCommand(a *app) *cobra.Command {
	f := &optimizeFlags{}
	cmd := &cobra.Command{
		Use:   "optimize MODEL.onnx [-o OUT.onnx]",
		Short: "Fold, clean and simplify a graph, and make it static",
		Long: "Folds what does not depend on the inputs, removes what does nothing, and leaves a\n" +
			"smaller graph that computes the same. Inputs and outputs keep their names, order\n" +
			"and types. Without -o the result goes to MODEL.opt.onnx beside the input.\n\n" +
			"Exit code 4 means that --static or --check was not reached, or that --timeout has\n" +
			"passed; nothing is written then.",
		Example: "  npuctl optimize model.onnx\n" +
			"  npuctl optimize model.onnx --batch 1 --static -o static.onnx\n" +
			"  npuctl optimize vad.onnx --input-shape input:1,512 --bind sr=16000 --static --check",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.listPasses && len(args) > 0 {
				return fault.New(fault.Usage, "--list-passes optimizes nothing, so that %s would be ignored", given(args)).With("leave one of them out")
			}
			if f.listPasses {
				return nil
			}
			return takes("MODEL.onnx")(cmd, args)
		},
		ValidArgsFunction: completeModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.listPasses {
				return a.listPasses(cmd)
			}
			return a.optimize(cmd, f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write (default MODEL.opt.onnx)")
	flags.BoolVar(&f.inPlace, "in-place", false, "write over the input")
	f.sizes.add(flags)
	flags.StringArrayVar(&f.bindings, "bind", nil, "make an input a constant: `sr=16000`; repeatable")
	flags.BoolVar(&f.static, "static", false, "demand that every shape is known, else exit with 4 and say what is not")
	flags.StringSliceVar(&f.only, "passes", nil, "run only these passes (`names`, see --list-passes)")
	flags.StringSliceVar(&f.skip, "skip", nil, "run all passes but these (`names`)")
	flags.BoolVar(&f.listPasses, "list-passes", false, "list the passes in their order")
	flags.StringVar(&f.resultGrowth, "max-result-growth", "1MiB", "how much one folded result may be larger than what dies with it (`size`)")
	flags.StringVar(&f.totalGrowth, "max-growth", "", "how much all folding may add to the file (`size`; default a quarter of it, or 1MiB)")
	flags.StringVar(&f.external, "external-data", "keep", "where weights go: `keep`, inline or split")
	flags.IntVar(&f.check, "check", 0, "compare original and result on `N` random inputs (3 if left out) and on edge values")
	flags.Lookup("check").NoOptDefVal = "3"
	flags.Uint64Var(&f.checkSeed, "seed", 1, "seed of the random inputs of --check")
	flags.StringVar(&f.judge, "judge", "", "engine that runs both for --check: ort or ref (default ort if it is here)")
	flags.StringVar(&f.library, "ort-lib", "", "ONNX Runtime `library` for --check")
	f.timeout.add(flags)
	flags.BoolVar(&f.verify, "verify", false, "check the graph after every pass")
	completeWords(cmd, "external-data", externalModes...)
	completeWords(cmd, "judge", engine.GraphEngines()...)
	completeWords(cmd, "passes", passNames()...)
	completeWords(cmd, "skip", passNames()...)
	return cmd
}

// externalModes are the words of --external-data, in the order of [onnx.ExternalData].
var externalModes = []string{"keep", "inline", "split"}

func passNames() (names []string) {
	for _, p := range onnxpass.Passes() {
		names = append(names, p.Name)
	}
	return names
}

func (a *app) optimize(cmd *cobra.Command, f *optimizeFlags, input string) error {
	job, err := f.job(cmd.Flags(), input)
	if err != nil {
		return err
	}
	say, stop := a.progress()
	job.Progress = say
	result, err := within(cmd.Context(), f.timeout, job.Run)
	stop()
	switch {
	case fault.FamilyOf(err) == fault.Goal && result != nil:
		return a.goalMissed(job, result, err)
	case err != nil && result != nil && len(result.Conflicts) > 0:
		return &detailed{err, map[string]any{"conflicts": result.Conflicts}}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	case a.quiet:
		return nil
	}
	return a.printOptimization(result)
}

// goalMissed says what a failed goal found: for people the reasons on standard error,
// for machines beside the error.
func (a *app) goalMissed(job optimization.Job, r *optimization.Result, err error) error {
	switch {
	case r.Check != nil:
		return &detailed{err, map[string]any{"check": r.Check}}
	case !job.Static || r.Static:
		return err // a check that could not be made
	case !a.json:
		printDynamic(a.err, r.Dynamic)
	}
	return &detailed{err, map[string]any{"dynamic": r.Dynamic}}
}

// job turns the flags into what they mean.
func (f *optimizeFlags) job(flags *pflag.FlagSet, input string) (optimization.Job, error) {
	j := optimization.Job{
		Input: input, Output: f.output, InPlace: f.inPlace, Static: f.static,
		Check: f.check, CheckSeed: f.checkSeed, Judge: f.judge, EngineLibrary: f.library,
		Passes: onnxpass.Options{Only: f.only, Skip: f.skip, Verify: f.verify},
	}
	if f.check < 0 || f.check == 0 && flags.Changed("check") {
		return j, fault.New(fault.Usage, "--check %d: give the number of random inputs, at least 1", f.check)
	}
	if err := f.timeout.check(flags); err != nil {
		return j, err
	}
	err := checkNeeds(flags,
		need{"seed", f.check > 0, "it makes the inputs of --check; add --check"},
		need{"judge", f.check > 0, "it chooses the engine of --check; add --check"},
		need{"ort-lib", f.check > 0, "the library is for --check; add --check"},
		need{"ort-lib", f.judge != engine.Reference, "--judge ref uses no ONNX Runtime; leave one of them out"},
	)
	if err != nil {
		return j, err
	}
	if len(f.only) > 0 && !slices.ContainsFunc(f.only, func(name string) bool { return !slices.Contains(f.skip, name) }) {
		return j, fault.New(fault.Usage, "--skip leaves none of the --passes").With("leave a name out of one of them")
	}
	if j.Specialization, err = f.sizes.specialization(); err != nil {
		return j, err
	}
	if j.Specialization.Bind, err = parsePairs("--bind", f.bindings, "=", func(s string) (string, error) { return s, nil }); err != nil {
		return j, err
	}
	if j.Passes.MaxResultGrowth, err = parseBytes("--max-result-growth", f.resultGrowth); err != nil {
		return j, err
	}
	if j.Passes.MaxTotalGrowth, err = parseBytes("--max-growth", f.totalGrowth); err != nil {
		return j, err
	}
	i := slices.Index(externalModes, f.external)
	if i < 0 {
		return j, fault.New(fault.Usage, "--external-data %s: there is no such mode", f.external).With("%s", suggest.Text(f.external, externalModes))
	}
	j.External = onnx.ExternalData(i)
	return j, nil
}

// listPasses is --list-passes, beside which no flag of optimize has a meaning.
func (a *app) listPasses(cmd *cobra.Command) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "list-passes" && err == nil {
			err = fault.New(fault.Usage, "--%s would be ignored: --list-passes optimizes nothing; leave one of them out", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	return a.printPasses()
}

// printPasses lists the optimiser's passes.
func (a *app) printPasses() error {
	passes := onnxpass.Passes()
	if a.json {
		type pass struct {
			Name string `json:"name"`
			Does string `json:"does"`
		}
		list := []pass{}
		for _, p := range passes {
			list = append(list, pass{p.Name, p.Does})
		}
		return a.printJSON(map[string]any{"passes": list})
	}
	width := 0
	for _, p := range passes {
		width = max(width, len(p.Name))
	}
	for _, p := range passes {
		fmt.Fprintf(a.out, "%s%s  %s\n", a.palette().Bold(p.Name), strings.Repeat(" ", width-len(p.Name)), terminal.Clean(p.Does))
	}
	return nil
}
