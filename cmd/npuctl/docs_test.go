package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/doctor"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/inference"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/internal/optimization"
)

// repository is the root of the repository, seen from here.
const repository = "../.."

// page is a page of documentation, taken apart.
type page struct {
	path     string
	headings []string // levels and nothing else: ##
	blocks   []block
	spans    []string // code inside lines
}

// block is a fenced piece of code.
type block struct {
	language string
	lines    []string
}

var span = regexp.MustCompile("`([^`]+)`")

func readPage(t *testing.T, path string) page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: path}
	inside := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !inside:
			p.blocks = append(p.blocks, block{language: language})
			inside = true
		case isFence:
			inside = false
		case inside:
			last := &p.blocks[len(p.blocks)-1]
			last.lines = append(last.lines, line)
		case strings.HasPrefix(line, "#"):
			p.headings = append(p.headings, line[:strings.IndexByte(line, ' ')])
		default:
			for _, match := range span.FindAllStringSubmatch(line, -1) {
				p.spans = append(p.spans, match[1])
			}
		}
	}
	if inside {
		t.Errorf("%s ends inside a block of code", path)
	}
	return p
}

// commands gives the commands of a block, without comments and what others print.
func (b block) commands() (out []string) {
	if b.language != "sh" && b.language != "text" {
		return nil
	}
	for _, line := range b.lines {
		if line, _, _ = strings.Cut(line, " #"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// pages lists all pages that users read.
func pages(t *testing.T) (out []page) {
	t.Helper()
	paths := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	docs, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for _, d := range docs {
		paths = append(paths, filepath.Join("docs", filepath.Base(d)))
	}
	for _, path := range paths {
		out = append(out, readPage(t, path))
	}
	return out
}

// The two readmes tell the same: as many headings of the same levels, the same
// commands, and links to the same places.
func TestReadmesAgree(t *testing.T) {
	english, chinese := readPage(t, "README.md"), readPage(t, "README.zh-CN.md")
	if got, want := fmt.Sprint(chinese.headings), fmt.Sprint(english.headings); got != want {
		t.Errorf("headings %s, in English %s", got, want)
	}
	if len(chinese.blocks) != len(english.blocks) {
		t.Fatalf("%d blocks of code, in English %d", len(chinese.blocks), len(english.blocks))
	}
	for i := range english.blocks {
		got, want := chinese.blocks[i], english.blocks[i]
		if got.language != want.language || len(got.lines) != len(want.lines) {
			t.Errorf("block %d differs in language or length", i)
		}
		if g, w := strings.Join(got.commands(), "\n"), strings.Join(want.commands(), "\n"); g != w {
			t.Errorf("commands of block %d:\n%s\nin English\n%s", i, g, w)
		}
	}
	if got, want := links(t, "README.zh-CN.md"), links(t, "README.md"); got != want {
		t.Errorf("links %s, in English %s", got, want)
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

// links lists where a page leads, but to the other readme.
func links(t *testing.T, path string) string {
	data, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, match := range link.FindAllStringSubmatch(string(data), -1) {
		if !strings.HasPrefix(match[1], "README") {
			out = append(out, match[1])
		}
	}
	return strings.Join(out, " ")
}

// What a page links to in the repository is there.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, target := range strings.Fields(links(t, p.path)) {
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(repository, filepath.Dir(p.path), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", p.path, target)
			}
		}
	}
}

// Every npuctl command that a page shows parses: the command and its flags exist.
func TestShownCommandsParse(t *testing.T) {
	seen := 0
	for _, p := range pages(t) {
		check := func(line string, mayEndEarly bool) {
			for _, command := range npuctlCommands(line) {
				seen++
				err := parses(command)
				var incomplete *pflag.ValueRequiredError
				if err != nil && !(mayEndEarly && errors.As(err, &incomplete)) {
					t.Errorf("%s shows %q: %v", p.path, line, err)
				}
			}
		}
		for _, line := range p.spans {
			check(line, true) // a sentence may name a flag without its value
		}
		for _, b := range p.blocks {
			for _, line := range b.commands() {
				check(line, false)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d commands were found", seen)
	}
}

// npuctlCommands gives the npuctl commands in a line of shell, as arguments.
func npuctlCommands(line string) (out [][]string) {
	line = strings.ReplaceAll(line, "go run ./cmd/npuctl", "npuctl")
	for part := range strings.SplitSeq(line, "|") {
		words := strings.Fields(part)
		if len(words) > 1 && words[0] == "npuctl" {
			out = append(out, words[1:])
		}
	}
	return out
}

// parses says what is wrong with a command line. Placeholders stand for themselves:
// [--inputs FILE|DIR]... is left out.
func parses(args []string) error {
	root := newRootCommand(&app{args: args})
	cmd, rest, err := root.Find(joinOptional(args))
	if err != nil {
		return err
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no command %q", rest[0])
	}
	for i, word := range rest {
		if strings.HasPrefix(word, "[") {
			rest = rest[:i]
			break
		}
		rest[i] = strings.NewReplacer("N", "1", "NAME,…", "fold").Replace(word)
	}
	return cmd.ParseFlags(rest)
}

// The blocks of shell in docs run as they stand, in a folder with a model.onnx.
func TestShownScriptsRun(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(filepath.Join(repository, "examples", "attention.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	toolkit, runs := emulatedToolkit(t)
	environment := append(os.Environ(), "ASCEND_HOME_PATH="+toolkit, "NPUCTL_CACHE="+t.TempDir())
	for _, p := range pages(t) {
		if filepath.Dir(p.path) != "docs" {
			continue
		}
		for i, b := range p.blocks {
			if b.language != "sh" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(p.path), i), func(t *testing.T) {
				if script := strings.Join(b.lines, "\n"); !runs && strings.Contains(script, "npuctl infer model.om") {
					t.Skip("without cgo and a C compiler nothing runs an .om")
				}
				folder := t.TempDir()
				if err := os.Symlink(self, filepath.Join(folder, "npuctl")); err != nil {
					t.Skip(err)
				}
				if err := os.WriteFile(filepath.Join(folder, "model.onnx"), model, 0o644); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(context.Background(), "sh", "-ec", strings.Join(b.lines, "\n"))
				cmd.Dir = folder
				cmd.Env = append(environment, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// emulatedToolkit makes a toolkit whose atc is this very program: the emulator. Where
// that cannot be compiled, or this build cannot open its library, it has atc alone,
// and runs is false.
func emulatedToolkit(t *testing.T) (root string, runs bool) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "emulator")
	_, err := cannemu.Build(context.Background(), root, cannemu.Options{Version: "test"})
	switch {
	case err == nil:
		return root, hasCgo()
	case fault.FamilyOf(err) != fault.Missing:
		t.Fatal(err)
	}
	t.Log(err)
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"bin/atc": "#!/bin/sh\nexec npuctl emulator atc \"$@\"\n", atc.MarkerFile: "{}"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root, false
}

// hasCgo says whether this program was built with cgo.
func hasCgo() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
}

// Every field of every --json object is documented.
func TestJSONFieldsAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository, "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []any{optimization.Result{}, modelstats.Description{}, inference.Result{}, doctor.Report{}, failureJSON{}} {
		for _, name := range fieldNames(reflect.TypeOf(object)) {
			if !strings.Contains(string(data), "`"+name+"`") {
				t.Errorf("field %s of %T is not in docs/json.md", name, object)
			}
		}
	}
}

// fieldNames lists the JSON names of a type's fields, and of those inside.
func fieldNames(t reflect.Type) (out []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldNames(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name != "" {
				out = append(out, name)
			}
			out = append(out, fieldNames(f.Type)...)
		}
	}
	return out
}

// The table of exit codes knows all families.
func TestExitCodesAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository, "docs", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for code, name := range map[int]string{1: "internal", 2: "usage", 3: "input", 4: "goal", 5: "missing", 6: "program", 130: "interrupted"} {
		if row := fmt.Sprintf("| %d | `%s` |", code, name); !strings.Contains(string(data), row) {
			t.Errorf("no row %s", row)
		}
	}
}
