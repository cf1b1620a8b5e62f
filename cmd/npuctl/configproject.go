package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/project"
)

// served is a setting of the section serve and the flag that it stands in for.
type served struct {
	setting, flag string
	// values are what the flag is given, one after another; none where the file is silent.
	values []string
	// isFor says of what a setting is told only; nil is always.
	isFor func(*servedFor) bool
}

// servedFor is what decides whether settings of the section serve have a meaning.
type servedFor struct {
	isProjects bool // the model is the project's own
	hasGears   bool
	isGE       bool
	batches    bool
}

func ofProject(w *servedFor) bool { return w.isProjects }
func ofBatch(w *servedFor) bool   { return w.isProjects && !w.hasGears }
func ofGE(w *servedFor) bool      { return w.isGE }
func ofQueue(w *servedFor) bool   { return w.batches }

// serveSettings are the settings of the section serve as flags.
func serveSettings(p *project.Project) []served {
	s := p.Serve
	text := func(value string) []string { return ifSet(value != "", value) }
	file := func(value string) []string { return ifSet(value != "", p.Resolve(value)) }
	number := func(n int64) []string { return ifSet(n != 0, strconv.FormatInt(n, 10)) }
	span := func(d time.Duration) []string { return ifSet(d != 0, d.String()) }
	yes := func(b bool) []string { return ifSet(b, "true") }
	list := func(n []int64) []string {
		return ifSet(len(n) > 0, strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", ","), "[]"))
	}
	var data []string
	for _, input := range slices.Sorted(maps.Keys(s.WarmupData)) {
		data = append(data, input+"="+p.Resolve(s.WarmupData[input]))
	}
	largest := ifSet(p.Has("serve", "max_batch_size"), strconv.FormatInt(s.MaxBatchSize, 10))
	return []served{
		{"name", "name", text(s.Name), ofProject},
		{"repository", "output", file(s.Repository), nil},
		{"version", "version", number(s.Version), ofProject},
		{"backend", "backend", text(s.Backend), nil},
		{"version_policy", "version-policy", text(s.VersionPolicy), nil},
		{"max_batch_size", "max-batch-size", largest, ofBatch},
		{"preferred", "preferred", list(s.Preferred), ofQueue},
		{"max_queue_delay", "max-queue-delay", span(s.MaxQueueDelay), ofQueue},
		{"no_batching", "no-batching", yes(s.NoBatching), nil},
		{"priority_levels", "priority-levels", number(s.PriorityLevels), ofQueue},
		{"default_priority", "default-priority", number(s.DefaultPriority), ofQueue},
		{"queue_timeout", "queue-timeout", span(s.QueueTimeout), ofQueue},
		{"queue_timeout_action", "queue-timeout-action", text(s.QueueTimeoutAction), ofQueue},
		{"allow_timeout_override", "allow-timeout-override", yes(s.AllowTimeoutOverride), ofQueue},
		{"max_queue_size", "max-queue-size", number(s.MaxQueueSize), ofQueue},
		{"preserve_ordering", "preserve-ordering", yes(s.PreserveOrdering), ofQueue},
		{"instances", "instances", number(s.Instances), nil},
		{"devices", "devices", list(s.Devices), nil},
		{"streams", "streams", number(s.Streams), ofGE},
		{"profiling", "profiling", text(s.Profiling), ofGE},
		{"dump", "dump", ifSet(len(s.Dump) > 0, strings.Join(s.Dump, ",")), ofGE},
		{"warmup", "warmup", text(s.Warmup), nil},
		{"warmup_data", "warmup-data", data, ofProject},
		{"warmup_count", "warmup-count", number(s.WarmupCount), nil},
		{"eas", "eas", file(s.EAS), nil},
		{"kserve", "kserve", file(s.KServe), nil},
		{"k8s", "k8s", file(s.K8s), nil},
		{"image", "image", text(s.Image), nil},
		{"storage", "storage", text(s.Storage), nil},
		{"protocol", "protocol", text(s.Protocol), nil},
		{"service", "service", text(s.Service), nil},
		{"npu_resource", "npu-resource", text(s.NPUResource), nil},
		{"npus", "npus", number(s.NPUs), nil},
		{"replicas", "replicas", number(s.Replicas), nil},
		{"shared_memory", "shared-memory", number(s.SharedMemory), nil},
	}
}

func ifSet(is bool, value string) []string {
	if is {
		return []string{value}
	}
	return nil
}

// ofCluster are settings that say nothing where no file for a cluster is written.
var ofCluster = []string{"image", "storage", "protocol", "service", "npu_resource", "npus", "replicas", "shared_memory"}

// serveFrom gives flags that the command line leaves out the values that the section
// serve has for them. taken are the settings by the flag, for messages.
func serveFrom(p *project.Project, flags *pflag.FlagSet, f *configFlags, args []string) (chosen []string, taken map[string]string, err error) {
	taken = map[string]string{}
	for _, s := range serveSettings(p) {
		isUseless := slices.Contains(ofCluster, s.setting) && len(f.services.platforms()) == 0 || s.setting == "warmup_count" && !flags.Changed("warmup") && !flags.Changed("warmup-data")
		if len(s.values) == 0 || flags.Changed(s.flag) || isUseless {
			continue
		}
		w := servedFor{
			isProjects: len(args) == 0 || isSameFile(args[0], p.ModelPath()),
			hasGears:   f.job.Gears != "" || p.Gears.Text != "" && !f.job.Static && !f.job.Dynamic && !f.sizes.isSet(),
			isGE:       f.job.Backend == "" || f.job.Backend == generate.GE,
			batches:    !f.job.NoBatching,
		}
		if s.isFor != nil && !s.isFor(&w) {
			continue
		}
		for _, value := range s.values {
			if err := flags.Set(s.flag, value); err != nil {
				return nil, nil, fault.New(fault.Input, "%s: %s %s: %w", p.Place("serve", s.setting), s.setting, value, err)
			}
		}
		taken[s.flag] = s.setting
		chosen = append(chosen, fmt.Sprintf("%s %s: %s says so", s.flag, strings.Join(s.values, ", "), project.FileName))
	}
	return chosen, taken, nil
}

// blameServe tells a failure that names a flag for which the project file stands in
// where the file says it.
func blameServe(err error, p *project.Project, taken map[string]string) error {
	var f *fault.Error
	if p == nil || !errors.As(err, &f) {
		return err
	}
	for _, flag := range slices.Sorted(maps.Keys(taken)) {
		if at := strings.Index(f.Err.Error(), "--"+flag); at >= 0 && !strings.HasPrefix(f.Err.Error()[at+2+len(flag):], "-") {
			family := f.Family
			if family == fault.Usage {
				family = fault.Input
			}
			return fault.New(family, "%s: %w", p.Place("serve", taken[flag]), f.Err).With("%s", f.Remedy)
		}
	}
	return err
}
