package tensor

import (
	"slices"
	"testing"
)

// A move of several pieces is a copy.
func TestMove(t *testing.T) {
	for _, n := range []int{0, 1, piece, piece + 1, 3*piece - 1} {
		from, to := make([]uint16, n), make([]uint16, n)
		for i := range from {
			from[i] = uint16(i*7 + 1)
		}
		Move(to, from)
		if !slices.Equal(to, from) {
			t.Errorf("%d elements: not all arrived", n)
		}
	}
}
