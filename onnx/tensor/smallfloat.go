package tensor

import "math"

// layout describes a binary float of at most 16 bits: a sign bit, exp exponent
// bits, man mantissa bits, and the codes it sets aside. Codes in the table are
// without the sign bit.
type layout struct {
	exp, man int
	bias     int
	max      uint16 // the largest finite number
	inf      uint16 // infinity, with NaNs above it; 0 when there is none
	nan      uint16 // the only NaN of a layout without infinity; 0 when there is none
	fnuz     bool   // the code of -0 is the only NaN, and zero has no sign
}

// The layouts, from the Float8 and Float4 pages of the ONNX documentation.
var (
	layoutF16      = layout{exp: 5, man: 10, bias: 15, max: 0x7bff, inf: 0x7c00}
	layoutBF16     = layout{exp: 8, man: 7, bias: 127, max: 0x7f7f, inf: 0x7f80}
	layoutE5M2     = layout{exp: 5, man: 2, bias: 15, max: 0x7b, inf: 0x7c}
	layoutE4M3FN   = layout{exp: 4, man: 3, bias: 7, max: 0x7e, nan: 0x7f}
	layoutE4M3FNUZ = layout{exp: 4, man: 3, bias: 8, max: 0x7f, fnuz: true}
	layoutE5M2FNUZ = layout{exp: 5, man: 2, bias: 16, max: 0x7f, fnuz: true}
	layoutE2M1     = layout{exp: 2, man: 1, bias: 1, max: 0x07}
)

// The parts of a float64.
const (
	wideMantissa = 52
	wideExponent = 0x7ff
	wideBias     = 1023
)

// signBit returns the code of the sign alone.
func (l *layout) signBit() uint16 { return 1 << (l.exp + l.man) }

// encode returns the code nearest to the float64 with these bits, ties to even.
// What is beyond the largest finite number becomes that number when saturate is
// set, else infinity, or NaN in a layout without infinity.
func (l *layout) encode(bits uint64, saturate bool) uint16 {
	var sign uint16
	if bits>>63 != 0 {
		sign = l.signBit()
	}
	if bits<<1 > wideExponent<<(wideMantissa+1) {
		return l.encodeNaN(bits, sign)
	}
	code := l.encodeMagnitude(bits)
	switch {
	case code > l.max:
		return l.overflow(sign, saturate)
	case code == 0 && l.fnuz:
		return 0
	}
	return sign | code
}

// encodeMagnitude rounds the magnitude of a number to the mantissa width. Its
// result is above max for all that is out of range: the exponent runs on, then
// stops at the largest uint16.
func (l *layout) encodeMagnitude(bits uint64) uint16 {
	exponent := int(bits>>wideMantissa&wideExponent) - wideBias
	significand := bits&(1<<wideMantissa-1) | 1<<wideMantissa
	lowest := 1 - l.bias // the exponent of the smallest normal and of all subnormals
	if exponent > lowest+1<<l.exp {
		return math.MaxUint16
	}
	shift := wideMantissa - l.man + max(lowest-exponent, 0)
	if shift > wideMantissa+1 {
		return 0 // below half of the smallest number; float64 subnormals end here, too
	}
	belowHalf := uint64(1)<<(shift-1) - 1
	odd := significand >> shift & 1
	rounded := (significand + belowHalf + odd) >> shift
	return uint16(rounded + uint64(max(exponent-lowest, 0))<<l.man)
}

func (l *layout) overflow(sign uint16, saturate bool) uint16 {
	switch {
	case saturate:
		return sign | l.max
	case l.inf != 0:
		return sign | l.inf
	case l.fnuz:
		return l.signBit()
	}
	return sign | l.nan
}

// encodeNaN keeps the sign and the leading payload bits where there is room.
func (l *layout) encodeNaN(bits uint64, sign uint16) uint16 {
	if l.inf != 0 {
		payload := uint16(bits>>(wideMantissa-l.man)) & (1<<l.man - 1)
		if payload == 0 {
			payload = 1 << (l.man - 1)
		}
		return sign | l.inf | payload
	}
	if l.nan != 0 {
		return sign | l.nan
	}
	return l.signBit() // the NaN of FNUZ; in a layout without NaN, -0
}

// decode returns the value of a code; float32 holds every one exactly.
func (l *layout) decode(code uint16) float32 {
	magnitude := code &^ l.signBit()
	sign := uint32(0)
	if code != magnitude {
		sign = 1 << 31
	}
	mantissa := uint32(magnitude & (1<<l.man - 1))
	switch {
	case l.fnuz && code == l.signBit() || l.inf == 0 && magnitude > l.max:
		return math.Float32frombits(sign | 0x7fc00000)
	case magnitude > l.max:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<(23-l.man))
	case magnitude>>l.man == 0:
		unit := math.Float32frombits(uint32(127+1-l.bias-l.man) << 23)
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*unit))
	}
	return math.Float32frombits(sign | uint32(magnitude)<<(23-l.man) + uint32(127-l.bias)<<23)
}

// widen returns the bits of f as a float64, leaving a NaN's payload as it is.
func widen(f float32) uint64 {
	if f == f {
		return math.Float64bits(float64(f))
	}
	bits := math.Float32bits(f)
	return uint64(bits>>31)<<63 | wideExponent<<wideMantissa | uint64(bits&(1<<23-1))<<(wideMantissa-23)
}

// Float32 returns the value, exactly; the payload of a NaN is kept.
func (x F16) Float32() float32 {
	bits := uint32(x&0x7fff) << 13
	if bits >= 0x1f<<23 {
		bits += (0xff - 0x1f) << 23 // infinity and NaN
	} else {
		// A product makes one case of normal and subnormal numbers.
		bits = math.Float32bits(math.Float32frombits(bits) * 0x1p112)
	}
	return math.Float32frombits(bits | uint32(x&0x8000)<<16)
}

// F16From returns the F16 nearest to f, ties to even. Out of range is infinity;
// NaN stays NaN, with the leading bits of its payload.
func F16From(f float32) F16 {
	bits := math.Float32bits(f)
	sign := F16(bits >> 16 & 0x8000)
	bits &^= 1 << 31
	switch {
	case bits > 0x7f800000:
		return F16(layoutF16.encode(widen(f), false))
	case bits >= 0x477ff000: // half-way from the largest number to 2^16
		return sign | 0x7c00
	case bits < 0x38800000: // below 2^-14: at 0.5, float32 has the spacing of subnormals
		return sign | F16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	bits -= (127 - 15) << 23
	return sign | F16((bits+0xfff+bits>>13&1)>>13)
}

// F16FromFloat64 is [F16From] for a float64, which it rounds once.
func F16FromFloat64(f float64) F16 { return F16(layoutF16.encode(math.Float64bits(f), false)) }

// Float32 returns the value, exactly.
func (x BF16) Float32() float32 { return math.Float32frombits(uint32(x) << 16) }

// BF16From returns the BF16 nearest to f, ties to even. Out of range is infinity;
// NaN stays NaN, with the leading bits of its payload.
func BF16From(f float32) BF16 {
	bits := math.Float32bits(f)
	switch {
	case f == f:
		bits += 0x7fff + bits>>16&1
	case bits&0x7f0000 == 0: // a NaN whose payload is in the half that goes
		bits |= 0x400000
	}
	return BF16(bits >> 16)
}

// BF16FromFloat64 is [BF16From] for a float64, which it rounds once.
func BF16FromFloat64(f float64) BF16 { return BF16(layoutBF16.encode(math.Float64bits(f), false)) }
