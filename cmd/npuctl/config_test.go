package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/configgen/generate"
)

// Every field of config --json is documented in its own section.
func TestConfigJSONIsDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository, "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "## `npuctl config`\n")
	if !ok {
		t.Fatal("docs/json.md has no section on npuctl config")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	of := reflect.TypeOf(generate.Result{})
	for f := range of.Fields() {
		if name := f.Tag.Get("json"); !strings.Contains(section, "`"+name+"`") {
			t.Errorf("%s is not there", name)
		}
	}
	for _, object := range []any{generate.File{}, generate.Tensor{}, generate.Choice{}, generate.Change{}, generate.Memory{}} {
		for _, name := range fieldNames(reflect.TypeOf(object)) {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%s of %T is not there", name, object)
			}
		}
	}
}
