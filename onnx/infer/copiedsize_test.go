package infer

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// A 0 that is computed for a Reshape copies the input's dim: what is said of the
// result must be true of both readings.
func TestComputedZerosOfReshape(t *testing.T) {
	width8, channels := width.FloorDiv(Const(8)), Const(4)
	for _, c := range []struct {
		name       string
		in, target []Dim
		want       string
	}{
		{"the dim at its place", dims(batch, height, channels), dims(batch, height, Const(2), Const(2)), "batch,height,2,2"},
		{"a multiple of it", dims(batch, height, channels), dims(batch.MulConst(4), height), "4*batch,height"},
		{"another dim, and no -1: the counts cannot agree", dims(height, batch, channels), dims(height.Mul(batch), channels), "batch*height,4"},
		{"another dim, and a -1 that makes them agree", dims(channels, batch, Const(8)), dims(batch, Const(-1)), "nonzero(batch,4),floor((32*batch)/nonzero(batch,4))"},
		{"a dim that another that may be empty hides", dims(batch, Const(1), channels, height), dims(batch, channels, height), "batch,4,nonzero(height,4)"},
		{"what copies it again", dims(batch, nonzero(height, channels), Const(6)), dims(batch, height, Const(6)), "batch,nonzero(height,4),6"},
		{"beyond the input's dims there is nothing to copy", dims(height.Mul(width)), dims(height, width), "height,width"},
		{"a part that vanishes with the dim", dims(width, batch), dims(width.Min(Const(9)), Const(-1)), "nonzero(width-max(width-9,0),width),floor((batch*width)/nonzero(width-max(width-9,0),width))"},
		{"a dim that vanishes with what is asked for", dims(width.Min(Const(9)), batch), dims(width, Const(-1)), "width,trunc((batch*width-batch*max(width-9,0))/width)"},
		{"a size that may be rounded to 0", dims(width, Const(3)), dims(width8, Const(-1)), "nonzero(floor(width/8),width),floor((3*width)/nonzero(floor(width/8),width))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := join(reshaped(c.in, c.target)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func dims(d ...Dim) []Dim { return d }

// reshaped infers the dims of a Reshape of an input of dims in.
func reshaped(in, target []Dim) []Dim {
	m := onnx.NewModel(10, 21)
	x := m.Graph.AddInput("x", onnx.TensorType(tensor.Float32))
	to := m.Graph.AddInput("to", onnx.TensorType(tensor.Int64, len(target)))
	n := m.Graph.Add("Reshape", []*onnx.Value{x, to}, []string{"y"})
	i := New(m, Options{})
	values := make([]Value, len(target))
	for k, d := range target {
		values[k] = Integer(d)
	}
	i.Set(x, Tensor(tensor.Float32, in...))
	i.Set(to, Tensor(tensor.Int64, Const(int64(len(target)))).WithValues(values...))
	i.Node(n)
	return i.Of(n.Output(0)).Dims
}

// Whatever sizes the symbols have, the dims that are inferred are those that a
// Reshape makes, where it can make any.
func TestReshapeAgreesWithNumbers(t *testing.T) {
	sizes := []Dim{
		batch, height, width, batch.MulConst(2), batch.Mul(height), height.Mul(width), height.Add(width),
		width.FloorDiv(Const(2)), width.Min(Const(3)), nonzero(width, Const(2)), nonzero(batch, height), Const(1), Const(2), Const(6), Const(0),
	}
	worked := 0
	rapid.Check(t, func(t *rapid.T) {
		values := assignment{}
		for _, d := range []Dim{batch, height, width} {
			values[d.key()] = rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 6}).Draw(t, d.String())
		}
		in := rapid.SliceOfN(rapid.SampledFrom(sizes), 1, 4).Draw(t, "in")
		target := rapid.SliceOfN(rapid.SampledFrom(append(in, sizes...)), 1, 4).Draw(t, "target")
		if rapid.Bool().Draw(t, "infer one") {
			target[rapid.IntRange(0, len(target)-1).Draw(t, "which")] = Const(-1)
		}
		got := reshaped(in, target)
		want, ok := reshapeNumbers(values.all(t, in), values.all(t, target))
		if !ok {
			return
		}
		worked++
		for k, d := range got {
			// A symbol of no name stands for anything.
			if n, ok := values.of(d); ok && n != want[k] {
				t.Fatalf("Reshape of [%s] to [%s] gives [%s], dim %d of which is %d; with %v it is %d", join(in), join(target), join(got), k, n, values, want[k])
			}
		}
	})
	if worked == 0 {
		t.Error("no Reshape worked")
	}
}

func (a assignment) all(t *rapid.T, dims []Dim) []int64 {
	out := make([]int64, len(dims))
	for k, d := range dims {
		n, ok := a.of(d)
		if !ok {
			t.Fatalf("%s has no value", d)
		}
		out[k] = n
	}
	return out
}

// reshapeNumbers is what Reshape does to a shape, allowzero being 0.
func reshapeNumbers(in, target []int64) (out []int64, ok bool) {
	total, rest, open := int64(1), int64(1), -1
	for _, n := range in {
		total *= n
	}
	out = make([]int64, len(target))
	for k, n := range target {
		if n == 0 {
			if k >= len(in) {
				return nil, false
			}
			n = in[k]
		}
		if out[k] = n; n == -1 {
			open = k
		} else {
			rest *= n
		}
	}
	if open < 0 {
		return out, rest == total
	}
	if rest == 0 || total%rest != 0 {
		return nil, false
	}
	out[open] = total / rest
	return out, true
}
