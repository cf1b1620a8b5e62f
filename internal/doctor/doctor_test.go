package doctor

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
)

// board is a machine whose files and programs are those given.
func board(t *testing.T, files map[string]string, programs ...string) machine {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path, mode := filepath.Join(root, name), os.FileMode(0o644)
		if filepath.Base(name) == "atc" {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return machine{
		os: "linux", cgo: true, root: root, home: filepath.Join(root, "home"), getenv: func(string) string { return "" },
		which: func(name string) (string, error) {
			for _, p := range programs {
				if filepath.Base(p) == name {
					return p, nil
				}
			}
			return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
		},
		ort: func() (string, string, []string, error) {
			return "", "", []string{"/usr/lib/libonnxruntime.so*: nothing there"}, errors.New("none")
		},
		acl: func() ([]string, []string, error) {
			return nil, []string{"/usr/local/Ascend/cann/lib64"}, errors.New("none")
		},
		server: func() (string, error) {
			return "", fault.New(fault.Missing, "this machine has none").With("install one")
		},
	}
}

func TestCANN(t *testing.T) {
	for _, test := range []struct {
		name          string
		files         map[string]string
		environment   map[string]string // values are below the root
		path, version string
		wantSource    bool
	}{
		{name: "new layout", files: map[string]string{"usr/local/Ascend/cann/bin/atc": "", "usr/local/Ascend/cann/aarch64-linux/ascend_toolkit_install.info": "package_name=Ascend-cann-toolkit\nversion=8.5.0\n"},
			path: "usr/local/Ascend/cann", version: "8.5.0", wantSource: true},
		{name: "old layout", files: map[string]string{"usr/local/Ascend/ascend-toolkit/latest/compiler/bin/atc": "", "usr/local/Ascend/ascend-toolkit/latest/version.cfg": "# version\nruntime_running_version=[7.3.0.1.231:8.0.RC2]\n"},
			path: "usr/local/Ascend/ascend-toolkit/latest", version: "8.0.RC2", wantSource: true},
		{name: "of a user", files: map[string]string{"home/Ascend/ascend-toolkit/latest/bin/atc": "", "home/Ascend/ascend-toolkit/latest/version.cfg": "toolkit_running_version=[8.1.RC1]\n"},
			path: "home/Ascend/ascend-toolkit/latest", version: "8.1.RC1", wantSource: true},
		{name: "where the environment says", files: map[string]string{"opt/cann/bin/atc": "", "opt/cann/version.info": "Version=8.2\n", "usr/local/Ascend/cann/bin/atc": ""},
			environment: map[string]string{"ASCEND_HOME_PATH": "opt/cann"}, path: "opt/cann", version: "8.2"},
		{name: "the environment leads nowhere", files: map[string]string{"usr/local/Ascend/cann/bin/atc": "", "usr/local/Ascend/cann/version.info": "Version=1\n"},
			environment: map[string]string{"ASCEND_HOME_PATH": "opt/cann"}, path: "usr/local/Ascend/cann", version: "1", wantSource: true},
		{name: "without a version", files: map[string]string{"usr/local/Ascend/cann/bin/atc": "", "usr/local/Ascend/cann/version.cfg": "nothing here"}, path: "usr/local/Ascend/cann", wantSource: true},
		{name: "the runtime alone", files: map[string]string{"usr/local/Ascend/nnrt/latest/version.cfg": "runtime_running_version=[7.3.0:8.0.0]\n"}, path: "usr/local/Ascend/nnrt/latest", version: "8.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := board(t, test.files)
			m.getenv = func(name string) string {
				if v := test.environment[name]; v != "" {
					return m.at(v)
				}
				return ""
			}
			c := m.cann()
			if !c.Found || c.Path != m.at(test.path) || c.Version != test.version || strings.HasPrefix(c.Remedy, "source ") != test.wantSource {
				t.Errorf("got %+v", c)
			}
			if compiler := m.atc(); compiler.Found != (test.name != "the runtime alone") || compiler.Found && !strings.HasPrefix(compiler.Path, c.Path) {
				t.Errorf("atc %+v", compiler)
			}
		})
	}
}

// An emulator is never taken for a toolkit, wherever it was found.
func TestEmulator(t *testing.T) {
	m := board(t, map[string]string{"opt/emu/npuctl-emulator.json": `{"version": "v1.2", "emulated": true}`, "opt/emu/version.info": "Version=8.5\n", "opt/emu/bin/atc": ""})
	m.getenv = func(name string) string {
		if name == "ASCEND_HOME_PATH" {
			return m.at("opt/emu")
		}
		return ""
	}
	c := m.cann()
	if !c.Found || c.Name != "CANN" || c.Version != "emulated" || !strings.Contains(c.Detail, "emulated at "+m.at("opt/emu")+" by npuctl v1.2") || c.Remedy != "" {
		t.Errorf("%+v", c)
	}
}

