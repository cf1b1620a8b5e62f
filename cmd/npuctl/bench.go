package main

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/bench/engine/ort"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/report"
	"github.com/npuctl/npuctl/internal/benchmark"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/project"
)

// benchFlags are the flags of `npuctl bench` as they are typed.
type benchFlags struct {
	sizes sizeFlags
	job   benchmark.Job

	concurrency, rate, ramp string
	poisson                 bool
	weights, devices, cores string
	preferred, slo          string
	regression              string
	null                    string
}

func newBenchCommand(a *app) *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench [MODEL|FOLDER]... [--concurrency N|--rate N]",
		Short: "Measure a served model under load, and say what to believe of it",
		Long: "Serves a model inside this process, with the queue, the batches and the instances of a\n" +
			"Triton server, sends requests to it, and says what a client would see: latencies from\n" +
			"the time a request was due, throughput, where the time goes, which batches formed.\n\n" +
			"A model is an .onnx, which ONNX Runtime or the built-in interpreter runs, an .om, which\n" +
			"runs on an NPU (or the emulator, and then says so), or the folder of a model in a Triton\n" +
			"repository, which is served as its config.pbtxt says. Without one it is that of\n" +
			"npuctl.yaml, or the only one here.\n\n" +
			"A level ends when --duration and --requests are reached and, with --until-stable, it is\n" +
			"stable. Figures that are not to be believed are marked: not stable, overloaded, too few\n" +
			"requests, a load generator that was late itself.\n\n" +
			"Exit code 4 means that --slo holds at no rate, that a figure is worse than in --baseline\n" +
			"by more than --max-regression, or that --verify found another answer under load.",
		Example: "  npuctl bench model.onnx --concurrency 8\n" +
			"  npuctl bench model.om --concurrency 1:32:x2 --until-stable --out run\n" +
			"  npuctl bench models/net --rate 100:500:100 --poisson --deadline 50ms\n" +
			"  npuctl bench models/net --slo p99=50ms\n" +
			"  npuctl bench model.onnx --concurrency 8 --baseline main.json --max-regression 5%\n" +
			"  npuctl bench model.onnx --concurrency 8 --compare a.pbtxt,b.pbtxt",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"onnx", "om"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.bench(cmd, f, args) },
	}
	f.add(cmd)
	return cmd
}

