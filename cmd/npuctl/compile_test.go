package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/compilation"
)

// Every field of what compiling prints and records is documented.
func TestCompilationFieldsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository, "docs", "compile.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []any{compilation.Result{}, compilation.Record{}, compilation.CommandLineResult{}} {
		for _, name := range fieldNames(reflect.TypeOf(object)) {
			if !strings.Contains(string(data), "`"+name+"`") {
				t.Errorf("field %s of %T is not in docs/compile.md", name, object)
			}
		}
	}
}

// Flags of npuctl compile and the file npuctl.yaml know the same precision modes and
// layouts as ATC; completion offers them.
func TestPrecisionModes(t *testing.T) {
	modes := strings.Join(compilation.PrecisionModes(), " ")
	for _, want := range []string{"fp16 origin", "mixed_float16", "must_keep_origin_dtype"} {
		if !strings.Contains(modes, want) {
			t.Errorf("%s is not among %s", want, modes)
		}
	}
}
