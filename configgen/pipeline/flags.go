package pipeline

import (
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// flagSetting is the setting of the file that does what a flag of npuctl config does.
type flagSetting struct {
	flag, name string
	place
}

// flagSettings are all of them.
func (j *EnsembleJob) flagSettings() []flagSetting {
	m := j.spec.Model
	return []flagSetting{
		{"--max-batch-size", "max_batch_size", j.spec.MaxBatchSize.place}, {"--version", "version", j.spec.Version.place},
		{"--name", "name", m.Name.place}, {"--backend", "backend", m.Backend.place}, {"--batch", "batch", m.Batch.place},
		{"--dim", "dims", m.Dims.place}, {"--input-shape", "input_shapes", m.InputShapes.place}, {"--gears", "gears", m.Gears.place},
		{"--static", "static", m.Static.place}, {"--no-optimize", "no_optimize", m.NoOptimize.place}, {"--instances", "instances", m.Instances.place}, {"--devices", "devices", m.Devices.place},
		{"--streams", "streams", m.Streams.place}, {"--precision", "precision", m.Precision.place}, {"--aicore-num", "aicore_num", m.AICoreNum.place},
		{"--preferred", "preferred", m.Preferred.place}, {"--max-queue-delay", "max_queue_delay", m.MaxQueueDelay.place},
	}
}

// settingNames turns names of flags into those of settings.
func (j *EnsembleJob) settingNames() *strings.Replacer {
	var pairs []string
	for _, s := range j.flagSettings() {
		pairs = append(pairs, s.flag, s.name)
	}
	return strings.NewReplacer(pairs...)
}

// nameSettings turns names of flags into those of settings in what is told of a part, and
// in the comments of its config.
func (j *EnsembleJob) nameSettings(p *part) {
	names := j.settingNames()
	for i, note := range p.notes {
		p.notes[i] = names.Replace(note)
	}
	lines := strings.SplitAfter(string(p.text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#"+configgen.OwnMark) {
			lines[i] = names.Replace(line)
		}
	}
	p.text = []byte(strings.Join(lines, ""))
}

// inSettings tells what package generate says against flags to whoever wrote a file:
// where the setting stands, and as a fault of the file.
func (j *EnsembleJob) inSettings(err error) error {
	f, ok := err.(*fault.Error)
	if !ok {
		return j.spec.Model.faultOf(err)
	}
	family := f.Family
	if family == fault.Usage {
		family = fault.Input
	}
	at, first := j.spec.Model.place, -1
	for _, s := range j.flagSettings() {
		if i := strings.Index(f.Err.Error(), s.flag); i >= 0 && s.given() && (first < 0 || i < first) {
			at, first = s.place, i
		}
	}
	if first < 0 && !strings.Contains(f.Error(), "--") {
		return at.faultOf(&fault.Error{Family: family, Err: f.Err, Remedy: f.Remedy})
	}
	names := j.settingNames()
	return fault.New(family, "%s: %s", at, names.Replace(f.Err.Error())).With("%s", names.Replace(f.Remedy))
}
