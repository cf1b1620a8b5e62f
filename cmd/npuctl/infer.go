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
	saveInputs     string
	expect         string
	rtol, atol     float64
	timeout        timeLimit
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
			"A compiled model, .om, runs on an NPU; of its gears, the one that the inputs have, or\n" +
			"that --batch, --dim or --input-shape choose. What npuctl's emulator compiled runs on\n" +
			"it, and says so.\n\n" +
			"Exit code 4 means that an output is not as --expect says, or that --timeout has passed.",
		Example: "  npuctl infer model.onnx --inputs data/ -o out/\n" +
			"  npuctl infer model.onnx --inputs test_data_set_0 --expect test_data_set_0\n" +
			"  npuctl infer model.onnx --batch 4 --seed 7 --engine ort -o out.npz\n" +
			"  npuctl infer model.onnx --batch 1 --save-inputs inputs -o expected\n" +
			"  npuctl infer model.om --inputs inputs --expect expected --rtol 0.01 --atol 0.01",
		Args:              takes("MODEL"),
		ValidArgsFunction: completeAnyModel,
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
	flags.StringVar(&f.memory, "max-memory", "", "how much the built-in interpreter may take for intermediate results (`size`; default 8GiB; 16GiB for one of them whatever it is)")
	flags.StringVarP(&f.output, "output", "o", "", "`folder`, or .npz file, for the outputs")
	flags.StringVar(&f.saveInputs, "save-inputs", "", "`folder`, or .npz file, for the inputs that were used: for another run on the same")
	flags.StringVar(&f.format, "format", "npy", "`form` of the files in the folder: npy, or pb (input_0.pb, output_0.pb, as ONNX's test data)")
	flags.StringVar(&f.expect, "expect", "", "`folder` or file of what the outputs should be; else exit with 4")
	flags.Float64Var(&f.rtol, "rtol", 0, "relative tolerance of --expect (default by element type)")
	flags.Float64Var(&f.atol, "atol", 0, "absolute tolerance of --expect, as a share of how large the elements are (default by element type)")
	f.timeout.add(flags)
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
	job.Progress, job.Emulator = say, emulatorFolder(say)
	result, err := within(cmd.Context(), f.timeout, job.Run)
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
		Output:        f.output, SaveInputs: f.saveInputs, Format: f.format, Expect: f.expect,
	}
	switch {
	case f.threads < 0:
		return j, fault.New(fault.Usage, "--threads %d: give the number of cores, or 0 for all", f.threads)
	case f.rtol < 0 || f.atol < 0:
		return j, fault.New(fault.Usage, "--rtol %g --atol %g: a tolerance is not negative", f.rtol, f.atol)
	}
	if err := f.timeout.check(cmd.Flags()); err != nil {
		return j, err
	}
	if cmd.Flags().Changed("rtol") || cmd.Flags().Changed("atol") {
		j.Tolerance = &compare.Tolerance{Relative: f.rtol, Absolute: f.atol}
	}
	err := checkNeeds(cmd.Flags(),
		need{"seed", len(f.inputs) == 0, "it makes random inputs, and --inputs gives others; leave one of them out"},
		need{"format", !slices.Contains(valuefile.Formats(), f.format) || isFolder(f.output) || isFolder(f.saveInputs), "it is the form of the files in the folders of -o and --save-inputs; name a folder there"},
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

// isFolder says whether values that are written to a path go into a folder.
func isFolder(path string) bool { return path != "" && !strings.EqualFold(filepath.Ext(path), ".npz") }

func (a *app) printInference(r *inference.Result) error {
	p := a.palette()
	w := labelled{a.out, p}
	w.line("engine", "%s", terminal.Clean(r.Engine))
	for _, note := range r.Notes {
		w.line("note", "%s", p.Warn(terminal.Clean(note)))
	}
	if r.Random {
		sizes := ""
		if r.Sizes != "" {
			sizes = ", " + terminal.Clean(r.Sizes)
		}
		w.line("inputs", "%s, seed %d%s", r.Values, r.Seed, sizes)
	}
	if r.Gear != "" {
		how := "--batch, --dim or --input-shape chooses"
		if !r.Random {
			how = "as the inputs have it"
		}
		w.line("gear", "%s; there are %s (%s)", terminal.Clean(r.Gear), terminal.Clean(r.Gears), how)
	}
	for i, table := range []terminal.Table{inputTable(r.Inputs), outputTable(r.Outputs), comparisonTable(r.Comparisons, p)} {
		if len(table.Rows) == 0 && i != 1 {
			continue
		}
		if err := table.Write(a.out); err != nil {
			return err
		}
	}
	w.line("time", "%s to load, %s to run%s", seconds(r.LoadSeconds), seconds(r.RunSeconds), emulatedMark(r.Emulated))
	return nil
}

func seconds(s float64) string { return terminal.Duration(time.Duration(s * float64(time.Second))) }

func inputTable(inputs []inference.Input) terminal.Table {
	t := terminal.Table{Header: []string{"input", "type"}}
	isSaved := slices.ContainsFunc(inputs, func(in inference.Input) bool { return in.File != "" })
	if isSaved {
		t.Header = append(t.Header, "file")
	}
	for _, in := range inputs {
		row := []string{terminal.Clean(in.Name), terminal.Clean(in.Type)}
		if isSaved {
			row = append(row, terminal.Clean(in.File))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func outputTable(outputs []inference.Output) terminal.Table {
	t := terminal.Table{Header: []string{"output", "type", "min", "mean", "max", "file"}, Right: []int{2, 3, 4}}
	// A column that is empty most often is there only when it is not.
	hasOthers := slices.ContainsFunc(outputs, func(o inference.Output) bool { return o.NotFinite > 0 })
	if hasOthers {
		t.Header, t.Right = slices.Insert(t.Header, 5, "not finite"), append(t.Right, 5)
	}
	for _, o := range outputs {
		row := []string{terminal.Clean(o.Name), terminal.Clean(o.Type), number(o.Min), number(o.Mean), number(o.Max), terminal.Clean(o.File)}
		if hasOthers {
			row = slices.Insert(row, 5, terminal.Count(int64(o.NotFinite)))
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
		cosine, maxAbs := fmt.Sprintf("%.6f", c.Cosine), fmt.Sprintf("%.3g", c.MaxAbs)
		if c.Finite == 0 { // nothing was measured
			cosine, maxAbs = "-", "-"
		}
		t.Rows = append(t.Rows, []string{
			terminal.Clean(c.Output), verdict, cosine, maxAbs,
			fmt.Sprintf("%s of %s", terminal.Count(int64(c.Differing)), terminal.Count(int64(c.Elements))), terminal.Clean(c.Text()),
		})
	}
	return t
}
