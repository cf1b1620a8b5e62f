package tritonserver

import (
	"slices"
	"strings"
	"testing"
)

const someLog = `I1130 00:00:00.000000 1 server.cc:1] "ready"
W1130 00:00:00.000000 1 cuda.cc:1] "no GPU"
E1130 00:00:00.000000 1 cuda.cc:1] "CudaDriverHelper has not been initialized."
[libprotobuf ERROR text_format.cc:335] Error parsing text-format inference.ModelConfig: 3:14: Expected integer.
E1130 00:00:00.000000 1 model.cc:1] "Poll failed for model directory 'a': failed to read text proto from /r/a/config.pbtxt"
E1130 00:00:00.000000 1 life.cc:1] "failed to load 'step' version 1: Not found: \"x\" is missing"
E1130 00:00:00.000000 1 life.cc:1] without quotes
terminate called after throwing an instance of 'std::bad_alloc'
`

func TestComplaints(t *testing.T) {
	want := []string{
		"Error parsing text-format inference.ModelConfig: 3:14: Expected integer.",
		"Poll failed for model directory 'a': failed to read text proto from /r/a/config.pbtxt",
		`failed to load 'step' version 1: Not found: "x" is missing`,
		"without quotes",
		"terminate called after throwing an instance of 'std::bad_alloc'",
	}
	if got := complaints(someLog); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestCauseOf(t *testing.T) {
	all := complaints(someLog)
	for _, test := range []struct {
		model string
		said  []string
		want  string
	}{
		{"a", all, "Error parsing text-format inference.ModelConfig: 3:14: Expected integer."},
		{"a", all[1:], "failed to read text proto from /r/a/config.pbtxt"},
		{"step", all[2:], `Not found: "x" is missing`},
		{"ensemble", all[2:], `step model step: Not found: "x" is missing`},
		{"a", nil, "it is so"},
	} {
		if got := causeOf(test.model, "load failed for model 'a': version 1 is at UNAVAILABLE state: it is so; ", test.said); got != test.want {
			t.Errorf("%s: %q", test.model, got)
		}
	}
	if line, column := placeIn(all[0]); line != 3 || column != 14 {
		t.Errorf("place %d:%d", line, column)
	}
	if got := missingBackend("unable to find backend library for backend 'dali', try"); got != "dali" {
		t.Errorf("missing %q", got)
	}
}

// Whatever a server writes is read to its end.
func FuzzComplaints(f *testing.F) {
	f.Add(someLog)
	f.Add(`E1130 0 1 a] "\u00"`)
	f.Fuzz(func(t *testing.T, log string) {
		for _, said := range complaints(log) {
			causeOf("a", "", []string{said})
			placeIn(said)
		}
		if n := len(complaints(log)); n > strings.Count(log, "\n")+1 {
			t.Errorf("%d complaints of fewer lines", n)
		}
	})
}

// An answer of gRPC may hold anything.
func FuzzReadIndex(f *testing.F) {
	f.Add([]byte{10, 6, 10, 4, 'f', 'i', 'n', 'e'})
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = readIndex(data) })
}
