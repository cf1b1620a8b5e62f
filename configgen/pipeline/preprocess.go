package pipeline

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
)

// The words of image/model.py.
var (
	resizes        = []string{"stretch", "crop", "letterbox"}
	interpolations = []string{"nearest", "bilinear", "bicubic", "lanczos", "box"}
	colours        = []string{"rgb", "bgr", "gray"}
	layouts        = []string{"NCHW", "NHWC"}
)

// preset is how a family of models wants its pictures.
type preset struct {
	name          string
	resize        string
	shortSide     float64 // of a crop, as a multiple of the longer side of the model's picture
	interpolation string
	scale         float64
	mean, std     []float64
}

// presets are the families; the first is what happens without one. The numbers are
// those with which the models were trained.
var presets = []preset{
	{"unit", "stretch", 1, "bilinear", 1.0 / 255, []float64{0}, []float64{1}},
	{"cn_clip", "stretch", 1, "bicubic", 1.0 / 255, clipMean, clipStd},
	{"clip", "crop", 1, "bicubic", 1.0 / 255, clipMean, clipStd},
	{"imagenet", "crop", 256.0 / 224, "bilinear", 1.0 / 255, []float64{0.485, 0.456, 0.406}, []float64{0.229, 0.224, 0.225}},
	{"inception", "stretch", 1, "bilinear", 1 / 127.5, []float64{1}, []float64{1}}, // -1 to 1, as TensorFlow's models
	{"yolo", "letterbox", 1, "bilinear", 1.0 / 255, []float64{0}, []float64{1}},
	{"bytes", "stretch", 1, "bilinear", 1, []float64{0}, []float64{1}}, // 0 to 255
}

var (
	clipMean = []float64{0.48145466, 0.4578275, 0.40821073}
	clipStd  = []float64{0.26862954, 0.26130258, 0.27577711}
)

func presetNames() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// usualPad is the grey of the bars around letterboxed pictures, as YOLO is trained.
const usualPad = 114

// usualMaxPixels bounds what one picture costs: 64 megapixels are 192 MB.
const usualMaxPixels = 64 << 20

// preprocessInstances is how many processes decode, where nobody says otherwise.
const preprocessInstances = 2

// The tensors of the preprocessing model.
const (
	pictureFiles  = "files"
	pictureTensor = "picture"
	geometry      = "geometry"
)

// target is the input of a model that takes pictures.
type target struct {
	*configgen.Input
	height, width, channels int64 // open is -1
	layout                  string
	// lead are dims in front of a picture: none where the server adds the batch, the
	// batch itself in whole shapes, none for a model of one picture.
	lead []int64
}

// preprocessPart makes the part before the model.
func (j *EnsembleJob) preprocessPart(model *part, wantsGeometry bool) (*part, error) {
	spec := j.spec.Preprocess
	in, err := findTarget(spec, model)
	if err != nil {
		return nil, err
	}
	if err := spec.complete(in); err != nil {
		return nil, err
	}
	settings, err := spec.settings(in)
	if err != nil {
		return nil, err
	}
	p := &part{role: rolePreprocess, packages: []string{"pillow"}}
	count := in.lead
	if len(count) == 0 {
		count = []int64{1} // one element, or one for each of the batch
	}
	picture := []int64{in.channels, in.height, in.width}
	if in.layout == "NHWC" {
		picture = []int64{in.height, in.width, in.channels}
	}
	p.config = &configgen.Config{
		Name: spec.Name.or(j.name() + "_" + rolePreprocess), MaxBatchSize: model.config.MaxBatchSize,
		Input:         []configgen.Input{{Name: pictureFiles, DataType: configgen.TypeString, Dims: count}},
		Output:        []configgen.Output{{Name: pictureTensor, DataType: in.DataType, Dims: slices.Concat(in.lead, picture)}},
		InstanceGroup: cpuInstances(spec.Instances.or(preprocessInstances)),
	}
	if wantsGeometry {
		p.config.Output = append(p.config.Output, configgen.Output{Name: geometry, DataType: configgen.TypeFP32, Dims: slices.Concat(in.lead, []int64{6})})
	}
	if p.files, err = template("image", j.version()); err != nil {
		return nil, err
	}
	return p, p.pythonConfig(
		fmt.Sprintf("Made by npuctl config ensemble: pictures (PNG, JPEG, …) to the input %s of %s (model.py; needs numpy and pillow).", in.Name, model.config.Name),
		map[string]string{
			"input":          "Each element is one picture as a file.",
			"instance_group": "Each instance is a process that decodes one request after another: as many as there are cores to spare.",
		}, settings, j.environment())
}