func (f *benchFlags) add(cmd *cobra.Command) {
	flags, j := cmd.Flags(), &f.job
	flags.SortFlags = false
	flags.StringVar(&f.concurrency, "concurrency", "", "`clients` that each send a request when the last one is answered: 8, 1,2,8, 1:32:x2 (default 1)")
	flags.StringVar(&f.rate, "rate", "", "requests a second, whatever became of those before: `100`, or 10:50:10")
	flags.BoolVar(&f.poisson, "poisson", false, "requests of --rate and --slo come at random, and not evenly")
	flags.StringVar(&f.ramp, "ramp", "", "a rate that goes evenly from one to another during the level: `10:200`")
	flags.StringVar(&j.Load.Trace, "trace", "", "`file` of times in milliseconds, the first column of a CSV, to send requests at")
	flags.Float64Var(&j.Load.Speed, "speed", 1, "how many `times` as fast --trace is played")
	flags.IntVar(&j.Load.InFlight, "in-flight", benchmark.DefaultInFlight, "most requests under way with --rate, --ramp, --trace and --slo (`N`)")
	flags.DurationVar(&j.Load.Duration, "duration", 10*time.Second, "`time` of each level, after the warm-up")
	flags.Int64Var(&j.Load.MinRequests, "requests", 0, "requests of each level at least (`N`)")
	flags.Int64Var(&j.Load.MaxRequests, "max-requests", 0, "requests of each level at most (`N`; default no limit)")
	flags.BoolVar(&j.Load.UntilStable, "until-stable", false, "go on until throughput and latency hold still, up to --max-duration")
	flags.DurationVar(&j.Load.MaxDuration, "max-duration", 0, "longest `time` of a level with --requests or --until-stable (default 6 times --duration)")
	flags.DurationVar(&j.Load.Warmup, "warmup", time.Second, "`time` of each level that counts for nothing")
	flags.DurationVar(&j.Load.Deadline, "deadline", 0, "latest `time` of an answer that counts for the goodput")

	flags.StringArrayVar(&j.Requests.Files, "inputs", nil, "`file` or folder of inputs, a folder of folders, or JSON as perf_analyzer takes it; repeatable (default random)")
	flags.BoolVar(&j.Requests.Zeros, "zeros", false, "inputs are zeros")
	flags.IntVar(&j.Requests.Distinct, "distinct", benchmark.DefaultDistinct, "how many different random requests there are of each shape (`N`)")
	flags.Uint64Var(&j.Requests.Seed, "seed", 1, "`number` that chance begins with")
	f.sizes.add(flags)
	flags.StringVar(&j.Requests.Shapes, "shapes", "", "`file` of sizes and how often each comes: CSV with a column for each open dim, and weight")

	flags.StringVar(&j.Serving.Config, "config", "", "`file` with the server's configuration: config.pbtxt (default that of the folder)")
	flags.IntVar(&j.Serving.MaxBatch, "max-batch", 0, "items of the largest batch, and switch the batcher on (`N`)")
	flags.StringVar(&f.preferred, "preferred", "", "batch `sizes` that are sent at once: 4,8")
	flags.DurationVar(&j.Serving.Delay, "delay", 0, "for how long the oldest request of a batch waits for others (`time`)")
	flags.IntVar(&j.Serving.QueueSize, "queue", 0, "requests that may wait; others are refused (`N`; default no limit)")
	flags.DurationVar(&j.Serving.QueueTimeout, "queue-timeout", 0, "longest `time` that a request may wait")
	flags.IntVar(&j.Serving.Instances, "instances", 0, "instances on all devices together (`N`; default those of the config, or 1)")
	flags.StringVar(&f.devices, "devices", "", "`numbers` of the NPUs to use: 0,1 (default those of the config, or 0)")
	flags.BoolVar(&j.Raw, "raw", false, "measure the engine alone: an instance for each client, no queue, no batches")
	flags.StringVar(&f.weights, "weights", "", "how often each of several models is called: `3,1` (default equally)")

	flags.StringVar(&j.Engine.Name, "engine", "", "`name` of the engine: ascend, ort, ref, null (default the one that suits the model)")
	flags.StringVar(&j.Engine.Library, "ort-lib", "", "ONNX Runtime `library` for --engine ort")
	flags.StringVar(&j.Engine.AscendLibrary, "ascend-lib", "", "AscendCL `library`, or its folder, for --engine ascend")
	flags.IntVar(&j.Engine.Threads, "threads", 0, "`cores` that an instance on the CPU uses (default all)")
	flags.StringVar(&j.Engine.Level, "ort-level", "all", "how far ONNX Runtime rewrites the graph: `level` none, basic, extended, all")
	flags.BoolVar(&j.Engine.SessionPerInstance, "ort-sessions", false, "each instance of ONNX Runtime has threads and weights of its own")
	flags.StringVar(&f.cores, "aicore-num", "", "`cube|vector` cores that each instance may use on the NPU: 12|10")
	flags.StringVar(&f.null, "null", "", "`times` of --engine null: 4ms, or 4ms+0.5ms for each item")

	flags.BoolVar(&j.Verify, "verify", false, "first hold every answer under load against that of the request alone; else exit with 4")
	flags.StringVar(&f.slo, "slo", "", "search for the highest rate at which this `goal` holds: p99=50ms, or p99=50ms,errors=0.1%")
	flags.StringSliceVar(&j.Compare, "compare", nil, "two `configurations` to measure in turns: a.pbtxt,b.pbtxt")
	flags.IntVar(&j.Rounds, "rounds", 500, "rounds of --compare (`N`)")
	flags.StringVar(&j.Baseline, "baseline", "", "`file` with an earlier report (--json) to hold this run against; else exit with 4")
	flags.StringVar(&f.regression, "max-regression", "5%", "by which `share` a figure may be worse than in --baseline")
	flags.StringVarP(&j.Out, "out", "o", "", "new `folder` for the records of all requests, and the report as text, JSON, CSV and a page")
	completeWords(cmd, "engine", benchmark.EngineNames()...)
	completeWords(cmd, "ort-level", ort.Levels()...)
}

func (a *app) bench(cmd *cobra.Command, f *benchFlags, models []string) error {
	job, err := f.read(cmd, models)
	if err != nil {
		return err
	}
	p, err := project.Find(".")
	if err != nil {
		return err
	}
	if job.Remarks, err = job.Complete(".", p, cmd.Flags().Changed); err != nil {
		return err
	}
	say, stop := a.progress()
	job.Progress = say
	job.Engine.Emulator = emulatorFolder(say)
	result, err := job.Run(cmd.Context())
	stop()
	if result == nil {
		return err
	}
	return a.printBench(result, err)
}

// printBench prints a report, whatever else has gone wrong.
func (a *app) printBench(r *report.Report, failure error) error {
	switch {
	case a.json && failure != nil:
		return &detailed{failure, r}
	case a.json:
		return a.printJSON(r)
	case a.quiet:
		return failure
	}
	return errors.Join(failure, r.WriteText(a.out, a.palette()))
}

