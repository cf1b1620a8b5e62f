package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/project"
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

	warmup     generate.Warmup
	warmupData []string
	services   serviceFlags

	// project is the project file, and taken the settings of its section serve by the flag
	// that they stand in for.
	project *project.Project
	taken   map[string]string
	// completed is the job of npuctl compile that took over the rest of the file.
	completed compilation.Job
}

func newConfigCommand(a *app) *cobra.Command {
	f := &configFlags{}
	cmd := &cobra.Command{
		Use:   "config [MODEL.onnx] [-o REPOSITORY]",
		Short: "Make a Triton model repository of a model",
		Long: "Writes REPOSITORY/NAME/VERSION/model.onnx and REPOSITORY/NAME/config.pbtxt for a Triton\n" +
			"server with the Ascend GE backend (npu_ge), or for onnxruntime. Names, types and dims\n" +
			"come from the model; every choice is explained by a comment in the file. What is\n" +
			"written passes npuctl validate.\n\n" +
			"npu_ge compiles the file as it stands, so that it gets what npuctl optimize makes of\n" +
			"the model, as npuctl compile gives the compiler; --no-optimize copies it as it is.\n\n" +
			"Open dims stay open, but for what --batch, --dim and --input-shape fix. --gears makes\n" +
			"a graph for several sizes, --static demands one without open dims. What the command\n" +
			"line leaves out comes from npuctl.yaml, and the model from the folder when there is\n" +
			"only one.\n\n" +
			"A config that is there is changed only where a flag or the model demands it: all else\n" +
			"of it stays. --replace-model puts another model beside it, --diff shows the changes,\n" +
			"--force makes it anew and says what is lost. --eas, --kserve and --k8s write what a\n" +
			"cluster needs to serve the repository.",
		Example: "  npuctl config model.onnx -o models --gears 1,2,4,8 --max-queue-delay 2ms\n" +
			"  npuctl config model.onnx -o models --static --batch 1 --devices 0,1 --instances 8\n" +
			"  npuctl config model.onnx -o models --backend onnxruntime --diff\n" +
			"  npuctl config model.onnx -o models --k8s triton.yaml --image IMAGE --storage pvc://models --soc 910B3",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil // npuctl.yaml or the folder says which
			}
			return takes("[MODEL]")(cmd, args)
		},
		ValidArgsFunction: completeModel,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.config(cmd, f, args) },
	}
	f.add(cmd)
	cmd.AddCommand(newConfigEnsembleCommand(a), newConfigPythonCommand(a))
	return cmd
}

