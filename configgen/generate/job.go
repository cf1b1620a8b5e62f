package generate

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// The backends that a config can be made for.
const (
	GE          = "npu_ge"
	ONNXRuntime = "onnxruntime"
)

// Backends lists them.
func Backends() []string { return []string{GE, ONNXRuntime} }

// Form is how the shapes of the served graph are known.
type Form string

// The forms.
const (
	Static  Form = "static"  // every dim, but for a batch that is run one by one
	Gears   Form = "gears"   // one of several sizes
	Dynamic Form = "dynamic" // open dims stay open
)

// Job is what to make of a model. The zero value of a field leaves the choice to
// this package.
type Job struct {
	// Model is the ONNX file, Repository the folder to which the model's folder goes.
	Model, Repository string
	// Name is the model's name in the server; "" takes that of the file.
	Name string
	// Version is the number of the version folder; 0 is 1.
	Version int64
	// Backend is one of [Backends]; "" is npu_ge.
	Backend string

	// Sizes fixes open dims, as in every other command.
	Sizes onnxpass.Specialization
	// NoOptimize copies the model as it is; else npu_ge gets what the passes of npuctl
	// optimize make of it. Passes says which of them, and how far.
	NoOptimize bool
	Passes     onnxpass.Options
	// Static demands a graph without open dims but a batch; Gears lists the sizes of
	// one with gears, as package gears reads them; Dynamic leaves dims open. At most one.
	Static, Dynamic bool
	Gears           string
	// MaxBatch is max_batch_size; nil chooses, 0 writes the batch into the dims.
	MaxBatch *int32

	// Preferred are the sizes at which a batch is sent at once; nil chooses.
	Preferred []int32
	// NoBatching leaves dynamic_batching out.
	NoBatching bool
	// MaxQueueDelay is how long a request waits for others.
	MaxQueueDelay time.Duration
	// Queue is what happens to requests that wait.
	Queue Queue
	// Warmup says what each instance runs before the server is ready; nil is nothing.
	Warmup *Warmup

	// Instances is how many instances run (0 is 1), Devices the NPUs or GPUs that they
	// run on (nil leaves it to the backend), Streams how many run beside each other on
	// one NPU (0 derives it). CPU is for onnxruntime: no GPU even where there is one.
	Instances, Streams int
	Devices            []int
	CPU                bool
	// Precision is a word of precision_mode_v2 or precision_mode; "" is GE's default.
	Precision string
	// AICoreNum limits the cores: cube|vector, or one number.
	AICoreNum string
	// Profiling is true or dynamic; Dump holds graph, data or both.
	Profiling string
	Dump      []string
	// VersionPolicy is latest, latest:N, all or specific:1,3; "" is latest.
	VersionPolicy string
	// Chip is held against the plan; nil for none in particular.
	Chip *soc.Chip

	// Link makes hard links instead of copies.
	Link bool
	// Compiled is an .om of the model, whose needs of memory its compiler planned; "" has
	// them estimated from the graph.
	Compiled string

	// ReplaceModel puts the model in the place of another one. The config that is there
	// is changed as always.
	ReplaceModel bool
	// Force replaces files that differ, and a config that is there instead of changing it.
	Force bool
	// Preview writes nothing.
	Preview bool
	// Beside gives further files, which take their places together with those of the
	// repository or not at all; nil gives none. It gets what is about to be written.
	Beside func(*Result) ([]*atomicfile.File, error)
	// Progress is told, when set, what the job is at.
	Progress func(text string)

	asked asked
}

// asked says what was asked for, where a default hides it later.
type asked struct {
	instances, devices, streams, precision, batching, versions bool

	delay time.Duration
	queue Queue
}

