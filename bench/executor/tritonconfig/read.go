package tritonconfig

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Options say otherwise than the file. Zero values leave it as it is.
type Options struct {
	// Devices is the number of devices, Instances that of instances on all of them.
	Devices, Instances int
	// Gears are batch sizes that the model is compiled for.
	Gears []int64
}

// ascendGE is the backend for Ascend NPUs. It reads devices and gears from parameters.
const ascendGE = "npu_ge"

// mostInstances bounds what a file may ask for: each instance costs memory.
const mostInstances = 1 << 16

// mostStreams is how many graphs npu_ge tells apart on the devices of a model, and
// mostDevice the largest number of a device.
const (
	mostStreams = 1000
	mostDevice  = math.MaxInt16
)

// Read gives the setup of an executor, and notes on what the file says and the executor
// does not do.
func Read(c *configgen.Config, o Options) (s executor.Setup, notes []string, err error) {
	switch {
	case c.SequenceBatching != nil:
		return s, nil, fmt.Errorf("sequence_batching: only dynamic_batching, or none, can be run here")
	case c.Ensemble != nil:
		return s, nil, fmt.Errorf("ensemble_scheduling: give the config of one of its steps; each has a queue of its own")
	}
	s.Policy = policy(c)
	s.Signature = executor.NewSignature(inputs(c), s.Policy.MaxBatch)
	if s.Gears, err = readGears(c, s.Signature, o); err != nil {
		return s, nil, err
	}
	if s.Devices, err = devices(c, o); err != nil {
		return s, nil, err
	}
	if c.Backend == ascendGE {
		err = readStreams(c, &s)
	}
	return s, notesOn(c, &s), err
}

func policy(c *configgen.Config) executor.Policy {
	p := executor.Policy{MaxBatch: int(c.MaxBatchSize)}
	d := c.DynamicBatching
	if d == nil {
		return p
	}
	p.Dynamic = true
	p.Delay = microseconds(d.MaxQueueDelay)
	p.PreserveOrdering = d.PreserveOrdering
	p.Levels, p.DefaultLevel = number(d.PriorityLevels), number(d.DefaultPriority)
	for _, size := range d.PreferredBatchSize {
		p.Preferred = append(p.Preferred, int(size))
	}
	if d.DefaultQueuePolicy != nil {
		p.Queue = queuePolicy(*d.DefaultQueuePolicy)
	}
	p.LevelQueue = map[int]executor.QueuePolicy{}
	for _, entry := range d.PriorityQueuePolicy {
		p.LevelQueue[number(entry.Key)] = queuePolicy(entry.Value)
	}
	return p
}

func queuePolicy(q configgen.QueuePolicy) executor.QueuePolicy {
	return executor.QueuePolicy{
		MaxSize: int(q.MaxQueueSize), Timeout: microseconds(q.DefaultTimeout),
		AllowOverride: q.AllowTimeoutOverride, DelayExpired: q.TimeoutAction == configgen.TimeoutDelay,
	}
}

// microseconds is a time of the file; one that is longer than time itself is for ever.
func microseconds(us uint64) time.Duration {
	return time.Duration(min(us, math.MaxInt64/uint64(time.Microsecond))) * time.Microsecond
}

func number(n uint64) int { return int(min(n, math.MaxInt32)) }

func inputs(c *configgen.Config) (out []executor.Input) {
	for _, in := range c.Input {
		out = append(out, executor.Input{Name: in.Name, Dims: slices.Clone(in.Dims), Ragged: in.AllowRaggedBatch, Optional: in.Optional})
	}
	return out
}