// Its atc and its library are the emulator's as well, and no others.
func TestEmulatedProgramAndLibrary(t *testing.T) {
	m := board(t, map[string]string{"opt/emu/npuctl-emulator.json": "{}", "opt/emu/bin/atc": "", "opt/emu/lib64/libascendcl.so": "", "opt/real/bin/atc": "", "opt/real/lib64/libascendcl.so": ""})
	for _, root := range []string{"opt/emu", "opt/real"} {
		m.which = func(string) (string, error) { return m.at(root + "/bin/atc"), nil }
		m.acl = func() ([]string, []string, error) { return []string{m.at(root + "/lib64/libascendcl.so")}, nil, nil }
		want := root == "opt/emu"
		for _, c := range []Component{m.atc(), m.ascendCL()} {
			if !c.Found || c.Emulated != want || (c.Version == "emulated") != want {
				t.Errorf("%s: %+v", root, c)
			}
		}
	}
	m.cgo = false
	if c := m.ascendCL(); c.Found || !strings.Contains(c.Remedy, "with cgo") {
		t.Errorf("without cgo: %+v", c)
	}
}

// A machine without CANN is told of the emulator.
func TestTheEmulatorIsOffered(t *testing.T) {
	m := board(t, nil)
	for _, c := range []Component{m.cann(), m.atc(), m.ascendCL()} {
		if !strings.Contains(c.Remedy, "npuctl emulator env") {
			t.Errorf("%+v", c)
		}
	}
}

func TestDriverDevicesAndPrograms(t *testing.T) {
	m := board(t, map[string]string{"usr/local/Ascend/driver/version.info": "Version=24.1.rc3\n", "dev/davinci0": "", "dev/davinci12": "", "dev/davinci_manager": ""},
		"/usr/local/sbin/npu-smi")
	if c := m.driver(); c.Version != "24.1.rc3" {
		t.Errorf("driver %+v", c)
	}
	if c := m.devices(); !c.Found || c.Detail != "davinci0, davinci12" {
		t.Errorf("devices %+v", c)
	}
	if c := m.npuSMI(); c.Path != "/usr/local/sbin/npu-smi" || c.Remedy != "" {
		t.Errorf("npu-smi %+v", c)
	}
	if c := m.triton(); c.Found || c.Remedy != "install one" || c.Looked[0] != "this machine has none" {
		t.Errorf("tritonserver %+v", c)
	}
	m.server = func() (string, error) { return "nvidia-pytriton of /usr/bin/python3", nil }
	if c := m.triton(); !c.Found || c.Path != "nvidia-pytriton of /usr/bin/python3" {
		t.Errorf("tritonserver %+v", c)
	}
	if c := m.atc(); c.Found || c.Remedy == "" || c.Looked[len(c.Looked)-1] != "atc (PATH): not there" {
		t.Errorf("atc %+v", c)
	}
}

// Nothing is there: each component says where it was looked for and how to get it.
func TestABareMachine(t *testing.T) {
	for _, c := range board(t, nil).components() {
		if c.Found || c.NeededFor == "" || c.Remedy == "" || len(c.Looked) == 0 {
			t.Errorf("%+v", c)
		}
	}
}

func TestRuntimeThatCannotBeOpened(t *testing.T) {
	m := board(t, nil)
	m.ort = func() (string, string, []string, error) {
		return "/lib/x.so", "", nil, errors.New("this npuctl was built without cgo")
	}
	if c := m.onnxRuntime(); c.Found || c.Path != "/lib/x.so" || !strings.Contains(c.Detail, "without cgo") {
		t.Errorf("%+v", c)
	}
}

func TestExamineThisMachine(t *testing.T) {
	r := Examine("v1")
	if r.Version != "v1" || r.CPU.Cores < 1 || r.OS != runtime.GOOS || len(r.Components) != 8 {
		t.Errorf("%+v", r)
	}
	if (runtime.GOOS == "linux" || runtime.GOOS == "darwin") && r.MemoryBytes < 1<<20 {
		t.Errorf("%d bytes of memory", r.MemoryBytes)
	}
	if runtime.GOARCH == "arm64" && len(r.CPU.Features) == 0 {
		t.Error("an arm64 without ASIMD")
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// A build that cannot open libraries is not told to install one.
func TestRuntimeRemedy(t *testing.T) {
	for _, c := range []struct {
		os   string
		cgo  bool
		want string
	}{
		{"linux", true, "install it with"}, {"linux", false, "build npuctl with cgo"}, {"darwin", false, "build npuctl with cgo"}, {"windows", true, "use npuctl on Linux or macOS"},
	} {
		m := board(t, nil)
		m.os, m.cgo = c.os, c.cgo
		if got := m.onnxRuntime().Remedy; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, cgo %v: remedy %q, want %q", c.os, c.cgo, got, c.want)
		}
	}
}
