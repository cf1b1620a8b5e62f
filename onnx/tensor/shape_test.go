package tensor_test

import (
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

func TestCount(t *testing.T) {
	tests := []struct {
		shape []int
		want  int
		ok    bool
	}{
		{nil, 1, true},
		{[]int{2, 3}, 6, true},
		{[]int{2, 0, 3}, 0, true},
		{[]int{1 << 20, 1 << 20}, 1 << 40, true},
		{[]int{1 << 20, 1 << 20, 2}, 0, false},
		{[]int{-3}, 0, false},
	}
	for _, test := range tests {
		got, err := tensor.Count(test.shape)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("Count(%v) = %d, %v", test.shape, got, err)
		}
	}
}

func TestStrides(t *testing.T) {
	tests := []struct{ shape, want []int }{
		{nil, []int{}},
		{[]int{5}, []int{1}},
		{[]int{2, 3, 4}, []int{12, 4, 1}},
		{[]int{2, 0, 4}, []int{4, 4, 1}},
	}
	for _, test := range tests {
		if got := tensor.Strides(test.shape); !slices.Equal(got, test.want) {
			t.Errorf("Strides(%v) = %v, want %v", test.shape, got, test.want)
		}
	}
}

func TestBroadcastShapes(t *testing.T) {
	tests := []struct {
		a, b, want []int
	}{
		{nil, nil, []int{}},
		{[]int{2, 3}, nil, []int{2, 3}},
		{[]int{2, 3}, []int{3}, []int{2, 3}},
		{[]int{2, 1}, []int{1, 3}, []int{2, 3}},
		{[]int{4, 1, 3}, []int{2, 1}, []int{4, 2, 3}},
		{[]int{1}, []int{0}, []int{0}},
		{[]int{0, 2}, []int{1, 2}, []int{0, 2}},
		{[]int{2, 3}, []int{2}, nil},
		{[]int{0}, []int{2}, nil},
	}
	for _, test := range tests {
		for _, pair := range [][2][]int{{test.a, test.b}, {test.b, test.a}} {
			got, err := tensor.BroadcastShapes(pair[0], pair[1])
			if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
				t.Errorf("%v and %v broadcast to %v, %v, want %v", pair[0], pair[1], got, err, test.want)
			}
		}
	}
}

func TestBroadcastStrides(t *testing.T) {
	tests := []struct {
		from, to, want []int
	}{
		{[]int{2, 3}, []int{2, 3}, []int{3, 1}},
		{[]int{3}, []int{2, 3}, []int{0, 1}},
		{[]int{2, 1}, []int{2, 3}, []int{1, 0}},
		{[]int{1, 1}, []int{1, 1}, []int{0, 0}},
		{nil, []int{2, 3}, []int{0, 0}},
		{[]int{1}, []int{0}, []int{0}},
		{[]int{2}, []int{3}, nil},
		{[]int{1, 2}, []int{2}, nil},
		{[]int{0}, []int{1}, nil},
	}
	for _, test := range tests {
		got, err := tensor.BroadcastStrides(test.from, test.to)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("%v to %v has strides %v, %v, want %v", test.from, test.to, got, err, test.want)
		}
	}
}

// broadcastable draws a shape and an operand's shape that broadcasts to it.
func broadcastable(t *rapid.T, shape []int, label string) []int {
	operand := slices.Clone(shape[rapid.IntRange(0, len(shape)).Draw(t, label+" rank"):])
	for axis := range operand {
		if rapid.Bool().Draw(t, label+" repeats") {
			operand[axis] = 1
		}
	}
	return operand
}

// TestBroadcastWalkVisitsEveryPosition compares a walk over two operands with
// index arithmetic written out.
func TestBroadcastWalkVisitsEveryPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := shapes().Draw(t, "shape")
		operands := [][]int{broadcastable(t, shape, "a"), broadcastable(t, shape, "b")}
		walk, err := tensor.BroadcastWalk(shape, operands...)
		if err != nil {
			t.Fatal(err)
		}
		count, _ := tensor.Count(shape)
		if walk.Runs()*walk.Len() != count {
			t.Fatalf("%d runs of %d for %d positions", walk.Runs(), walk.Len(), count)
		}
		visited := 0
		visit := func(run int, at []int) {
			for i := range walk.Len() {
				position := run*walk.Len() + i
				if position != visited {
					t.Fatalf("position %d after %d", position, visited-1)
				}
				visited++
				for k, operand := range operands {
					if got, want := at[k]+i*walk.Step(k), offsetOf(position, shape, operand); got != want {
						t.Fatalf("operand %d of shape %v in %v at %d: offset %d, want %d", k, operand, shape, position, got, want)
					}
				}
			}
		}
		cut := rapid.IntRange(0, walk.Runs()).Draw(t, "cut")
		walk.Range(0, cut, visit)
		walk.Range(cut, walk.Runs(), visit)
		if visited != count {
			t.Fatalf("%d of %d positions visited", visited, count)
		}
	})
}

// offsetOf is the row-major offset in operand of a position in shape.
func offsetOf(position int, shape, operand []int) int {
	offset, step := 0, 1
	for axis := len(shape) - 1; axis >= 0; axis-- {
		index := position % shape[axis]
		position /= shape[axis]
		if own := axis - (len(shape) - len(operand)); own >= 0 {
			if operand[own] > 1 {
				offset += index * step
			}
			step *= operand[own]
		}
	}
	return offset
}

func TestWalkMergesAxes(t *testing.T) {
	tests := []struct {
		shape       []int
		operands    [][]int
		runs, count int
		steps       []int
	}{
		{[]int{2, 3, 4}, [][]int{{2, 3, 4}, {2, 3, 4}}, 1, 24, []int{1, 1}},
		{[]int{2, 3, 4}, [][]int{{2, 3, 4}, {}}, 1, 24, []int{1, 0}},
		{[]int{2, 3, 4}, [][]int{{2, 3, 4}, {3, 4}}, 2, 12, []int{1, 1}},
		{[]int{2, 3, 4}, [][]int{{2, 3, 4}, {3, 1}}, 6, 4, []int{1, 0}},
		{[]int{8, 16, 1, 1}, [][]int{{8, 16, 1, 1}, {1, 16, 1, 1}}, 8, 16, []int{1, 1}},
		{[]int{}, [][]int{{}, {}}, 1, 1, []int{0, 0}},
		{[]int{2, 0}, [][]int{{2, 0}, {1}}, 0, 0, []int{1, 0}},
	}
	for _, test := range tests {
		walk, err := tensor.BroadcastWalk(test.shape, test.operands...)
		if err != nil {
			t.Fatal(err)
		}
		steps := []int{walk.Step(0), walk.Step(1)}
		if walk.Runs() != test.runs || walk.Len() != test.count || !slices.Equal(steps, test.steps) {
			t.Errorf("%v of %v: %d runs of %d with steps %v", test.operands, test.shape, walk.Runs(), walk.Len(), steps)
		}
	}
}

func TestWalkRefuses(t *testing.T) {
	if _, err := tensor.BroadcastWalk([]int{2, 3}, []int{2}); err == nil {
		t.Error("walked [2] over [2,3]")
	}
	if _, err := tensor.NewWalk([]int{2, 3}, []int{1}); err == nil {
		t.Error("walked two axes with one stride")
	}
	if _, err := tensor.NewWalk([]int{-2}); err == nil {
		t.Error("walked a negative dim")
	}
}