// elementTypes are the data types that tensors of a model have.
var elementTypes = map[configgen.DataType]tensor.Type{
	configgen.TypeBool: tensor.Bool, configgen.TypeString: tensor.String,
	configgen.TypeUint8: tensor.Uint8, configgen.TypeUint16: tensor.Uint16, configgen.TypeUint32: tensor.Uint32, configgen.TypeUint64: tensor.Uint64,
	configgen.TypeInt8: tensor.Int8, configgen.TypeInt16: tensor.Int16, configgen.TypeInt32: tensor.Int32, configgen.TypeInt64: tensor.Int64,
	configgen.TypeFP16: tensor.Float16, configgen.TypeBF16: tensor.BFloat16, configgen.TypeFP32: tensor.Float32, configgen.TypeFP64: tensor.Float64,
}

// Declared gives the inputs and outputs as a file declares them, for
// [executor.ModelOptions]. A reshape is not done here: it is an error.
func Declared(c *configgen.Config) (in, out []executor.Declared, err error) {
	for _, p := range c.Input {
		if !sameShape(p.Reshape, p.Dims) {
			return nil, nil, reshapeError("input", p.Name)
		}
		in = append(in, executor.Declared{Name: p.Name, Type: elementTypes[p.DataType], Dims: slices.Clone(p.Dims)})
	}
	for _, p := range c.Output {
		if !sameShape(p.Reshape, p.Dims) {
			return nil, nil, reshapeError("output", p.Name)
		}
		out = append(out, executor.Declared{Name: p.Name, Type: elementTypes[p.DataType], Dims: slices.Clone(p.Dims)})
	}
	return in, out, nil
}

func sameShape(r *configgen.Reshape, dims []int64) bool {
	return r == nil || slices.Equal(r.Shape, dims)
}

func reshapeError(what, name string) error {
	return fmt.Errorf("%s %q: reshape is not done here; give the dims of the model", what, name)
}

// devices gives the device of each instance, numbered as in the file.
func devices(c *configgen.Config, o Options) (list []int, err error) {
	if list, err = groups(c); err != nil {
		return nil, err
	}
	if c.Backend == ascendGE {
		if list, err = onDevices(c, list, o); err != nil {
			return nil, err
		}
	}
	if o.Devices > 0 || o.Instances > 0 {
		list = spread(cmp.Or(o.Instances, len(list)), distinct(list, o))
	}
	if len(list) > mostInstances {
		return nil, fmt.Errorf("%d instances: at most %d can be run here", len(list), mostInstances)
	}
	return list, nil
}

// distinct counts devices, unless their number is given.
func distinct(list []int, o Options) int {
	if o.Devices > 0 {
		return o.Devices
	}
	return len(slices.Compact(slices.Sorted(slices.Values(list))))
}

// spread deals instances out to devices.
func spread(instances, devices int) []int {
	list := make([]int, min(instances, mostInstances+1))
	for i := range list {
		list[i] = i % devices
	}
	return list
}

// groups gives the instances of the groups: so many for each device that a group lists.
func groups(c *configgen.Config) (list []int, err error) {
	for _, g := range c.InstanceGroup {
		if g.Passive {
			continue
		}
		on := []int32{0}
		if len(g.GPUs) > 0 {
			on = g.GPUs
		}
		for _, device := range on {
			for range min(max(1, g.Count), mostInstances+1-int32(len(list))) {
				list = append(list, int(device))
			}
		}
	}
	if len(c.InstanceGroup) == 0 {
		list = []int{0}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("instance_group: all instances are passive, and nothing would run")
	}
	return list, nil
}

// onDevices spreads the instances over the devices of npu_ge, which are a parameter.
func onDevices(c *configgen.Config, list []int, o Options) ([]int, error) {
	text, ok := c.Parameter("device_ids")
	if !ok || o.Devices > 0 {
		return spread(len(list), 1), nil
	}
	var ids []int
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		id, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || id < 0 || id > mostDevice:
			return nil, fmt.Errorf("parameter device_ids %q: give numbers from 0 to %d, as in 0,1", text, mostDevice)
		case slices.Contains(ids, id):
			return nil, fmt.Errorf("parameter device_ids %q: device %d is there twice", text, id)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("parameter device_ids %q names no device", text)
	}
	for i := range list {
		list[i] = ids[i%len(ids)]
	}
	return list, nil
}

