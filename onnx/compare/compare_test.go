package compare

import (
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

var (
	nan   = float32(math.NaN())
	inf   = float32(math.Inf(1))
	minus = float32(math.Copysign(0, -1))
)

func vector[T tensor.Element](v ...T) *tensor.Dense { return tensor.Of(v, len(v)) }

func TestTensors(t *testing.T) {
	for _, test := range []struct {
		name      string
		want, got *tensor.Dense
		text      string // of the result
	}{
		{"the same", vector[float32](1, 2), vector[float32](1, 2), "equal"},
		{"within the tolerance", vector[float32](1, 2), vector[float32](1, 2.0001), "equal, at most 9.99e-05 apart"},
		{"beyond it", vector[float32](1, 2), vector[float32](1, 2.001), "1 of 2 elements differ, by up to 0.001; first [1]: 2.001 instead of 2"},
		{"close to zero, beside larger ones", vector[float32](1000, 0), vector[float32](1000, 0.001), "equal, at most 0.001 apart"},
		{"close to zero, alone", vector[float32](0, 0), vector[float32](0, 0.001), "1 of 2 elements differ, by up to 0.001; first [1]: 0.001 instead of 0"},
		{"a huge element does not excuse the rest", vector[float32](-1e38, 1, 2, 3), vector[float32](-1e38, 1, 2, 4), "1 of 4 elements differ, by up to 1; first [3]: 4 instead of 3"},
		{"NaN is NaN", vector(nan, 1), vector(nan, 1), "equal"},
		{"NaN is no number", vector(nan, 1), vector[float32](0, 1), "1 of 2 elements differ, by up to 0; first [0]: 0 instead of NaN"},
		{"nor a number NaN", vector[float32](0, 1), vector(nan, 1), "1 of 2 elements differ, by up to 0; first [0]: NaN instead of 0"},
		{"infinities", vector(inf, -inf), vector(inf, -inf), "equal"},
		{"of the other sign", vector(inf, 0), vector(-inf, 0), "1 of 2 elements differ, by up to 0; first [0]: -Inf instead of +Inf"},
		{"infinity is not the largest number", vector(inf, 0), vector[float32](math.MaxFloat32, 0), "first [0]: 3.4028235e+38 instead of +Inf"},
		{"zero has no sign", vector[float32](0, 1), vector(minus, 1), "equal"},
		{"float64 is held tighter", vector(1.0, 2), vector(1, 2.0001), "1 of 2 elements differ, by up to 0.0001"},
		{"float16 is held looser", vector(tensor.F16From(1), tensor.F16From(100)), vector(tensor.F16From(1), tensor.F16From(100.5)), "equal, at most 0.5 apart"},
		{"bfloat16 looser still", vector(tensor.BF16From(100)), vector(tensor.BF16From(103)), "equal, at most 3 apart"},
		{"float8 not at all", vector(tensor.E4M3FNFrom(100, true)), vector(tensor.E4M3FNFrom(112, true)), "1 of 1 elements differ, by up to 16; first [0]: 112 instead of 96"},
		{"float8 NaN, signs of zero", vector[tensor.E4M3FN](0x7f, 0x00), vector[tensor.E4M3FN](0xff, 0x80), "equal"},
		{"integers", vector[int64](math.MaxInt64, 0), vector[int64](math.MaxInt64-1, 0), "1 of 2 elements differ, by up to 0; first [0]: 9223372036854775806 instead of 9223372036854775807"},
		{"int4", vector[tensor.I4](-8, 7), vector[tensor.I4](-8, 6), "1 of 2 elements differ, by up to 1; first [1]: 6 instead of 7"},
		{"truth values", vector(true, false), vector(true, true), "1 of 2 elements differ, by up to 1; first [1]: true instead of false"},
		{"strings", vector("a", "b"), vector("a", "c"), `1 of 2 elements differ, by up to 0; first [1]: "c" instead of "b"`},
		{"complex", vector(complex64(1 + 2i)), vector(complex64(1 + 3i)), "1 of 1 elements differ, by up to 1; first [0]: (1+3i) instead of (1+2i)"},
		{"complex in both parts", vector(complex(1, 2)), vector(complex(5, 7)), "1 of 1 elements differ, by up to 5"},
		{"types", vector[float32](1), vector(1.0), "DOUBLE[1] instead of FLOAT[1]"},
		{"shapes", tensor.Of([]int64{1, 2}, 1, 2), vector[int64](1, 2), "INT64[2] instead of INT64[1,2]"},
		{"nothing in them", tensor.Of([]float32{}, 0, 3), tensor.Of([]float32{}, 0, 3), "equal"},
		{"a place in a matrix", tensor.Of([]int32{1, 2, 3, 4, 5, 6}, 2, 3), tensor.Of([]int32{1, 2, 3, 4, 9, 6}, 2, 3), "first [1,1]: 9 instead of 5"},
		{"a scalar", tensor.Scalar[uint8](1), tensor.Scalar[uint8](2), "first []: 2 instead of 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Values(test.want, test.got, Options{})
			if !strings.HasSuffix(r.String(), test.text) && !strings.HasPrefix(r.String(), test.text) {
				t.Errorf("got %q, want %q", r, test.text)
			}
			if isEqual := strings.HasPrefix(test.text, "equal"); r.Equal != isEqual {
				t.Errorf("Equal is %v", r.Equal)
			}
		})
	}
}

