// Command simd writes the loops of package simd; see the README above. Each takes
// eight elements at a time, and a number of elements that is a multiple of eight.
//
// The polynomials are fits of our own, made by weighted least squares on Chebyshev
// points; the error of each is far below a rounding of float32.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	maximum()
	scale()
	addScaled()
	expSum()
	function("sigmoid", "1/(1+exp(-x))", sigmoid)
	function("tanh", "the hyperbolic tangent", tanh)
	function("erf", "the error function", erf)
	Generate()
}

// constants holds every number that has been put into the data section, by its bits.
var constants = map[uint32]Mem{}

// number is a vector of eight times v in memory.
func number(v float64) Mem { return bits(math.Float32bits(float32(v))) }

func bits(b uint32) Mem {
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("eight_%08x", b), RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(b))
	}
	constants[b] = m
	return m
}

// ofNumber is a register that holds eight times v.
func ofNumber(v float64) VecVirtual {
	x := YMM()
	VMOVUPS(number(v), x)
	return x
}

const (
	signBit   = 0x80000000
	magnitude = 0x7fffffff
)

// eachEight writes a loop over n elements; body gets nothing and moves the pointers'
// contents, which are advanced afterwards.
func eachEight(name string, n Register, body func(), pointers ...Register) {
	Label(name + "_loop")
	CMPQ(n, U32(8))
	JLT(LabelRef(name + "_end"))
	body()
	for _, p := range pointers {
		ADDQ(U32(32), p)
	}
	SUBQ(U32(8), n)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_end")
}

