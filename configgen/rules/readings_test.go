package rules

import (
	"fmt"
	"testing"
)

func TestLanguageOf(t *testing.T) {
	for locale, want := range map[string]Language{"zh_CN.UTF-8": Chinese, "zh": Chinese, "en_US.UTF-8": English, "C": English, "": English} {
		if got := LanguageOf(locale); got != want {
			t.Errorf("%q: %d", locale, got)
		}
	}
}

// Version folders are read as C reads numbers: blanks, a sign, digits, whatever follows.
func TestLeadingNumber(t *testing.T) {
	for _, test := range []struct {
		name         string
		number       int64
		tooLarge, ok bool
	}{
		{"1", 1, false, true}, {"12abc", 12, false, true}, {"20260101_rollback", 20260101, false, true}, {"+6", 6, false, true},
		{"7 ", 7, false, true}, {"-5", -5, false, true}, {"9223372036854775807", 1<<63 - 1, false, true},
		{"9223372036854775808", 1<<63 - 1, true, true}, {"v1", 0, false, false}, {"", 0, false, false}, {"-", 0, false, false},
	} {
		number, tooLarge, ok := leadingNumber(test.name)
		if number != test.number || tooLarge != test.tooLarge || ok != test.ok {
			t.Errorf("%q: %d, %v, %v", test.name, number, tooLarge, ok)
		}
	}
}

// Element counts wrap as the server's do.
func TestElementCount(t *testing.T) {
	for _, test := range []struct {
		dims  []int64
		count int64
		ok    bool
	}{
		{nil, 0, true}, {[]int64{1}, 1, true}, {[]int64{3, 4}, 12, true}, {[]int64{3, -1}, -1, true}, {[]int64{0}, 0, true},
		{[]int64{1 << 32, 1 << 32}, 0, false}, {[]int64{1 << 62, 4, 3}, 0, false},
	} {
		if count, ok := elementCount(test.dims); count != test.count || ok != test.ok {
			t.Errorf("%v: %d, %v", test.dims, count, ok)
		}
	}
}

func TestIsExpression(t *testing.T) {
	names := []string{"width", "height"}
	for text, want := range map[string]bool{
		"width": true, "width*3600/2+height": true, "(width + 1) * 2": true, "42": true,
		"": false, "depth": false, "width height": false, "floor(width/2)": false, "width%2": false, "(width": false, "width+": false, "unknown": false,
	} {
		if got := IsDimExpression(text, names); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestReturnsList(t *testing.T) {
	const head = "class TritonPythonModel:\n    def execute(self, requests):\n"
	for _, test := range []struct {
		body string
		want bool
	}{
		{"        return [r for r in requests]\n", true},
		{"        out = []\n        if out: return out\n        return None\n", true},
		{"        return None\n", false},
		{"        return\n", false},
		{"        return [None] * len(requests)\n", false},
		{"        pass\n\n    def finalize(self):\n        return 1\n", false},
		{"        # return x\n        print('return x')\n", false},
	} {
		if got := returnsList(head + test.body); got != test.want {
			t.Errorf("%s: %v", test.body, got)
		}
	}
	if !returnsList("def run():\n    pass\n") || returnsList("    def execute(self, requests): return None\n") {
		t.Error("without execute nothing is said; on one line it is read")
	}
}

func TestGearOptions(t *testing.T) {
	inputs, bad := parseInputShape("image:1,3,-1,-1; mask:-1 ;")
	if bad != "" || fmt.Sprint(inputs) != "[{image [1 3 -1 -1]} {mask [-1]}]" {
		t.Errorf("%v, %q", inputs, bad)
	}
	gears, bad := parseGears("224,224;336,336;")
	if bad != "" || fmt.Sprint(gears) != "[[224 224] [336 336]]" {
		t.Errorf("%v, %q", gears, bad)
	}
	for _, text := range []string{"image", ":1", "image:a", "image:0", ""} {
		if _, bad := parseInputShape(text); bad == "" && text != "" {
			t.Errorf("%q is taken", text)
		}
	}
	for _, text := range []string{"0", "a", "1;;2", "-1"} {
		if _, bad := parseGears(text); bad == "" && text != "1;;2" {
			t.Errorf("%q is taken", text)
		}
	}
}

// Names that lead out of a folder do; a leading slash does not, since the server joins.
func TestInside(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "/etc/x": "etc/x", "a/../b": "b", "./a//b": "a/b", "..": "", "../a": "", "a/../../b": ""} {
		clean, ok := inside(name)
		if ok != (want != "") || ok && clean != want {
			t.Errorf("%q: %q, %v", name, clean, ok)
		}
	}
}
