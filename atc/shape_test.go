package atc

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseInputShape(t *testing.T) {
	for text, want := range map[string][]InputShape{
		"x:1,3":         {{"x", []Range{Fixed(1), Fixed(3)}}},
		"a:0: 1 ,-1;s:": {{"a:0", []Range{Fixed(1), AnySize()}}, {"s", nil}},
		"x:1~8,3,-1;s:": {{"x", []Range{{1, 8}, Fixed(3), AnySize()}}, {"s", nil}},
		"b-1:1,4":       {{"b-1", []Range{Fixed(1), Fixed(4)}}},
	} {
		got, d := ParseInputShape(text)
		if d != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, d)
		}
	}
	for text, code := range map[string]string{
		"": "E10002", "x": "E10002", "x:1;": "E10002", "x:1.5": "E10002", "x:0": "E10011", "x:-2": "E10011", "x:1,": "E10014",
		"x:a": "E10014", "x:1a": "E10002", "x:9223372036854775808": "E10013", "x:1~": "E10048", "x:1~2~3": "E10048", ":1~2": "E10002",
		"x:1~b": "E10002", "x~": "E10002", "x:1~2,-3": "E10011",
	} {
		if got, d := ParseInputShape(text); d == nil || d.Code != code {
			t.Errorf("%q: %v, %v, not %s", text, got, d, code)
		}
	}
}

// A shape that is read is written, and read again as the same; ranges too.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{"x:1,3", "a:0:1~8,-1;s:", "x:[1~8,3]", ":", "x:1~", "x:[1]]", "b-1:1;c:", "x:99999999999999999999", "x:+1", "0:0~0", "x:-2~", "x:~,-2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if shapes, d := ParseInputShape(text); d == nil {
			o := Options{InputShapes: shapes}
			again, d := ParseInputShape(writeShapes(&o))
			if d != nil || !reflect.DeepEqual(again, shapes) {
				t.Errorf("%q: %v, then %v (%v)", text, shapes, again, d)
			}
		}
		if ranges, d := parseRanges(text); d == nil && len(ranges) == 0 {
			t.Errorf("%q: neither ranges nor a problem", text)
		}
		if ranges, d := rangesOfShape(text); d == nil && strings.Contains(ranges, ":") {
			if _, d := parseRanges(ranges); d != nil && !strings.HasPrefix(d.Code, "E100") {
				t.Errorf("%q: %v", text, d)
			}
		}
	})
}

// Gears that are read are written, and read again as the same.
func FuzzGears(f *testing.F) {
	for kind, seed := range map[GearKind]string{BatchGears: "1,2,4", ImageGears: "8,8;9,9", DimsGears: "1,2;3,4;"} {
		f.Add(int(kind), seed)
	}
	f.Add(1, ",")
	f.Add(2, "1 ,2;;")
	f.Add(3, "a;-1")
	f.Add(3, "99999999999999999999;1")
	f.Fuzz(func(t *testing.T, kind int, text string) {
		if kind < 1 || kind > 3 {
			return
		}
		gears, d := ParseGears(GearKind(kind), text)
		if d != nil || len(gears.Rows) == 0 || gears.Kind == ImageGears && len(gears.Rows[0]) != 2 {
			return
		}
		for _, row := range gears.Rows {
			if len(row) != len(gears.Rows[0]) {
				return
			}
		}
		again, d := ParseGears(gears.Kind, gears.String())
		if d != nil || !reflect.DeepEqual(again, gears) {
			t.Errorf("%q: %v, then %v (%v)", text, gears, again, d)
		}
	})
}
