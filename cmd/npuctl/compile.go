package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/onnxpass"
)

// compileFlags are the flags of `npuctl compile` as they are typed.
type compileFlags struct {
	sizes      sizeFlags
	bindings   []string
	only, skip []string
	job        compilation.Job
}

func newCompileCommand(a *app) *cobra.Command {
	f := &compileFlags{}
	cmd := &cobra.Command{
		Use:   "compile [MODEL.onnx]... --soc CHIP [-o OUT.om]",
		Short: "Compile a model for an Ascend chip: optimise, run ATC, check the result",
		Long: "Optimises the graph, holds the options against ATC's rules, runs ATC, reads the .om\n" +
			"back and compares it with what was asked for. The optimised graph and a record of\n" +
			"what the .om was made of are kept beside it. When nothing has changed, nothing is done.\n\n" +
			"Inputs must be sized: by --batch, --dim and --input-shape, by --gears for several sizes\n" +
			"beside each other, or by --dynamic not at all. What the command line leaves out comes\n" +
			"from npuctl.yaml, and the model from the folder when there is only one.\n\n" +
			"Without CANN here, npuctl's emulator compiles, and says so: its result runs on no NPU.",
		Example: "  npuctl compile model.onnx --static --batch 1 --soc Ascend910B3\n" +
			"  npuctl compile model.onnx --gears 1,2,4,8 --soc Ascend310P3 --precision origin\n" +
			"  npuctl compile a.onnx b.onnx --soc 910B3 --soc 310P3 -o out/ --jobs 4",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"onnx"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.compile(cmd, f, args) },
	}
	f.add(cmd)
	return cmd
}

func (f *compileFlags) add(cmd *cobra.Command) {
	flags, j := cmd.Flags(), &f.job
	flags.SortFlags = false
	flags.StringSliceVar(&j.SoCs, "soc", nil, "`chip` to compile for: Ascend and the Name of npu-smi info; repeatable")
	flags.StringVarP(&j.Output, "output", "o", "", "`file` to write, or folder for several (default MODEL.om beside the model)")
	flags.BoolVar(&j.Static, "static", false, "demand that every shape is known, else exit with 4 and say what is not")
	flags.StringVar(&j.Gears, "gears", "", "`sizes` to compile for beside each other: 1,2,4,8 or 262;326 or 224,224;336,336, or @PLAN.yaml of npuctl gears")
	flags.BoolVar(&j.Dynamic, "dynamic", false, "leave open dims open")
	f.sizes.add(flags)
	flags.StringArrayVar(&f.bindings, "bind", nil, "make an input a constant: `sr=16000`; repeatable")
	flags.StringVar(&j.Options.Precision, "precision", "", "`mode` of ATC's precision_mode_v2 or precision_mode: fp16, origin, mixed_float16 …")
	flags.StringVar(&j.Options.KeepDType, "keep-dtype", "", "`file` with nodes that keep their type")
	flags.StringVar(&j.Options.Mixlist, "mixlist", "", "`file` with operators to compute in half and in full precision (mixed modes)")
	flags.StringVar(&j.Options.FusionSwitch, "fusion-switch", "", "`file` that switches fusion passes off")
	flags.StringVar(&j.Options.AICoreNum, "aicore-num", "", "`cores` to use: cube|vector as 12|10, or one number on chips with one kind")
	flags.StringVar(&j.Options.InputFormat, "input-format", "", "`layout` of inputs: NCHW, ND or NCDHW")
	flags.StringVar(&j.Options.OutputType, "output-type", "", "`type` of outputs, as ATC's output_type")
	flags.StringArrayVar(&j.Options.FP16Inputs, "fp16-input", nil, "take `input` in float16; repeatable")
	flags.StringArrayVar(&j.Options.Extra, "atc-arg", nil, "any other `option` of ATC: --log=info; repeatable")
	flags.BoolVar(&j.NoOptimize, "no-optimize", false, "give ATC the graph as it is")
	flags.StringSliceVar(&f.only, "passes", nil, "optimise with only these passes (`names`)")
	flags.StringSliceVar(&f.skip, "skip", nil, "optimise without these passes (`names`)")
	flags.StringVar(&j.CANN, "cann", "", "`folder` of the CANN toolkit; local looks for it and takes nothing else; emulator (default: look, else the emulator)")
	flags.BoolVar(&j.DryRun, "dry-run", false, "print atc's command line, and run nothing")
	flags.BoolVar(&j.Force, "force", false, "compile even if nothing has changed")
	flags.IntVar(&j.Jobs, "jobs", 0, "how many to compile at a time (`N`; default half the processors)")
	flags.DurationVar(&j.Timeout, "timeout", 0, "stop atc after this `time`, such as 30m (default never)")
	completeWords(cmd, "passes", passNames()...)
	completeWords(cmd, "skip", passNames()...)
	completeWords(cmd, "precision", compilation.PrecisionModes()...)
	completeWords(cmd, "input-format", "NCHW", "ND", "NCDHW")
}

func (a *app) compile(cmd *cobra.Command, f *compileFlags, models []string) error {
	job, chosen, err := f.complete(cmd, models)
	if err != nil {
		return err
	}
	job.Version, job.Command = versionText(), append([]string{"npuctl"}, a.args...)
	say, stop := a.progress()
	job.Progress, job.Emulator = say, emulatorFolder(say)
	result, err := job.Run(cmd.Context())
	stop()
	if result != nil {
		result.Chosen = append([]string{}, chosen...)
	}
	switch {
	case err != nil:
		return a.compileFailed(result, chosen, err)
	case a.json:
		return a.printJSON(result)
	case job.DryRun:
		return a.printCommandLines(result)
	case a.quiet:
		return nil
	}
	return a.printCompilation(result)
}

// complete turns the flags into a job, with what the project file and the folder say.
func (f *compileFlags) complete(cmd *cobra.Command, models []string) (job compilation.Job, chosen []string, err error) {
	job = f.job
	job.Models = models
	job.Passes = onnxpass.Options{Only: f.only, Skip: f.skip}
	if job.Jobs < 1 && cmd.Flags().Changed("jobs") {
		return job, nil, fault.New(fault.Usage, "--jobs %d: give how many to compile at a time", job.Jobs).With("leave it out for half the processors")
	}
	if err = timeLimit(job.Timeout).check(cmd.Flags()); err != nil {
		return job, nil, err
	}
	if job.Sizes, err = f.sizes.specialization(); err != nil {
		return job, nil, err
	}
	if job.Sizes.Bind, err = parsePairs("--bind", f.bindings, "=", func(s string) (string, error) { return s, nil }); err != nil {
		return job, nil, err
	}
	p, err := project.Find(".")
	if err != nil {
		return job, nil, err
	}
	chosen, err = job.Complete(".", p, func(flag string) bool { return cmd.Flags().Changed(flag) })
	return job, chosen, err
}

// emulatorFolder gives what finds the emulator of npuctl's cache, and builds it if need
// be: say is told of that, as it takes a while.
func emulatorFolder(say func(text string)) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		options := cannemu.Options{Version: versionText(), Building: func() { say("building the emulator (once, about 10 s)") }}
		root, _, _, err := cannemu.Find(ctx, "", options)
		return root, err
	}
}
