package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// threads is a Parallel that cuts the range into n pieces whatever the grain.
func threads(pieces int) Parallel {
	return func(n, _ int, f func(first, last int)) {
		var wg sync.WaitGroup
		for i := range pieces {
			if first, last := i*n/pieces, (i+1)*n/pieces; first < last {
				wg.Go(func() { f(first, last) })
			}
		}
		wg.Wait()
	}
}

func random[T Number](r *rand.Rand, n int) []T {
	data := make([]T, n)
	for i := range data {
		data[i] = T(r.NormFloat64() * 4)
	}
	return data
}

// naive is the product by its definition, in float64.
func naive[T Number](c []float64, step int, a, b Matrix[T]) {
	for i := range a.Rows {
		for j := range b.Columns {
			for k := range a.Columns {
				x := a.Data[i*a.RowStep+k*a.ColumnStep]
				y := b.Data[k*b.RowStep+j*b.ColumnStep]
				c[i*step+j] += float64(x) * float64(y)
			}
		}
	}
}

// sizes are rows, columns and depths around the edges of tiles and blocks.
var sizes = [][3]int{
	{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 16, 3}, {1, 37, 300}, {6, 16, 256}, {5, 15, 7},
	{7, 17, 257}, {12, 32, 64}, {13, 33, 513}, {64, 49, 130}, {29, 261, 70}, {200, 5, 31}, {2, 530, 40},
}

func TestRunAgainstDefinition(t *testing.T) {
	for _, s := range sizes {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			checkKernel(t, Fast32(), s, 2e-4)
			checkKernel(t, Portable[float32](), s, 2e-4)
			checkKernel(t, Portable[float64](), s, 1e-11)
			checkKernel(t, Portable[int32](), s, 0)
			checkKernel(t, Portable[int64](), s, 0)
		})
	}
}

// checkKernel multiplies in every layout of the operands, packed and not, for
// several numbers of cores, and wants close results with equal bits.
func checkKernel[T Number](t *testing.T, k *Kernel[T], size [3]int, tolerance float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	rows, columns, depth := size[0], size[1], size[2]
	a := RowMajor(random[T](r, rows*depth), rows, depth)
	b := RowMajor(random[T](r, depth*columns), depth, columns)
	step := columns + 3
	start := random[T](r, rows*step)
	want := make([]float64, len(start))
	for i, v := range start {
		want[i] = float64(v)
	}
	naive(want, step, a, b)

	var first []T
	for name, operands := range layouts(k, a, b) {
		for _, cores := range []int{1, 3} {
			c := append([]T(nil), start...)
			k.Run(threads(cores), Product[T]{C: c, Step: step, A: operands[0], B: operands[1]})
			for i := range c {
				if diff := math.Abs(float64(c[i]) - want[i]); !(diff <= tolerance*(1+math.Abs(want[i]))) {
					t.Fatalf("%s %T, %s, %d cores: element %d is %v, want %v", k, c[i], name, cores, i, c[i], want[i])
				}
			}
			if first == nil {
				first = c
			}
			for i := range c {
				if c[i] != first[i] {
					t.Fatalf("%s %T, %s, %d cores: element %d is %v, was %v", k, c[i], name, cores, i, c[i], first[i])
				}
			}
		}
	}
}

func layouts[T Number](k *Kernel[T], a, b Matrix[T]) map[string][2]*Operand[T] {
	at, bt := copyTransposed(a), copyTransposed(b)
	row := func(dst []T, i, first int) { copy(dst, b.Data[i*b.RowStep+first:]) }
	return map[string][2]*Operand[T]{
		"as they are":  {k.Left(a), k.Right(b)},
		"transposed":   {k.Left(at), k.Right(bt)},
		"packed":       {k.Left(a).Pack(Serial), k.Right(b).Pack(threads(3))},
		"left packed":  {k.Left(at).Pack(threads(2)), k.Right(b)},
		"right packed": {k.Left(a), k.Right(bt).Pack(Serial)},
		"from rows":    {k.Left(a), k.RightRows(b.Rows, b.Columns, row)},
	}
}

// copyTransposed is m with its elements stored the other way around.
func copyTransposed[T Number](m Matrix[T]) Matrix[T] {
	data := make([]T, len(m.Data))
	for i := range m.Rows {
		for j := range m.Columns {
			data[j*m.Rows+i] = m.Data[i*m.RowStep+j*m.ColumnStep]
		}
	}
	return RowMajor(data, m.Columns, m.Rows).Transposed()
}

func TestManyProductsAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	k := Fast32()
	for _, cores := range []int{1, 2, 5} {
		var products []Product[float32]
		var want [][]float64
		for _, s := range sizes {
			a := RowMajor(random[float32](r, s[0]*s[2]), s[0], s[2])
			b := RowMajor(random[float32](r, s[2]*s[1]), s[2], s[1])
			products = append(products, Product[float32]{C: make([]float32, s[0]*s[1]), Step: s[1], A: k.Left(a), B: k.Right(b)})
			want = append(want, make([]float64, s[0]*s[1]))
			naive(want[len(want)-1], s[1], a, b)
		}
		k.Run(threads(cores), products...)
		for i, p := range products {
			for j, v := range p.C {
				if math.Abs(float64(v)-want[i][j]) > 2e-4*(1+math.Abs(want[i][j])) {
					t.Fatalf("%d cores, product %d: element %d is %v, want %v", cores, i, j, v, want[i][j])
				}
			}
		}
	}
}

// The portable kernel must round each product: on a host that fuses, 1+ε squared
// minus its rounded self would otherwise not be zero.
func TestPortableRoundsProducts(t *testing.T) {
	x := float32(1 + 1.0/(1<<12) + 1.0/(1<<23))
	a := RowMajor([]float32{x, 1}, 1, 2)
	square := x * x
	b := RowMajor([]float32{x, -square}, 2, 1)
	c := []float32{0}
	k := Portable[float32]()
	k.Run(Serial, Product[float32]{C: c, Step: 1, A: k.Left(a), B: k.Right(b)})
	if c[0] != 0 {
		t.Errorf("x·x - round(x·x) = %g, want 0", c[0])
	}
}

// BenchmarkRun prints GFLOP/s on one core for shapes out of ResNet-50 and BERT.
func BenchmarkRun(b *testing.B) {
	shapes := []struct {
		name                 string
		rows, columns, depth int
	}{
		{"square", 768, 768, 768},
		{"bert-ffn", 128, 3072, 768},
		{"resnet-3x3-early", 64, 3136, 576},
		{"resnet-1x1-late", 2048, 49, 512},
		{"attention-head", 128, 128, 64},
		{"one-row", 1, 3072, 768},
	}
	for _, k := range []*Kernel[float32]{Fast32(), Portable[float32]()} {
		for _, s := range shapes {
			b.Run(fmt.Sprintf("%s/%s", k, s.name), func(b *testing.B) { benchmarkShape(b, k, s.rows, s.columns, s.depth) })
		}
	}
}

func benchmarkShape(b *testing.B, k *Kernel[float32], rows, columns, depth int) {
	r := rand.New(rand.NewPCG(5, 6))
	left := k.Left(RowMajor(random[float32](r, rows*depth), rows, depth))
	right := k.Right(RowMajor(random[float32](r, depth*columns), depth, columns)).Pack(Serial)
	c := make([]float32, rows*columns)
	for b.Loop() {
		k.Run(Serial, Product[float32]{C: c, Step: columns, A: left, B: right})
	}
	flops := 2 * float64(rows) * float64(columns) * float64(depth)
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(0, "ns/op")
}
