package tensor_test

import (
	"math"
	"sort"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/x448/float16"
	"pgregory.net/rapid"
)

// format restates a small float from its definition, apart from the code under
// test, and names the conversions under test.
type format struct {
	name           string
	exp, man, bias int
	max            int  // code of the largest finite number
	inf            bool // the code after max is infinity
	fnuz           bool
	decode         func(code uint16) float32
	encode         func(f float64, saturate bool) uint16
	encode32       func(f float32, saturate bool) uint16
	values         []float64 // of the positive codes up to one after max
}

var formats = withValues([]format{
	{"F16", 5, 10, 15, 0x7bff, true, false,
		func(c uint16) float32 { return tensor.F16(c).Float32() },
		func(f float64, _ bool) uint16 { return uint16(tensor.F16FromFloat64(f)) },
		func(f float32, _ bool) uint16 { return uint16(tensor.F16From(f)) }, nil},
	{"BF16", 8, 7, 127, 0x7f7f, true, false,
		func(c uint16) float32 { return tensor.BF16(c).Float32() },
		func(f float64, _ bool) uint16 { return uint16(tensor.BF16FromFloat64(f)) },
		func(f float32, _ bool) uint16 { return uint16(tensor.BF16From(f)) }, nil},
	{"E4M3FN", 4, 3, 7, 0x7e, false, false,
		func(c uint16) float32 { return tensor.E4M3FN(c).Float32() },
		func(f float64, s bool) uint16 { return uint16(tensor.E4M3FNFromFloat64(f, s)) },
		func(f float32, s bool) uint16 { return uint16(tensor.E4M3FNFrom(f, s)) }, nil},
	{"E4M3FNUZ", 4, 3, 8, 0x7f, false, true,
		func(c uint16) float32 { return tensor.E4M3FNUZ(c).Float32() },
		func(f float64, s bool) uint16 { return uint16(tensor.E4M3FNUZFromFloat64(f, s)) },
		func(f float32, s bool) uint16 { return uint16(tensor.E4M3FNUZFrom(f, s)) }, nil},
	{"E5M2", 5, 2, 15, 0x7b, true, false,
		func(c uint16) float32 { return tensor.E5M2(c).Float32() },
		func(f float64, s bool) uint16 { return uint16(tensor.E5M2FromFloat64(f, s)) },
		func(f float32, s bool) uint16 { return uint16(tensor.E5M2From(f, s)) }, nil},
	{"E5M2FNUZ", 5, 2, 16, 0x7f, false, true,
		func(c uint16) float32 { return tensor.E5M2FNUZ(c).Float32() },
		func(f float64, s bool) uint16 { return uint16(tensor.E5M2FNUZFromFloat64(f, s)) },
		func(f float32, s bool) uint16 { return uint16(tensor.E5M2FNUZFrom(f, s)) }, nil},
	{"E2M1", 2, 1, 1, 7, false, false,
		func(c uint16) float32 { return tensor.E2M1(c).Float32() },
		func(f float64, _ bool) uint16 { return uint16(tensor.E2M1FromFloat64(f)) },
		func(f float32, _ bool) uint16 { return uint16(tensor.E2M1From(f)) }, nil},
})

func withValues(formats []format) []format {
	for i := range formats {
		f := &formats[i]
		for code := range f.max + 2 {
			f.values = append(f.values, f.value(code))
		}
	}
	return formats
}

func (f *format) sign() int { return 1 << (f.exp + f.man) }

// saturates is whether the format can be asked to saturate, or always does.
func (f *format) saturates() bool { return f.exp+f.man < 8 }

// value is the number that the definition gives a positive finite code.
func (f *format) value(code int) float64 {
	mantissa, exponent := code&(1<<f.man-1), code>>f.man
	if exponent == 0 {
		return math.Ldexp(float64(mantissa), 1-f.bias-f.man)
	}
	return math.Ldexp(float64(mantissa+1<<f.man), exponent-f.bias-f.man)
}

// nearest is the code that x must become: found by search among all values, so
// that it shares nothing with the bit arithmetic under test.
func (f *format) nearest(x float64, saturate bool) uint16 {
	sign := 0
	if math.Signbit(x) {
		sign = f.sign()
	}
	magnitude := math.Abs(x)
	above := sort.SearchFloat64s(f.values, magnitude)
	code := above
	if above > 0 && above < len(f.values) {
		middle := (f.values[above-1] + f.values[above]) / 2
		if magnitude < middle || magnitude == middle && above%2 == 1 {
			code = above - 1
		}
	}
	switch {
	case code <= f.max:
		if f.fnuz && code == 0 {
			sign = 0
		}
	case saturate && f.saturates() || f.name == "E2M1":
		code = f.max
	case f.fnuz:
		sign, code = 0, f.sign()
	default:
		code = f.max + 1
	}
	return uint16(sign | code)
}

