package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

func ExampleDense_Strided() {
	d := tensor.Of([]int32{1, 2, 3, 4, 5, 6}, 2, 3)
	show := func(what string, offset int, shape, strides []int) {
		result, err := d.Strided(offset, shape, strides)
		fmt.Println(what, result, err)
	}
	show("transposed", 0, []int{3, 2}, []int{1, 3})
	show("first column", 0, []int{2}, []int{3})
	show("rows from last to first", 3, []int{2, 3}, []int{-3, 1})
	show("first row twice", 0, []int{2, 3}, []int{0, 1})
	// Output:
	// transposed INT32[3,2]{1, 4, 2, 5, 3, 6} <nil>
	// first column INT32[2]{1, 4} <nil>
	// rows from last to first INT32[2,3]{4, 5, 6, 1, 2, 3} <nil>
	// first row twice INT32[2,3]{1, 2, 3, 1, 2, 3} <nil>
}

func TestStridedRefuses(t *testing.T) {
	d := tensor.Of([]int8{1, 2, 3, 4, 5, 6}, 6)
	tests := []struct {
		name           string
		offset         int
		shape, strides []int
	}{
		{"a step past the end", 0, []int{4}, []int{2}},
		{"a step before the start", 1, []int{3}, []int{-1}},
		{"offset past the end", 6, []int{1}, []int{1}},
		{"offset before the start", -1, []int{2}, []int{1}},
		{"too few strides", 0, []int{2, 2}, []int{1}},
		{"negative dim", 0, []int{-2}, []int{1}},
		{"a stride that overflows", 0, []int{3}, []int{math.MaxInt/2 + 1}},
		{"a stride that overflows downwards", 5, []int{3}, []int{math.MinInt}},
		{"axes that leave only together", 0, []int{2, 2}, []int{5, 1}},
	}
	for _, test := range tests {
		if result, err := d.Strided(test.offset, test.shape, test.strides); err == nil {
			t.Errorf("%s: took %v", test.name, result)
		}
	}
	if result, err := d.Strided(99, []int{0, 2}, []int{7, 7}); err != nil || result.Len() != 0 {
		t.Errorf("nothing at all: %v, %v", result, err)
	}
}

// TestStridedTransposes compares every permutation of drawn arrays with index
// arithmetic written out; some dims are large enough for the blocked copy.
func TestStridedTransposes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(tensor.Types()).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 3, 9, 35}), 0, 3).Draw(t, "shape")
		order := rapid.Permutation(axes(len(shape))).Draw(t, "order")
		d := counting(t, typ, shape)
		strides := tensor.Strides(shape)
		permuted, moved := make([]int, len(order)), make([]int, len(order))
		for axis, from := range order {
			permuted[axis], moved[axis] = shape[from], strides[from]
		}
		got, err := d.Strided(0, permuted, moved)
		if err != nil {
			t.Fatal(err)
		}
		texts := numbered(d)
		for position, text := range numbered(got) {
			offset, rest := 0, position
			for axis := len(permuted) - 1; axis >= 0; axis-- {
				offset += rest % permuted[axis] * moved[axis]
				rest /= permuted[axis]
			}
			if text != texts[offset] {
				t.Fatalf("%v%v in order %v: element %d is %s, want %s", typ, shape, order, position, text, texts[offset])
			}
		}
	})
}

func axes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// counting returns an array whose neighbours differ, as far as the type can tell.
func counting(t *rapid.T, typ tensor.Type, shape []int) *tensor.Dense {
	n, err := tensor.Count(shape)
	if err != nil {
		t.Fatal(err)
	}
	if typ == tensor.String {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		return tensor.Of(list, shape...)
	}
	size, _ := typ.RawSize(int64(n))
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(i * 167)
	}
	d, err := tensor.FromRaw(typ, shape, raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// numbered returns every element of d in a form that can be compared.
func numbered(d *tensor.Dense) []string {
	if list := tensor.Data[string](d); list != nil {
		return slices.Clone(list)
	}
	return slices.Concat(textAll(tensor.Words[uint8](d)), textAll(tensor.Words[uint16](d)), textAll(tensor.Words[uint32](d)),
		textAll(tensor.Words[uint64](d)), textAll(tensor.Words[[2]uint64](d)))
}

func textAll[T tensor.Word](words []T) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = fmt.Sprintf("%v", w)
	}
	return texts
}
