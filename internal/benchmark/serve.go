package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble"
	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// errNoBatch is the failure of a batcher for a model that takes no batches.
var errNoBatch = errors.New("it has no open batch axis, so that requests cannot share a batch (a model made static has none)")

// mostInstances bounds what a flag may ask for.
const mostInstances = 4096

// Serving says how a model is served. What is set wins over its configuration.
type Serving struct {
	// Config is a config.pbtxt; "" is that of the folder, if the model is one.
	Config string
	// MaxBatch is the items of the largest batch; 0 leaves it to the configuration or, where
	// there is none, to what one request holds. Above 0 it switches the batcher on.
	MaxBatch int
	// Preferred are sizes at which a batch is sent at once, Delay how long the oldest
	// request waits for others.
	Preferred []int
	Delay     time.Duration
	// QueueSize is how many requests may wait, QueueTimeout for how long; 0 is no limit.
	QueueSize    int
	QueueTimeout time.Duration
	// Instances is their number on all devices together; 0 leaves it to the configuration,
	// which has one unless it says otherwise.
	Instances int
	// Devices are the numbers of the devices that the instances are spread over; nil leaves
	// it to the configuration, and without one it is device 0.
	Devices []int
}

// target is one model that requests are sent to.
type target struct {
	load.Target
	file  string
	gears []string
	ready func(clients int) error
	close func() error
	sets  *requests
	// verifier is nil where there is no executor.
	verifier *verifier
}

// place is what a path of the command line names.
type place struct {
	path   string
	model  string // the file
	config string // its config.pbtxt; "" for none
	// plan is set for a pipeline, or a model of the Python backend: model is empty then.
	plan *ensemble.Plan
}

// files are those that engines open.
func (p place) files() (list []string) {
	if p.plan == nil {
		return []string{p.model}
	}
	for _, m := range p.plan.Models() {
		if m.HasEngine() {
			list = append(list, m.File)
		}
	}
	return list
}

// locate finds the model's file, and its configuration when the path is a folder of a
// model repository.
func locate(path, config string) (place, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return place{}, fault.New(fault.Input, "%s: no such file or folder", path)
	case !info.IsDir():
		return place{path: path, model: path, config: config}, nil
	}
	if config == "" {
		config = filepath.Join(path, "config.pbtxt")
	}
	if _, err := os.Stat(config); err != nil {
		return place{}, fault.New(fault.Input, "%s is a folder without config.pbtxt", path).With("name the folder of one model of a repository, or a model's file")
	}
	c, err := readConfig(config)
	if err != nil {
		return place{}, err
	}
	if c.Ensemble != nil || c.Backend == "python" {
		plan, err := ensemble.ReadFolder(path)
		return place{path: path, plan: plan}, err
	}
	model, err := versionFile(path, c)
	return place{path: path, model: model, config: config}, err
}

// versionFile is the model's file in the newest version.
func versionFile(folder string, c *configgen.Config) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fault.New(fault.Input, "list the versions of the model: %w", err)
	}
	newest := int64(-1)
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && e.IsDir() && n > newest {
			newest = n
		}
	}
	if newest < 0 {
		return "", fault.New(fault.Input, "%s has no folder of a version, such as %s", folder, filepath.Join(folder, "1"))
	}
	names := []string{"model.onnx", "model.om"}
	if c.DefaultModelFilename != "" {
		names = []string{c.DefaultModelFilename}
	}
	version := filepath.Join(folder, strconv.FormatInt(newest, 10))
	for _, name := range names {
		path := filepath.Join(version, filepath.Base(name))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fault.New(fault.Input, "%s holds no %s", version, names[0]).With("npuctl validate says what else is missing in the repository")
}

func readConfig(path string) (*configgen.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the config: %w", err)
	}
	document, err := configgen.Parse(path, data)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	return document.Config(), nil
}