// read turns the flags into what they mean.
func (f *benchFlags) read(cmd *cobra.Command, models []string) (benchmark.Job, error) {
	j := f.job
	j.Models = models
	j.Version, j.Commit, j.Engine.Version = versionText(), commitOf(), versionText()
	j.Options = append([]string{}, cmd.Flags().Args()...)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			j.Options = append(j.Options, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	j.Load.Seed = j.Requests.Seed
	if f.poisson {
		j.Load.Arrivals = benchmark.Poisson
	}
	for _, read := range []func(*benchmark.Job) error{f.readLoad, f.readServing, f.readGoals} {
		if err := read(&j); err != nil {
			return j, err
		}
	}
	if j.Load.Trace != "" { // a trace has its own end, and its first requests count
		if !cmd.Flags().Changed("duration") {
			j.Load.Duration = 0
		}
		if !cmd.Flags().Changed("warmup") {
			j.Load.Warmup = 0
		}
	}
	var err error
	if j.Requests.Sizes, err = f.sizes.specialization(); err != nil {
		return j, err
	}
	return j, f.check(cmd, &j)
}

func (f *benchFlags) readLoad(j *benchmark.Job) (err error) {
	if f.concurrency != "" {
		if j.Load.Concurrency, err = load.ParseCounts(f.concurrency, math.MaxInt32); err != nil {
			return fault.New(fault.Usage, "--concurrency %s: %w", f.concurrency, err)
		}
	}
	if f.rate != "" {
		if j.Load.Rates, err = load.ParseLevels(f.rate); err != nil {
			return fault.New(fault.Usage, "--rate %s: %w", f.rate, err)
		}
	}
	if f.ramp != "" {
		from, to, ok := strings.Cut(f.ramp, ":")
		j.Load.RampFrom, err = strconv.ParseFloat(from, 64)
		if err == nil && ok {
			j.Load.RampTo, err = strconv.ParseFloat(to, 64)
		}
		if err != nil || !ok || !(j.Load.RampTo > 0) {
			return fault.New(fault.Usage, "--ramp %s: give two rates, as in 10:200", f.ramp)
		}
	}
	return nil
}

func (f *benchFlags) readServing(j *benchmark.Job) (err error) {
	lists := []struct {
		flag, text string
		add        func(n int)
		least      int
	}{
		{"--preferred", f.preferred, func(n int) { j.Serving.Preferred = append(j.Serving.Preferred, n) }, 1},
		{"--devices", f.devices, func(n int) { j.Serving.Devices = append(j.Serving.Devices, n) }, 0},
	}
	for _, l := range lists {
		if l.text == "" {
			continue
		}
		for word := range strings.SplitSeq(l.text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < l.least {
				return fault.New(fault.Usage, "%s %s: %q is no number of at least %d", l.flag, l.text, word, l.least)
			}
			l.add(n)
		}
	}
	if f.weights != "" {
		for word := range strings.SplitSeq(f.weights, ",") {
			w, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil {
				return fault.New(fault.Usage, "--weights %s: %q is no number", f.weights, word)
			}
			j.Weights = append(j.Weights, w)
		}
	}
	if f.cores != "" {
		if j.Engine.CubeCores, j.Engine.VectorCores, err = parseCores(f.cores); err != nil {
			return fault.New(fault.Usage, "--aicore-num %s: give numbers of cores, as in 12|10", f.cores)
		}
	}
	if f.null != "" {
		fixed, item, perItem := strings.Cut(f.null, "+")
		if j.Engine.Fixed, err = time.ParseDuration(fixed); err == nil && perItem {
			j.Engine.Item, err = time.ParseDuration(item)
		}
		if err != nil || j.Engine.Fixed < 0 || j.Engine.Item < 0 {
			return fault.New(fault.Usage, "--null %s: give a time, as in 4ms, or two, as in 4ms+0.5ms", f.null)
		}
	}
	return nil
}

func (f *benchFlags) readGoals(j *benchmark.Job) (err error) {
	if f.slo != "" {
		goal, err := measure.ParseGoal(f.slo)
		if err != nil {
			return fault.New(fault.Usage, "--slo %s: %w", f.slo, err)
		}
		j.Goal = &goal
	}
	if j.MaxRegression, err = measure.ParseShare(f.regression); err != nil {
		return fault.New(fault.Usage, "--max-regression %s: %w", f.regression, err)
	}
	return nil
}

// check refuses flags that would be ignored, and numbers that are none.
func (f *benchFlags) check(cmd *cobra.Command, j *benchmark.Job) error {
	for _, n := range []struct {
		flag  string
		value int64
	}{
		{"max-batch", int64(j.Serving.MaxBatch)}, {"queue", int64(j.Serving.QueueSize)}, {"instances", int64(j.Serving.Instances)}, {"threads", int64(j.Engine.Threads)},
		{"distinct", int64(j.Requests.Distinct)}, {"requests", j.Load.MinRequests}, {"max-requests", j.Load.MaxRequests}, {"in-flight", int64(j.Load.InFlight)}, {"rounds", int64(j.Rounds)},
		{"duration", int64(j.Load.Duration)}, {"max-duration", int64(j.Load.MaxDuration)}, {"queue-timeout", int64(j.Serving.QueueTimeout)}, {"deadline", int64(j.Load.Deadline)},
	} {
		if cmd.Flags().Changed(n.flag) && (n.value < 1 || n.value > math.MaxInt64/16) {
			return fault.New(fault.Usage, "--%s %s: give more than nothing", n.flag, cmd.Flags().Lookup(n.flag).Value)
		}
	}
	if j.Load.Warmup < 0 || j.Serving.Delay < 0 {
		return fault.New(fault.Usage, "--warmup and --delay are not below nothing")
	}
	isOpen := f.rate != "" || f.ramp != "" || j.Load.Trace != "" || f.slo != ""
	return checkNeeds(cmd.Flags(),
		need{"duration", len(j.Compare) == 0, "--compare makes --rounds of requests; leave it out"},
		need{"requests", len(j.Compare) == 0, "--compare makes --rounds of requests; leave it out"},
		need{"rate", len(j.Compare) == 0, "--compare is a closed loop; give --concurrency"},
		need{"baseline", len(j.Compare) == 0, "--compare has its two sides; leave one of them out"},
		need{"poisson", f.rate != "" || f.slo != "", "it says how the requests of --rate come; add --rate"},
		need{"speed", j.Load.Trace != "", "it is that of --trace; add --trace"},
		need{"in-flight", isOpen, "a closed loop has as many requests under way as clients; leave it out"},
		need{"max-regression", j.Baseline != "", "it is for --baseline; add --baseline"},
		need{"rounds", len(j.Compare) > 0, "it is for --compare; add --compare"},
		need{"weights", len(j.Models) > 1, "it is for several models; name more than one"},
		need{"null", j.Engine.Name == benchmark.Null, "it is for --engine null; add --engine null"},
		need{"zeros", len(j.Requests.Files) == 0, "--inputs says what requests hold; leave one of them out"},
		need{"distinct", len(j.Requests.Files) == 0 && !j.Requests.Zeros, "it is for random requests; leave --inputs and --zeros out"},
		need{"shapes", len(j.Requests.Files) == 0, "--inputs says what requests hold; leave one of them out"},
		need{"max-duration", j.Load.UntilStable || j.Load.MinRequests > 0, "without --requests and --until-stable a level takes --duration; leave it out"},
	)
}

// commitOf is the commit that this program was built from; "" when the Go tool did not
// record it.
func commitOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}

