package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/inference"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/internal/valuefile"
	"github.com/npuctl/npuctl/onnx/compare"
)

// inferFlags are the flags of `npuctl infer` as they are typed.
type inferFlags struct {
	sizes          sizeFlags
	inputs         []string
	seed           uint64
	engine         string
	library        string
	ascendLibrary  string
	device         int
	threads        int
	memory         string
	output, format string
	expect         string
	rtol, atol     float64
}

func newInferCommand(a *app) *cobra.Command {
	f := &inferFlags{}
	cmd := &cobra.Command{
		Use:   "infer MODEL.onnx|MODEL.om [--inputs FILE|DIR]... [-o DIR|FILE.npz]",
		Short: "Run a model once, and compare with what is expected",
		Long: "Runs a model on inputs from files, or on random ones. Files are .npy, .npz, .bin\n" +
			"(elements alone, of the model's type and shape) or .pb (TensorProto), named after\n" +
			"the input or numbered as ONNX's test data is (input_0.pb); NAME=FILE names the\n" +
			"input of any file. Characters of names that files cannot bear are written as %2F.\n\n" +
			"A compiled model, .om, runs on an NPU; of its gears, the one that the inputs have.\n" +
			"What ran on npuctl's emulator says so.\n\n" +
			"Exit code 4 means that an output is not as --expect says.",
		Example: "  npuctl infer model.onnx --inputs data/ -o out/\n" +
			"  npuctl infer model.onnx --inputs test_data_set_0 --expect test_data_set_0\n" +
			"  npuctl infer model.onnx --batch 4 --seed 7 --engine ort -o out.npz",
		Args:              takes("MODEL.onnx"),
		ValidArgsFunction: completeModel,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.infer(cmd, f, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.inputs, "inputs", nil, "`file` or folder of inputs; repeatable (default random)")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of random inputs")
	f.sizes.add(flags)
	flags.StringVar(&f.engine, "engine", "", "`name` of the engine: ref, the built-in interpreter; ort, ONNX Runtime; ascend, an NPU (default ref, for an .om ascend)")
	flags.StringVar(&f.library, "ort-lib", "", "ONNX Runtime `library` for --engine ort")
	flags.StringVar(&f.ascendLibrary, "ascend-lib", "", "AscendCL `library`, or its folder, for --engine ascend")
	flags.IntVar(&f.device, "device", 0, "`number` of the NPU for --engine ascend")
	flags.IntVar(&f.threads, "threads", 0, "`cores` to use (default all)")
	flags.StringVar(&f.memory, "max-memory", "", "how much the built-in interpreter may take for intermediate results (`size`; default 8GiB)")
	flags.StringVarP(&f.output, "output", "o", "", "`folder`, or .npz file, for the outputs")
	flags.StringVar(&f.format, "format", "npy", "`form` of the files in the folder: npy, or pb (output_0.pb, as ONNX's test data)")
	flags.StringVar(&f.expect, "expect", "", "`folder` or file of what the outputs should be; else exit with 4")
	flags.Float64Var(&f.rtol, "rtol", 0, "relative tolerance of --expect (default by element type)")
	flags.Float64Var(&f.atol, "atol", 0, "absolute tolerance of --expect, as a share of how large the elements are (default by element type)")
	completeWords(cmd, "engine", engine.Names()...)
	completeWords(cmd, "format", valuefile.Formats()...)
	return cmd
}

func (a *app) infer(cmd *cobra.Command, f *inferFlags, model string) error {
	job, err := f.job(cmd, model)
	if err != nil {
		return err
	}
	say, stop := a.progress()
	job.Progress = say
	result, err := job.Run(cmd.Context())
	stop()
	switch {
	case result == nil:
		return err
	case a.json && err != nil:
		return &detailed{err, result}
	case a.json:
		return a.printJSON(result)
	case a.quiet:
		return err
	}
	return errors.Join(err, a.printInference(result))
}

// job turns the flags into what they mean.
func (f *inferFlags) job(cmd *cobra.Command, model string) (inference.Job, error) {
	j := inference.Job{
		Model: model, Inputs: f.inputs, Seed: f.seed, Engine: f.engine,
		EngineOptions: engine.Options{Threads: f.threads, Library: f.library, AscendLibrary: f.ascendLibrary, Device: f.device},
		Output:        f.output, Format: f.format, Expect: f.expect,
	}
	switch {
	case f.threads < 0:
		return j, fault.New(fault.Usage, "--threads %d: give the number of cores, or 0 for all", f.threads)
	case f.rtol < 0 || f.atol < 0:
		return j, fault.New(fault.Usage, "--rtol %g --atol %g: a tolerance is not negative", f.rtol, f.atol)
	}
	if cmd.Flags().Changed("rtol") || cmd.Flags().Changed("atol") {
		j.Tolerance = &compare.Tolerance{Relative: f.rtol, Absolute: f.atol}
	}
	err := checkNeeds(cmd.Flags(),
		need{"seed", len(f.inputs) == 0, "it makes random inputs, and --inputs gives others; leave one of them out"},
		need{"format", !slices.Contains(valuefile.Formats(), f.format) || f.output != "" && !strings.EqualFold(filepath.Ext(f.output), ".npz"), "it is the form of the files in the folder of -o; name a folder there"},
		need{"rtol", f.expect != "", "it is a tolerance of --expect; add --expect"},
		need{"atol", f.expect != "", "it is a tolerance of --expect; add --expect"},
		need{"ort-lib", f.engine == engine.ONNXRuntime, "the library is for ONNX Runtime; add --engine ort"},
	)
	if err != nil {
		return j, err
	}
	if j.EngineOptions.MaxBytes, err = parseBytes("--max-memory", f.memory); err != nil {
		return j, err
	}
	j.Sizes, err = f.sizes.specialization()
	return j, err
}

func (a *app) printInference(r *inference.Result) error {
	p := a.palette()
	w := labelled{a.out, p}
	w.line("engine", "%s", r.Engine)
	if r.Random {
		sizes := ""
		if r.Sizes != "" {
			sizes = ", " + terminal.Clean(r.Sizes)
		}
		w.line("inputs", "random, seed %d%s", r.Seed, sizes)
	}
	for i, table := range []terminal.Table{inputTable(r.Inputs), outputTable(r.Outputs), comparisonTable(r.Comparisons, p)} {
		if len(table.Rows) == 0 && i != 1 {
			continue
		}
		if err := table.Write(a.out); err != nil {
			return err
		}
	}
	w.line("time", "%s to load, %s to run", seconds(r.LoadSeconds), seconds(r.RunSeconds))
	return nil
}

func seconds(s float64) string { return terminal.Duration(time.Duration(s * float64(time.Second))) }

func inputTable(inputs []inference.Port) terminal.Table {
	t := terminal.Table{Header: []string{"input", "type"}}
	for _, in := range inputs {
		t.Rows = append(t.Rows, []string{terminal.Clean(in.Name), terminal.Clean(in.Type)})
	}
	return t
}

func outputTable(outputs []inference.Output) terminal.Table {
	t := terminal.Table{Header: []string{"output", "type", "min", "mean", "max", "file"}, Right: []int{2, 3, 4}}
	for _, o := range outputs {
		row := []string{terminal.Clean(o.Name), terminal.Clean(o.Type), number(o.Min), number(o.Mean), number(o.Max), terminal.Clean(o.File)}
		if o.NotFinite > 0 {
			row[1] += fmt.Sprintf(", %s not finite", terminal.Count(int64(o.NotFinite)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func number(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.5g", *x)
}

func comparisonTable(list []inference.Comparison, p terminal.Palette) terminal.Table {
	t := terminal.Table{Header: []string{"output", "as expected", "cosine", "max-abs", "differing", "first difference"}, Right: []int{2, 3, 4}}
	for _, c := range list {
		verdict := p.Good("yes")
		if !c.Equal {
			verdict = p.Bad("no")
		}
		t.Rows = append(t.Rows, []string{
			terminal.Clean(c.Output), verdict, fmt.Sprintf("%.6f", c.Cosine), fmt.Sprintf("%.3g", c.MaxAbs),
			fmt.Sprintf("%s of %s", terminal.Count(int64(c.Differing)), terminal.Count(int64(c.Elements))), terminal.Clean(c.Text()),
		})
	}
	return t
}
