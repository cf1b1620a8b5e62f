package atc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAIPP(t *testing.T) {
	got := parseAIPP(`# aipp_op { aipp_mode: dynamic }
aipp_op { aipp_mode: static  related_input_name: "x: y"  crop:false }
aipp_op{
  related_input_rank : 1 # the second
}`)
	want := []aippOp{
		{"aipp_mode": "static", "related_input_name": "x: y", "crop": "false"},
		{"related_input_rank": "1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for text, want := range map[string]int{"aipp_op {}": 0, "aipp_op { related_input_rank: 2 }": 2, "aipp_op { related_input_rank: -1 }": -1, "aipp_op { related_input_rank: x }": -1} {
		if got := parseAIPP(text)[0].rank(); got != want {
			t.Errorf("%s: rank %d, want %d", text, got, want)
		}
	}
}

// Whatever the text is, reading it ends, and no operation is for an input below none.
func FuzzAIPP(f *testing.F) {
	for _, seed := range []string{"aipp_op { aipp_mode: static }", "aipp_op", "aipp_op { a: \"", "#", "aipp_op { related_input_rank: 99999999999999999999 }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, op := range parseAIPP(text) {
			if op.rank() < -1 {
				t.Errorf("%q: rank %d", text, op.rank())
			}
			op.changesSize()
		}
	})
}
