package pipeline

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
)

// The formats of boxes/model.py.
const (
	formatYOLO11   = "yolo11"
	formatYOLOv5   = "yolov5"
	formatEndToEnd = "end2end"
)

var formats = []string{formatYOLO11, formatYOLOv5, formatEndToEnd}

// labelsFile is what the names of classes are called beside a model's config.
const labelsFile = "labels.txt"

// raw is the input of the postprocessing models: what the model gives.
const raw = "raw"

// What boxes/model.py does where nobody says otherwise.
const (
	usualConfidence    = 0.25
	usualOverlap       = 0.7
	usualMaxBoxes      = 300
	usualMaxCandidates = 30000
	usualK             = 5
)

// source is the output of a model that the part behind it takes.
type source struct {
	*configgen.Output
	lead, item []int64 // dims in front of an item, and those of one
}

// postprocessPart makes the part behind the model.
func (j *EnsembleJob) postprocessPart(model *part) (*part, error) {
	spec := j.spec.Postprocess
	from, err := findSource(spec, model)
	if err != nil {
		return nil, err
	}
	p := &part{role: rolePostprocess}
	p.config = &configgen.Config{
		Name: spec.Name.or(j.name() + "_" + rolePostprocess), MaxBatchSize: model.config.MaxBatchSize,
		Input:         []configgen.Input{{Name: raw, DataType: from.DataType, Dims: from.Dims}},
		InstanceGroup: cpuInstances(spec.Instances.or(1)),
	}
	answer := map[string]func(*part, source) ([]parameter, error){kindFeatures: j.features, kindTopK: j.topK, kindBoxes: j.boxes}[spec.Kind.Value]
	settings, err := answer(p, from)
	if err != nil {
		return nil, err
	}
	files, err := template(spec.Kind.Value, j.version())
	if err != nil {
		return nil, err
	}
	p.files = append(files, p.files...)
	return p, p.pythonConfig(
		fmt.Sprintf("Made by npuctl config ensemble: %s from the output %s of %s (model.py; needs numpy).", spec.Kind.Value, from.Name, model.config.Name),
		map[string]string{"instance_group": "Each instance is a process."}, settings, j.environment())
}

// itemRanks are how many dims one item of the model's output has, by the kind.
var itemRanks = map[string]int{kindFeatures: 1, kindTopK: 1, kindBoxes: 2}

// findSource gives the output to work on: the one named, or the only one that fits.
func findSource(spec *postprocessSpec, model *part) (source, error) {
	if name := spec.From; name.given() {
		out := model.output(name.Value)
		if out == nil {
			return source{}, name.refuse("the model %s has no output %q", model.config.Name, name.Value).With("%s", suggest.Text(name.Value, outputNames(model.config)))
		}
		return asSource(spec, name.place, out, model.config.MaxBatchSize > 0)
	}
	var found []*configgen.Output
	for i := range model.config.Output {
		if _, err := asSource(spec, spec.place, &model.config.Output[i], model.config.MaxBatchSize > 0); err == nil {
			found = append(found, &model.config.Output[i])
		}
	}
	switch len(found) {
	case 1:
		return asSource(spec, spec.place, found[0], model.config.MaxBatchSize > 0)
	case 0:
		return asSource(spec, spec.place, &model.config.Output[0], model.config.MaxBatchSize > 0)
	}
	return source{}, spec.refuse("%s could be made of several outputs of %s: %s and %s", spec.Kind.Value, model.config.Name, found[0].Name, found[1].Name).With("name one with from:")
}

func asSource(spec *postprocessSpec, at place, out *configgen.Output, hasBatch bool) (s source, err error) {
	rank := itemRanks[spec.Kind.Value]
	s = source{Output: out, item: out.Dims}
	is := describe(out.DataType, out.Dims)
	switch out.DataType {
	case configgen.TypeFP32, configgen.TypeFP16, configgen.TypeFP64:
	default:
		return s, at.refuse("output %s is %s: %s are made of FP32, FP16 or FP64", out.Name, is, spec.Kind.Value)
	}
	if !hasBatch && len(s.item) > 0 {
		s.lead, s.item = s.item[:1], s.item[1:]
	}
	if len(s.item) != rank || out.Reshape != nil {
		return s, at.refuse("output %s is %s: %s need %s behind the batch", out.Name, is, spec.Kind.Value, terminal.Counted(rank, "dim")).With("name another output with from:")
	}
	return s, nil
}

// features makes a feature vector.
func (j *EnsembleJob) features(p *part, from source) ([]parameter, error) {
	p.config.Output = []configgen.Output{{Name: "features", DataType: configgen.TypeFP32, Dims: from.Dims}}
	return []parameter{
		{"normalise", strconv.FormatBool(j.spec.Postprocess.Normalise.or(true)), "true: vectors of length 1, whose products are cosines."},
	}, nil
}