func (f *configFlags) add(cmd *cobra.Command) {
	flags, j := cmd.Flags(), &f.job
	flags.SortFlags = false
	flags.StringVarP(&j.Repository, "output", "o", "repository", "`folder` of the repository")
	flags.StringVar(&j.Name, "name", "", "`name` of the model in the server (default that of the file)")
	flags.Int64Var(&f.version, "version", 1, "`number` of the version folder")
	flags.StringVar(&j.Backend, "backend", "", "`backend`: npu_ge (default), onnxruntime")
	flags.BoolVar(&j.Static, "static", false, "demand that every dim but the batch is known, else exit with 4 and say what is not")
	flags.StringVar(&j.Gears, "gears", "", "`sizes` to make the graph for: 1,2,4,8 or 262;326 or 224,224;336,336, or @PLAN.yaml of npuctl gears")
	flags.BoolVar(&j.Dynamic, "dynamic", false, "leave open dims open (what happens without --gears and --static)")
	f.sizes.add(flags)
	flags.BoolVar(&j.NoOptimize, "no-optimize", false, "copy the model as it is (default: npu_ge gets what npuctl optimize makes of it)")
	flags.Int64Var(&f.maxBatch, "max-batch-size", 0, "largest batch (`N`); 0 writes the batch into the dims (default 8 or the largest gear, where the model has a batch)")
	flags.Int32SliceVar(&f.preferred, "preferred", nil, "`sizes` at which a batch is sent at once (default the largest batch)")
	flags.Var(&waitValue{&f.delay}, "max-queue-delay", "how long a request waits for others: a `time` such as 500us or 2ms")
	flags.BoolVar(&j.NoBatching, "no-batching", false, "do not group requests")
	f.addQueue(flags)
	flags.IntVar(&j.Instances, "instances", 0, "how many instances run (`N`; default 1)")
	flags.StringVar(&f.devices, "devices", "", "NPUs or GPUs to run on: `0,1`; cpu, with onnxruntime (default all)")
	flags.IntVar(&j.Streams, "streams", 0, "streams on each NPU (`N`; default from --instances and --devices)")
	flags.StringVar(&j.Precision, "precision", "", "`mode` of precision_mode_v2 or precision_mode: fp16, origin, mixed_float16 …")
	flags.StringVar(&j.AICoreNum, "aicore-num", "", "`cores` to use: cube|vector as 12|10, or one number on chips with one kind")
	flags.StringVar(&j.Profiling, "profiling", "", "profile the backend: true, or dynamic (`word`) to attach msprof later")
	flags.StringSliceVar(&j.Dump, "dump", nil, "write out graphs, tensors or both: `graph,data`")
	flags.StringVar(&f.warmup.Kind, "warmup", "", "have each instance run every size first, on zeros or random numbers: zero, random (`word`)")
	flags.StringArrayVar(&f.warmupData, "warmup-data", nil, "warm up an input with a file, .npy or plain bytes: `image=cat.npy`; repeatable")
	flags.IntVar(&f.warmup.Count, "warmup-count", 0, "how often each warm-up runs (`N`; default once)")
	flags.StringVar(&j.VersionPolicy, "version-policy", "", "which versions are served: `latest` (default), latest:N, all, specific:1,3")
	flags.StringVar(&f.soc, "soc", "", "hold the plan and its memory against this `chip`: Ascend910B3")
	flags.StringVar(&j.Compiled, "om", "", "take the needs of memory from this compiled model (`file`), not from the graph")
	f.services.add(flags)
	flags.BoolVar(&j.Link, "link", false, "make hard links of the model's files where they go in unchanged, not copies")
	flags.BoolVar(&j.ReplaceModel, "replace-model", false, "put the model in the place of another one, and keep the config")
	flags.BoolVar(&f.diff, "diff", false, "print how config.pbtxt would change, and write nothing")
	flags.BoolVar(&j.Force, "force", false, "replace files that differ, and make the config anew; what that loses is listed")
	completeWords(cmd, "backend", generate.Backends()...)
	completeWords(cmd, "precision", compilation.PrecisionModes()...)
	completeWords(cmd, "warmup", "zero", "random")
	completeWords(cmd, "profiling", "true", "dynamic")
	completeWords(cmd, "dump", "graph", "data", "graph,data")
	completeWords(cmd, "queue-timeout-action", "reject", "delay")
	completeWords(cmd, "protocol", "http", "grpc")
}

// waitValue is a time that a flag gives. One that is too long to be held is the longest,
// so that the flag's own bound is told, and not that a time needs a unit.
type waitValue struct{ *time.Duration }

func (v *waitValue) Type() string { return "duration" }

// String is "0" for none, which help then leaves out.
func (v *waitValue) String() string {
	if v.Duration == nil || *v.Duration == 0 {
		return "0"
	}
	return v.Duration.String()
}

func (v *waitValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil && !longTime.MatchString(text) {
		return err
	}
	if err != nil {
		d = math.MaxInt64
	}
	*v.Duration = d
	return nil
}

// longTime is the grammar of times, whatever their length.
var longTime = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// addQueue adds the flags of requests that wait.
func (f *configFlags) addQueue(flags *pflag.FlagSet) {
	q := &f.job.Queue
	flags.IntVar(&q.Priorities, "priority-levels", 0, "let requests have priorities from 1, the most urgent, to `N`")
	flags.IntVar(&q.DefaultPriority, "default-priority", 0, "priority of requests without one (`N`; default the least urgent)")
	flags.Var(&waitValue{&q.Timeout}, "queue-timeout", "how long a request may wait: a `time` such as 500ms")
	flags.StringVar(&q.Action, "queue-timeout-action", "", "what happens then: reject (default) or delay (`word`)")
	flags.BoolVar(&q.AllowOverride, "allow-timeout-override", false, "let requests ask for a shorter --queue-timeout")
	flags.IntVar(&q.MaxSize, "max-queue-size", 0, "how many requests may wait (`N`; default any number)")
	flags.BoolVar(&q.PreserveOrdering, "preserve-ordering", false, "answer requests in the order in which they came")
}

