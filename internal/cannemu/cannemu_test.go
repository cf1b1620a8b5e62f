package cannemu

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/npuctl/npuctl/internal/fault"
)

// compilerStub is a compiler that makes a file of what it was asked for. It fails when
// a source is named in BROKEN.
const compilerStub = `#!/bin/sh
out=
all="$*"
while [ $# -gt 0 ]; do
  case "$1" in
  -o) out=$2; shift ;;
  *"$BROKEN") [ -z "$BROKEN" ] || { echo "$1: it is broken" >&2; exit 1; } ;;
  esac
  shift
done
echo "$all" > "$out"
`

// stub gives options by which a build takes no compiler but the stub.
func stub(t *testing.T) Options {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the emulator is built on Linux")
	}
	path := filepath.Join(t.TempDir(), "fake-gcc")
	if err := os.WriteFile(path, []byte(compilerStub), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(filepath.Dir(path), "fake-g++")); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	return Options{Program: "/opt/np'uctl", Version: "v1", CC: path, Getenv: func(name string) string {
		if name == CacheVariable {
			return cache
		}
		return ""
	}, tree: fstest.MapFS{
		"lib/include/acl.h":            {},
		"lib/libascendcl/errors.c":     {Data: []byte("int x;")},
		"lib/libascendcl/stream.c":     {},
		"lib/libacl_rt/alias.c":        {},
		"lib/libfmk_onnx_parser/ge.cc": {},
		"lib/testdata/client.c":        {},
	}}
}

// The sources that npuctl carries are those of the libraries that programs link.
func TestEmbeddedLibraries(t *testing.T) {
	list, err := units(sources)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 || list[0].name != "libascendcl" {
		t.Fatalf("libraries %v: libascendcl has to be the first", list)
	}
	for _, name := range []string{"libacl_op_compiler", "libfmk_onnx_parser"} {
		if !slices.ContainsFunc(list, func(u unit) bool { return u.name == name }) {
			t.Errorf("no %s", name)
		}
	}
}

