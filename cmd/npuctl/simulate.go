package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/executor/tritonconfig"
	"github.com/npuctl/npuctl/bench/simulation"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/files"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/terminal"
)

// simulateFlags are the flags of `npuctl simulate` as they are typed.
type simulateFlags struct {
	config, arrivals, service string
	seed                      uint64
	duration, think           time.Duration
	requests                  int
	sizes, shapes, gears      string
	devices, instances        int
	noPadding                 bool
}

func newSimulateCommand(a *app) *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate --config CONFIG.pbtxt --arrivals FILE|poisson:RATE|closed:CLIENTS --service TIMES",
		Short: "Say what a server would make of a load, without a card",
		Long: "Runs the executor in virtual time: which batches form under a config.pbtxt, how long\n" +
			"requests wait, how busy the instances are, what is refused and what is padding. The\n" +
			"batches are those of a Triton server; the same seed gives the same result.\n\n" +
			"A batch runs in the smallest gear that holds it, padded. npu_ge does not pad and\n" +
			"fails it: a note says how many, and --no-padding has them fail here, too.\n\n" +
			"Requests come from a CSV file with the columns time_ms,size,shape,level,timeout_ms,\n" +
			"inputs (all but the first may be missing), at random (poisson:RATE, a second), at equal\n" +
			"intervals (constant:RATE), or from clients that send the next one when they are\n" +
			"answered (closed:CLIENTS). The time of a batch is fixed=4ms,item=0.5ms or a CSV file\n" +
			"with the columns batch,time_ms or gear,time_ms.",
		Example: "  npuctl simulate --config models/net/config.pbtxt --arrivals poisson:800 --service fixed=4ms,item=0.5ms\n" +
			"  npuctl simulate --config config.pbtxt --arrivals closed:64 --service times.csv --devices 2 --instances 8\n" +
			"  npuctl simulate --config config.pbtxt --arrivals day.csv --service fixed=4ms --json",
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.simulate(cmd, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config, "config", "", "`file` with the server's configuration: config.pbtxt")
	flags.StringVar(&f.arrivals, "arrivals", "", "`file` of requests, or poisson:RATE, constant:RATE, closed:CLIENTS")
	flags.StringVar(&f.service, "service", "", "`times` of a batch: fixed=4ms,item=0.5ms with distribution=exponential, or a file")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that chance begins with")
	flags.DurationVar(&f.duration, "duration", 0, "for how long requests come: a `time` such as 60s or 1h (default 60s, without --requests)")
	flags.IntVar(&f.requests, "requests", 0, "how many requests come at most (`N`)")
	flags.StringVar(&f.sizes, "sizes", "1", "items of a request: `4`, 1-8, or 1:3,4:1 with weights")
	flags.StringVar(&f.shapes, "shapes", "", "shapes of an item: `4x3`, or 4:3,8:1 with weights (default 4 for every open dim)")
	flags.DurationVar(&f.think, "think", 0, "`time` between an answer and the client's next request")
	flags.IntVar(&f.instances, "instances", 0, "instances on all devices together (`N`; default those of the config)")
	flags.IntVar(&f.devices, "devices", 0, "devices to spread the instances over (`N`; default those of the config)")
	flags.StringVar(&f.gears, "gears", "", "batch `sizes` that the model is compiled for: 1,2,4,8 (default those of the config)")
	flags.BoolVar(&f.noPadding, "no-padding", false, "fail batches without a gear of exactly their size, as npu_ge does")
	return cmd
}

func (a *app) simulate(cmd *cobra.Command, f *simulateFlags) error {
	report, traffic, err := a.runSimulation(cmd, f)
	switch {
	case err != nil:
		return err
	case a.json:
		return report.WriteJSON(a.out, traffic.Kinds)
	case a.quiet:
		return nil
	}
	return a.printSimulation(report)
}

func (a *app) runSimulation(cmd *cobra.Command, f *simulateFlags) (*simulation.Report, *simulation.Traffic, error) {
	run := &simulation.Run{Seed: f.seed, Keeps: a.json}
	notes, err := f.readSetup(cmd, run)
	if err != nil {
		return nil, nil, err
	}
	if run.Service, err = readService(f.service); err != nil {
		return nil, nil, err
	}
	say, stop := a.progress()
	defer stop()
	say("reading " + filepath.Base(f.arrivals))
	if run.Traffic, err = f.readTraffic(cmd, run); err != nil {
		return nil, nil, err
	}
	say("simulating")
	result, err := run.Do(cmd.Context())
	if err != nil {
		return nil, nil, simulationFailure(cmd.Context(), err)
	}
	notes = append(notes, assumedNotes(run.Traffic.Kinds)...)
	if n := result.WithoutGear; n > 0 && !run.NoPadding {
		notes = append(notes, fmt.Sprintf("%s in batches without a gear of exactly their size, padded or split here: npu_ge fails them (--no-padding shows it; npuctl config makes a gear for every batch)",
			terminal.Counted(int(n), "request")))
	}
	return &simulation.Report{Config: f.config, Arrivals: f.arrivals, Service: f.service, Seed: f.seed, Notes: notes, Summary: result}, run.Traffic, nil
}