func (a *app) config(cmd *cobra.Command, f *configFlags, args []string) error {
	job, chosen, err := f.complete(cmd, args)
	if err == nil {
		err = f.services.check(cmd, job)
	}
	if err != nil {
		return f.locate(err)
	}
	job.Beside = func(r *generate.Result) ([]*atomicfile.File, error) { return f.services.begin(job, r) }
	say, stop := a.progress()
	say("reading " + filepath.Base(job.Model))
	job.Progress = say
	r, err := job.Run(cmd.Context())
	stop()
	err = f.locate(err)
	if r != nil {
		r.Chosen = append(r.Chosen, chosen...)
	}
	switch {
	case err != nil && r != nil:
		if f.diff && !a.json {
			a.printDiff(r.Diff) // before what is wrong with it
		}
		return &detailed{err, r}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(r)
	case f.diff:
		a.printDiff(r.Diff)
		return nil
	case a.quiet:
		return nil
	}
	return a.printConfig(r)
}

// locate tells a failure that names a flag for which the project file stands in where the
// file says it.
func (f *configFlags) locate(err error) error {
	return f.completed.Locate(blameServe(err, f.project, f.taken))
}

// complete turns the flags into a job, with what the project file and the folder say.
func (f *configFlags) complete(cmd *cobra.Command, args []string) (job generate.Job, chosen []string, err error) {
	if f.project, err = project.Find("."); err != nil {
		return job, nil, err
	}
	if f.project != nil {
		if chosen, f.taken, err = serveFrom(f.project, cmd.Flags(), f, args); err != nil {
			return job, nil, err
		}
	}
	job = f.job
	job.Version, job.MaxQueueDelay, job.Preview = f.version, f.delay, f.diff
	if err := f.checkNumbers(cmd.Flags(), &job); err != nil {
		return job, nil, err
	}
	if job.Devices, job.CPU, err = parseDevices(f.devices); err != nil {
		return job, nil, err
	}
	if job.Sizes, err = f.sizes.specialization(); err != nil {
		return job, nil, err
	}
	more, err := f.completeFromProject(cmd.Flags(), args, &job)
	if err != nil {
		return job, nil, err
	}
	chosen = slices.Concat(more, chosen)
	if f.soc != "" {
		chip, err := soc.Lookup(f.soc)
		if err != nil {
			return job, nil, fault.New(fault.Usage, "--soc: %w", err)
		}
		job.Chip = &chip
	}
	return job, chosen, nil
}

// checkNumbers takes over the flags that may be given and are not what zero means.
func (f *configFlags) checkNumbers(flags *pflag.FlagSet, job *generate.Job) error {
	for _, n := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"version", job.Version, 1}, {"instances", int64(job.Instances), 1}, {"streams", int64(job.Streams), 1},
		{"max-batch-size", f.maxBatch, 0}, {"warmup-count", int64(f.warmup.Count), 1}, {"priority-levels", int64(job.Queue.Priorities), 1},
		{"default-priority", int64(job.Queue.DefaultPriority), 1}, {"max-queue-size", int64(job.Queue.MaxSize), 1},
	} {
		if flags.Changed(n.flag) && (n.value < n.least || n.value > math.MaxInt32) {
			return fault.New(fault.Usage, "--%s %d: give %d to %d", n.flag, n.value, n.least, math.MaxInt32)
		}
	}
	if flags.Changed("max-batch-size") {
		size := int32(f.maxBatch)
		job.MaxBatch = &size
	}
	if flags.Changed("preferred") {
		job.Preferred = f.preferred
	}
	if flags.Changed("warmup") || len(f.warmupData) > 0 {
		data, err := parsePairs("--warmup-data", f.warmupData, "=", func(s string) (string, error) { return s, nil })
		if err != nil {
			return err
		}
		f.warmup.Data = data
		job.Warmup = &f.warmup
	}
	return checkNeeds(flags, need{"warmup-count", job.Warmup != nil, "nothing warms up: give --warmup or --warmup-data"})
}

