package atcemu

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextThatIsNone(t *testing.T) {
	for _, text := range []string{"{", "}", "name:", "a { b: 1", `"x": 1`, strings.Repeat("a {", maxTextDepth+2), "a: }", `a: "never ends`, `a: "never ends\"`} {
		if v, err := parseText(text); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}

// Texts are what their escapes say, as protobuf's own reader has them.
func TestTextStrings(t *testing.T) {
	for text, want := range map[string]string{
		`a: ""`: "", `a: "plain"`: "plain", `a: "a \"word\""`: `a "word"`, `a: "line\nline"`: "line\nline", `a: "\344\270\255"`: "中", `a: "back\\"`: `back\`, `a: "odd \q"`: `odd \q`,
	} {
		v, err := parseText(text)
		if err != nil || v["a"] != want {
			t.Errorf("%s is read as %q, %v", text, v["a"], err)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("name: \"net\"\nop { name: \"a\\\"b\" n: 1 n: 2 }")
	f.Add(strings.Repeat("a{", 300))
	f.Add("a: \"never ends")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseText(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestFaultWords(t *testing.T) {
	for text, want := range map[string]faults{
		"":                       {},
		"crash":                  {crash: true},
		" hang , disk-full@2":    {hang: true, diskFull: true},
		"garbage,oom,slow=2":     {garbage: true, slow: 2e9},
		"slow=,slow=x,slow=-1":   {},
		"slow=0.5@3,device-lost": {slow: 5e8},
	} {
		if got := readFaults(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// A word that there is not is told, whichever of the two it would be for.
func TestUnknownFaults(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "crash": "", "oom@3x1,slow=2": "", "oomx2": "", "crashx2": "crashx2", " device-lost@20 ": "", "crahs": "crahs", "oom,bang@2,slow-steam=4": "bang slow-steam",
	} {
		if got := strings.Join(unknownFaults(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
