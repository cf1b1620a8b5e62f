package elementary_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx/eval/internal/elementary"
)

// exact holds results computed with 400 digits, most of them for arguments at
// which naive formulas lose digits.
var exact = []struct {
	name string
	f    func(float64) float64
	x    float64
	want float64
}{
	{"Exp", elementary.Exp, 1, 2.718281828459045},
	{"Exp", elementary.Exp, -0.34657359, 0.7071067813845181},
	{"Exp", elementary.Exp, 700.25, 1.3022997366991783e+304},
	{"Exp", elementary.Exp, -740.5, 2.5e-322},
	{"Expm1", elementary.Expm1, 1e-10, 1.00000000005e-10},
	{"Expm1", elementary.Expm1, 0.3465, 0.41410949383036244},
	{"Expm1", elementary.Expm1, -0.3465, -0.2928411807127287},
	{"Expm1", elementary.Expm1, 50, 5.184705528587072e+21},
	{"Log", elementary.Log, 0.7071067811, -0.3465735904023693},
	{"Log", elementary.Log, 1.0000001, 9.999999505838704e-08},
	{"Log", elementary.Log, 5e-324, -744.4400719213812},
	{"Log", elementary.Log, 1e308, 709.1962086421661},
	{"Log1p", elementary.Log1p, 1e-17, 1e-17},
	{"Log1p", elementary.Log1p, -0.9999999, -16.118095651484676},
	{"Log1p", elementary.Log1p, 0.41421, 0.3465710712986274},
	{"Log1p", elementary.Log1p, 3, 1.3862943611198906},
	{"Sin", elementary.Sin, 3.141592653589793, 1.2246467991473532e-16},
	{"Sin", elementary.Sin, 1e22, -0.8522008497671888},
	{"Sin", elementary.Sin, 1.7976931348623157e308, 0.004961954789184062},
	{"Sin", elementary.Sin, 355, -3.014435335948845e-05},
	{"Cos", elementary.Cos, 1.5707963267948966, 6.123233995736766e-17},
	{"Cos", elementary.Cos, -1e22, 0.523214785395139},
	{"Cos", elementary.Cos, 11, 0.004425697988050785},
	{"Tan", elementary.Tan, 1.5707963267948966, 1.633123935319537e+16},
	{"Tan", elementary.Tan, 0.7853981633974483, 0.9999999999999999},
	{"Asin", elementary.Asin, 0.9999999, 1.5703491131957876},
	{"Asin", elementary.Asin, 0.5, 0.5235987755982989},
	{"Asin", elementary.Asin, 1e-9, 1e-09},
	{"Acos", elementary.Acos, 0.9999999, 0.00044721359910904126},
	{"Acos", elementary.Acos, -0.9999999, 3.141145439990684},
	{"Acos", elementary.Acos, 0.5, 1.0471975511965979},
	{"Atan", elementary.Atan, 0.0625, 0.06241880999595735},
	{"Atan", elementary.Atan, 1.0000001, 0.7853982133974459},
	{"Atan", elementary.Atan, 1e17, 1.5707963267948966},
	{"Sinh", elementary.Sinh, 1e-9, 1e-09},
	{"Sinh", elementary.Sinh, 0.2, 0.201336002541094},
	{"Sinh", elementary.Sinh, 710.4, 1.6663642832806496e+308},
	{"Cosh", elementary.Cosh, 1e-9, 1.0},
	{"Cosh", elementary.Cosh, 710.4, 1.6663642832806496e+308},
	{"Tanh", elementary.Tanh, 0.17, 0.16838104587081473},
	{"Tanh", elementary.Tanh, -3, -0.9950547536867305},
	{"Asinh", elementary.Asinh, 1e-9, 1e-09},
	{"Asinh", elementary.Asinh, 1e300, 691.4686750787737},
	{"Acosh", elementary.Acosh, 1.0000001, 0.0004472135919037347},
	{"Acosh", elementary.Acosh, 1e300, 691.4686750787737},
	{"Atanh", elementary.Atanh, 1e-9, 1e-09},
	{"Atanh", elementary.Atanh, 0.9999999, 8.40562139102231},
	{"Erf", elementary.Erf, 0.3, 0.3286267594591274},
	{"Erf", elementary.Erf, 0.5000001, 0.5204999656913},
	{"Erf", elementary.Erf, 5.9, 0.9999999999999999},
	{"Erfc", elementary.Erfc, 0.6, 0.3961439091520741},
	{"Erfc", elementary.Erfc, 26.5, 2.2109076642637343e-307},
	{"Erfc", elementary.Erfc, -3, 1.9999779095030015},
	{"Cos", elementary.Cos, 5.319372648326541e+255, -4.687165924254628e-19}, // the float64 nearest to a multiple of π/2
}

