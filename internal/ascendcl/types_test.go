package ascendcl

import (
	"strings"
	"testing"
)

func TestGearCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		gear Gear
		want string // part of the error; "" for none
	}{
		{"none", Gear{}, ""},
		{"a batch", Gear{BatchGear, []int64{4}}, ""},
		{"height and width", Gear{ImageGear, []int64{224, 320}}, ""},
		{"dims", Gear{DimsGear, make([]int64, 128)}, ""},
		{"an open shape", Gear{Kind: OpenShape}, ""},
		{"no batch", Gear{Kind: BatchGear}, "kind 1 with 0 numbers"},
		{"height alone", Gear{ImageGear, []int64{224}}, "kind 2 with 1 numbers"},
		{"numbers for nothing", Gear{NoGear, []int64{1}}, "kind 0 with 1 numbers"},
		{"another kind", Gear{Kind: 9}, "kind 9"},
		{"more than C has room for", Gear{DimsGear, make([]int64, 129)}, "at most 128"},
	} {
		err := test.gear.check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}