// readStreams reads how many batches npu_ge runs at once. Without device_exec_blocks it
// has a stream for every instance, and none ever waits for one.
func readStreams(c *configgen.Config, s *executor.Setup) error {
	for _, p := range []struct {
		name string
		into *int
	}{{"device_exec_blocks", &s.Streams}, {"instance_exec_blocks", &s.StreamsPerBatch}} {
		text, ok := c.Parameter(p.name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > mostStreams {
			return fmt.Errorf("parameter %s %q: give 1 to %d", p.name, text, mostStreams)
		}
		*p.into = n
	}
	if s.AtOnce() == 0 {
		return fmt.Errorf("parameter instance_exec_blocks %d: a batch would wait for ever, as all devices together have fewer streams (device_exec_blocks %d); give 1", s.StreamsPerBatch, s.Streams)
	}
	return nil
}

// readGears gives the gears of a model that npu_ge compiles, or those of the options.
func readGears(c *configgen.Config, s *executor.Signature, o Options) (*executor.Gears, error) {
	if len(o.Gears) > 0 {
		return executor.BatchGears(s, o.Gears...)
	}
	if c.Backend != ascendGE {
		return nil, nil
	}
	if static, _ := c.Parameter("static_model"); static == "1" && s.MaxBatch > 0 {
		return executor.BatchGears(s, 1)
	}
	shapes, hasShapes := c.Parameter("graph.ge.inputShape")
	dims, hasDims := c.Parameter("graph.ge.dynamicDims")
	if !hasShapes || !hasDims {
		return nil, nil
	}
	list, err := inputShapes(shapes, s)
	if err != nil {
		return nil, fmt.Errorf("parameter graph.ge.inputShape: %w", err)
	}
	rows, err := gears.Parse(dims)
	if err != nil {
		return nil, fmt.Errorf("parameter graph.ge.dynamicDims: %w", err)
	}
	g, err := executor.NewGears(s, list, rows)
	if err != nil {
		return nil, fmt.Errorf("parameter graph.ge.dynamicDims: %w", err)
	}
	return g, nil
}

// inputShapes reads NAME:DIM,DIM;NAME:DIM.
func inputShapes(text string, s *executor.Signature) (list []executor.GearInput, err error) {
	for part := range strings.SplitSeq(strings.Trim(text, "; "), ";") {
		at := strings.LastIndexByte(part, ':')
		if at < 0 {
			return nil, fmt.Errorf("%q is not NAME:DIM,DIM", part)
		}
		in := executor.GearInput{}
		if in.Input, err = s.Find(strings.TrimSpace(part[:at])); err != nil {
			return nil, err
		}
		for word := range strings.SplitSeq(part[at+1:], ",") {
			d, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
			if err != nil || d < -1 || d == 0 {
				return nil, fmt.Errorf("input %q: %q is no dim: give whole numbers from 1 to %d, or -1", s.Inputs[in.Input].Name, word, math.MaxInt32)
			}
			in.Dims = append(in.Dims, d)
		}
		list = append(list, in)
	}
	return list, nil
}

// notesOn tells what is in the file and has no part here, or another than it may seem.
func notesOn(c *configgen.Config, s *executor.Setup) (notes []string) {
	if most := s.AtOnce(); most < len(s.Devices) {
		notes = append(notes, fmt.Sprintf("device_exec_blocks %d: of %d instances %d at most run at once, the others wait for a stream", s.Streams, len(s.Devices), most))
	}
	if s.StreamsPerBatch > 1 {
		notes = append(notes, fmt.Sprintf("instance_exec_blocks %d: batches are split over streams; published versions of npu_ge compute wrong results with it", s.StreamsPerBatch))
	}
	if c.Cached() {
		notes = append(notes, "response_cache: every request runs here, as if none had come before")
	}
	for _, g := range c.InstanceGroup {
		if g.RateLimiter != nil {
			return append(notes, "rate_limiter: it is off, as it is in a server without a flag for it")
		}
	}
	return notes
}