func TestEveryFiniteCodeHasItsValue(t *testing.T) {
	for _, f := range formats {
		for code := 0; code <= f.max; code++ {
			if got := f.decode(uint16(code)); float64(got) != f.value(code) || math.Signbit(float64(got)) {
				t.Fatalf("%s %#x is %v, want %v", f.name, code, got, f.value(code))
			}
			if f.fnuz && code == 0 {
				continue // its negative is the NaN
			}
			if got := f.decode(uint16(code | f.sign())); float64(got) != -f.value(code) || !math.Signbit(float64(got)) {
				t.Fatalf("%s %#x is %v, want %v", f.name, code|f.sign(), got, -f.value(code))
			}
		}
	}
}

func TestEveryCodeRoundTrips(t *testing.T) {
	for _, f := range formats {
		for code := range 2 * f.sign() {
			value := f.decode(uint16(code))
			if got := f.encode32(value, false); got != uint16(code) {
				t.Fatalf("%s %#x is %v, which becomes %#x", f.name, code, value, got)
			}
		}
	}
}

func TestSpecialCodes(t *testing.T) {
	isInf := func(f float32) bool { return math.IsInf(float64(f), 0) }
	isNaN := func(f float32) bool { return f != f }
	for _, f := range formats {
		for code := f.max + 1; code < f.sign(); code++ {
			for _, c := range []int{code, code | f.sign()} {
				got := f.decode(uint16(c))
				if wantInf := f.inf && code == f.max+1; wantInf != isInf(got) || wantInf == isNaN(got) {
					t.Errorf("%s %#x is %v", f.name, c, got)
				}
				if math.Signbit(float64(got)) != (c >= f.sign()) {
					t.Errorf("%s %#x has lost its sign: %v", f.name, c, got)
				}
			}
		}
		if f.fnuz && !isNaN(f.decode(uint16(f.sign()))) {
			t.Errorf("%s %#x is not NaN", f.name, f.sign())
		}
	}
}

// TestNaNStaysNaN takes NaNs whose payload is in the bits that are dropped.
func TestNaNStaysNaN(t *testing.T) {
	for _, bits := range []uint32{0x7f800001, 0xff800001, 0x7fffffff, 0x7fc00000} {
		nan := math.Float32frombits(bits)
		for _, f := range formats[:6] {
			if got := f.decode(f.encode32(nan, true)); got == got {
				t.Errorf("%s of the NaN %#x is %v", f.name, bits, got)
			}
		}
		f16, bf16 := tensor.F16From(nan), tensor.BF16From(nan)
		if f16>>15 != tensor.F16(bits>>31) || bf16>>15 != tensor.BF16(bits>>31) {
			t.Errorf("the NaN %#x lost its sign: F16 %#x, BF16 %#x", bits, f16, bf16)
		}
	}
}

// TestHalfWay tries every value, every half-way point between neighbours, and the
// float64s on both sides of it; the last neighbours are the largest number and
// the first one out of range.
func TestHalfWay(t *testing.T) {
	for _, f := range formats {
		for code := 0; code <= f.max; code++ {
			value, middle := f.values[code], (f.values[code]+f.values[code+1])/2
			for _, x := range []float64{value, math.Nextafter(middle, 0), middle, math.Nextafter(middle, math.Inf(1))} {
				checkNearest(t, &f, x)
				checkNearest(t, &f, -x)
			}
		}
	}
}

func checkNearest(t *testing.T, f *format, x float64) {
	t.Helper()
	for _, saturate := range []bool{false, true} {
		want := f.nearest(x, saturate)
		if got := f.encode(x, saturate); got != want {
			t.Fatalf("%s from %v (saturate %v) = %#x, want %#x", f.name, x, saturate, got, want)
		}
		narrow := float32(x)
		if got, want := f.encode32(narrow, saturate), f.nearest(float64(narrow), saturate); got != want {
			t.Fatalf("%s from float32 %v (saturate %v) = %#x, want %#x", f.name, narrow, saturate, got, want)
		}
	}
}

func TestNearestOfAnyNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(formats).Draw(t, "format")
		x := rapid.OneOf(
			rapid.Float64(),
			rapid.Map(rapid.Float32(), func(f float32) float64 { return float64(f) }),
			rapid.Float64Range(-2*f.value(f.max), 2*f.value(f.max)),
			rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 5e-324, -5e-324, math.MaxFloat64}),
		).Draw(t, "x")
		saturate := rapid.Bool().Draw(t, "saturate")
		if got, want := f.encode(x, saturate), f.nearest(x, saturate); got != want {
			t.Fatalf("%s from %v (saturate %v) = %#x, want %#x", f.name, x, saturate, got, want)
		}
	})
}

// TestNoDoubleRounding takes a number just above half-way between two codes: on
// the way through float32 it would fall on half-way and then to the even one.
func TestNoDoubleRounding(t *testing.T) {
	x := 1 + 0x1p-11 + 0x1p-40
	if got, twice := tensor.F16FromFloat64(x), tensor.F16From(float32(x)); got != 0x3c01 || twice != 0x3c00 {
		t.Errorf("F16 of %v is %#x, by way of float32 %#x", x, got, twice)
	}
	x = 1 + 0x1p-8 + 0x1p-40
	if got, twice := tensor.BF16FromFloat64(x), tensor.BF16From(float32(x)); got != 0x3f81 || twice != 0x3f80 {
		t.Errorf("BF16 of %v is %#x, by way of float32 %#x", x, got, twice)
	}
}