// assumedNotes tell of open dims that nobody gave a size.
func assumedNotes(kinds []simulation.Kind) []string {
	var dims []string
	for _, k := range kinds {
		for _, d := range k.Assumed {
			if !slices.Contains(dims, d) {
				dims = append(dims, d)
			}
		}
	}
	if dims == nil {
		return nil
	}
	return []string{fmt.Sprintf("open dims count as %d where nothing says more: %s; --shapes, or the column shape, gives sizes", simulation.DefaultDim, shortList(dims))}
}

func simulationFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.New(fault.Usage, "%w", err)
}

// readSetup reads the configuration. One that the server refuses is not simulated.
func (f *simulateFlags) readSetup(cmd *cobra.Command, run *simulation.Run) (notes []string, err error) {
	if f.config == "" {
		return nil, fault.New(fault.Usage, "--config: the server's configuration is missing").With("give a config.pbtxt; npuctl config makes one")
	}
	options := tritonconfig.Options{}
	for _, n := range []struct {
		flag  string
		value int
		into  *int
	}{{"instances", f.instances, &options.Instances}, {"devices", f.devices, &options.Devices}} {
		if cmd.Flags().Changed(n.flag) && (n.value < 1 || n.value > mostInstances) {
			return nil, fault.New(fault.Usage, "--%s %d: give 1 to %d", n.flag, n.value, mostInstances)
		}
		*n.into = n.value
	}
	if f.gears != "" {
		if options.Gears, err = batchGears(f.gears); err != nil {
			return nil, err
		}
	}
	data, err := files.Read(f.config, largestTritonConfig)
	if err != nil {
		return nil, fault.New(fault.Input, "read the config: %w", err)
	}
	if err := refusal(f.config, data); err != nil {
		return nil, err
	}
	document, err := configgen.Parse(f.config, data)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	if run.Setup, notes, err = tritonconfig.Read(document.Config(), options); err != nil {
		return nil, fault.New(fault.Input, "%s: %w", f.config, err)
	}
	if err := run.Setup.Policy.Check(); err != nil {
		return nil, fault.New(fault.Input, "%s: %w", f.config, err)
	}
	run.NoPadding = f.noPadding
	if run.OfGE = f.gearsOfGE(document.Config(), run); run.NoPadding && !run.OfGE {
		return nil, fault.New(fault.Usage, "--no-padding would be ignored: %s has no gears for npu_ge", f.config).With("leave it out, or give --gears")
	}
	return append([]string{}, notes...), nil
}

// gearsOfGE says whether there are gears that npu_ge runs. A static graph of batch 1 is
// none: that backend itself runs a batch one by one.
func (f *simulateFlags) gearsOfGE(c *configgen.Config, run *simulation.Run) bool {
	static, _ := c.Parameter("static_model")
	return c.Backend == generate.GE && run.Setup.Gears != nil && (f.gears != "" || static != "1")
}

// mostInstances bounds the flags.
const mostInstances = 4096

// batchGears reads --gears.
func batchGears(text string) (sizes []int64, err error) {
	list, err := gears.Expand(text)
	if err != nil {
		return nil, fmt.Errorf("--gears: %w", err)
	}
	rows, err := gears.Parse(list)
	if err == nil && len(rows) == 1 {
		return rows[0], nil
	}
	for _, row := range rows {
		if len(row) != 1 {
			err = fmt.Errorf("here gears are batch sizes, as in 1,2,4,8; others stand in the config")
			break
		}
		sizes = append(sizes, row[0])
	}
	if err != nil {
		return nil, fault.New(fault.Usage, "--gears %s: %w", text, err)
	}
	return sizes, nil
}

// refusal says why the server would not take a configuration.
func refusal(path string, data []byte) error {
	result := rules.CheckText(path, data, rules.Options{})
	if result.Verdict != rules.Refuse {
		return nil
	}
	for _, found := range result.Findings {
		if found.Severity == findings.Error {
			return fault.New(fault.Input, "%s: the server refuses it: %s", found.Place(), found.Message).With("npuctl validate %s says more", path)
		}
	}
	return fault.New(fault.Input, "%s: the server refuses it", path).With("npuctl validate %s says why", path)
}

