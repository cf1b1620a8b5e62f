package generate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/rules"
)

// The examples are deployments as people have them: each is validated with the
// findings that it deserves and no others, is in the table of their README, and says the
// same when it is printed and read again.
func TestExamples(t *testing.T) {
	folder := filepath.Join("..", "..", "examples", "triton")
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	installed := []string{"backend-installed"}
	expected := map[string][]string{
		"merged/config.pbtxt": nil, "static/config.pbtxt": nil, "gears/config.pbtxt": nil, "gears_picture/config.pbtxt": nil,
		"computed/config.pbtxt": nil, "wenet/config.pbtxt": nil,
		"cores/config.pbtxt":               {"ge-option-ignored"},
		"profiled/config.pbtxt":            {"ge-dump", "ge-dump"},
		"resnet50_v2/config.pbtxt":         {"preferred-small-first"},
		"resnet50_pt/configs/latest.pbtxt": installed, "resnet50_pt/configs/latest2.pbtxt": installed,
		"resnet50_pt/configs/all.pbtxt": installed, "resnet50_pt/configs/specific.pbtxt": installed,
	}
	var found []string
	for _, pattern := range []string{"*/config.pbtxt", "*/configs/*.pbtxt"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	if len(found) != len(expected) {
		t.Errorf("%d examples, %d are expected", len(found), len(expected))
	}
	for _, path := range found {
		name, _ := filepath.Rel(folder, path)
		name = filepath.ToSlash(name)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			result := rules.CheckText(path, data, rules.Options{})
			var got []string
			for _, f := range result.Findings {
				got = append(got, f.Rule)
			}
			if want, isExpected := expected[name]; !isExpected || !slices.Equal(got, want) || result.Verdict != rules.Accept {
				t.Errorf("findings %v, verdict %s; want %v", got, result.Verdict, want)
			}
			linked := strings.TrimSuffix(name, "/"+filepath.Base(name))
			if !bytes.Contains(readme, []byte("("+name+")")) && !bytes.Contains(readme, []byte("("+linked+")")) {
				t.Error("README.md does not speak of it")
			}
			for _, rule := range expected[name] {
				if !bytes.Contains(readme, []byte("`"+rule+"`")) {
					t.Errorf("README.md does not tell of %s", rule)
				}
			}
			doc, err := configgen.Parse(path, data)
			if err != nil {
				t.Fatal(err)
			}
			printed := doc.Print()
			again, err := configgen.Parse(path, printed)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(doc.Config(), again.Config(), cmpopts.IgnoreTypes(configgen.Node{})); d != "" {
				t.Errorf("printed and read again it says something else\n%s", d)
			}
			if twice := again.Print(); !bytes.Equal(printed, twice) {
				t.Errorf("printed twice\n%s", cmp.Diff(string(printed), string(twice)))
			}
		})
	}
}