// findTarget gives the input that takes pictures.
func findTarget(spec *preprocessSpec, model *part) (*target, error) {
	if name := spec.To; name.given() {
		in := model.input(name.Value)
		if in == nil {
			return nil, name.refuse("the model %s has no input %q", model.config.Name, name.Value).With("%s", suggest.Text(name.Value, inputNames(model.config)))
		}
		return asTarget(spec, name.place, in, model.config.MaxBatchSize > 0)
	}
	var found []*configgen.Input
	for i := range model.config.Input {
		in := &model.config.Input[i]
		if _, err := asTarget(spec, spec.place, in, model.config.MaxBatchSize > 0); err == nil {
			found = append(found, in)
		}
	}
	switch len(found) {
	case 1:
		return asTarget(spec, spec.place, found[0], model.config.MaxBatchSize > 0)
	case 0:
		return nil, spec.refuse("no input of %s takes pictures: %s", model.config.Name, inputTexts(model.config)).With("name it with to: it must have height, width and 1 or 3 channels")
	}
	return nil, spec.refuse("several inputs of %s could take pictures: %s and %s", model.config.Name, found[0].Name, found[1].Name).With("name one with to:")
}

func inputTexts(c *configgen.Config) (text string) {
	for i, in := range c.Input {
		if i > 0 {
			text += ", "
		}
		text += in.Name + " " + describe(in.DataType, in.Dims)
	}
	return text
}

// asTarget reads an input as pictures.
func asTarget(spec *preprocessSpec, at place, in *configgen.Input, hasBatch bool) (*target, error) {
	t := &target{Input: in, layout: spec.Layout.Value}
	is := describe(in.DataType, in.Dims)
	switch in.DataType {
	case configgen.TypeFP32, configgen.TypeFP16, configgen.TypeFP64, configgen.TypeUint8:
	default:
		return nil, at.refuse("input %s is %s: pictures are FP32, FP16, FP64 or UINT8", in.Name, is)
	}
	dims := in.Dims
	if !hasBatch && len(dims) == 4 {
		t.lead, dims = dims[:1], dims[1:]
	}
	if len(dims) != 3 {
		return nil, at.refuse("input %s is %s: a picture has three dims behind the batch", in.Name, is)
	}
	isCount := func(n int64) bool { return n == 1 || n == 3 }
	if t.layout == "" {
		t.layout = "NCHW"
		if !isCount(dims[0]) && isCount(dims[2]) {
			t.layout = "NHWC"
		}
	}
	t.channels, t.height, t.width = dims[0], dims[1], dims[2]
	if t.layout == "NHWC" {
		t.height, t.width, t.channels = dims[0], dims[1], dims[2]
	}
	if !isCount(t.channels) {
		return nil, at.refuse("input %s is %s: in the layout %s that is %d channels, and a picture has 1 or 3", in.Name, is, t.layout, t.channels)
	}
	return t, nil
}

// complete fills in the sizes that the model leaves open.
func (spec *preprocessSpec) complete(t *target) error {
	size := spec.Size.Value
	if len(size) == 1 {
		size = []int64{size[0], size[0]}
	}
	for i, side := range []*int64{&t.height, &t.width} {
		switch {
		case len(size) == 0 && *side < 0:
			return spec.refuse("the model leaves the size of its pictures open: input %s is %s", t.Name, describe(t.DataType, t.Dims)).With("give size: [height, width]")
		case len(size) == 0:
		case *side >= 0 && *side != size[i]:
			return spec.Size.refuse("the model takes pictures of %d x %d (height x width), not %d x %d", t.height, t.width, size[0], size[1]).With("leave size out")
		default:
			*side = size[i]
		}
	}
	return nil
}