// largestTritonConfig bounds what is read of a config.pbtxt.
const largestTritonConfig = 16 << 20

func readService(text string) (*simulation.Service, error) {
	if text == "" {
		return nil, fault.New(fault.Usage, "--service: the time of a batch is missing").With("give fixed=4ms,item=0.5ms or a CSV file")
	}
	if strings.Contains(text, "=") {
		s, err := simulation.ParseService(text)
		if err != nil {
			return nil, fault.New(fault.Usage, "--service: %w", err)
		}
		return s, nil
	}
	var s *simulation.Service
	err := withFile(text, "service times", func(r io.Reader) (err error) {
		s, err = simulation.ReadService(r)
		return err
	})
	return s, err
}

// withFile reads an input file; what is wrong with it is told with its name.
func withFile(path, what string, read func(io.Reader) error) error {
	if err := files.Regular(path); err != nil { // a pipe that nobody writes would never end
		return fault.New(fault.Input, "read the %s: %w", what, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return fault.New(fault.Input, "read the %s: %w", what, err)
	}
	defer file.Close()
	if err := read(file); err != nil {
		return fault.New(fault.Input, "%s: %w", path, err)
	}
	return nil
}

// sources are the arrivals that are made up, by the word before the colon.
var sources = map[string]source{
	"poisson":  {isRate, aRate, func(t *simulation.Traffic, n float64) { t.Rate, t.Poisson = n, true }},
	"constant": {isRate, aRate, func(t *simulation.Traffic, n float64) { t.Rate = n }},
	"closed":   {isCount, aCount, func(t *simulation.Traffic, n float64) { t.Clients = int(n) }},
}

// source is a kind of arrivals, and what number it takes.
type source struct {
	takes func(n float64) bool
	what  string // that it takes
	set   func(t *simulation.Traffic, n float64)
}

func isRate(n float64) bool  { return n > 0 && n <= 1e9 }
func isCount(n float64) bool { return n >= 1 && n <= 1e6 && n == math.Trunc(n) }

const (
	aRate  = "give requests a second behind the colon: a number above 0, at most 1000000000"
	aCount = "give 1 to 1000000 clients behind the colon"
)

func (f *simulateFlags) readTraffic(cmd *cobra.Command, run *simulation.Run) (*simulation.Traffic, error) {
	word, number, _ := strings.Cut(f.arrivals, ":")
	made, isMade := sources[word]
	if f.arrivals == "" {
		return nil, fault.New(fault.Usage, "--arrivals: the requests are missing").With("give a CSV file, poisson:RATE, constant:RATE or closed:CLIENTS")
	}
	if !isMade {
		return f.readArrivals(cmd, run)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !made.takes(n) {
		return nil, fault.New(fault.Usage, "--arrivals %s: %s", f.arrivals, made.what)
	}
	t := &simulation.Traffic{Duration: f.duration, Requests: f.requests, Think: f.think}
	if f.duration < 0 || f.requests < 0 || f.think < 0 {
		return nil, fault.New(fault.Usage, "--duration, --requests and --think are not below 0")
	}
	if f.think > 0 && word != "closed" {
		return nil, fault.New(fault.Usage, "--think: only the clients of closed:CLIENTS think")
	}
	if t.Duration == 0 && t.Requests == 0 {
		t.Duration = time.Minute
	}
	made.set(t, n)
	if t.Sizes, err = simulation.ParseSizes(f.sizes); err != nil {
		return nil, fault.New(fault.Usage, "--sizes: %w", err)
	}
	if limit := run.Setup.Policy.MaxBatch; limit > 0 && t.Sizes.Largest() > limit {
		return nil, fault.New(fault.Usage, "--sizes %s: max_batch_size is %d", f.sizes, limit)
	}
	if t.Kinds, t.KindWeights, err = simulation.ParseShapes(f.shapes, run.Setup.Signature); err != nil {
		return nil, fault.New(fault.Usage, "--shapes: %w", err)
	}
	for _, kind := range t.Kinds {
		if kind.Err != nil {
			return nil, fault.New(fault.Usage, "--shapes: %w", kind.Err).With("%s", shapesHint(run.Setup.Signature))
		}
	}
	return t, nil
}

// shapesHint says how the shapes of one item are given to a model.
func shapesHint(s *executor.Signature) string {
	var parts, open []string
	for _, in := range s.Inputs {
		words := make([]string, len(in.Dims))
		for i, d := range in.Dims {
			words[i] = strconv.FormatInt(d, 10)
			if d < 0 {
				words[i] = "N"
				open = append(open, in.Name)
			}
		}
		parts = append(parts, in.Name+"="+strings.Join(words, "x"))
	}
	if open == nil {
		return "leave it out: the config says every dim"
	}
	return "give the shape of one item, without the batch: " + strings.Join(parts, "+") + " with a size for each N"
}

func (f *simulateFlags) readArrivals(cmd *cobra.Command, run *simulation.Run) (t *simulation.Traffic, err error) {
	for _, flag := range []string{"duration", "requests", "sizes", "shapes", "think"} {
		if cmd.Flags().Changed(flag) {
			return nil, fault.New(fault.Usage, "--%s: an arrivals file says that itself", flag)
		}
	}
	err = withFile(f.arrivals, "arrivals", func(r io.Reader) (err error) {
		t, err = simulation.ReadArrivals(r, run.Setup.Signature)
		return err
	})
	return t, err
}

// printSimulation tells people what came out.
func (a *app) printSimulation(report *simulation.Report) error {
	w, r := labelled{a.out, a.palette()}, report.Summary
	fmt.Fprintf(a.out, "%s under %s\n", w.p.Bold(terminal.Clean(report.Config)), terminal.Clean(report.Arrivals))
	t := terminal.Table{Header: []string{"ms", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"}, Right: []int{1, 2, 3, 4, 5, 6, 7},
		Rows: [][]string{distributionRow("latency", r.Latency), distributionRow("queue", r.Queue)}}
	if err := t.Write(a.out); err != nil {
		return err
	}
	w.line("simulated", "%.3f s in virtual time, no card", r.Seconds)
	w.line("requests", "%s: %s", terminal.Count(r.Requests), outcomeText(r))
	w.line("throughput", "%.1f requests/s, %.1f items/s", r.Throughput, r.ItemThroughput)
	w.line("batches", "%s items on average: %s", short(r.MeanBatch), batchText(r))
	if len(r.Gears) > 0 {
		w.line("gears", "%s", gearText(r))
		w.line("padding", "%s of what was computed", percent(r.Padding))
	}
	w.line("utilization", "%s%s", percent(r.Use), instanceText(r))
	w.line("in flight", "at most %s", terminal.Count(int64(r.MostInside)))
	w.list("note", report.Notes)
	return nil
}

func distributionRow(name string, d simulation.Distribution) []string {
	row := []string{name}
	for _, ms := range []float64{d.Mean, d.P50, d.P90, d.P95, d.P99, d.P999, d.Max} {
		row = append(row, short(ms))
	}
	return row
}

// short writes a number with three decimals at most.
func short(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 3, 64), "0"), ".")
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func outcomeText(r *simulation.Result) string {
	words := []string{terminal.Count(r.OK) + " ok"}
	for _, part := range []struct {
		n    int64
		what string
	}{{r.QueueFull, "refused by a full queue"}, {r.TimedOut, "refused after their timeout"}, {r.Errors, "failed, for they do not fit"},
		{r.Waiting, "without an answer: nothing ends their wait"}} {
		if part.n > 0 {
			words = append(words, terminal.Count(part.n)+" "+part.what)
		}
	}
	return strings.Join(words, ", ")
}

func batchText(r *simulation.Result) string {
	words := make([]string, len(r.Batches))
	for i, b := range r.Batches {
		words[i] = fmt.Sprintf("%d × %s", b.Size, terminal.Count(b.Executions))
	}
	return shortList(words)
}

func gearText(r *simulation.Result) string {
	words := make([]string, len(r.Gears))
	for i, g := range r.Gears {
		words[i] = fmt.Sprintf("%s × %s", g.Gear, terminal.Count(g.Runs))
	}
	return shortList(words)
}

// shortList writes a list that may be long.
func shortList(words []string) string {
	const most = 12
	if len(words) > most+1 {
		return fmt.Sprintf("%s and %d more (--json lists all)", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}

func instanceText(r *simulation.Result) string {
	if len(r.Instances) < 2 {
		return ""
	}
	if r.AtOnce < len(r.Instances) {
		return fmt.Sprintf(" of the %d batches at once that %d instances have streams for", r.AtOnce, len(r.Instances))
	}
	words := make([]string, len(r.Instances))
	for i, in := range r.Instances {
		words[i] = fmt.Sprintf("%d on device %d %s", in.Instance, in.Device, percent(in.Use))
	}
	return " of " + strconv.Itoa(len(r.Instances)) + " instances: " + shortList(words)
}
