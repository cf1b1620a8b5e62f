package rules_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/soc"
)

var update = flag.Bool("update", false, "write golden parts anew")

// example is a rule's file in testdata/rules: a repository, or a config alone, in
// which the rule finds nothing, and one in which it does.
type example struct {
	archive *txtar.Archive
	chip    *soc.Chip
}

func readExample(t *testing.T, id string) example {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "rules", id+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	e := example{archive: archive}
	if name, ok := strings.CutPrefix(string(archive.Comment), "soc: "); ok {
		name, _, _ = strings.Cut(name, "\n")
		chip, err := soc.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		e.chip = &chip
	}
	return e
}

// lay writes one side of an example to disk and gives the paths to check, relative to
// the folder.
func (e example) lay(t *testing.T, folder, side string) (paths []string) {
	t.Helper()
	for _, f := range e.archive.Files {
		name, ok := strings.CutPrefix(f.Name, side+"/")
		if !ok {
			continue
		}
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := writeFile(path, f.Data); err != nil {
			t.Fatal(err)
		}
		first, _, isDeep := strings.Cut(name, "/")
		switch {
		case !isDeep && (first == "config.pbtxt" || strings.HasSuffix(first, ".text") || strings.HasSuffix(first, ".om")):
			paths = append(paths, strings.TrimSuffix(first, ".text")) // a file by itself
		case first == "first" || first == "second":
			if !slices.Contains(paths, first) {
				paths = append(paths, first) // two repositories
			}
		}
	}
	if paths == nil {
		return []string{"."}
	}
	return paths
}

// writeFile writes a file of an example. Names say when it is made of something else:
// NAME.onnx.text of a model as text, NAME.om.text of the name of a chip, NAME.link of
// where a link leads.
func writeFile(path string, data []byte) error {
	base, isText := strings.CutSuffix(path, ".text")
	link, isLink := strings.CutSuffix(path, ".link")
	switch {
	case isLink:
		return os.Symlink(strings.TrimSpace(string(data)), link)
	case isText && strings.HasSuffix(base, ".onnx"):
		m, err := text.Parse(string(data))
		if err != nil {
			return err
		}
		return m.Save(base, onnx.SaveOptions{})
	case isText:
		definition := omwriter.ModelDef{Name: "net", Attributes: []omwriter.Attribute{{Name: "soc_version", Value: omwriter.Text(strings.TrimSpace(string(data)))}}}
		file := omwriter.File{Name: "net", Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{ModelDef: &definition})}}
		return file.Save(base)
	}
	return os.WriteFile(path, data, 0o644)
}

// check checks one side of an example, from inside its folder so that findings name
// short paths.
func (e example) check(t *testing.T, side string, l rules.Language) rules.Result {
	t.Helper()
	folder := t.TempDir()
	paths := e.lay(t, folder, side)
	t.Chdir(folder)
	result, err := rules.Check(paths, rules.Options{Language: l, Chip: e.chip})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func of(all []findings.Finding, rule string) (out []findings.Finding) {
	for _, f := range all {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// Every rule has a file that it passes and one that it does not; what it finds, in
// both languages, is in testdata/findings.
func TestEveryRule(t *testing.T) {
	for _, r := range rules.Rules() {
		if r.IsOutside() {
			continue // internal/validation has their examples
		}
		t.Run(r.ID, func(t *testing.T) {
			e := readExample(t, r.ID)
			home, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			if found := of(e.check(t, "accept", rules.English).Findings, r.ID); len(found) > 0 {
				t.Errorf("the accepting side is not accepted: %+v", found)
			}
			var golden strings.Builder
			for _, l := range []rules.Language{rules.English, rules.Chinese} {
				result := e.check(t, "reject", l)
				found := of(result.Findings, r.ID)
				if len(found) == 0 {
					t.Fatalf("the rejecting side passes; found %+v", result.Findings)
				}
				if bool(r.Refuses) && result.Verdict != rules.Refuse {
					t.Errorf("the verdict is %s", result.Verdict)
				}
				for _, f := range found {
					if f.Severity != r.Severity {
						t.Errorf("severity %s, the table says %s", f.Severity, r.Severity)
					}
					fmt.Fprintf(&golden, "%s: %s: %s\n", f.Place(), f.Severity, f.Message)
					fmt.Fprintf(&golden, "  fix: %s\n", f.Fix)
					if f.Server != "" && l == rules.English {
						fmt.Fprintf(&golden, "  server: %s\n", f.Server)
					}
				}
			}
			compareGolden(t, filepath.Join(home, "testdata", "findings", r.ID+".txt"), golden.String())
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if strings.Contains(got, "%!") {
		t.Errorf("a message does not fit its arguments:\n%s", got)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}

// No example belongs to a rule that is gone.
func TestExamplesHaveRules(t *testing.T) {
	var ids []string
	for _, r := range rules.Rules() {
		ids = append(ids, r.ID)
	}
	for _, folder := range []string{"rules", "findings"} {
		err := filepath.WalkDir(filepath.Join("testdata", folder), func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			if err == nil && !d.IsDir() && !slices.Contains(ids, name) {
				t.Errorf("%s belongs to no rule", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var idPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Ids are unique and well formed, and every text is there in both languages.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules.Rules() {
		if seen[r.ID] || !idPattern.MatchString(r.ID) {
			t.Errorf("id %q is not well formed, or there twice", r.ID)
		}
		seen[r.ID] = true
		for what, both := range map[string]rules.Text{"title": r.Title, "effect": r.Effect, "fix": r.Fix} {
			for _, l := range []rules.Language{rules.English, rules.Chinese} {
				if both.In(l) == "" {
					t.Errorf("%s: no %s in language %d", r.ID, what, l)
				}
			}
			if strings.ContainsFunc(both.In(rules.English), func(r rune) bool { return r >= 0x2e80 && r < 0xff00 }) {
				t.Errorf("%s: the English %s is not English: %s", r.ID, what, both.In(rules.English))
			}
		}
	}
	if len(seen) < 150 {
		t.Errorf("only %d rules", len(seen))
	}
}

const rulesPage = "../../docs/rules.md"

// docs/rules.md is what the table says.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Rules of `npuctl validate`\n\n")
	b.WriteString("Written by `go test ./configgen/rules -run TestPage -update`; the table is in configgen/rules. An *error* does not work, a *warning* works but hardly as meant, a *note* is good to know. \"Refused\" says that a Triton server does not load the model, or dies or hangs over it.\n\n")
	b.WriteString("A comment lets a rule pass, on its own line and the next; above everything else in a file it covers the file. The reason is not optional:\n\n")
	b.WriteString("```\n# npuctl:ignore queue-stall the burst never exceeds one batch\n```\n\n")
	for _, r := range rules.Rules() {
		refused := ""
		if r.Refuses {
			refused = ", refused"
		}
		fmt.Fprintf(&b, "## %s\n\n%s%s. %s / %s\n\n", r.ID, r.Severity, refused, r.Title.In(rules.English), r.Title.In(rules.Chinese))
		fmt.Fprintf(&b, "- What happens: %s. %s。\n", r.Effect.In(rules.English), r.Effect.In(rules.Chinese))
		fmt.Fprintf(&b, "- What to do: %s. %s。\n\n", r.Fix.In(rules.English), r.Fix.In(rules.Chinese))
	}
	got := strings.TrimRight(b.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(rulesPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); d != "" {
		t.Errorf("docs/rules.md is not what the table says; run with -update:\n%s", d)
	}
}