// maximum writes the largest of every eighth element, NaN ignored, to eight lanes.
func maximum() {
	TEXT("maximumLanes", NOSPLIT, "func(lanes, src *float32, n int)")
	Pragma("noescape")
	Doc("maximumLanes raises each of eight lanes to the largest of the elements that fall to it.")
	lanes, src, n := Load(Param("lanes"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	best, x := YMM(), YMM()
	VMOVUPS(Mem{Base: lanes}, best)
	eachEight("maximum", n, func() {
		VMOVUPS(Mem{Base: src}, x)
		VMAXPS(best, x, best) // of two numbers that do not compare, best
	}, src)
	VMOVUPS(best, Mem{Base: lanes})
	VZEROUPPER()
	RET()
}

func scale() {
	TEXT("scaleEights", NOSPLIT, "func(dst, src *float32, n int, factor float32)")
	Pragma("noescape")
	Doc("scaleEights writes factor times each element.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor := YMM()
	at, err := Param("factor").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, factor)
	x := YMM()
	eachEight("scale", n, func() {
		VMULPS(Mem{Base: src}, factor, x)
		VMOVUPS(x, Mem{Base: dst})
	}, src, dst)
	VZEROUPPER()
	RET()
}

func addScaled() {
	TEXT("addScaledEights", NOSPLIT, "func(dst, src *float32, n int, factor float32)")
	Pragma("noescape")
	Doc("addScaledEights adds factor times each element of src to dst; product and sum are rounded each.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	factor := YMM()
	at, err := Param("factor").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, factor)
	x := YMM()
	eachEight("addScaled", n, func() {
		VMULPS(Mem{Base: src}, factor, x)
		VADDPS(Mem{Base: dst}, x, x)
		VMOVUPS(x, Mem{Base: dst})
	}, src, dst)
	VZEROUPPER()
	RET()
}

// exponential replaces x, which is not above 0, by e^x. Results that would be subnormal
// are 0; NaN stays.
func exponential(x VecVirtual) {
	const lowest = -87.33654
	small, n, r2, y := YMM(), YMM(), YMM(), YMM()
	VCMPPS(U8(1), number(lowest), x, small) // x < lowest
	limit := ofNumber(lowest)
	VMAXPS(x, limit, x) // of two numbers that do not compare, x
	// x = n·ln2 + r; the first part of ln2 has few bits, so that its product is exact.
	VMULPS(number(math.Log2E), x, n)
	VROUNDPS(U8(0), n, n)
	VFNMADD231PS(number(0.693359375), n, x)
	VFNMADD231PS(number(-2.12194440e-4), n, x)
	// e^r = 1 + r + r²·q(r)
	VMULPS(x, x, r2)
	VMOVUPS(number(0.0013950599823147058), y)
	for _, c := range []float64{0.008368954062461853, 0.04166620597243309, 0.166665181517601, 0.5} {
		VFMADD213PS(number(c), x, y)
	}
	VFMADD213PS(x, r2, y)
	VADDPS(number(1), y, y)
	VCVTPS2DQ(n, n)
	VPADDD(bits(127), n, n)
	VPSLLD(U8(23), n, n)
	VMULPS(n, y, x)
	VANDNPS(x, small, x)
}

func expSum() {
	TEXT("expSumEights", NOSPLIT, "func(dst, src *float32, n int, shift float32, lanes *float32)")
	Pragma("noescape")
	Doc("expSumEights writes e^(x-shift), for x not above shift, and adds it up in eight lanes.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	lanes := Load(Param("lanes"), GP64())
	shift, sum, x := YMM(), YMM(), YMM()
	at, err := Param("shift").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, shift)
	VMOVUPS(Mem{Base: lanes}, sum)
	eachEight("expSum", n, func() {
		VMOVUPS(Mem{Base: src}, x)
		VSUBPS(shift, x, x)
		exponential(x)
		VMOVUPS(x, Mem{Base: dst})
		VADDPS(x, sum, sum)
	}, src, dst)
	VMOVUPS(sum, Mem{Base: lanes})
	VZEROUPPER()
	RET()
}

// function writes a loop that applies f, which replaces its argument, to every element.
func function(name, doc string, f func(x VecVirtual)) {
	TEXT(name+"Eights", NOSPLIT, "func(dst, src *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%sEights writes %s of each element.", name, doc))
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	x := YMM()
	eachEight(name, n, func() {
		VMOVUPS(Mem{Base: src}, x)
		f(x)
		VMOVUPS(x, Mem{Base: dst})
	}, src, dst)
	VZEROUPPER()
	RET()
}

// sigmoid: with e = e^-|x| it is 1/(1+e) for positive x, e/(1+e) for negative.
func sigmoid(x VecVirtual) {
	e, top := YMM(), YMM()
	VORPS(bits(signBit), x, e)
	exponential(e)
	VMOVUPS(number(1), top)
	VBLENDVPS(x, e, top, top) // by the sign of x
	VADDPS(number(1), e, e)
	VDIVPS(e, top, x)
}

// tanh: with t = e^-2|x| it is (1-t)/(1+t) and the sign of x; near 0, where that
// cancels, x + x³·p(x²).
func tanh(x VecVirtual) {
	small, a, t, x2, y, near := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	VANDPS(bits(magnitude), x, a)
	VCMPPS(U8(1), number(0.625), a, near)
	VMULPS(x, x, x2)
	VMOVUPS(number(0.0021475369576364756), small)
	for _, c := range []float64{-0.008182673715054989, 0.021702967584133148, -0.05394720286130905, 0.13333210349082947, -0.3333333134651184} {
		VFMADD213PS(number(c), x2, small)
	}
	VMULPS(x2, small, small)
	VFMADD213PS(x, x, small)
	VMULPS(number(-2), a, t)
	exponential(t)
	VMOVUPS(number(1), y)
	VSUBPS(t, y, y)
	VADDPS(number(1), t, t)
	VDIVPS(t, y, y)
	VANDPS(bits(signBit), x, t)
	VORPS(t, y, y)
	VBLENDVPS(near, small, y, x)
}

// erf: below 1, x·(2/√π + x²·p(x²)); above, 1 - e^-g(x) with a polynomial g, and the
// sign of x. From 4 on it is 1 in float32.
func erf(x VecVirtual) {
	small, a, t, x2, near, limit := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
	VANDPS(bits(magnitude), x, a)
	VCMPPS(U8(1), number(1), a, near)
	VMULPS(x, x, x2)
	VMOVUPS(number(7.933108281577006e-05), small)
	for _, c := range []float64{-0.0008035031496547163, 0.005191291682422161, -0.026855483651161194, 0.11283630132675171, -0.37612631916999817, 2 / math.SqrtPi} {
		VFMADD213PS(number(c), x2, small)
	}
	VMULPS(x, small, small)
	VMOVUPS(number(4), limit)
	VMINPS(a, limit, a) // of two numbers that do not compare, a
	VMOVUPS(number(-2.1686850232072175e-05), t)
	for _, c := range []float64{0.00044133636401966214, -0.004204561933875084, 0.025208257138729095, -0.10841857641935349, -0.6332198977470398, -1.1295784711837769, 0.0001880402269307524} {
		VFMADD213PS(number(c), a, t)
	}
	exponential(t)
	VMOVUPS(number(1), a)
	VSUBPS(t, a, a)
	VANDPS(bits(signBit), x, t)
	VORPS(t, a, a)
	VBLENDVPS(near, small, a, x)
}
