package simd

import (
	"fmt"
	"math"
	"testing"
)

// lengths are around the width of a vector.
var lengths = []int{0, 1, 7, 8, 9, 16, 31, 100}

// ulps is how far got is from want, in units of want's last place.
func ulps(got float32, want float64) float64 {
	rounded := float32(want)
	next := math.Nextafter32(rounded, float32(math.Inf(1)))
	return math.Abs(float64(got)-want) / float64(next-rounded)
}

// sweep calls f with every 10007th float32 that is a number.
func sweep(f func(float32)) {
	for b := uint32(0); b < 0x7f800000; b += 10007 {
		f(math.Float32frombits(b))
		f(-math.Float32frombits(b))
	}
}

func TestFunctionsAreAccurate(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     func(dst, src []float32)
		exact func(float64) float64
		limit float64
	}{
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3},
		{"tanh", Tanh, math.Tanh, 3},
		{"erf", Erf, math.Erf, 3},
		{"exp", func(dst, src []float32) { ExpSum(dst, src, 0) }, math.Exp, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x []float32
			sweep(func(v float32) {
				if c.name != "exp" || v <= 0 {
					x = append(x, v)
				}
			})
			y := make([]float32, len(x))
			c.f(y, x)
			for i, v := range x {
				want := c.exact(float64(v))
				if math.Abs(want) < 1.2e-38 {
					if math.Abs(float64(y[i])) > 1.2e-38 {
						t.Fatalf("%s(%g) = %g, want %g", c.name, v, y[i], want)
					}
					continue
				}
				if off := ulps(y[i], want); !(off <= c.limit) {
					t.Fatalf("%s(%g) = %g, want %g: off by %.2f units", c.name, v, y[i], want, off)
				}
			}
		})
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	in := []float32{0, inf, -inf, nan}
	for _, c := range []struct {
		name string
		f    func(dst, src []float32)
		want []float32
	}{
		{"sigmoid", Sigmoid, []float32{0.5, 1, 0, nan}},
		{"tanh", Tanh, []float32{0, 1, -1, nan}},
		{"erf", Erf, []float32{0, 1, -1, nan}},
	} {
		got := make([]float32, len(in))
		c.f(got, in)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s(%v) = %v, want %v", c.name, in, got, c.want)
		}
	}
	if got := Max([]float32{nan, 1, 2, 3, 4, 5, 6, 7, nan, 0}); got != 7 {
		t.Errorf("the largest beside NaN is %v", got)
	}
	if got := ExpSum(make([]float32, 2), []float32{0, -inf}, 0); got != 1 {
		t.Errorf("e^0 + e^-Inf = %v", got)
	}
	if got := ExpSum(make([]float32, 2), []float32{0, nan}, 0); got == got {
		t.Errorf("e^0 + e^NaN = %v", got)
	}
}

func TestSlicesOfEveryLength(t *testing.T) {
	for _, n := range lengths {
		x, y := make([]float32, n), make([]float32, n)
		most, sum := math.Inf(-1), 0.0
		for i := range x {
			x[i] = float32(i*37%11) - 20
			y[i] = float32(i)
			most = max(most, float64(x[i]))
			sum += math.Exp(float64(x[i]))
		}
		if got := Max(x); float64(got) != most {
			t.Errorf("the largest of %d is %v, want %v", n, got, most)
		}
		out := make([]float32, n+1)
		if got := ExpSum(out[:n], x, 0); math.Abs(float64(got)-sum) > 1e-5*sum {
			t.Errorf("the sum of %d is %v, want %v", n, got, sum)
		}
		Scale(out[:n], x, 0.5)
		AddScaled(y, x, 3)
		for i := range x {
			if out[i] != x[i]/2 || y[i] != float32(i)+3*x[i] {
				t.Errorf("of %d, element %d is %v and %v", n, i, out[i], y[i])
			}
		}
		if out[n] != 0 {
			t.Errorf("an element after %d was written", n)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	x, y := make([]float32, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = float32(i%64)/8 - 4
	}
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"exp", func() { ExpSum(y, x, 4) }},
		{"sigmoid", func() { Sigmoid(y, x) }},
		{"tanh", func() { Tanh(y, x) }},
		{"erf", func() { Erf(y, x) }},
		{"max", func() { Max(x) }},
		{"add-scaled", func() { AddScaled(y, x, 0.5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(x)), "ns/element")
			b.ReportMetric(0, "ns/op")
		})
	}
}