func sequence(items ...eval.Value) *eval.Sequence { return &eval.Sequence{Items: items} }

func TestOtherValues(t *testing.T) {
	one, two := tensor.Scalar[int64](1), tensor.Scalar[int64](2)
	abc := &eval.Map{Keys: vector("a", "b"), Values: vector[float32](1, 2)}
	for _, test := range []struct {
		name      string
		want, got eval.Value
		text      string
	}{
		{"sequences", sequence(one, two), sequence(one, two), "equal"},
		{"an item", sequence(one, two), sequence(one, one), "1 of 2 elements differ, by up to 1; first [1][]: 1 instead of 2"},
		{"length", sequence(one, two), sequence(one), "a sequence of 1 instead of 2"},
		{"nested", sequence(sequence(one), sequence(two)), sequence(sequence(one), sequence(vector[int64](2))), "[1][0]: INT64[1] instead of INT64[]"},
		{"empty optionals", &eval.Optional{}, &eval.Optional{}, "equal"},
		{"full ones", &eval.Optional{Value: one}, &eval.Optional{Value: two}, "first []: 2 instead of 1"},
		{"one empty", &eval.Optional{Value: one}, &eval.Optional{}, "an empty optional instead of one that holds something"},
		{"the other", &eval.Optional{}, &eval.Optional{Value: one}, "an optional that holds something instead of an empty one"},
		{"maps in another order", abc, &eval.Map{Keys: vector("b", "a"), Values: vector[float32](2, 1)}, "equal"},
		{"a map's value", abc, &eval.Map{Keys: vector("a", "b"), Values: vector[float32](1, 3)}, `first ["b"][0]: 3 instead of 2`},
		{"a map's key", abc, &eval.Map{Keys: vector("a", "c"), Values: vector[float32](1, 2)}, `the map has other keys: "b" is missing`},
		{"a map's size", abc, &eval.Map{Keys: vector("a"), Values: vector[float32](1)}, "the map has other keys: 1 instead of 2"},
		{"a map's types", abc, &eval.Map{Keys: vector[int64](1, 2), Values: vector[float32](1, 2)}, "a map from INT64 to FLOAT instead of from STRING to FLOAT"},
		{"kinds", one, sequence(one), "a sequence instead of INT64[]"},
		{"nothing", one, nil, "nothing instead of INT64[]"},
		{"both nothing", nil, nil, "equal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Values(test.want, test.got, Options{})
			if !strings.HasSuffix(r.String(), test.text) {
				t.Errorf("got %q, want %q", r, test.text)
			}
			if r.Equal != (test.text == "equal") {
				t.Errorf("Equal is %v", r.Equal)
			}
		})
	}
}

func TestMeasures(t *testing.T) {
	r := Values(vector[float32](3, 4, 0), vector[float32](4, -3, 0), Options{})
	if r.Cosine != 0 || r.MaxAbs != 7 || r.MaxRel != 1.75 || r.Elements != 3 || r.Differing != 2 {
		t.Errorf("got %+v", r)
	}
	if r := Values(vector(1e300, 1e300), vector(1e300, 1.5e300), Options{}); math.Abs(r.Cosine-2.5/math.Sqrt2/math.Sqrt(3.25)) > 1e-12 {
		t.Errorf("cosine of large vectors %v", r.Cosine)
	}
	if r := Values(vector(math.MaxFloat64), vector(-math.MaxFloat64), Options{}); r.MaxAbs != math.MaxFloat64 || r.Cosine != -1 {
		t.Errorf("got %+v", r)
	}
	if r := Values(sequence(vector(1.0), vector(1.0)), sequence(vector(1.0), vector(-1.0)), Options{}); r.Cosine != -1 {
		t.Errorf("the lowest cosine is %v", r.Cosine)
	}
}

