package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// A panic reaches the user as one line with a place and what to do, not as a trace.
func TestPanicsAreReported(t *testing.T) {
	for name, boom := range map[string]func(){
		"a value":         func() { panic("boom") },
		"an error":        func() { panic(errors.New("boom")) },
		"the runtime's":   func() { _ = []int{}[len(os.Args)] },
		"a nil pointer's": func() { var m *onnx.Model; _ = m.IRVersion },
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			a := &app{out: bufio.NewWriter(&out), stdout: &out, err: &errOut, args: []string{"boom", "--json"}}
			root := newRootCommand(a)
			root.AddCommand(&cobra.Command{Use: "boom", Run: func(*cobra.Command, []string) { a.out.WriteString("half"); boom() }})
			if code := a.execute(context.Background(), root); code != 1 {
				t.Errorf("exit code %d", code)
			}
			line := errOut.String()
			if strings.Count(line, "\n") != 1 || !strings.Contains(line, "root_test.go:") || !strings.Contains(line, "please report it at https://") {
				t.Errorf("standard error is\n%s", line)
			}
			var object struct{ Error failureJSON }
			if err := json.Unmarshal([]byte(out.String()), &object); err != nil || object.Error.Code != "internal" {
				t.Errorf("standard output is %q: %v", out.String(), err)
			}
		})
	}
}

// Ctrl-C in the middle of work ends it with 130 and a line, and leaves no file.
func TestInterrupt(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "endless.onnx")
	m := text.MustParse(t, `<opset_import: ["": 18]> (float x) => (float y) <int64 n = {1000000000000}, bool c = {1}> {
		y = Loop (n, c, x) <body = b (int64 i, bool go, float s) => (go2, s2) { go2 = Identity (go)  s2 = Add (s, s) }> }`)
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	out := filepath.Join(folder, "out")
	code, stdout, stderr := runs(ctx, "infer", path, "-o", out, "--json")
	if code != 130 || !strings.Contains(stderr, "stopped") || !strings.Contains(stdout, `"interrupted"`) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
}

func TestJoinOptional(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"optimize m.onnx --check 5", "optimize m.onnx --check=5"},
		{"optimize --check 5 m.onnx", "optimize --check=5 m.onnx"},
		{"optimize --check m.onnx", "optimize --check m.onnx"},
		{"optimize m.onnx --check", "optimize m.onnx --check"},
		{"optimize m.onnx --check=5 6", "optimize m.onnx --check=5 6"},
		{"optimize m.onnx --batch 5", "optimize m.onnx --batch 5"},
		{"optimize m.onnx --check -- 5", "optimize m.onnx --check -- 5"},
	} {
		if got := strings.Join(joinOptional(strings.Fields(test.in)), " "); got != test.want {
			t.Errorf("%s becomes %s, want %s", test.in, got, test.want)
		}
	}
}

// A disk that is full when the result is printed is a failure.
func TestStandardOutputThatCannotBeWritten(t *testing.T) {
	var errOut strings.Builder
	code := run(context.Background(), []string{"--version"}, failingWriter{}, &errOut)
	if code != 5 || !strings.Contains(errOut.String(), "write standard output: no space") {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// Every command has what its help and its manual page need, and every flag a use.
func TestCommandsAreDescribed(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || c.HasParent() && c.Long == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand(&app{}))
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": 1, "4096": 4096, "64KiB": 64 << 10, "64k": 64 << 10, "2MB": 2_000_000, "1GiB": 1 << 30, "3b": 3} {
		got, err := parseBytes("--size", text)
		if err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1", "1.5MiB", "MiB", "1TB", "99999999999999", "1 MiB"} {
		if got, err := parseBytes("--size", text); err == nil {
			t.Errorf("parseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestPasses(t *testing.T) {
	_, stdout, _ := runs(context.Background(), "optimize", "--list-passes", "--json")
	var list struct{ Passes []struct{ Name, Does string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Passes {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, passNames()) || len(names) < 5 {
		t.Errorf("listed are %q", names)
	}
}

// Whatever is typed, flags parse to something or say what is wrong.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{"", "1MiB", "x:1,2", "x:1x?x3", ":1", "batch=2", "a=b=3", "=", "9223372036854775807GiB", "x:-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseBytes("--size", s); err == nil && n < 0 {
			t.Errorf("parseBytes(%q) = %d", s, n)
		}
		sizes := sizeFlags{shapes: []string{s}, dims: []string{s}}
		if sp, err := sizes.specialization(); err == nil && len(sp.Shapes)+len(sp.Dims) != 2 {
			t.Errorf("%q gives %+v", s, sp)
		}
		joinOptional([]string{"--check", s})
	})
}