// target opens a model and puts it behind the executor, or takes its instances as they are.
// Its gears are numbered behind those of the models before it.
func (b *bench) target(ctx context.Context, e engine.Engine, at place, gearsBefore int) (*target, error) {
	if at.plan != nil {
		return b.pipeline(ctx, e, at, gearsBefore)
	}
	m, err := e.Open(ctx, at.model)
	if err != nil {
		return nil, err
	}
	sets, err := b.Requests.make(at.model, m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	t := &target{file: at.model, sets: sets}
	if b.Raw {
		err = b.alone(ctx, t, m)
	} else {
		err = b.serve(ctx, t, m, at, gearsBefore)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return t, nil
}

// serve puts an opened model behind an executor.
func (b *bench) serve(ctx context.Context, t *target, m engine.Model, at place, gearsBefore int) error {
	setup, options, err := b.setup(m, at, t.sets)
	if err != nil {
		return err
	}
	options.Context = ctx
	options.CubeCores, options.VectorCores = b.Engine.CubeCores, b.Engine.VectorCores
	options.Follows = t.sets.follows
	served, err := executor.NewModel(m, &setup, options)
	if err != nil {
		return err
	}
	for _, note := range served.Notes() {
		b.note("%s: %s", at.model, note)
	}
	x := &executed{model: served, sets: t.sets, gearsBefore: int32(gearsBefore), batches: setup.Policy.Dynamic}
	x.arrange(m.Inputs())
	if err := x.check(); err != nil {
		return err
	}
	for gear := range setup.Gears.Len() {
		t.gears = append(t.gears, setup.Gears.Text(gear))
	}
	b.say("making %d instances", len(setup.Workers()))
	if x.live, err = executor.NewLive(setup, served); err != nil {
		return err
	}
	t.Target, t.ready, t.verifier = x, x.ready, x.verifier()
	t.close = func() error {
		if err := drained(ctx, at.path, x.live.Close); err != nil {
			return err
		}
		return m.Close()
	}
	return nil
}

// drained waits for the requests under way when a run has ended, and not long for those of
// one that was stopped.
func drained(ctx context.Context, what string, closing func(ctx context.Context) error) error {
	patience := drainPatience
	if ctx.Err() != nil {
		patience = stoppedPatience
	}
	ending, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := closing(ending); ending.Err() != nil {
		return fmt.Errorf("%s: requests were still running after %s", what, patience)
	} else if err != nil {
		return fmt.Errorf("close %s: %w", what, err)
	}
	return nil
}

// drainPatience is how long the requests under way may take when a run has ended, and
// stoppedPatience when it was stopped.
const (
	drainPatience   = 30 * time.Second
	stoppedPatience = 500 * time.Millisecond
)

// executed is a model behind the executor, as a target of load.
type executed struct {
	model       *executor.Model
	live        *executor.Live
	sets        *requests
	inputs      [][]engine.Buffer // of each set, in the order of the executor's payloads
	gearsBefore int32
	batches     bool // there is a batcher, to wait in
	clients     []*client
}

// client is what belongs to one sender, so that a request allocates nothing.
type client struct {
	call    *executor.Call
	payload executor.Payload
	shape   int // of the set for which the call was prepared last; -1 for none
}

func newClient() *client { return &client{call: executor.NewCall(), shape: -1} }

// ready makes room for so many clients, and keeps those that are there.
func (x *executed) ready(clients int) error {
	for len(x.clients) < clients {
		x.clients = append(x.clients, newClient())
	}
	return nil
}

// arrange puts the inputs of every set into the order that the executor takes them in: that
// of the configuration.
func (x *executed) arrange(ports []engine.Port) {
	x.inputs = make([][]engine.Buffer, len(x.sets.list))
	for _, name := range x.model.Inputs() {
		port := slices.IndexFunc(ports, func(p engine.Port) bool { return p.Name == name })
		for i := range x.sets.list {
			x.inputs[i] = append(x.inputs[i], x.sets.list[i].inputs[port])
		}
	}
}

// check has the executor look at every set, before any load.
func (x *executed) check() error {
	c := newClient()
	for i := range x.sets.list {
		if err := x.prepare(c, i); err != nil {
			return fault.New(fault.Input, "%s: %w", x.sets.list[i].name, err)
		}
	}
	return nil
}

func (x *executed) prepare(c *client, set int) error {
	s := &x.sets.list[set]
	c.payload.Inputs = x.inputs[set]
	if s.shape == c.shape {
		return nil
	}
	if err := x.model.Prepare(c.call, &c.payload); err != nil {
		return err
	}
	c.shape = s.shape
	return nil
}

// Do sends a request.
func (x *executed) Do(ctx context.Context, r load.Request) (load.Result, error) {
	return x.send(ctx, x.clients[r.Worker], x.sets.pick(r.Number))
}

func (x *executed) send(ctx context.Context, c *client, set int) (load.Result, error) {
	if err := x.prepare(c, set); err != nil {
		return load.Result{}, err
	}
	switch x.live.Do(ctx, c.call) {
	case executor.OK:
		return x.told(c), nil
	case executor.Rejected:
		return x.told(c), fmt.Errorf("%w: %w", load.ErrRejected, c.call.Err)
	case executor.Cancelled:
		return x.told(c), ctx.Err()
	}
	return x.told(c), c.call.Err
}

// verifier gets answers for comparing them.
func (x *executed) verifier() *verifier {
	v := &verifier{sets: x.sets}
	for i, name := range x.model.Outputs() {
		v.outputs = append(v.outputs, output{name, x.model.OutputPort(i).Type})
	}
	v.client = func() func(ctx context.Context, set int) ([]engine.Buffer, error) {
		c := newClient()
		return func(ctx context.Context, set int) ([]engine.Buffer, error) {
			_, err := x.send(ctx, c, set)
			return c.payload.Outputs, err
		}
	}
	return v
}

// told is what the executor tells about a request.
func (x *executed) told(c *client) load.Result {
	s := c.call.Stages()
	r := load.Result{Items: int32(c.call.Size)}
	r.Stages[load.Queue], r.Stages[load.Batching] = s.Queue, s.Batching
	if !x.batches { // what waits then waits for an instance
		r.Stages[load.Queue], r.Stages[load.Batching] = s.Queue+s.Batching, 0
	}
	r.Stages[load.H2D], r.Stages[load.Compute], r.Stages[load.D2H] = s.H2D, s.Compute, s.D2H
	if e := &c.payload.Execution; e.Items > 0 && c.call.Err == nil {
		r.Batch = load.Batch{Items: int32(e.Items), Elements: e.Elements, Padding: e.Padding, Lead: e.Lead}
		if e.Gear >= 0 {
			r.Batch.Gear = x.gearsBefore + int32(e.Gear) + 1
		}
	}
	return r
}