func TestToleranceOption(t *testing.T) {
	loose := Options{Tolerance: &Tolerance{Relative: 0.5}}
	if r := Values(vector[float32](1), vector[float32](1.4), loose); !r.Equal {
		t.Errorf("got %v", r)
	}
	if r := Values(vector[int64](10), vector[int64](11), loose); r.Equal {
		t.Error("integers are excused")
	}
}

// What cancels out in one run is held against the size it has in others.
func TestScaleOption(t *testing.T) {
	want, got := vector[float32](5e-6, 5e-6), vector[float32](5.007e-6, 5e-6)
	if r := Values(want, got, Options{}); r.Equal {
		t.Error("equal by itself")
	}
	usual := ScaleOf(&eval.Sequence{Items: []eval.Value{vector[float32](-3, 2), vector[int64](1000)}})
	if r := Values(want, got, Options{Scale: usual}); !r.Equal || usual != 3 {
		t.Errorf("scale %g: %v", usual, r)
	}
	if r := Values(want, vector[float32](6e-5, 5e-6), Options{Scale: usual}); r.Equal {
		t.Error("any difference is excused")
	}
}

func TestAllowOverflow(t *testing.T) {
	o := Options{AllowOverflow: true}
	if r := Values(vector(inf, 1, nan), vector(math.MaxFloat32, 1, -inf), o); !r.Equal {
		t.Errorf("got %v", r)
	}
	if r := Values(vector(inf, 1), vector(inf, 2), o); r.Equal || r.First.Index[0] != 1 {
		t.Errorf("got %v", r)
	}
	if r := Values(vector[int64](math.MaxInt64), vector[int64](math.MinInt64), o); r.Equal {
		t.Error("integers are excused")
	}
}

// Arrays longer than a piece are compared whole, and at the right places.
func TestLongArrays(t *testing.T) {
	want, got := make([]float32, 3*chunk+5), make([]float32, 3*chunk+5)
	for i := range want {
		want[i] = float32(i%7 + 1)
		got[i] = want[i]
	}
	got[2*chunk+1], got[3*chunk+4] = 100, 200
	r := Values(tensor.Of(want, 1, len(want)), tensor.Of(got, 1, len(got)), Options{})
	if r.Differing != 2 || r.First.Index[1] != 2*chunk+1 || r.MaxAbs < 190 {
		t.Errorf("got %v", r)
	}
}

// Whatever the values: a value is equal to itself, and equality does not depend on
// what is on which side by more than the relative part of the tolerance.
func TestProperties(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}))
	list := rapid.SliceOfN(number, 1, 20)
	rapid.Check(t, func(t *rapid.T) {
		a := list.Draw(t, "a")
		if r := Values(vector(a...), vector(a...), Options{}); !r.Equal || r.MaxAbs != 0 {
			t.Fatalf("not equal to itself: %v", r)
		}
		b := append([]float64{}, a...)
		i := rapid.IntRange(0, len(a)-1).Draw(t, "i")
		b[i] = number.Draw(t, "other")
		r := Values(vector(a...), vector(b...), Options{})
		if math.IsNaN(r.Cosine) || math.IsNaN(r.MaxAbs) || math.IsInf(r.MaxAbs, 0) || math.IsNaN(r.MaxRel) || math.IsInf(r.MaxRel, 0) {
			t.Fatalf("figures that JSON cannot hold: %+v", r)
		}
		if math.IsNaN(a[i]) != math.IsNaN(b[i]) && r.Equal {
			t.Fatal("NaN equals a number")
		}
		if !r.Equal && (r.First == nil || r.First.Index[0] != i) {
			t.Fatalf("first difference %v, want [%d]", r.First, i)
		}
		ca, cb := make([]complex128, len(a)), make([]complex128, len(a))
		for k := range a {
			ca[k], cb[k] = complex(1, a[k]), complex(1, b[k])
		}
		if cmplx.IsNaN(ca[i]) != cmplx.IsNaN(cb[i]) && Values(vector(ca...), vector(cb...), Options{}).Equal {
			t.Fatal("complex NaN equals a number")
		}
	})
}

// What is known to be uncertain may differ that much more.
func TestUncertaintyOption(t *testing.T) {
	want, got := vector[float32](0, 1), vector[float32](0.01, 1)
	for uncertainty, equal := range map[float64]bool{0: false, 0.001: false, 0.01: true} {
		if r := Values(want, got, Options{Uncertainty: uncertainty}); r.Equal != equal {
			t.Errorf("uncertain by %g: %v", uncertainty, r)
		}
	}
	if r := Values(vector[int64](1), vector[int64](2), Options{Uncertainty: 10}); r.Equal {
		t.Error("integers are never uncertain")
	}
}
