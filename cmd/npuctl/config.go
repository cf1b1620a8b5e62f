package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/soc"
)

// configFlags are the flags of `npuctl config` as they are typed.
type configFlags struct {
	job       generate.Job
	sizes     sizeFlags
	version   int64
	maxBatch  int64
	preferred []int32
	devices   string
	soc       string
	delay     time.Duration
	diff      bool
}

func newConfigCommand(a *app) *cobra.Command {
	f := &configFlags{}
	cmd := &cobra.Command{
		Use:   "config MODEL.onnx [-o REPOSITORY]",
		Short: "Make a Triton model repository of a model",
		Long: "Writes REPOSITORY/NAME/VERSION/model.onnx and REPOSITORY/NAME/config.pbtxt for a Triton\n" +
			"server with the Ascend GE backend (npu_ge), or for onnxruntime. Names, types and dims\n" +
			"come from the model; every choice is explained by a comment in the file. What is\n" +
			"written passes npuctl validate.\n\n" +
			"Open dims stay open, but for what --batch, --dim and --input-shape fix. --gears makes\n" +
			"a graph for several sizes, --static demands one without open dims. A config that is\n" +
			"there and says something else is replaced only with --force.",
		Example: "  npuctl config model.onnx -o models --gears 1,2,4,8 --max-queue-delay 2ms\n" +
			"  npuctl config model.onnx -o models --static --batch 1 --devices 0,1 --instances 8\n" +
			"  npuctl config model.onnx -o models --backend onnxruntime --diff",
		Args:              takes("MODEL"),
		ValidArgsFunction: completeModel,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.config(cmd, f, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func (f *configFlags) add(cmd *cobra.Command) {
	flags, j := cmd.Flags(), &f.job
	flags.SortFlags = false
	flags.StringVarP(&j.Repository, "output", "o", "repository", "`folder` of the repository")
	flags.StringVar(&j.Name, "name", "", "`name` of the model in the server (default that of the file)")
	flags.Int64Var(&f.version, "version", 1, "`number` of the version folder")
	flags.StringVar(&j.Backend, "backend", generate.GE, "`backend`: npu_ge, onnxruntime")
	flags.BoolVar(&j.Static, "static", false, "demand that every dim but the batch is known, else exit with 4 and say what is not")
	flags.StringVar(&j.Gears, "gears", "", "`sizes` to make the graph for: 1,2,4,8 or 262;326 or 224,224;336,336")
	flags.BoolVar(&j.Dynamic, "dynamic", false, "leave open dims open (what happens without --gears and --static)")
	f.sizes.add(flags)
	flags.Int64Var(&f.maxBatch, "max-batch-size", 0, "largest batch (`N`); 0 writes the batch into the dims (default 8 or the largest gear, where the model has a batch)")
	flags.Int32SliceVar(&f.preferred, "preferred", nil, "`sizes` at which a batch is sent at once (default the largest batch)")
	flags.DurationVar(&f.delay, "max-queue-delay", 0, "how long a request waits for others: a `time` such as 500us or 2ms")
	flags.BoolVar(&j.NoBatching, "no-batching", false, "do not group requests")
	flags.IntVar(&j.Instances, "instances", 1, "how many instances run (`N`)")
	flags.StringVar(&f.devices, "devices", "", "NPUs or GPUs to run on: `0,1`; cpu, with onnxruntime (default all)")
	flags.IntVar(&j.Streams, "streams", 0, "streams on each NPU (`N`; default from --instances and --devices)")
	flags.StringVar(&j.Precision, "precision", "", "`mode` of precision_mode_v2 or precision_mode: fp16, origin, mixed_float16 …")
	flags.StringVar(&j.AICoreNum, "aicore-num", "", "`cores` to use: cube|vector as 12|10, or one number on chips with one kind")
	flags.StringVar(&j.VersionPolicy, "version-policy", "latest", "which versions are served: `latest`, latest:N, all, specific:1,3")
	flags.StringVar(&f.soc, "soc", "", "hold the plan against this `chip`: Ascend910B3")
	flags.BoolVar(&j.Link, "link", false, "make hard links of the model's files, not copies")
	flags.BoolVar(&f.diff, "diff", false, "print how config.pbtxt would change, and write nothing")
	flags.BoolVar(&j.Force, "force", false, "replace files that differ")
	completeWords(cmd, "backend", generate.Backends()...)
	completeWords(cmd, "precision", compilation.PrecisionModes()...)
}

func (a *app) config(cmd *cobra.Command, f *configFlags, model string) error {
	job, err := f.complete(cmd, model)
	if err != nil {
		return err
	}
	say, stop := a.progress()
	say("reading " + filepath.Base(model))
	r, err := job.Run(cmd.Context())
	stop()
	switch {
	case err != nil && r != nil:
		return &detailed{err, r}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(r)
	case f.diff:
		for line := range strings.Lines(r.Diff) {
			fmt.Fprintln(a.out, terminal.Clean(strings.TrimSuffix(line, "\n")))
		}
		return nil
	case a.quiet:
		return nil
	}
	return a.printConfig(r)
}

// complete turns the flags into a job.
func (f *configFlags) complete(cmd *cobra.Command, model string) (job generate.Job, err error) {
	job = f.job
	job.Model, job.Version, job.MaxQueueDelay, job.Preview = model, f.version, f.delay, f.diff
	if job.Version < 1 {
		return job, fault.New(fault.Usage, "--version %d: versions count from 1", job.Version)
	}
	if job.Instances < 1 {
		return job, fault.New(fault.Usage, "--instances %d: give 1 or more", job.Instances)
	}
	if cmd.Flags().Changed("streams") && job.Streams < 1 {
		return job, fault.New(fault.Usage, "--streams %d: give 1 or more", job.Streams)
	}
	if cmd.Flags().Changed("max-batch-size") {
		if f.maxBatch < 0 || f.maxBatch > math.MaxInt32 {
			return job, fault.New(fault.Usage, "--max-batch-size %d: give 0 to %d", f.maxBatch, math.MaxInt32)
		}
		size := int32(f.maxBatch)
		job.MaxBatch = &size
	}
	if cmd.Flags().Changed("preferred") {
		job.Preferred = f.preferred
	}
	if job.Devices, job.CPU, err = parseDevices(f.devices); err != nil {
		return job, err
	}
	if f.soc != "" {
		chip, err := soc.Lookup(f.soc)
		if err != nil {
			return job, fault.New(fault.Usage, "--soc: %w", err)
		}
		job.Chip = &chip
	}
	job.Sizes, err = f.sizes.specialization()
	return job, err
}

// parseDevices reads 0,1 or cpu.
func parseDevices(text string) (ids []int, cpu bool, err error) {
	if text == "" || text == "cpu" {
		return nil, text == "cpu", nil
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 15)
		if err != nil {
			return nil, false, fault.New(fault.Usage, "--devices %s: give numbers from 0 up, as in 0,1, or cpu", text)
		}
		ids = append(ids, int(n))
	}
	return ids, false, nil
}

// printConfig tells people what was written.
func (a *app) printConfig(r *generate.Result) error {
	w := labelled{a.out, a.palette()}
	fmt.Fprintf(a.out, "%s: %s, %s\n", w.p.Bold(terminal.Clean(r.Config)), r.Backend, formText(r))
	t := terminal.Table{Header: []string{"", "name", "type", "dims"}}
	for _, side := range []struct {
		label   string
		tensors []generate.Tensor
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		for _, v := range side.tensors {
			t.Rows = append(t.Rows, []string{side.label, terminal.Clean(v.Name), v.Type, strings.Trim(fmt.Sprint(v.Dims), "[]")})
		}
	}
	if err := t.Write(a.out); err != nil {
		return err
	}
	for _, file := range r.Files {
		w.line(file.How, "%s, %s", terminal.Clean(file.Path), terminal.Bytes(file.Bytes))
	}
	w.list("note", cleaned(r.Notes))
	for _, f := range r.Findings {
		paint := map[findings.Severity]func(string) string{findings.Error: w.p.Bad, findings.Warning: w.p.Warn, findings.Note: w.p.Faint}[f.Severity]
		w.line(f.Severity.String(), "%s", paint(terminal.Clean(fmt.Sprintf("%s; %s (%s)", f.Message, f.Fix, f.Rule))))
	}
	if !r.Written {
		w.line("unchanged", "all of it was there already")
	}
	return nil
}

func formText(r *generate.Result) string {
	text := string(r.Form)
	if len(r.Gears) > 0 {
		text = fmt.Sprintf("%d gears", len(r.Gears))
	}
	return fmt.Sprintf("%s, max_batch_size %d", text, r.MaxBatchSize)
}

func cleaned(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = terminal.Clean(l)
	}
	return out
}
