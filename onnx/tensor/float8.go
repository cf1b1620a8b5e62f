package tensor

import "math"

// The conversions to 8-bit floats follow the tables of the ONNX operator Cast
// (opset 24): round to nearest, ties to even, then look at the range. With
// saturate, what is out of range, infinities too, becomes the largest finite
// number of its sign; without, it becomes infinity, or NaN where the type has no
// infinity. (Cast 19 to 23 had infinity become NaN in the FNUZ types even with
// saturate.)

// Float32 returns the value, exactly.
func (x E4M3FN) Float32() float32 { return layoutE4M3FN.decode(uint16(x)) }

// E4M3FNFrom returns the E4M3FN nearest to f. Without saturate, out of range is NaN.
func E4M3FNFrom(f float32, saturate bool) E4M3FN {
	return E4M3FN(layoutE4M3FN.encode(widen(f), saturate))
}

// E4M3FNFromFloat64 is [E4M3FNFrom] for a float64, which it rounds once.
func E4M3FNFromFloat64(f float64, saturate bool) E4M3FN {
	return E4M3FN(layoutE4M3FN.encode(math.Float64bits(f), saturate))
}

// Float32 returns the value, exactly.
func (x E4M3FNUZ) Float32() float32 { return layoutE4M3FNUZ.decode(uint16(x)) }

// E4M3FNUZFrom returns the E4M3FNUZ nearest to f. Without saturate, out of range
// is NaN. -0 becomes 0.
func E4M3FNUZFrom(f float32, saturate bool) E4M3FNUZ {
	return E4M3FNUZ(layoutE4M3FNUZ.encode(widen(f), saturate))
}

// E4M3FNUZFromFloat64 is [E4M3FNUZFrom] for a float64, which it rounds once.
func E4M3FNUZFromFloat64(f float64, saturate bool) E4M3FNUZ {
	return E4M3FNUZ(layoutE4M3FNUZ.encode(math.Float64bits(f), saturate))
}

// Float32 returns the value, exactly; the payload of a NaN is kept.
func (x E5M2) Float32() float32 { return layoutE5M2.decode(uint16(x)) }

// E5M2From returns the E5M2 nearest to f. Without saturate, out of range is
// infinity.
func E5M2From(f float32, saturate bool) E5M2 {
	return E5M2(layoutE5M2.encode(widen(f), saturate))
}

// E5M2FromFloat64 is [E5M2From] for a float64, which it rounds once.
func E5M2FromFloat64(f float64, saturate bool) E5M2 {
	return E5M2(layoutE5M2.encode(math.Float64bits(f), saturate))
}

// Float32 returns the value, exactly.
func (x E5M2FNUZ) Float32() float32 { return layoutE5M2FNUZ.decode(uint16(x)) }

// E5M2FNUZFrom returns the E5M2FNUZ nearest to f. Without saturate, out of range
// is NaN. -0 becomes 0.
func E5M2FNUZFrom(f float32, saturate bool) E5M2FNUZ {
	return E5M2FNUZ(layoutE5M2FNUZ.encode(widen(f), saturate))
}

// E5M2FNUZFromFloat64 is [E5M2FNUZFrom] for a float64, which it rounds once.
func E5M2FNUZFromFloat64(f float64, saturate bool) E5M2FNUZ {
	return E5M2FNUZ(layoutE5M2FNUZ.encode(math.Float64bits(f), saturate))
}

// Float32 returns the value, exactly. Bits above the low nibble are ignored.
func (x E2M1) Float32() float32 { return layoutE2M1.decode(uint16(x & 0xf)) }

// E2M1From returns the E2M1 nearest to f, ties to even; numbers beyond 6 and -6,
// infinities too, become these. The type has no NaN: it becomes -0, as in the
// test data of ONNX (the Float4 page says 6), so constants with NaN are better
// not folded.
func E2M1From(f float32) E2M1 { return E2M1(layoutE2M1.encode(widen(f), true)) }

// E2M1FromFloat64 is [E2M1From] for a float64, which it rounds once.
func E2M1FromFloat64(f float64) E2M1 { return E2M1(layoutE2M1.encode(math.Float64bits(f), true)) }

// RoundMode says how numbers become E8M0: the attribute round_mode of Cast.
type RoundMode uint8

// The rounding modes, by their names in ONNX: "up", which is the default,
// "down" and "nearest".
const (
	RoundUp      RoundMode = iota // to the next power of two away from zero
	RoundDown                     // to the next power of two towards zero
	RoundNearest                  // to the nearer power of two; from half-way, up
)

const (
	e8m0Bias      = 127
	e8m0Max  E8M0 = 254
	e8m0NaN  E8M0 = 255
)

// Float32 returns the value, exactly: 2^(x-127), or NaN for 255.
func (x E8M0) Float32() float32 {
	switch x {
	case 0:
		return 0x1p-127
	case e8m0NaN:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(x) << 23)
}

// E8M0From rounds the magnitude of f to a power of two; the type has no sign, and
// ONNX leaves negative numbers undefined. With saturate, 0 and what is too small
// become 2^-127, infinity and what is too large 2^127; without, they become NaN.
func E8M0From(f float32, mode RoundMode, saturate bool) E8M0 {
	return E8M0FromFloat64(float64(f), mode, saturate)
}

// E8M0FromFloat64 is [E8M0From] for a float64, which it rounds once.
func E8M0FromFloat64(f float64, mode RoundMode, saturate bool) E8M0 {
	if f != f {
		return e8m0NaN
	}
	fraction, exponent := math.Frexp(math.Abs(f)) // of [0.5, 1); 0 and infinity as they are
	code := exponent - 1 + e8m0Bias
	if mode == RoundUp && fraction > 0.5 || mode == RoundNearest && fraction >= 0.75 {
		code++
	}
	tooSmall := f == 0 || code < 0
	tooLarge := math.IsInf(f, 0) || code > int(e8m0Max)
	switch {
	case !saturate && (tooSmall || tooLarge):
		return e8m0NaN
	case tooSmall:
		return 0
	case tooLarge:
		return e8m0Max
	}
	return E8M0(code)
}