// TestCastTables states the two tables of the operator Cast.
func TestCastTables(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negativeNaN := math.Float32frombits(0xffc00000)
	tests := []struct {
		x        float32
		saturate bool
		want     [4]uint16 // E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ
	}{
		{0, true, [4]uint16{0, 0, 0, 0}},
		{float32(math.Copysign(0, -1)), true, [4]uint16{0x80, 0, 0x80, 0}},
		{nan, true, [4]uint16{0x7f, 0x80, 0x7e, 0x80}},
		{inf, true, [4]uint16{0x7e, 0x7f, 0x7b, 0x7f}},
		{-inf, true, [4]uint16{0xfe, 0xff, 0xfb, 0xff}},
		{1e6, true, [4]uint16{0x7e, 0x7f, 0x7b, 0x7f}},
		{-1e6, true, [4]uint16{0xfe, 0xff, 0xfb, 0xff}},
		{464, true, [4]uint16{0x7e, 0x7f, 0x5f, 0x63}},
		{nan, false, [4]uint16{0x7f, 0x80, 0x7e, 0x80}},
		{negativeNaN, false, [4]uint16{0xff, 0x80, 0xfe, 0x80}},
		{inf, false, [4]uint16{0x7f, 0x80, 0x7c, 0x80}},
		{-inf, false, [4]uint16{0xff, 0x80, 0xfc, 0x80}},
		{1e6, false, [4]uint16{0x7f, 0x80, 0x7c, 0x80}},
		{-1e6, false, [4]uint16{0xff, 0x80, 0xfc, 0x80}},
		{-1e-9, false, [4]uint16{0x80, 0, 0x80, 0}},
	}
	for _, test := range tests {
		for i, f := range formats[2:6] {
			if got := f.encode32(test.x, test.saturate); got != test.want[i] {
				t.Errorf("%s from %v (saturate %v) = %#x, want %#x", f.name, test.x, test.saturate, got, test.want[i])
			}
		}
	}
}

func TestE8M0(t *testing.T) {
	const up, down, nearest = tensor.RoundUp, tensor.RoundDown, tensor.RoundNearest
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		x        float64
		mode     tensor.RoundMode
		saturate bool
		want     tensor.E8M0
	}{
		{0, up, true, 0}, {0, nearest, false, 255},
		{nan, up, true, 255}, {nan, nearest, false, 255},
		{inf, up, true, 254}, {inf, nearest, false, 255},
		{1e300, up, true, 254}, {1e300, nearest, false, 255},
		{1e-300, up, true, 0}, {1e-300, nearest, false, 255},
		{1, up, true, 127}, {1, down, true, 127}, {1, nearest, true, 127},
		{1.1, up, true, 128}, {1.1, down, true, 127}, {1.1, nearest, true, 127},
		{1.5, up, true, 128}, {1.5, down, true, 127}, {1.5, nearest, true, 128},
		{0.124, up, true, 124}, {0.124, down, true, 123}, {0.124, nearest, true, 124},
		{0x1p-127, up, false, 0}, {0x1.8p-128, nearest, false, 0}, {0x1.8p-128, down, false, 255},
		{0x1p127, up, false, 254}, {0x1.1p127, down, false, 254}, {0x1.1p127, up, false, 255},
		{-2, up, true, 128},
	}
	for _, test := range tests {
		if got := tensor.E8M0FromFloat64(test.x, test.mode, test.saturate); got != test.want {
			t.Errorf("E8M0 of %v (mode %d, saturate %v) = %d, want %d", test.x, test.mode, test.saturate, got, test.want)
		}
	}
	for code := range 255 {
		value := tensor.E8M0(code).Float32()
		if float64(value) != math.Ldexp(1, code-127) {
			t.Errorf("E8M0 %d is %v", code, value)
		}
		for _, mode := range []tensor.RoundMode{up, down, nearest} {
			if got := tensor.E8M0From(value, mode, false); int(got) != code {
				t.Errorf("E8M0 %d is %v, which becomes %d (mode %d)", code, value, got, mode)
			}
		}
	}
	if value := tensor.E8M0(255).Float32(); value == value {
		t.Errorf("E8M0 255 is %v, want NaN", value)
	}
}

// TestF16AgreesWithALibrary compares with an implementation that others wrote.
func TestF16AgreesWithALibrary(t *testing.T) {
	for code := range 1 << 16 {
		want := float16.Frombits(uint16(code)).Float32()
		if got := tensor.F16(code).Float32(); got != want && (got == got || want == want) {
			t.Fatalf("F16 %#x is %v, the library says %v", code, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float32().Draw(t, "f")
		if got, want := tensor.F16From(f), float16.Fromfloat32(f); uint16(got) != want.Bits() {
			t.Fatalf("F16 of %v is %#x, the library says %#x", f, got, want.Bits())
		}
	})
}