// Result is what was written, or would be.
type Result struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Backend string `json:"backend"`
	Form    Form   `json:"form"`
	// Config is the path of config.pbtxt; Text what it holds.
	Config string `json:"config"`
	Text   string `json:"text"`
	// Files are the model and its side files, in their places.
	Files        []File    `json:"files"`
	MaxBatchSize int32     `json:"max_batch_size"`
	Inputs       []Tensor  `json:"inputs"`
	Outputs      []Tensor  `json:"outputs"`
	Gears        [][]int64 `json:"gears"`
	// Optimized is what was made of the model; nil when the file is the user's own.
	Optimized *Optimized         `json:"optimized"`
	Choices   []Choice           `json:"choices"`
	Notes     []string           `json:"notes"`
	Findings  []findings.Finding `json:"findings"`
	// Chosen says what of the job was taken from elsewhere, and why.
	Chosen []string `json:"chosen"`
	// Services are files for clusters, which somebody else writes.
	Services []File `json:"services"`
	// Changes are what of a config that was there is changed; all else of it stays.
	Changes []Change `json:"changes"`
	// Lost are the lines of a config that was there which a config made anew has no more.
	Lost []Line `json:"lost"`
	// Memory is what the model takes on each NPU; nil where none serves it.
	Memory *Memory `json:"memory"`
	// Written is false after a preview and when everything was there already.
	Written bool `json:"written"`
	// Diff is how Text differs from the config that is there, as a unified diff; "" when
	// it does not.
	Diff string `json:"diff"`
}

// File is one file of the repository beside the config.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// How is copied, optimized, linked, rewritten (with other names of output dims) or kept
	// (it was there).
	How string `json:"how"`
}

// Tensor is an input or output as the config lists it.
type Tensor struct {
	Name string  `json:"name"`
	Type string  `json:"type"`
	Dims []int64 `json:"dims"`
}

// Line is a line of a file, counted from 1.
type Line struct {
	Number int    `json:"line"`
	Text   string `json:"text"`
}

// Choice is one decision: the field it is about, and the reason.
type Choice struct {
	Field string `json:"field"`
	Why   string `json:"why"`
}

// Run makes the repository's part of the model. The result is given with a failure of
// the family Goal, too, as far as it goes.
func (j Job) Run(ctx context.Context) (*Result, error) {
	j.asked = asked{
		instances: j.Instances > 0, devices: len(j.Devices) > 0, streams: j.Streams > 0, precision: j.Precision != "",
		batching: j.asksBatching(), versions: j.VersionPolicy != "", delay: j.MaxQueueDelay, queue: j.Queue,
	}
	if j.Name == "" {
		j.Name = NameOf(j.Model)
	}
	alone := j // without what the standing config decides
	old, err := j.standing()
	if err != nil {
		return nil, err
	}
	if err := j.complete(); err != nil {
		return nil, old.blame(err, alone.complete())
	}
	s, err := readSignature(ctx, j.Model, j.Sizes)
	if err != nil {
		return nil, err
	}
	p, err := j.plan(s)
	if err != nil {
		return nil, old.blame(err, alone.planFailure(s))
	}
	j.progress("optimising " + filepath.Base(j.Model))
	g, done, err := j.readyGraph(ctx, s)
	if err != nil {
		return nil, err
	}
	defer done()
	p.graph = g
	p.noteSizes()
	return p.run(ctx, old)
}

// run writes the plan, checks it and puts it into its place. What it would be is told
// with a failure, too.
func (p *plan) run(ctx context.Context, old *standing) (*Result, error) {
	r, err := p.write(old)
	if err != nil {
		return nil, err
	}
	if r.Findings, err = p.check(r, old); err != nil {
		return nil, old.blame(err, nil)
	}
	if err := p.addMemory(ctx, r); err != nil {
		return nil, err
	}
	known := p.refuseKnown(r, old)
	if known != nil && !p.Preview {
		return r, known
	}
	if err := p.place(ctx, r); err != nil {
		return r, err
	}
	return r, known
}

func (j *Job) progress(text string) {
	if j.Progress != nil {
		j.Progress(text)
	}
}

// planFailure is why nothing can be planned, nil where it can.
func (j Job) planFailure(s *signature) error {
	if err := j.complete(); err != nil {
		return err
	}
	_, err := j.plan(s)
	return err
}

// write gives the plan as text: that of a new config, or of the one that stands there
// with what the plan changes.
func (p *plan) write(old *standing) (*Result, error) {
	doc, err := p.document()
	if err != nil {
		return nil, err
	}
	if old == nil {
		return p.result(string(doc.Print())), nil
	}
	text, changes, err := p.merge(old, doc)
	if err != nil {
		return nil, err
	}
	r := p.result(text)
	r.Changes = append(r.Changes, changes...)
	return r, nil
}