func TestExactResults(t *testing.T) {
	for _, e := range exact {
		if got := e.f(e.x); ulps(got, e.want) > 4 {
			t.Errorf("%s(%v) is %v, want %v: %v units away", e.name, e.x, got, e.want, ulps(got, e.want))
		}
	}
}

// functions pairs each function with the one of package math, with the interval
// of arguments to draw and the distance to stay below, in units in the last place
// of a result near it. Most of the distance is package math's error.
var functions = []struct {
	name      string
	got, want func(float64) float64
	low, high float64
	ulps      float64
}{
	{"Exp", elementary.Exp, math.Exp, -746, 711, 3},
	{"Exp near 0", elementary.Exp, math.Exp, -1, 1, 3},
	{"Expm1", elementary.Expm1, math.Expm1, -45, 711, 2},
	{"Expm1 near 0", elementary.Expm1, math.Expm1, -0.7, 0.7, 2.5},
	{"Sinh", elementary.Sinh, math.Sinh, -711, 711, 5},
	{"Sinh near 0", elementary.Sinh, math.Sinh, -1, 1, 6},
	{"Cosh", elementary.Cosh, math.Cosh, -711, 711, 4},
	{"Tanh", elementary.Tanh, math.Tanh, -25, 25, 4},
	{"Tanh near 0", elementary.Tanh, math.Tanh, -0.5, 0.5, 6},
	{"Log", elementary.Log, math.Log, 0, 1e6, 1.5},
	{"Log near 1", elementary.Log, math.Log, 0.5, 2, 1.5},
	{"Log1p", elementary.Log1p, math.Log1p, -1, 1e3, 2},
	{"Log1p near 0", elementary.Log1p, math.Log1p, -0.5, 0.5, 2},
	{"Sin", elementary.Sin, math.Sin, -1e4, 1e4, 2},
	{"Sin near 0", elementary.Sin, math.Sin, -1, 1, 1.5},
	{"Sin large", elementary.Sin, math.Sin, -1e300, 1e300, 1e5},
	{"Cos", elementary.Cos, math.Cos, -1e4, 1e4, 2},
	{"Cos large", elementary.Cos, math.Cos, -1e9, 1e9, 1e4},
	{"Tan", elementary.Tan, math.Tan, -100, 100, 8},
	{"Atan", elementary.Atan, math.Atan, -10, 10, 2},
	{"Atan near 0", elementary.Atan, math.Atan, -0.1, 0.1, 2},
	{"Asin", elementary.Asin, math.Asin, -1, 1, 100},
	{"Acos", elementary.Acos, math.Acos, -1, 0.9, 100},
	{"Asinh", elementary.Asinh, math.Asinh, -100, 100, 4},
	{"Asinh near 0", elementary.Asinh, math.Asinh, -0.5, 0.5, 4},
	{"Acosh", elementary.Acosh, math.Acosh, 1, 100, 6},
	{"Atanh", elementary.Atanh, math.Atanh, -1, 1, 6},
	{"Erf", elementary.Erf, math.Erf, -6.5, 6.5, 4},
	{"Erfc", elementary.Erfc, math.Erfc, -6, 27, 20},
	{"FastExp", elementary.FastExp, math.Exp, -105, 700, fastUlps},
	{"FastExpm1", elementary.FastExpm1, math.Expm1, -50, 100, fastUlps},
	{"FastExpm1 near 0", elementary.FastExpm1, math.Expm1, -0.7, 0.7, fastUlps},
	{"FastTanh", elementary.FastTanh, math.Tanh, -25, 25, fastUlps},
	{"FastTanh near 0", elementary.FastTanh, math.Tanh, -0.01, 0.01, fastUlps},
	{"FastErf", elementary.FastErf, math.Erf, -6, 6, fastUlps},
	{"FastErfc", elementary.FastErfc, math.Erfc, -6, 10.5, fastUlps},
	{"FastSigmoid", elementary.FastSigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -100, 100, fastUlps},
}

