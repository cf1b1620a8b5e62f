package onnxpass

import (
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx/text"
)

const twoInputs = `<ir_version: 8, opset_import: ["": 17]>
g (float[batch,3] x, int64[batch] n, float[2,2] w) => (y) { a = Relu (x)  y = Identity (a) }`

func TestSpecialize(t *testing.T) {
	for name, c := range map[string]struct {
		sp   Specialization
		want string // types of the inputs that stay
	}{
		"a dim by name":            {Specialization{Dims: map[string]int64{"batch": 4}}, "FLOAT[4,3] INT64[4] FLOAT[2,2]"},
		"the batch":                {Specialization{Batch: 2}, "FLOAT[2,3] INT64[2] FLOAT[2,2]"},
		"one input's shape":        {Specialization{Shapes: map[string][]int64{"x": {5, -1}}}, "FLOAT[5,3] INT64[batch] FLOAT[2,2]"},
		"flags that say the same":  {Specialization{Batch: 2, Dims: map[string]int64{"batch": 2}}, "FLOAT[2,3] INT64[2] FLOAT[2,2]"},
		"a size the model has":     {Specialization{Shapes: map[string][]int64{"w": {2, 2}}}, "FLOAT[batch,3] INT64[batch] FLOAT[2,2]"},
		"a bound input":            {Specialization{Bind: map[string]string{"w": "1.5"}}, "FLOAT[batch,3] INT64[batch]"},
		"a bound list gives a dim": {Specialization{Bind: map[string]string{"n": "1,2,3"}}, "FLOAT[batch,3] FLOAT[2,2]"},
	} {
		t.Run(name, func(t *testing.T) {
			m := text.MustParse(t, twoInputs)
			if err := Specialize(m, c.sp); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range m.Graph.Inputs() {
				got = append(got, v.Type.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestSpecializeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		sp   Specialization
		want string
	}{
		"an unknown input":          {Specialization{Shapes: map[string][]int64{"X": {1, 3}}}, `did you mean "x"?`},
		"an unknown dim":            {Specialization{Dims: map[string]int64{"bacth": 1}}, `did you mean "batch"?`},
		"a shape of another rank":   {Specialization{Shapes: map[string][]int64{"x": {1}}}, "1 dim given"},
		"a size the model fixes":    {Specialization{Shapes: map[string][]int64{"x": {1, 4}}}, "the model fixes it to 3"},
		"two sizes for one dim":     {Specialization{Batch: 2, Dims: map[string]int64{"batch": 3}}, "is 3 by another flag"},
		"shape and batch disagree":  {Specialization{Batch: 2, Shapes: map[string][]int64{"x": {3, 3}}}, "is 3 by another flag"},
		"two sizes for one name":    {Specialization{Shapes: map[string][]int64{"x": {2, 3}, "n": {5}}}, `dim "batch" would be 2 in input x (axis 0) and 5 in input n (axis 0)`},
		"a binding of another type": {Specialization{Bind: map[string]string{"w": "abc"}}, `"abc" is no FLOAT`},
		"a binding out of range":    {Specialization{Bind: map[string]string{"n": "99999999999999999999"}}, "is no INT64"},
		"too few values":            {Specialization{Bind: map[string]string{"w": "1,2,3"}}, "3 values"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Specialize(text.MustParse(t, twoInputs), c.sp)
			if fault.FamilyOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (%v), want a usage fault with %q", err, fault.FamilyOf(err), c.want)
			}
		})
	}
}

// What has been fixed can be fixed again: the sizes are there, though the names are not.
func TestSpecializeAgain(t *testing.T) {
	for _, sp := range []Specialization{
		{Dims: map[string]int64{"batch": 4}}, {Batch: 4}, {Shapes: map[string][]int64{"x": {4, 3}}},
	} {
		m := text.MustParse(t, twoInputs)
		if err := Specialize(m, Specialization{Batch: 4}); err != nil {
			t.Fatal(err)
		}
		if err := Specialize(m, sp); err != nil {
			t.Errorf("%+v again: %v", sp, err)
		}
	}
	m := text.MustParse(t, twoInputs)
	if err := Specialize(m, Specialization{Batch: 4}); err != nil {
		t.Fatal(err)
	}
	if err := Specialize(m, Specialization{Dims: map[string]int64{"batch": 5}}); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("another size: %v", err)
	}
}