// settings are the parameters of image/model.py.
func (spec *preprocessSpec) settings(t *target) ([]parameter, error) {
	p := presets[max(0, slices.IndexFunc(presets, func(p preset) bool { return p.name == spec.Preset.Value }))]
	why := func(at place) string {
		if at.given() {
			return "As asked."
		}
		return "As the preset " + p.name + " has it."
	}
	colour := spec.Colour.or(map[int64]string{1: "gray", 3: "rgb"}[t.channels])
	if (colour == "gray") != (t.channels == 1) {
		return nil, spec.Colour.refuse("%s: the model takes %d channels", colour, t.channels)
	}
	mean, err := perChannel(spec.Mean, p.mean, t.channels)
	if err != nil {
		return nil, err
	}
	std, err := perChannel(spec.Std, p.std, t.channels)
	if err != nil {
		return nil, err
	}
	if t.DataType == configgen.TypeUint8 {
		for _, at := range []place{spec.Scale.place, spec.Mean.place, spec.Std.place} {
			if at.given() {
				return nil, at.refuse("it would be ignored: the model takes bytes (UINT8), which are given as they are")
			}
		}
	}
	shortest := max(t.height, t.width)
	short := spec.ShortSide.or(int64(float64(shortest)*p.shortSide + 0.5))
	if spec.Resize.or(p.resize) == "crop" && short < shortest {
		return nil, spec.ShortSide.refuse("%d is shorter than the %d that are cut out", short, shortest)
	}
	return []parameter{
		{"size", numbers([]int64{t.height, t.width}), "Height and width of the model's pictures."},
		{"resize", spec.Resize.or(p.resize), "stretch: to the size, whatever the form. crop: the shorter side to short_side, and the middle cut out. letterbox: all of it, with bars. " + why(spec.Resize.place)},
		{"short_side", strconv.FormatInt(short, 10), "Of crop alone."},
		{"interpolation", spec.Interpolation.or(p.interpolation), "nearest, bilinear, bicubic, lanczos or box, as Pillow does them: when it shrinks a picture, every pixel counts. " + why(spec.Interpolation.place)},
		{"pad", strconv.FormatInt(spec.Pad.or(usualPad), 10), "The grey of letterbox's bars, 0 to 255."},
		{"colour", colour, "The order of the channels: rgb or bgr; gray for one."},
		{"layout", t.layout, "Where the channels stand."},
		{"scale", strconv.FormatFloat(spec.Scale.or(p.scale), 'g', -1, 64), "A pixel of 0 to 255 times scale, less mean, divided by std. " + why(spec.Scale.place)},
		{"mean", numbers(mean), "For each channel, or for all. " + why(spec.Mean.place)},
		{"std", numbers(std), "For each channel, or for all. " + why(spec.Std.place)},
		{"upright", strconv.FormatBool(spec.Upright.Value), "true turns pictures as their EXIF says."},
		{"max_pixels", strconv.FormatInt(spec.MaxPixels.or(usualMaxPixels), 10), "A larger picture is refused before it is decoded."},
	}, nil
}

// perChannel gives one number, or one for each channel.
func perChannel(given setting[[]float64], usual []float64, channels int64) ([]float64, error) {
	list := given.or(usual)
	if n := int64(len(list)); n == 1 || n == channels {
		return list, nil
	}
	if given.given() {
		return nil, given.refuse("%d numbers for %d channels", len(list), channels).With("give one, or one for each channel")
	}
	return nil, fault.New(fault.Input, "the preset has %d numbers, and the model takes %d channels", len(list), channels).
		With("give mean and std in preprocess")
}
