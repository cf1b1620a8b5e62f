package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// hostile is a piece of a name that would command a terminal, reorder what it shows,
// break a line or the encoding: \x9b alone and as a letter begins a command, too.
const hostile = `\x1b[31m\x1b]0;t\x07\u009b2J\u202e\r\n\x00\x7f\xff\xfe`

// hostileModels hold such names wherever a model has names or words.
var hostileModels = map[string]string{
	"runs": `<ir_version: 8, opset_import: ["": 17, "dH": 1], producer_name: "pH", producer_version: "vH", domain: "mH", metadata_props: ["kH": "wH"]>
"gH" (float["nH",3] "xH", float[3] "sH" = {1, 2, 3}) => (float["nH",3] "yH", "zH") <float[3] "wH" = {1, 2, 3}> {
	["aH"] "tH" = "dH"."fH" ("xH", "wH")
	["bH"] "uH" = Shape ("tH")
	["cH"] "yH" = Mul ("tH", "sH")
	["eH"] "zH" = NonZero ("yH")
}
<domain: "dH", opset_import: ["": 17]> "fH" ("iH", "jH") => ("oH") { ["lH"] "oH" = Add ("iH", "jH") }`,
	"is unknown": `<ir_version: 8, opset_import: ["": 17, "dH": 1]> "gH" (float["nH",3] "xH") => ("yH") { ["aH"] "yH" = "dH"."fH" <"tH" = "vH"> ("xH") }`,
	"is impossible": `<ir_version: 8, opset_import: ["": 17]> "gH" (float["nH",3] "xH") => (float["nH",7] "yH") <float[2,2] "wH" = {1, 2, 3, 4}> {
	["aH"] "yH" = MatMul ("xH", "wH") }`,
	"is broken":     `<ir_version: 8, opset_import: ["": 17]> "gH" (float["nH",3] "xH") => ("yH") { ["aH"] "yH" = Transpose <perm = [4]> ("xH") }`,
	"takes lists":   `<ir_version: 8, opset_import: ["": 17]> "gH" (seq(float["nH"]) "xH", map(int64, float) "mH") => ("yH") { ["aH"] "yH" = Identity ("xH") }`,
	"takes opaques": `<ir_version: 8, opset_import: ["": 17]> "gH" (opaque("dH", "tH") "xH") => ("yH") { ["aH"] "yH" = Identity ("xH") }`,
}

// hostileCommands are run on each of them, with and without --json.
var hostileCommands = [][]string{
	{"inspect"}, {"inspect", "--batch", "2"}, {"inspect", "--dim", "x=2"},
	{"optimize"}, {"optimize", "--check", "1", "--judge", "ref"}, {"optimize", "--static"}, {"optimize", "--batch", "2", "--static", "--check"},
	{"optimize", "--input-shape", "a:1"}, {"optimize", "--bind", "a=1"},
	{"infer"}, {"infer", "--save-inputs", "saved", "-o", "out"}, {"infer", "--inputs", "empty"}, {"infer", "--inputs", "other.npy"},
	{"infer", "--batch", "2", "--expect", "other.npy"}, {"infer", "--engine", "ort"},
	{"compile", "--dry-run", "--soc", "Ascend910B3"}, {"compile", "--dry-run", "--soc", "Ascend910B3", "--batch", "2", "--static"},
}

// No name in a model can say anything to a terminal, in no table and no message, and
// what --json prints is JSON.
func TestHostileNames(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("empty", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("other.npy", []byte("\x93NUMPY\x01\x00v\x00"+"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"+strings.Repeat(" ", 60)+"\n"+strings.Repeat("\x00", 8)), 0o666); err != nil {
		t.Fatal(err)
	}
	named := 0
	for name, source := range hostileModels {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := text.MustParse(t, strings.ReplaceAll(source, `H"`, hostile+`"`)).Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, args := range hostileCommands {
				_, stdout, stderr := runs(context.Background(), append(args, path)...)
				harmless(t, args, stdout+stderr)
				named += strings.Count(stdout+stderr, `\x1b[31m`)
				_, stdout, stderr = runs(context.Background(), append(args, "--json", path)...)
				harmless(t, args, stdout+stderr)
				var object map[string]any
				if err := json.Unmarshal([]byte(stdout), &object); err != nil {
					t.Errorf("%v --json: %v\n%s", args, err, stdout)
				}
			}
		})
	}
	if named < 100 {
		t.Errorf("names were printed %d times only: this test looks at nothing", named)
	}
}

// harmless says of printed text what a terminal would obey, or could not show.
func harmless(t *testing.T, args []string, printed string) {
	t.Helper()
	if !utf8.ValidString(printed) {
		t.Errorf("%v: no valid UTF-8:\n%q", args, printed)
	}
	for _, line := range strings.Split(printed, "\n") {
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }); i >= 0 {
			t.Errorf("%v: %q in the line\n%q", args, line[i:min(i+4, len(line))], line)
		}
	}
}