// fastUlps is a relative error of 4e-9 in units of float64.
const fastUlps = 4e-9 / 1.1e-16

func TestAgreesWithPackageMath(t *testing.T) {
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 100000 {
				x := f.low + random.Float64()*(f.high-f.low)
				got, want := f.got(x), f.want(x)
				if distance := ulps(got, want); distance > f.ulps {
					t.Fatalf("at %v: %v, package math has %v, %.2f units away", x, got, want, distance)
				}
			}
		})
	}
}

// ulps is the distance of two numbers in units in the last place of want.
func ulps(got, want float64) float64 {
	if got == want || got != got && want != want {
		return 0
	}
	unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	return math.Abs(got-want) / unit
}

func TestSincosTurn(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 12, 100, 1023, 1 << 20} {
		for k := 0; k < n; k += 1 + n/97 {
			sine, cosine := elementary.SincosTurn(k, n)
			wantSine, wantCosine := math.Sincos(2 * math.Pi * float64(k) / float64(n))
			if math.Abs(sine-wantSine) > 1e-15 || math.Abs(cosine-wantCosine) > 1e-15 {
				t.Errorf("%d/%d of a turn: (%v, %v), want (%v, %v)", k, n, sine, cosine, wantSine, wantCosine)
			}
			if mirrored, other := elementary.SincosTurn((n-k)%n, n); mirrored != -sine || other != cosine {
				t.Errorf("%d/%d of a turn: (%v, %v), its mirror has (%v, %v)", k, n, sine, cosine, mirrored, other)
			}
		}
	}
	for k, want := range [][2]float64{{0, 1}, {1, 0}, {0, -1}, {-1, 0}} {
		if sine, cosine := elementary.SincosTurn(3*k, 12); sine != want[0] || cosine != want[1] {
			t.Errorf("%d quarters of a turn: (%v, %v)", k, sine, cosine)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	infinity, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name      string
		f         func(float64) float64
		arguments []float64
		results   []float64
	}{
		{"Exp", elementary.Exp, []float64{0, infinity, -infinity, nan, 1000, -1000, -745.1}, []float64{1, infinity, 0, nan, infinity, 0, 5e-324}},
		{"FastExp", elementary.FastExp, []float64{0, infinity, -infinity, nan}, []float64{1, infinity, 0, nan}},
		{"Expm1", elementary.Expm1, []float64{0, infinity, -infinity, nan}, []float64{0, infinity, -1, nan}},
		{"FastExpm1", elementary.FastExpm1, []float64{0, infinity, -infinity, nan}, []float64{0, infinity, -1, nan}},
		{"Tanh", elementary.Tanh, []float64{0, infinity, -infinity, nan}, []float64{0, 1, -1, nan}},
		{"FastTanh", elementary.FastTanh, []float64{0, infinity, -infinity, nan}, []float64{0, 1, -1, nan}},
		{"Sigmoid", elementary.Sigmoid, []float64{0, infinity, -infinity, nan}, []float64{0.5, 1, 0, nan}},
		{"FastSigmoid", elementary.FastSigmoid, []float64{0, infinity, -infinity, nan}, []float64{0.5, 1, 0, nan}},
		{"Sinh", elementary.Sinh, []float64{0, infinity, -infinity, nan}, []float64{0, infinity, -infinity, nan}},
		{"Cosh", elementary.Cosh, []float64{0, infinity, -infinity, nan}, []float64{1, infinity, infinity, nan}},
		{"Log", elementary.Log, []float64{1, 0, -1, infinity, nan}, []float64{0, -infinity, nan, infinity, nan}},
		{"Log1p", elementary.Log1p, []float64{0, -1, -2, infinity, nan}, []float64{0, -infinity, nan, infinity, nan}},
		{"Sin", elementary.Sin, []float64{0, infinity, nan}, []float64{0, nan, nan}},
		{"Cos", elementary.Cos, []float64{0, -infinity, nan}, []float64{1, nan, nan}},
		{"Atan", elementary.Atan, []float64{0, infinity, -infinity, nan}, []float64{0, math.Pi / 2, -math.Pi / 2, nan}},
		{"Asin", elementary.Asin, []float64{0, 1, -1, 2, nan}, []float64{0, math.Pi / 2, -math.Pi / 2, nan, nan}},
		{"Acos", elementary.Acos, []float64{1, -1, 2, nan}, []float64{0, math.Pi, nan, nan}},
		{"Asinh", elementary.Asinh, []float64{0, infinity, -infinity, nan}, []float64{0, infinity, -infinity, nan}},
		{"Acosh", elementary.Acosh, []float64{1, 0, infinity, nan}, []float64{0, nan, infinity, nan}},
		{"Atanh", elementary.Atanh, []float64{0, 1, -1, 2, nan}, []float64{0, infinity, -infinity, nan, nan}},
		{"Erf", elementary.Erf, []float64{0, infinity, -infinity, nan}, []float64{0, 1, -1, nan}},
		{"Erfc", elementary.Erfc, []float64{0, infinity, -infinity, nan}, []float64{1, 0, 2, nan}},
		{"FastErf", elementary.FastErf, []float64{0, infinity, -infinity, nan}, []float64{0, 1, -1, nan}},
		{"FastErfc", elementary.FastErfc, []float64{0, infinity, -infinity, nan}, []float64{1, 0, 2, nan}},
	}
	for _, tt := range tests {
		for i, x := range tt.arguments {
			got, want := tt.f(x), tt.results[i]
			if got != want && !(got != got && want != want) {
				t.Errorf("%s(%v) is %v, want %v", tt.name, x, got, want)
			}
		}
	}
}

// The zero's sign and tiny numbers survive the odd functions.
func TestOddFunctionsNearZero(t *testing.T) {
	for name, f := range map[string]func(float64) float64{
		"Expm1": elementary.Expm1, "Sinh": elementary.Sinh, "Tanh": elementary.Tanh, "Sin": elementary.Sin, "Tan": elementary.Tan,
		"Asin": elementary.Asin, "Atan": elementary.Atan, "Asinh": elementary.Asinh, "Atanh": elementary.Atanh,
		"Log1p": elementary.Log1p, "FastTanh": elementary.FastTanh, "FastExpm1": elementary.FastExpm1,
	} {
		for _, x := range []float64{math.Copysign(0, -1), 1e-300, -1e-20} {
			if got := f(x); got != x || math.Signbit(got) != math.Signbit(x) {
				t.Errorf("%s(%v) is %v", name, x, got)
			}
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	x := make([]float64, 1024)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = random.NormFloat64()
	}
	for _, f := range functions {
		b.Run(f.name, func(b *testing.B) {
			var sum float64
			for i := 0; b.Loop(); i++ {
				sum += f.got(x[i%len(x)])
			}
			_ = sum
		})
	}
}