// ofCompiling are flags of npuctl compile that a config has no use for.
var ofCompiling = []string{"output", "cann", "keep-dtype", "mixlist", "fusion-switch", "input-format", "output-type", "fp16-input", "atc-arg", "timeout", "jobs"}

// completeFromProject takes the model, its sizes and gears, the chip and options from
// npuctl.yaml or the folder as npuctl compile does, and what is for serving besides.
func (f *configFlags) completeFromProject(flags *pflag.FlagSet, args []string, job *generate.Job) (chosen []string, err error) {
	p := f.project
	if p != nil && job.Backend == generate.ONNXRuntime {
		other := *p // onnxruntime takes the model as it is
		other.Gears, other.Compile, other.Optimize = project.Gears{}, project.Compile{}, project.Optimize{}
		p = &other
	}
	isGiven := func(flag string) bool { return flags.Changed(flag) || slices.Contains(ofCompiling, flag) }
	c := compilation.Job{Models: args, Sizes: job.Sizes, Static: job.Static, Dynamic: job.Dynamic, Gears: job.Gears, NoOptimize: job.NoOptimize}
	if f.soc != "" {
		c.SoCs = []string{f.soc}
	}
	c.Options.Precision, c.Options.AICoreNum = job.Precision, job.AICoreNum
	if chosen, err = c.Complete(".", p, isGiven); err != nil {
		return nil, err
	}
	f.completed = c
	if err := f.checkBind(p, job.Backend, &c); err != nil {
		return nil, err
	}
	job.Model, job.Sizes = c.Models[0], c.Sizes
	job.Static, job.Dynamic, job.Gears = c.Static, c.Dynamic, c.Gears
	job.Precision, job.AICoreNum = c.Options.Precision, c.Options.AICoreNum
	job.NoOptimize, job.Passes = c.NoOptimize, c.Passes
	switch {
	case len(c.SoCs) == 1:
		f.soc = c.SoCs[0]
	case len(c.SoCs) > 1:
		chosen = append(chosen, fmt.Sprintf("no chip: %s names %d, and --soc chooses one", project.FileName, len(c.SoCs)))
	}
	return chosen, nil
}

// checkBind refuses model.bind of the project file where the graph is not written anew:
// what it makes a constant would stay an input.
func (f *configFlags) checkBind(p *project.Project, backend string, c *compilation.Job) error {
	if len(c.Sizes.Bind) == 0 {
		return nil
	}
	reason := ""
	switch {
	case backend == generate.ONNXRuntime:
		reason = "for " + generate.ONNXRuntime + " the model is copied as it is"
	case c.NoOptimize:
		reason = "without optimising the model is copied as it is"
	default:
		return nil
	}
	return fault.New(fault.Input, "%s: model.bind makes an input a constant, but %s", p.Place("model", "bind"), reason).
		With("serve what npuctl optimize makes of the model, or take model.bind out")
}

func isSameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
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
	if err := a.printTensors(r.Inputs, r.Outputs); err != nil {
		return err
	}
	if r.Optimized != nil {
		w.line("optimized", "%s (--no-optimize copies the model as it is)", r.Optimized)
	}
	for _, file := range slices.Concat(r.Files, r.Services) {
		w.line(file.How, "%s, %s", terminal.Clean(file.Path), terminal.Bytes(file.Bytes))
	}
	for _, c := range r.Changes {
		w.line("changed", "%s", terminal.Clean(changeText(c)))
	}
	w.list("lost", lostLines(r.Lost))
	if r.Memory != nil {
		w.list("memory", memoryLines(r.Memory))
	}
	w.list("chosen", cleaned(r.Chosen))
	w.list("note", cleaned(r.Notes))
	w.found(r.Findings)
	if !r.Written {
		w.line("unchanged", "all of it was there already")
	}
	return nil
}

// mostLost is how many lines are listed of a config that was made anew.
const mostLost = 12

func lostLines(lost []generate.Line) (lines []string) {
	for _, l := range lost[:min(len(lost), mostLost)] {
		lines = append(lines, terminal.Clean(fmt.Sprintf("line %d: %s", l.Number, terminal.Shorten(l.Text, 100))))
	}
	if n := len(lost) - mostLost; n > 0 {
		lines = append(lines, terminal.Counted(n, "more line")+" (--json lists all)")
	}
	return lines
}

