package tensor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// reverse is a kernel that moves elements: written once, for every type.
var reverse = tensor.NewMovers(reverseWords[uint8], reverseWords[uint16], reverseWords[uint32],
	reverseWords[uint64], reverseWords[[2]uint64], reverseWords[string])

func reverseWords[T tensor.Word](d *tensor.Dense) { slices.Reverse(tensor.Words[T](d)) }

// sum is a kernel that computes, for some of the types that Go can add.
var sum = tensor.Numbers[func(*tensor.Dense) string]{
	Float32: sumOf[float32], Float64: sumOf[float64], Int8: sumOf[int8], Uint64: sumOf[uint64],
}

func sumOf[T tensor.Number](d *tensor.Dense) string {
	var total T
	for _, v := range tensor.Data[T](d) {
		total += v
	}
	return fmt.Sprint(total)
}

func ExampleNewMovers() {
	for _, d := range []*tensor.Dense{
		tensor.Of([]bool{true, false, false}, 3),
		tensor.Of([]tensor.BF16{0x3f80, 0x4000}, 2),
		tensor.Of([]complex128{1, 2i}, 2),
		tensor.Of([]string{"a", "b", "c"}, 3),
	} {
		reverse.For(d.Type())(d)
		fmt.Println(d)
	}
	// Output:
	// BOOL[3]{false, false, true}
	// BFLOAT16[2]{2, 1}
	// COMPLEX128[2]{(0+2i), (1+0i)}
	// STRING[3]{"c", "b", "a"}
}

func ExampleNumbers() {
	d := tensor.Of([]float64{0.5, 0.25}, 2)
	fmt.Println(sum.For(d.Type())(d), sum.For(tensor.Int16) == nil, sum.For(tensor.String) == nil)
	// Output: 0.75 true true
}

// TestEveryTypeHasOneWord checks that each array is seen in exactly one width,
// the one its type says.
func TestEveryTypeHasOneWord(t *testing.T) {
	for _, typ := range tensor.Types() {
		d, err := tensor.New(typ, 3)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]int{
			1:  len(tensor.Words[uint8](d)),
			2:  len(tensor.Words[uint16](d)),
			4:  len(tensor.Words[uint32](d)),
			8:  len(tensor.Words[uint64](d)),
			16: len(tensor.Words[[2]uint64](d)),
			0:  len(tensor.Words[string](d)),
		}
		for width, n := range seen {
			if want := map[bool]int{true: 3}[width == typ.Width()]; n != want {
				t.Errorf("%v has %d words of %d bytes, want %d", typ, n, width, want)
			}
		}
	}
}

func TestNumbersPicksByType(t *testing.T) {
	table := tensor.Numbers[tensor.Type]{
		Float32: tensor.Float32, Float64: tensor.Float64,
		Int8: tensor.Int8, Int16: tensor.Int16, Int32: tensor.Int32, Int64: tensor.Int64,
		Uint8: tensor.Uint8, Uint16: tensor.Uint16, Uint32: tensor.Uint32, Uint64: tensor.Uint64,
	}
	found := 0
	for _, typ := range tensor.Types() {
		switch got := table.For(typ); got {
		case typ:
			found++
		case tensor.Undefined:
		default:
			t.Errorf("%v picks %v", typ, got)
		}
	}
	if found != 10 {
		t.Errorf("%d types found, want 10", found)
	}
}
