package part

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// A config that a part cannot do is a fault of the input that names the parameter.
func TestRefused(t *testing.T) {
	image := func(settings ...string) *configgen.Config {
		return imageConfig(8, configgen.TypeFP32, 8, 8, 3, settings...)
	}
	post := func(in, out int, dims []int64, settings ...string) *configgen.Config {
		c := postConfig(8, nil, nil, settings...)
		for range in {
			c.Input = append(c.Input, configgen.Input{Name: "raw", DataType: configgen.TypeFP32, Dims: dims})
		}
		c.Output = make([]configgen.Output, out)
		return c
	}
	boxes := []string{"format", "yolo11", "confidence", "0.25", "overlap", "0.7", "across_classes", "false", "max_boxes", "30", "max_candidates", "300"}
	with := func(list []string, more ...string) []string { return append(list[:len(list):len(list)], more...) }
	text := image()
	text.Input[0].DataType = configgen.TypeUint8
	for _, test := range []struct {
		kind   Kind
		config *configgen.Config
		want   string
	}{
		{Image, image("resize", "fit"), `parameter resize "fit": `},
		{Image, image("size", "8"), `parameter size "8": give HEIGHT,WIDTH`},
		{Image, image("size", "30000,30000"), `parameter size "30000,30000": give HEIGHT,WIDTH, of at most`},
		{Image, image("size", "8,9"), `output picture has dims [8 8 3], and the parameters size, colour and layout make [8 9 3]`},
		{Image, image("layout", "NHWC", "colour", "gray"), `and the parameters size, colour and layout make [8 8 1]`},
		{Image, image("mean", "1,2"), `parameter mean "1,2": give one number, or 3`},
		{Image, image("scale", "x"), `parameter scale: "x" is no number`},
		{Image, image("max_pixels", "9999999999"), `parameter max_pixels "9999999999": give a whole number from 1 to 1073741824`},
		{Image, text, `input files is TYPE_UINT8: pictures are files, TYPE_STRING`},
		{Image, &configgen.Config{}, `it has 0 inputs and 0 outputs: such a model has 1, and 1 to 2`},
		{Features, post(1, 1, []int64{4}), `the parameter normalise is missing`},
		{Features, post(1, 2, []int64{4}, "normalise", "true"), `it has 1 inputs and 2 outputs`},
		{TopK, post(1, 2, []int64{4}, "softmax", "true", "k", "0"), `parameter k "0": give a whole number from 1 to 32767`},
		{TopK, post(1, 3, []int64{4}, "softmax", "true", "k", "1", "labels", "../labels.txt"), `parameter labels "../labels.txt": give a file in the folder of the model`},
		{TopK, post(1, 3, []int64{4}, "softmax", "true", "k", "1", "labels", "none.txt"), `parameter labels: `},
		{Boxes, post(1, 4, []int64{4}, boxes...), `input raw has 2 dims with the batch: candidates of pictures have 3`},
		{Boxes, post(3, 4, []int64{4, 5}, boxes...), `it has 3 inputs: such a model has 1 or 2`},
		{Boxes, post(1, 4, []int64{4, 5}, with(boxes, "format", "yolo12")...), `parameter format "yolo12": did you mean "yolo11"?`},
		{Boxes, post(1, 4, []int64{4, 5}, with(boxes, "max_boxes", "1000000")...), `parameter max_boxes "1000000": give a whole number from 1 to 100000`},
	} {
		_, err := New(test.kind, test.config, t.TempDir())
		if err == nil || !strings.HasPrefix(err.Error(), test.want) && !strings.Contains(err.Error(), test.want) || fault.FamilyOf(err) != fault.Input {
			t.Errorf("%s: %v\nwant %s", test.kind, err, test.want)
		}
	}
}

// Requests that a part cannot answer are errors, and no panics.
func TestRequestsRefused(t *testing.T) {
	settings := []string{"format", "yolo11", "confidence", "0", "overlap", "0.7", "across_classes", "false", "max_boxes", "3", "max_candidates", "300", "labels", "labels.txt"}
	outputs := make([]configgen.Output, 5)
	folder := labelled(t, "one\ntwo\n")
	for format, test := range map[string]struct {
		in   value
		want string
	}{
		"yolo11":  {floats("FP32", 1, 1, 4, 3), "candidates have 4 numbers: no class is among them"},
		"yolov5":  {floats("FP32", 1, 1, 3, 5), "candidates have 5 numbers: no class is among them"},
		"end2end": {floats("FP32", 1, 1, 1, 6).with(4, 1).with(5, 7), "the class 7 has no name: the file of labels has 2"},
	} {
		config := postConfig(8, []configgen.Input{{Name: "raw", DataType: configgen.TypeFP32, Dims: []int64{-1, -1}}}, outputs, append(settings[:len(settings):len(settings)], "format", format)...)
		p, err := New(Boxes, config, folder)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Run([]engine.Buffer{{Shape: test.in.Shape, Bytes: test.in.Data}}, make([]engine.Buffer, 5))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", format, err, test.want)
		}
	}
}
