package compiledmodel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
)

func input(name string, dims ...int64) om.Tensor {
	return om.Tensor{Name: name, DType: "float32", Format: "ND", Dims: dims}
}

func fileOf(gears *om.Gears, inputs ...om.Tensor) *File {
	return &File{Path: "model.om", Signature: &om.Signature{Inputs: inputs, Gears: gears}}
}

func TestGearFor(t *testing.T) {
	batch := fileOf(&om.Gears{Kind: "batch", Rows: [][]int64{{1}, {4}}}, input("x", -1, 3), input("table", 5))
	image := fileOf(&om.Gears{Kind: "image", Rows: [][]int64{{224, 224}, {320, 640}}}, input("x", 1, 3, -1, -1))
	// The designated order is not that of the inputs.
	dims := fileOf(&om.Gears{Kind: "dims", Rows: [][]int64{{1, 128, 128}, {2, 256, 256}}, Order: []string{"mask", "ids"}}, input("ids", -1), input("mask", -1, -1))
	open := fileOf(nil, input("x", -1))
	open.Open = true
	for _, test := range []struct {
		name   string
		file   *File
		shapes [][]int
		want   ascendcl.Gear
	}{
		{"the gear of a batch", batch, [][]int{{4, 3}, {5}}, ascendcl.Gear{Kind: ascendcl.BatchGear, Values: []int64{4}}},
		{"the gear of an image", image, [][]int{{1, 3, 320, 640}}, ascendcl.Gear{Kind: ascendcl.ImageGear, Values: []int64{320, 640}}},
		{"dims: all of all inputs, in the order that the file says", dims, [][]int{{256}, {2, 256}},
			ascendcl.Gear{Kind: ascendcl.DimsGear, Values: []int64{2, 256, 256}}},
		{"no gears", fileOf(nil, input("x", 1, 3)), [][]int{{1, 3}}, ascendcl.Gear{}},
		{"an open shape", open, [][]int{{7}}, ascendcl.Gear{Kind: ascendcl.OpenShape}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.file.GearFor(test.shapes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoGearFits(t *testing.T) {
	for _, test := range []struct {
		name   string
		file   *File
		shapes [][]int
		want   string
	}{
		{"between two", fileOf(&om.Gears{Kind: "batch", Rows: [][]int64{{1}, {4}}}, input("x", -1, 3)), [][]int{{2, 3}}, "it has gears batch 1, 4"},
		{"height and width changed about", fileOf(&om.Gears{Kind: "image", Rows: [][]int64{{224, 320}}}, input("x", 1, 3, -1, -1)), [][]int{{1, 3, 320, 224}}, "it has gears image 224,320"},
		{"a fixed dim is wrong", fileOf(&om.Gears{Kind: "batch", Rows: [][]int64{{1}}}, input("x", -1, 3)), [][]int{{1, 4}}, "it has gears batch 1"},
		{"a file whose gears are short", fileOf(&om.Gears{Kind: "dims", Rows: [][]int64{{8}}}, input("a", -1), input("b", -1)), [][]int{{8}, {8}}, "not enough"},
	} {
		family := fault.Usage // of whoever gives the inputs
		if strings.Contains(test.want, "not enough") {
			family = fault.Input
		}
		t.Run(test.name, func(t *testing.T) {
			_, err := test.file.GearFor(test.shapes)
			if fault.FamilyOf(err) != family || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v error %v, want %q", fault.FamilyOf(err), err, test.want)
			}
		})
	}
}

func TestModel(t *testing.T) {
	f := fileOf(&om.Gears{Kind: "batch", Rows: [][]int64{{1}, {4}}}, input("x", -1, 3))
	f.Signature.Outputs = []om.Tensor{{Name: "node:0:y", Tensor: "y", DType: "int64", Dims: []int64{-1}}}
	m, err := f.InGear(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Graph.Inputs()[0].Type.String(); got != "FLOAT[4,3]" {
		t.Errorf("input %s", got)
	}
	m, err = f.Model()
	if err != nil {
		t.Fatal(err)
	}
	in, out := m.Graph.Inputs()[0], m.Graph.Outputs()[0]
	if in.Type.String() != "FLOAT[batch,3]" || out.Name() != "y" || out.Type.String() != "INT64[y_0]" && out.Type.String() != "INT64[node:0:y_0]" {
		t.Errorf("input %s, output %s %s", in.Type, out.Name(), out.Type)
	}
}

func TestIs(t *testing.T) {
	for path, want := range map[string]bool{"a.om": true, "a.om2": true, "a.exeom": true, "a.onnx": false, "om": false, "a.om.json": false} {
		if Is(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
