package tensor_test

import (
	"math"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"pgregory.net/rapid"
)

func TestEqualBits(t *testing.T) {
	nan1, nan2 := math.Float32frombits(0x7fc00001), math.Float32frombits(0x7fc00002)
	negativeZero := float32(math.Copysign(0, -1))
	tests := []struct {
		name string
		a, b *tensor.Dense
		want bool
	}{
		{"same numbers", tensor.Of([]int32{1, 2}, 2), tensor.Of([]int32{1, 2}, 2), true},
		{"other number", tensor.Of([]int32{1, 2}, 2), tensor.Of([]int32{1, 3}, 2), false},
		{"other shape", tensor.Of([]int32{1, 2}, 2), tensor.Of([]int32{1, 2}, 2, 1), false},
		{"other type", tensor.Of([]int32{0}, 1), tensor.Of([]uint32{0}, 1), false},
		{"other empty shape", tensor.Of([]int32{}, 0, 1), tensor.Of([]int32{}, 1, 0), false},
		{"same NaN", tensor.Scalar(nan1), tensor.Scalar(nan1), true},
		{"other NaN", tensor.Scalar(nan1), tensor.Scalar(nan2), false},
		{"zero and minus zero", tensor.Scalar(float32(0)), tensor.Scalar(negativeZero), false},
		{"same strings", tensor.Of([]string{"a", ""}, 2), tensor.Of([]string{"a", ""}, 2), true},
		{"strings cut elsewhere", tensor.Of([]string{"ab", "c"}, 2), tensor.Of([]string{"a", "bc"}, 2), false},
	}
	for _, test := range tests {
		if got := tensor.EqualBits(test.a, test.b); got != test.want {
			t.Errorf("%s: equal %v", test.name, got)
		}
		if got := test.a.Hash() == test.b.Hash(); got != test.want {
			t.Errorf("%s: same hash %v", test.name, got)
		}
	}
}

// TestHashIsTheSameEverywhere holds the hash to values printed by one run on one
// host.
func TestHashIsTheSameEverywhere(t *testing.T) {
	tests := []struct {
		d    *tensor.Dense
		want uint64
	}{
		{tensor.Scalar(int64(1)), 0x31b5bf9960f9d24a},
		{tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, 3), 0x439928e7d9eeab49},
		{tensor.Of([]string{"left", "right"}, 2), 0xc5243d4ba9b69614},
		{tensor.Of([]tensor.I4{-8, 7, 0}, 3), 0xd0ae71c0e4c625f6},
	}
	for _, test := range tests {
		if got := test.d.Hash(); got != test.want {
			t.Errorf("%v has hash %#x, want %#x", test.d, got, test.want)
		}
	}
}

// TestHashSeesEveryBit flips one bit of an array.
func TestHashSeesEveryBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		raw := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "raw")
		changed := append([]byte(nil), raw...)
		changed[rapid.IntRange(0, n-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		a, b := tensor.Of(raw, n), tensor.Of(changed, n)
		if tensor.EqualBits(a, b) || a.Hash() == b.Hash() {
			t.Fatalf("%v and %v are taken for the same", a, b)
		}
	})
}

func TestEqualArraysHashAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := dense().Draw(t, "a"), dense().Draw(t, "b")
		if tensor.EqualBits(a, b) && a.Hash() != b.Hash() {
			t.Fatalf("%v and %v are equal, their hashes are not", a, b)
		}
		if !tensor.EqualBits(a, a) {
			t.Fatalf("%v is not equal to itself", a)
		}
	})
}