// complete fills in what has a fixed default, and refuses what cannot be meant.
func (j *Job) complete() error {
	if j.Version == 0 {
		j.Version = 1
	}
	if j.Backend == "" {
		j.Backend = GE
	}
	if j.Instances == 0 {
		j.Instances = 1
	}
	for _, check := range []func() error{j.checkIdentity, j.checkForm, j.checkBatching, j.checkQueue, j.checkWarmup, j.checkInstances, j.checkOptions} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NameOf makes a model's name of its file's, without the .opt and .om that npuctl's own
// commands put there. What URLs do not carry becomes _.
func NameOf(path string) string {
	stem := filepath.Base(path)
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	for _, made := range []string{".opt", ".om"} {
		stem = strings.TrimSuffix(stem, made)
	}
	name := unfit.ReplaceAllString(stem, "_")
	if name = strings.TrimLeft(name, "."); name == "" {
		return "model"
	}
	return name
}

func (j *Job) checkIdentity() error {
	switch ext := strings.ToLower(filepath.Ext(j.Model)); {
	case ext == ".om" || ext == ".om2" || ext == ".exeom":
		return fault.New(fault.Usage, "%s: %s does not load compiled models", j.Model, GE).
			With("give the .onnx that it was compiled from; a compiled model runs in the Python backend: npuctl config python")
	case !slices.Contains(Backends(), j.Backend):
		return fault.New(fault.Usage, "--backend %s: there are %s", j.Backend, strings.Join(Backends(), " and "))
	case j.Version < 1:
		return fault.New(fault.Usage, "--version %d: versions count from 1", j.Version)
	}
	if err := checkName(j.Name); err != nil {
		return err
	}
	policy, err := parsePolicy(j.VersionPolicy)
	if err == nil && policy.Specific != nil && !slices.Contains(policy.Specific.Versions, j.Version) {
		return fault.New(fault.Usage, "--version-policy %s: version %d is not among them, and would not be served", j.VersionPolicy, j.Version)
	}
	return err
}

// longestName is what file systems take.
const longestName = 255

// checkName refuses names that no URL carries, and those that lead out of the folder.
func checkName(name string) error {
	if len(name) > longestName {
		return fault.New(fault.Usage, "--name %s…: a folder's name has at most %d bytes", name[:min(len(name), 32)], longestName)
	}
	if !unfit.MatchString(name) && !strings.HasPrefix(name, ".") {
		return nil
	}
	return fault.New(fault.Usage, "--name %s: use A-Z a-z 0-9 . _ - and no dot in front", name).
		With("the server does not decode other characters in URLs")
}

func (j *Job) checkForm() error {
	var given []string
	for _, f := range []struct {
		flag string
		is   bool
	}{{"--static", j.Static}, {"--gears", j.Gears != ""}, {"--dynamic", j.Dynamic}} {
		if f.is {
			given = append(given, f.flag)
		}
	}
	if len(given) > 1 {
		return fault.New(fault.Usage, "%s and %s: a graph is one of them", given[0], given[1])
	}
	if len(given) == 1 && j.Backend == ONNXRuntime && !j.Dynamic {
		return j.ignored(given[0])
	}
	if j.MaxBatch != nil && *j.MaxBatch < 0 {
		return fault.New(fault.Usage, "--max-batch-size %d: give 1 or more, or 0 to write the batch into the dims", *j.MaxBatch)
	}
	return nil
}

// ignored is the failure of an option of the other backend.
func (j *Job) ignored(flag string) error {
	return fault.New(fault.Usage, "%s would be ignored: %s has no such thing", flag, j.Backend).With("leave it out, or use --backend %s", GE)
}

// longestDelay is what a client might still wait for.
const longestDelay = time.Minute

func (j *Job) checkBatching() error {
	for i, n := range j.Preferred {
		switch {
		case n < 1:
			return fault.New(fault.Usage, "--preferred %d: sizes count from 1", n)
		case slices.Contains(j.Preferred[:i], n):
			return fault.New(fault.Usage, "--preferred: %d is given twice", n)
		}
	}
	switch delay := j.asked.delay; {
	case delay < 0 || delay > longestDelay:
		return fault.New(fault.Usage, "--max-queue-delay%s: give a time up to %s, such as 500us or 2ms", timeText(delay), longestDelay)
	case delay%time.Microsecond != 0:
		return fault.New(fault.Usage, "--max-queue-delay %s: the server counts whole microseconds", delay)
	case j.NoBatching && j.asksBatching():
		return fault.New(fault.Usage, "--no-batching with sizes, a delay or a queue of batches: give one of them")
	}
	return nil
}

// timeText is a time behind a flag; "" for the largest, which stands for whatever was
// too large to be held.
func timeText(d time.Duration) string {
	if d == math.MaxInt64 {
		return ""
	}
	return " " + d.String()
}

// Bounds of what can be meant: the server makes instances one after another, each
// with a thread of its own.
const (
	mostInstances = 1024
	mostStreams   = 1000 // npu_ge numbers its graphs with three digits for each model
)

func (j *Job) checkInstances() error {
	switch {
	case j.Instances < 1 || j.Instances > mostInstances:
		return fault.New(fault.Usage, "--instances %d: give 1 to %d", j.Instances, mostInstances)
	case j.Streams < 0 || j.Streams > mostStreams:
		return fault.New(fault.Usage, "--streams %d: give 1 to %d", j.Streams, mostStreams)
	case j.Streams > 0 && j.Backend != GE:
		return j.ignored("--streams")
	case j.CPU && j.Backend != ONNXRuntime:
		return fault.New(fault.Usage, "--devices cpu: %s runs on NPUs", j.Backend).With("give their numbers, or use --backend %s", ONNXRuntime)
	}
	for i, d := range j.Devices {
		if d < 0 || slices.Contains(j.Devices[:i], d) {
			return fault.New(fault.Usage, "--devices: %d: give numbers from 0 up, each once", d)
		}
	}
	return nil
}

// coreNumbers is the grammar of ge.aicoreNum.
var coreNumbers = regexp.MustCompile(`^[1-9][0-9]{0,3}(\|[0-9]{0,4})?$`)

func (j *Job) checkOptions() error {
	for _, o := range []struct {
		flag    string
		isGiven bool
	}{
		{"--precision", j.Precision != ""}, {"--aicore-num", j.AICoreNum != ""}, {"--profiling", j.Profiling != ""},
		{"--dump", len(j.Dump) > 0}, {"--om", j.Compiled != ""},
	} {
		if o.isGiven && j.Backend != GE {
			return j.ignored(o.flag)
		}
	}
	switch {
	case j.Backend != GE && j.NoOptimize:
		return fault.New(fault.Usage, "--no-optimize would be ignored: for %s the model is copied as it is", j.Backend).With("leave it out")
	case j.Profiling != "" && profilingWhy[j.Profiling] == "":
		return fault.New(fault.Usage, "--profiling %s: give true or dynamic", j.Profiling)
	case j.AICoreNum != "":
		if err := j.checkCores(); err != nil {
			return err
		}
	}
	for i, d := range j.Dump {
		if dumpWhy[d] == "" || slices.Contains(j.Dump[:i], d) {
			return fault.New(fault.Usage, "--dump %s: give graph, data or graph,data", strings.Join(j.Dump, ","))
		}
	}
	if j.Chip != nil && j.Precision != "" && !j.Chip.Shared().AllowsPrecision(j.Precision) {
		return fault.New(fault.Usage, "--precision %s: %s does not have that mode", j.Precision, j.Chip.Name)
	}
	_, err := precisionKey(j.Precision)
	return err
}

// checkCores holds a limit of cores against its grammar and, where it is known, the
// chip.
func (j *Job) checkCores() error {
	if !coreNumbers.MatchString(j.AICoreNum) {
		return fault.New(fault.Usage, "--aicore-num %s: give cube|vector as 12|10, or one number on chips with one kind of core", j.AICoreNum)
	}
	if j.Chip == nil {
		return nil
	}
	cube, vector := j.Chip.MaxCores()
	if cube == 0 {
		return nil // nobody has said
	}
	has, words := strconv.Itoa(cube), strings.Split(j.AICoreNum, "|")
	if j.Chip.Shared().CoreNumber == soc.CubeAndVector {
		has = fmt.Sprintf("%d|%d", cube, vector)
	} else if len(words) > 1 {
		return fault.New(fault.Usage, "--aicore-num %s: %s has one kind of core", j.AICoreNum, j.Chip.Name).With("give one number, at most %d", cube)
	}
	for i, most := range []int{cube, vector}[:len(words)] {
		if n, err := strconv.Atoi(words[i]); words[i] != "" && (err != nil || n < 1 || n > most) {
			return fault.New(fault.Usage, "--aicore-num %s: %s has %s", j.AICoreNum, j.Chip.Name, has)
		}
	}
	return nil
}
