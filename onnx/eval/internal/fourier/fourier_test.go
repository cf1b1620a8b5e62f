package fourier_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/npuctl/npuctl/onnx/eval/internal/fourier"
)

// lengths go each of the three ways, primes and 1 among them.
var lengths = []int{1, 2, 3, 4, 5, 7, 8, 16, 31, 47, 48, 49, 64, 80, 97, 100, 128, 201, 400, 512, 513, 1000, 1021}

func TestForwardIsTheDefinition(t *testing.T) {
	for _, n := range lengths {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			real, imaginary := signal(n)
			want := definition(real, imaginary)
			transform := fourier.New(n)
			transform.Forward(real, imaginary, transform.NewWork())
			for k, w := range want {
				if d := cmplx.Abs(complex(real[k], imaginary[k]) - w); d > 1e-12*math.Sqrt(float64(n)) {
					t.Fatalf("frequency %d is (%v %vi), want %v", k, real[k], imaginary[k], w)
				}
			}
		})
	}
}

func TestInverseUndoesForward(t *testing.T) {
	for _, n := range lengths {
		real, imaginary := signal(n)
		transform := fourier.New(n)
		work := transform.NewWork()
		transform.Forward(real, imaginary, work)
		transform.Inverse(real, imaginary, work)
		wantReal, wantImaginary := signal(n)
		for j := range n {
			if math.Abs(real[j]-wantReal[j]) > 1e-13 || math.Abs(imaginary[j]-wantImaginary[j]) > 1e-13 {
				t.Fatalf("length %d: sample %d comes back as (%v %vi), was (%v %vi)", n, j, real[j], imaginary[j], wantReal[j], wantImaginary[j])
			}
		}
	}
}

func signal(n int) (real, imaginary []float64) {
	random := rand.New(rand.NewPCG(3, uint64(n)))
	for range n {
		real = append(real, random.Float64()-0.5)
		imaginary = append(imaginary, random.Float64()-0.5)
	}
	return real, imaginary
}

func definition(real, imaginary []float64) []complex128 {
	n := len(real)
	out := make([]complex128, n)
	for k := range n {
		for j := range n {
			out[k] += complex(real[j], imaginary[j]) * cmplx.Exp(complex(0, -2*math.Pi*float64(j*k%n)/float64(n)))
		}
	}
	return out
}

func BenchmarkForward(b *testing.B) {
	for _, n := range []int{400, 512, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			real, imaginary := signal(n)
			transform := fourier.New(n)
			work := transform.NewWork()
			for b.Loop() {
				transform.Forward(real, imaginary, work)
				transform.Inverse(real, imaginary, work)
			}
		})
	}
}
