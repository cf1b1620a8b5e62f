package generate

import (
	"strings"
	"testing"
)

func TestEvaluate(t *testing.T) {
	sizes := map[string]int64{"N": 2, "L": 9, "H": 640}
	for text, want := range map[string]int64{
		"N": 2, "12": 12, "N+1": 3, "2*L-N": 16, "(L+1)/2": 5, "L/2*2": 8, "H/8*(H/8)+H/16*(H/16)": 8000, " ( N ) * 3 ": 6,
		"L-5-3": 1, "2+3*L": 29, "5+(1-4)/2": 3, // rounds down, also below 0
		// None: no name, no size, no sum.
		"": 0, "M": 0, "N-2": 0, "N-3": 0, "N/0": 0, "N N": 0, "(N": 0, "N)": 0, "N+": 0, "*N": 0, "N**2": 0, "x.y": 0, "H*H*H*H*H": 0,
		strings.Repeat("(", 1e5): 0, strings.Repeat("(", 100) + "N" + strings.Repeat(")", 100): 0,
	} {
		got, ok := evaluate(text, sizes)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%.40q: %d %v, want %d", text, got, ok, want)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, text := range []string{"N", "2*L-N", "(L+1)/2", "((N)", "N/0", "9999999999*N"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := evaluate(text, map[string]int64{"N": 2, "L": 1 << 40}); ok && (n < 1 || n > mostSize) {
			t.Errorf("%q: %d", text, n)
		}
	})
}