func TestBuild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "somewhere new", "emulator")
	m, err := Build(context.Background(), dir, stub(t))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Emulated || m.Version != "v1" || len(m.Sources) != 64 || !slices.Contains(m.Libraries, "libascendcl.so") || !slices.Equal(m.Interpreter, []string{"/opt/np'uctl", "emulator", "interpreter"}) {
		t.Errorf("marker %+v", m)
	}
	if read, err := ReadMarker(dir); err != nil || read.Sources != m.Sources {
		t.Errorf("marker %+v, %v", read, err)
	}
	script, err := os.ReadFile(filepath.Join(dir, "bin/atc"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"#!/bin/sh\n", "NPUCTL_EMULATOR_ROOT='" + dir + "'\n", `exec '/opt/np'\''uctl' emulator atc "$@"` + "\n"} {
		if !strings.Contains(string(script), line) {
			t.Errorf("bin/atc lacks %q:\n%s", line, script)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "bin/atc")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "lib64/libascendcl.so"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"-shared", "-Wl,-soname,libascendcl.so", "libascendcl_errors.c.o", "libascendcl_api.c.o"} {
		if !strings.Contains(string(asked), word) {
			t.Errorf("the compiler is not asked for %s: %s", word, asked)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
}

// A folder that is there, such as the one a shell stands in, stays the same folder.
func TestBuildFillsTheFolder(t *testing.T) {
	o := stub(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "here")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, version := range []string{"v1", "v2"} { // empty, and an emulator
		o.Version = version
		if _, err := Build(context.Background(), ".", o); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(".")
		if err != nil || !os.SameFile(before, after) {
			t.Fatalf("%s: the working directory is another one: %v", version, err)
		}
		if m, err := ReadMarker(dir); err != nil || m.Version != version || !isWhole(dir, m) {
			t.Errorf("%s: %+v, %v", version, m, err)
		}
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
}

// Without a C++ compiler, what needs one is left out, and that is said.
func TestBuildWithoutCPlusPlus(t *testing.T) {
	o := stub(t)
	if err := os.Remove(filepath.Join(filepath.Dir(o.CC), "fake-g++")); err != nil {
		t.Fatal(err)
	}
	m, err := Build(context.Background(), filepath.Join(t.TempDir(), "emulator"), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.LeftOut, []string{"libfmk_onnx_parser.so"}) || slices.Contains(m.Libraries, "libfmk_onnx_parser.so") {
		t.Errorf("marker %+v", m)
	}
}

// A build that fails, or is stopped, leaves what was there before.
func TestBuildFails(t *testing.T) {
	o := stub(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "emulator")
	if _, err := Build(context.Background(), dir, o); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROKEN", "errors.c")
	o.Version = "v2"
	_, err := Build(context.Background(), dir, o)
	if fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), "errors.c: it is broken") {
		t.Errorf("error %v", err)
	}
	t.Setenv("BROKEN", "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, dir, o); fault.FamilyOf(err) != fault.Interrupted {
		t.Errorf("stopped: %v", err)
	}
	if m, err := ReadMarker(dir); err != nil || m.Version != "v1" {
		t.Errorf("marker %+v, %v", m, err)
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
	if _, err := Build(context.Background(), dir, o); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadMarker(dir); err != nil || m.Version != "v2" {
		t.Errorf("built anew: marker %+v, %v", m, err)
	}
}

func TestWhereNothingIsBuilt(t *testing.T) {
	o := stub(t)
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	lost := o
	lost.CC = "no-such-compiler"
	for name, test := range map[string]struct {
		dir     string
		options Options
		family  fault.Family
	}{
		"a folder of somebody's": {used, o, fault.Usage},
		"a colon":                {filepath.Join(used, "a:b"), o, fault.Usage},
		"a file":                 {filepath.Join(used, "thesis.txt"), o, fault.Usage},
		"no compiler":            {filepath.Join(used, "new"), lost, fault.Missing},
	} {
		if _, err := Build(context.Background(), test.dir, test.options); fault.FamilyOf(err) != test.family {
			t.Errorf("%s: %v", name, err)
		}
	}
	if entries, _ := os.ReadDir(used); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

// An emulator is built once, and again when something it depends on is another.
func TestFind(t *testing.T) {
	o := stub(t)
	first, _, wasBuilt, err := Find(context.Background(), "", o)
	if err != nil || !wasBuilt {
		t.Fatalf("%s, %v", first, err)
	}
	if again, m, wasBuilt, err := Find(context.Background(), "", o); err != nil || wasBuilt || again != first || m.Version != "v1" {
		t.Errorf("again: %s, %+v, %v, %v", again, m, wasBuilt, err)
	}
	if err := os.Remove(filepath.Join(first, "lib64/libascendcl.so")); err != nil {
		t.Fatal(err)
	}
	if _, _, wasBuilt, err := Find(context.Background(), "", o); err != nil || !wasBuilt {
		t.Errorf("with a library missing: %v, %v", wasBuilt, err)
	}
	o.Program = "/opt/other"
	if other, _, wasBuilt, err := Find(context.Background(), "", o); err != nil || !wasBuilt || other == first {
		t.Errorf("for another npuctl: %s, %v, %v", other, wasBuilt, err)
	}
	if _, _, wasBuilt, err := Find(context.Background(), first, o); err != nil || !wasBuilt {
		t.Errorf("in the folder of another npuctl: %v, %v", wasBuilt, err)
	}
	if err := os.WriteFile(filepath.Join(first, MarkerFile), []byte(`{"interpreter": []}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, wasBuilt, err := Find(context.Background(), first, o); err != nil || !wasBuilt {
		t.Errorf("with a marker that says nothing: %v, %v", wasBuilt, err)
	}
}

// What is printed for a shell survives every name of a folder, and adds to what is there.
func TestExports(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for _, root := range []string{"/opt/emulator", "/opt/it's a $HOME `id` \"folder\" \\ *", "/opt/line\nend"} {
		for _, before := range []string{"", "/usr/bin:/with blank"} {
			cmd := exec.Command(sh, "-c", `eval "$1"; printf '%s|' "$ASCEND_HOME_PATH" "$ASCEND_TOOLKIT_HOME" "$ASCEND_OPP_PATH" "$PATH" "$LD_LIBRARY_PATH"`, "sh", Exports(root))
			cmd.Env = []string{"PATH=" + before, "LD_LIBRARY_PATH=" + before}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			rest := ""
			if before != "" {
				rest = ":" + before
			}
			want := strings.Join([]string{root, root, root + "/opp", root + "/bin" + rest, root + "/lib64" + rest, ""}, "|")
			if string(out) != want {
				t.Errorf("%q: %q, want %q", root, out, want)
			}
		}
	}
	if v := Variables("/opt/e"); v["PATH"] != "/opt/e/bin" || len(v) != 5 {
		t.Errorf("variables %v", v)
	}
}

func TestMarkerIsJSONOfFixedNames(t *testing.T) {
	data, err := json.Marshal(Marker{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"version"`, `"sources"`, `"interpreter"`, `"emulated"`} {
		if !strings.Contains(string(data), name) {
			t.Errorf("no %s in %s", name, data)
		}
	}
}

func TestSourceHashIsSteady(t *testing.T) {
	first, err := SourceHash()
	if err != nil || len(first) != 64 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := SourceHash(); err != nil || again != first {
		t.Errorf("%q, %v", again, err)
	}
}
