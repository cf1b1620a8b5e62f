// Package doctor says what is on this machine: the processor, the engines, CANN and
// its devices, what each is needed for and how to get what is missing.
//
// It only looks: files, the environment and the path for programs. The one library that
// is opened is ONNX Runtime, because its version stands nowhere else, and the only
// programs that run are those that know of a Triton server: python3, docker, podman.
package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/npuctl/npuctl/internal/ascendcl"
)

// Report is what was found. Its JSON form is the contract of `npuctl doctor
// --json`: fields are added, never renamed.
type Report struct {
	Version string `json:"version"` // of npuctl
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// CGo says whether the build can open shared libraries.
	CGo bool `json:"cgo"`

	CPU CPU `json:"cpu"`
	// MemoryBytes is the machine's main memory; 0 when it cannot be told.
	MemoryBytes int64 `json:"memory_bytes"`

	Components []Component `json:"components"`
}

// CPU is the processor.
type CPU struct {
	Model string `json:"model,omitempty"`
	Cores int    `json:"cores"` // that this process may use
	// Features are the instruction sets that matter to kernels.
	Features []string `json:"features"`
}

// Component is something that npuctl uses where it is there.
type Component struct {
	Name  string `json:"name"`
	Found bool   `json:"found"`
	// Emulated says that it is npuctl's emulator, or of it.
	Emulated bool `json:"emulated"`
	// Path and Version say which; Detail what else is to know.
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// NeededFor says what it is for.
	NeededFor string `json:"needed_for"`
	// Looked lists the places without it, and Remedy says how to get it, when it is
	// missing or cannot be used.
	Looked []string `json:"looked,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
}

// machine is what looking needs to know; tests make their own.
type machine struct {
	os     string // as in runtime.GOOS
	cgo    bool
	root   string // of the file system
	home   string
	getenv func(string) string
	which  func(program string) (string, error)
	ort    func() (path, version string, tried []string, err error)
	acl    func() (paths, tried []string, err error)
	server func() (name string, err error) // the Triton server that validate --load would start
}

// Examine looks at this machine; version is npuctl's own.
func Examine(version string) Report {
	home, _ := os.UserHomeDir() // without one, the places below it are left out
	m := machine{
		root: "/", home: home, getenv: os.Getenv, which: exec.LookPath, os: runtime.GOOS, cgo: hasCGo,
		ort:    findRuntime,
		acl:    func() ([]string, []string, error) { return ascendcl.Find("") },
		server: findServer,
	}
	return Report{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CGo: hasCGo,
		CPU:         CPU{Model: m.processor(), Cores: runtime.GOMAXPROCS(0), Features: cpuFeatures()},
		MemoryBytes: memoryBytes(), Components: m.components(),
	}
}

func (m machine) components() []Component {
	return []Component{m.onnxRuntime(), m.cann(), m.atc(), m.ascendCL(), m.driver(), m.devices(), m.npuSMI(), m.triton()}
}

// at makes a path below the root.
func (m machine) at(path string) string { return filepath.Join(m.root, path) }