// topK makes the best classes.
func (j *EnsembleJob) topK(p *part, from source) ([]parameter, error) {
	spec := j.spec.Postprocess
	classes, k := from.item[0], spec.K.or(usualK)
	if classes > 0 && k > classes {
		if spec.K.given() {
			return nil, spec.K.refuse("the model has %d classes", classes)
		}
		k = classes
	}
	softmax, why := spec.Softmax.Value, "As asked."
	if !spec.Softmax.given() {
		softmax, why = true, "The model gives what stands before a Softmax, as far as its graph tells."
		if m := j.spec.Model.Path; m.given() && endsInSoftmax(j.spec.resolve(m.Value), from.Name) {
			softmax, why = false, "The model's last operator makes probabilities already."
		}
	}
	dims := slices.Concat(from.lead, []int64{k})
	p.config.Output = []configgen.Output{
		{Name: "classes", DataType: configgen.TypeInt32, Dims: dims}, {Name: "scores", DataType: configgen.TypeFP32, Dims: dims},
	}
	settings := []parameter{
		{"k", strconv.FormatInt(k, 10), "How many of the best classes; outputs' dims follow it."},
		{"softmax", strconv.FormatBool(softmax), why},
	}
	return j.addLabels(p, settings, classes, dims)
}

// boxes makes detections.
func (j *EnsembleJob) boxes(p *part, from source) ([]parameter, error) {
	spec := j.spec.Postprocess
	format, classes, err := spec.boxFormat(from)
	if err != nil {
		return nil, err
	}
	if j.spec.Preprocess != nil {
		p.config.Input = append(p.config.Input, configgen.Input{Name: geometry, DataType: configgen.TypeFP32, Dims: slices.Concat(from.lead, []int64{6})})
	} else {
		p.note("boxes are in the model's picture, since no preprocess of this pipeline knows the original")
	}
	most := spec.MaxBoxes.or(usualMaxBoxes)
	dims := func(item ...int64) []int64 { return slices.Concat(from.lead, item) }
	p.config.Output = []configgen.Output{
		{Name: "boxes", DataType: configgen.TypeFP32, Dims: dims(most, 4)}, {Name: "scores", DataType: configgen.TypeFP32, Dims: dims(most)},
		{Name: "classes", DataType: configgen.TypeInt32, Dims: dims(most)}, {Name: "count", DataType: configgen.TypeInt32, Dims: dims(1)},
	}
	float := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	settings := []parameter{
		{"format", format, "What the model gives: model.py says what yolo11, yolov5 and end2end are."},
		{"confidence", float(spec.Confidence.or(usualConfidence)), "Candidates with lower scores are left out."},
		{"overlap", float(spec.Overlap.or(usualOverlap)), "Of two boxes that share more than this (intersection over union), the better stays."},
		{"across_classes", strconv.FormatBool(spec.AcrossClasses.Value), "true: of boxes of different classes, too."},
		{"max_boxes", strconv.FormatInt(most, 10), "How many boxes a picture has at most; outputs' dims follow it."},
		{"max_candidates", strconv.FormatInt(spec.MaxCandidates.or(usualMaxCandidates), 10), "How many of the best candidates are looked at."},
	}
	return j.addLabels(p, settings, classes, dims(most))
}

// boxFormat says how candidates stand in the model's output, and for how many classes;
// -1 when the output does not tell.
func (spec *postprocessSpec) boxFormat(from source) (format string, classes int64, err error) {
	rows, columns := from.item[0], from.item[1]
	format = spec.Format.Value
	if format == "" {
		switch {
		case columns == 6:
			format = formatEndToEnd
		case rows > 0 && (columns < 0 || columns > rows):
			format = formatYOLO11
		case columns > 0:
			format = formatYOLOv5
		default:
			return "", 0, spec.refuse("output %s is %s, which does not tell its format", from.Name, describe(from.DataType, from.Dims)).With("give format: %s, %s or %s", formatYOLO11, formatYOLOv5, formatEndToEnd)
		}
	}
	at := spec.Format.place
	if !at.given() {
		at = spec.place
	}
	needs := map[string][2]int64{formatYOLO11: {rows, 4}, formatYOLOv5: {columns, 5}, formatEndToEnd: {columns, 6}}[format]
	switch have, least := needs[0], needs[1]; {
	case have < 0:
		return format, -1, nil
	case format == formatEndToEnd && have != least, have <= least && format != formatEndToEnd:
		return "", 0, at.refuse("output %s is %s: that is not the format %s", from.Name, describe(from.DataType, from.Dims), format)
	case format == formatEndToEnd:
		return format, -1, nil
	default:
		return format, have - least, nil
	}
}

// labelsLimit bounds a file of names.
const labelsLimit = 16 << 20

// addLabels adds the output of names, and the file, where the pipeline has one.
func (j *EnsembleJob) addLabels(p *part, settings []parameter, classes int64, dims []int64) ([]parameter, error) {
	labels := j.spec.Postprocess.Labels
	if !labels.given() {
		return settings, nil
	}
	data, count, err := readLabels(j.spec.resolve(labels.Value))
	if err != nil {
		return nil, labels.faultOf(err)
	}
	if classes >= 0 && int64(count) != classes {
		return nil, labels.refuse("%s has %d lines, and the model %d classes", labels.Value, count, classes)
	}
	p.config.Output = append(p.config.Output, configgen.Output{Name: "labels", DataType: configgen.TypeString, Dims: dims})
	p.files = append(p.files, file{path: labelsFile, data: data})
	return append(settings, parameter{"labels", labelsFile, "The names of the classes, one a line, beside this file."}), nil
}

func readLabels(path string) (data []byte, lines int, err error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > labelsLimit) {
		err = fmt.Errorf("%s is no file of at most %d bytes", path, labelsLimit)
	}
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, 0, fault.New(fault.Input, "%w", err)
	}
	if !utf8.Valid(data) {
		return nil, 0, fault.New(fault.Input, "%s is not UTF-8", path)
	}
	lines = bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	return data, lines, nil
}
