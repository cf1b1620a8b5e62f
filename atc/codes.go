package atc

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// Explanation says what a code of CANN means, in our words, and what to do.
type Explanation struct {
	Code, Meaning, Remedy string
	// The same in Chinese; "" where nobody has written it yet.
	MeaningChinese, RemedyChinese string
}

// codesTable holds the codes, a line each. The names and arguments of GE's own are
// in its error registry, the others in the runtime's error_code.json; meaning and
// remedy are ours.
//
//go:embed codes.tsv
var codesTable string

var codes = sync.OnceValue(func() map[string]Explanation { return parseCodes(codesTable) })

func parseCodes(table string) map[string]Explanation {
	out := map[string]Explanation{}
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) == 5 && f[0] != "code" {
			out[f[0]] = Explanation{f[0], f[1], f[2], f[3], f[4]}
		}
	}
	return out
}

// families are the modules that codes belong to by how they begin, for codes that
// the table does not have; the longest beginning counts.
var families = []struct{ prefix, module string }{
	{"E10", "the options or the model"},
	{"E11", "the Caffe parser"},
	{"E12", "the TensorFlow parser"},
	{"E13", "the reading and writing of files"},
	{"E16", "the ONNX parser"},
	{"E3", "the start of the process on the device"},
	{"E4", "the compiler of operators"},
	{"E5", "the checks of an operator's implementation"},
	{"E6", "the checks of an operator's implementation"},
	{"E7", "the checks of an operator's implementation"},
	{"E9", "the checks of an operator's implementation"},
	{"EA", "the kernel compiler"},
	{"EB", "the kernel compiler"},
	{"EE", "the runtime"},
	{"EF", "the slicing of the graph"},
	{"EH", "AscendCL"},
	{"EI", "collective communication"},
	{"EJ", "collective communication"},
	{"EK", "profiling"},
	{"EL", "the driver"},
	{"EO", "AMCT, the quantiser"},
	{"EP", "dumping"},
	{"EZ", "an operator of the graph"},
}

// Explain gives what is known of a code. Of one that is in no table it says the
// module; ok is false when not even that is known.
func Explain(code string) (e Explanation, ok bool) {
	if e, ok = codes()[code]; ok {
		return e, true
	}
	best := -1
	for i, f := range families {
		if strings.HasPrefix(code, f.prefix) && (best < 0 || len(f.prefix) > len(families[best].prefix)) {
			best = i
		}
	}
	if best < 0 {
		return Explanation{Code: code}, false
	}
	return Explanation{
		Code: code, Meaning: "a complaint of " + families[best].module,
		Remedy: "read its text; the process log tells more",
	}, true
}

// internalCodes only say that something failed inside: what is nested tells.
var internalCodes = []string{"E19999", "EZ9999", "EE9999", "EE8888", "EH9999", "E39999", "E49999", "EO9999", "EK9999"}

func isInternal(code string) bool { return slices.Contains(internalCodes, code) }

// repairCode gives the code that one with a lost digit was, as copying by hand and
// some programs make them; "" when it could be several or none.
func repairCode(damaged string) string {
	found := ""
	for i := 1; i <= len(damaged); i++ {
		candidate := damaged[:i] + "0" + damaged[i:]
		if _, known := codes()[candidate]; !known || candidate == found {
			continue
		}
		if found != "" {
			return ""
		}
		found = candidate
	}
	return found
}
