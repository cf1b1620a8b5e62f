package atc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// place makes files below a folder; a name that ends in * is a program.
func place(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		mode := os.FileMode(0o644)
		if program, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = program, 0o755
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// finder looks at a folder as if it were the whole machine.
func finder(root string, env map[string]string) Finder {
	return Finder{
		Getenv: func(name string) string { return env[name] },
		Which: func(name string) (string, error) {
			for _, folder := range filepath.SplitList(env["PATH"]) {
				if path := filepath.Join(folder, name); isProgram(path) {
					return path, nil
				}
			}
			return "", exec.ErrNotFound
		},
		Home: filepath.Join(root, "home"), Prefix: root,
	}
}

func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are told by their permissions here")
	}
	for name, c := range map[string]struct {
		files map[string]string
		given string // below the machine
		env   map[string]string
		want  string // folder, release and what led there
	}{
		"where the variable says": {
			files: map[string]string{"a/bin/atc*": "", "a/version.cfg": "# x\ntoolkit_running_version=[7.7.0:8.1.RC1]\n", "usr/local/Ascend/cann/bin/atc*": ""},
			env:   map[string]string{"ASCEND_HOME_PATH": "a"}, want: "a 8.1.RC1 ASCEND_HOME_PATH",
		},
		"the variable leads nowhere": {
			files: map[string]string{"usr/local/Ascend/cann/bin/atc*": "", "usr/local/Ascend/cann/version.info": "Version=8.5.0\n"},
			env:   map[string]string{"ASCEND_HOME_PATH": "a", "ASCEND_TOOLKIT_HOME": "b"}, want: "usr/local/Ascend/cann 8.5.0 usual place",
		},
		"an older release": {
			files: map[string]string{"usr/local/Ascend/ascend-toolkit/latest/compiler/bin/atc*": ""},
			want:  "usr/local/Ascend/ascend-toolkit/latest  usual place",
		},
		"in the home folder": {
			files: map[string]string{"home/Ascend/ascend-toolkit/latest/bin/atc*": ""}, want: "home/Ascend/ascend-toolkit/latest  usual place",
		},
		"on the path": {
			files: map[string]string{"x/bin/atc*": "", "x/opp/a": ""}, env: map[string]string{"PATH": "x/bin"}, want: "x  PATH",
		},
		"given":              {files: map[string]string{"g/bin/atc*": "", "a/bin/atc*": ""}, given: "g", env: map[string]string{"ASCEND_HOME_PATH": "a"}, want: "g  given"},
		"given as a program": {files: map[string]string{"g/bin/atc*": "", "g/set_env.sh": ""}, given: "g/bin/atc", want: "g  given"},
		"the emulator": {
			files: map[string]string{"e/bin/atc*": "", "e/npuctl-emulator.json": `{"version": "1.2"}`}, given: "e", want: "e 1.2 given emulated",
		},
		"an emulator with a broken marker": {
			files: map[string]string{"e/bin/atc*": "", "e/npuctl-emulator.json": `{`}, given: "e", want: "e  given emulated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			place(t, root, c.files)
			env := map[string]string{}
			for k, v := range c.env {
				env[k] = filepath.Join(root, v)
			}
			f := finder(root, env)
			if c.given != "" {
				f.Given = filepath.Join(root, c.given)
			}
			kit, err := f.Find()
			if err != nil {
				t.Fatal(err)
			}
			below, err := filepath.Rel(root, kit.Root)
			if err != nil {
				t.Fatal(err)
			}
			got := below + " " + kit.Version + " " + kit.FoundBy
			if kit.Emulated {
				got += " emulated"
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !isProgram(kit.Program) {
				t.Errorf("%s is no program", kit.Program)
			}
		})
	}
}