// newReportCommand remakes the reports of a run.
func newReportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "report FOLDER",
		Short: "Make the reports of a measured run again from its records",
		Long: "Reads the folder that `npuctl bench --out` made, also of a run that was killed, sums its\n" +
			"records up as they were summed up when they were measured, and writes the reports\n" +
			"(text, JSON, CSV, a page) into the folder again.",
		Example: "  npuctl report run\n" +
			"  npuctl report run --json",
		Args: takes("FOLDER"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.remakeReport(args[0]) },
	}
}

func (a *app) remakeReport(folder string) error {
	r, err := report.Remake(folder)
	if err != nil {
		return err
	}
	if err := report.WriteFiles(folder, r); err != nil {
		return fault.New(fault.Missing, "write the reports: %w", err)
	}
	switch {
	case a.json:
		return a.printJSON(r)
	case a.quiet:
		return nil
	}
	return r.WriteText(a.out, a.palette())
}

// parseCores reads limits of cores: 12|10, or 12 for the cube cores alone.
func parseCores(text string) (cube, vector int, err error) {
	first, second, both := strings.Cut(text, "|")
	read := func(word string) (n int) {
		if word == "" || err != nil {
			return 0
		}
		if n, err = strconv.Atoi(word); err == nil && n < 0 {
			err = fmt.Errorf("%d cores", n)
		}
		return n
	}
	cube = read(first)
	if both {
		vector = read(second)
	}
	if err == nil && cube == 0 && vector == 0 {
		err = errors.New("it limits nothing")
	}
	return cube, vector, err
}