// printDiff prints a unified diff of files.
func (a *app) printDiff(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(a.out, terminal.Clean(strings.TrimSuffix(line, "\n")))
	}
}

// printTensors prints what a served model takes and gives.
func (a *app) printTensors(inputs, outputs []generate.Tensor) error {
	t := terminal.Table{Header: []string{"", "name", "type", "dims"}}
	for _, side := range []struct {
		label   string
		tensors []generate.Tensor
	}{{"input", inputs}, {"output", outputs}} {
		for _, v := range side.tensors {
			t.Rows = append(t.Rows, []string{side.label, terminal.Clean(v.Name), v.Type, strings.Trim(fmt.Sprint(v.Dims), "[]")})
		}
	}
	return t.Write(a.out)
}

// found tells findings, a line each.
func (l labelled) found(all []findings.Finding) {
	for _, f := range all {
		paint := map[findings.Severity]func(string) string{findings.Error: l.p.Bad, findings.Warning: l.p.Warn, findings.Note: l.p.Faint}[f.Severity]
		l.line(f.Severity.String(), "%s", paint(terminal.Clean(fmt.Sprintf("%s; %s (%s)", f.Message, f.Fix, f.Rule))))
	}
}

func changeText(c generate.Change) string {
	c.From, c.To = differing(c.From, c.To)
	switch {
	case c.From == "":
		return fmt.Sprintf("%s is now %s (%s)", c.Field, terminal.Shorten(c.To, 100), c.Why)
	case c.To == "":
		return fmt.Sprintf("%s %s is gone (%s)", c.Field, terminal.Shorten(c.From, 100), c.Why)
	}
	return fmt.Sprintf("%s: %s, before %s (%s)", c.Field, terminal.Shorten(c.To, 100), terminal.Shorten(c.From, 100), c.Why)
}

// differing cuts off what two long values begin with alike, so that what differs is seen
// when they are shortened.
func differing(a, b string) (string, string) {
	const shown, before = 100, 30
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	if max(len(x), len(y)) <= shown || same <= before || same == max(len(x), len(y)) {
		return a, b
	}
	cut := func(r []rune) string {
		rest := r[same-before:]
		if len(rest) > shown-1 {
			rest = append(slices.Clone(rest[:shown-2]), '…')
		}
		return "…" + string(rest)
	}
	return cut(x), cut(y)
}

// memoryLines tell what the model takes on each NPU, with the parts of the sum.
func memoryLines(m *generate.Memory) []string {
	least := ""
	if len(m.Open) > 0 || m.Unknown > 0 {
		least = "at least "
	}
	of := ""
	if m.ChipBytes > 0 {
		of = fmt.Sprintf(" of the %s of %s", terminal.Bytes(m.ChipBytes), m.Chip)
	}
	from := "estimated from the graph"
	if m.Source != "graph" {
		from = "planned in " + m.Source
	}
	if m.Emulated {
		from += ", emulated"
	}
	lines := []string{
		fmt.Sprintf("%s%s on each NPU%s, for %s (%s)", least, terminal.Bytes(m.TotalBytes), of, m.Sizes, from),
		fmt.Sprintf("weights %s, %s; %s of work, %s of inputs and %s of outputs for %s", terminal.Bytes(m.WeightBytes), copiesText(m.WeightCopies),
			terminal.Bytes(m.WorkBytes), terminal.Bytes(m.InputBytes), terminal.Bytes(m.OutputBytes), streamsText(m.Streams)),
	}
	if len(m.Open) > 0 {
		lines = append(lines, "counted as 1, and what follows from it with it, for nothing says how large it is: "+strings.Join(m.Open, ", "))
	}
	if m.Unknown > 0 {
		lines = append(lines, fmt.Sprintf("not counted, for its size depends on data: %s in between", terminal.Counted(m.Unknown, "result")))
	}
	return cleaned(lines)
}

func streamsText(n int) string {
	if n == 1 {
		return "the one stream"
	}
	return fmt.Sprintf("each of %d streams", n)
}

func copiesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
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