// A failure tells every place and what was there.
func TestFindSaysWhereItLooked(t *testing.T) {
	root := t.TempDir()
	place(t, root, map[string]string{"a/lib64/x.so": ""})
	_, err := finder(root, map[string]string{"ASCEND_HOME_PATH": filepath.Join(root, "a")}).Find()
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		t.Fatal(err)
	}
	if len(missing.Looked) != 10 {
		t.Errorf("looked at %v", missing.Looked)
	}
	for _, want := range []string{"a (ASCEND_HOME_PATH): no bin/atc in it", "cann (usual place): nothing there", "atc (PATH): not there"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nsays nothing of %q", err, want)
		}
	}
	f := finder(root, nil)
	f.Given = filepath.Join(root, "nothing")
	if _, err := f.Find(); !errors.As(err, &missing) || len(missing.Looked) != 1 {
		t.Errorf("a given place: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	root := t.TempDir()
	place(t, root, map[string]string{
		"cann/bin/atc*": "", "cann/lib64/a.so": "", "cann/opp/built-in/op_impl/ai_core/tbe/x": "", "cann/python/site-packages/x": "", "cann/toolkit/x": "",
		"cann/" + architectureFolder() + "/devlib/libascend_hal.so": "",
		"driver/common/x": "", "driver/driver/libascend_hal.so": "",
	})
	kit := Toolkit{Root: filepath.Join(root, "cann")}
	at := func(s string) string { return strings.ReplaceAll(s, "@", kit.Root) }
	list := string(os.PathListSeparator)
	base := []string{"HOME=/h", "PATH=/usr/bin" + list + at("@/bin"), "LD_LIBRARY_PATH=/own", "ASCEND_OPP_PATH=/stale", "HOME=/h"}
	for name, c := range map[string]struct {
		driver string
		want   []string
	}{
		"without a driver": {"nodriver", []string{
			"HOME=/h", "PATH=@/bin" + list + "/usr/bin",
			"LD_LIBRARY_PATH=@/lib64" + list + "/own" + list + "@/" + architectureFolder() + "/devlib",
			"ASCEND_OPP_PATH=@/opp", "ASCEND_HOME_PATH=@", "ASCEND_TOOLKIT_HOME=@", "TOOLCHAIN_HOME=@/toolkit",
			"PYTHONPATH=@/python/site-packages" + list + "@/opp/built-in/op_impl/ai_core/tbe",
		}},
		"with one": {"driver", []string{
			"HOME=/h", "PATH=@/bin" + list + "/usr/bin",
			"LD_LIBRARY_PATH=@/lib64" + list + "/own" + list + root + "/driver" + list + root + "/driver/common" + list + root + "/driver/driver",
			"ASCEND_OPP_PATH=@/opp", "ASCEND_HOME_PATH=@", "ASCEND_TOOLKIT_HOME=@", "TOOLCHAIN_HOME=@/toolkit",
			"PYTHONPATH=@/python/site-packages" + list + "@/opp/built-in/op_impl/ai_core/tbe",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kit.environment(base, filepath.Join(root, c.driver))
			for i := range c.want {
				c.want[i] = filepath.FromSlash(at(c.want[i]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			// A second time changes nothing.
			if again := kit.environment(got, filepath.Join(root, c.driver)); !slices.Equal(again, got) {
				t.Errorf("twice is not once:\n%s", strings.Join(again, "\n"))
			}
		})
	}
}

// Who has set up the shell for this toolkit may keep operators elsewhere; who has
// not gets the toolkit's own.
func TestEnvironmentKeepsOwnOperators(t *testing.T) {
	root := t.TempDir()
	place(t, root, map[string]string{"cann/opp/x": "", "own/x": ""})
	own, theirs := filepath.Join(root, "own"), filepath.Join(root, "cann", "opp")
	for foundBy, want := range map[string]string{"ASCEND_HOME_PATH": own, "given": theirs, "usual place": theirs} {
		kit := Toolkit{Root: filepath.Join(root, "cann"), FoundBy: foundBy}
		if got := kit.environment([]string{"ASCEND_OPP_PATH=" + own}, "nodriver"); !slices.Contains(got, "ASCEND_OPP_PATH="+want) {
			t.Errorf("%s: %v", foundBy, got)
		}
	}
}

func TestShellCommand(t *testing.T) {
	got := ShellCommand("/opt/atc", []string{"--model=a.onnx", "--input_shape=x:1,3;y:2", "it's", "", "--x=a b"})
	const want = `/opt/atc --model=a.onnx --input_shape='x:1,3;y:2' 'it'\''s' '' --x='a b'`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An emulator is passed over when CANN alone will do, for one behind it or for none.
func TestNoEmulator(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are told by their permissions here")
	}
	root := t.TempDir()
	place(t, root, map[string]string{"emu/bin/atc*": "", "emu/" + MarkerFile: "{}", "usr/local/Ascend/cann/bin/atc*": ""})
	emulator := filepath.Join(root, "emu")
	f := finder(root, map[string]string{"ASCEND_HOME_PATH": emulator})
	f.NoEmulator = true
	kit, err := f.Find()
	if err != nil || kit.Emulated || kit.Root != filepath.Join(root, "usr/local/Ascend/cann") {
		t.Errorf("%+v, %v", kit, err)
	}
	for name, env := range map[string]map[string]string{"by a variable": {"ASCEND_HOME_PATH": emulator}, "on the PATH": {"PATH": filepath.Join(emulator, "bin")}} {
		f := finder(filepath.Join(root, "elsewhere"), env)
		f.NoEmulator = true
		var missing *NotFoundError
		if _, err := f.Find(); !errors.As(err, &missing) || !strings.Contains(err.Error(), "npuctl's emulator, which is no CANN") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
