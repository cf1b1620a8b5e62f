package tritonserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// CacheVariable names the folder in which .ci/fetch-triton puts a server.
const CacheVariable = "NPUCTL_CACHE"

// Installation is a server that the machine has.
type Installation struct {
	// Program is the server's path, on this machine or in the container.
	Program string
	// Engine is docker or podman, and Image what it runs; empty without a container.
	Engine, Image string

	backends string   // the folder of the server's backends
	caches   string   // the folder of its cache libraries; empty for the server's default
	python   string   // the folder of the wheel's Python, where its models find their modules
	version  string   // of that Python, such as 3.11; empty for other servers
	library  []string // folders of libraries that the server needs
}

// String names the installation for messages.
func (i Installation) String() string {
	if i.Engine != "" {
		return i.Engine + ":" + i.Image
	}
	return i.Program
}

// program is what servers are called.
const program = "tritonserver"

// imageProgram and imageBackends are where NVIDIA's images have the server.
const (
	imageProgram  = "/opt/tritonserver/bin/tritonserver"
	imageBackends = "/opt/tritonserver/backends"
)

// finder looks for servers; its functions are the machine's but in tests.
type finder struct {
	getenv func(string) string
	which  func(string) (string, error)
	home   string
	image  string // of a container: where the server would be
}

func newFinder() finder {
	home, _ := os.UserHomeDir()
	return finder{getenv: os.Getenv, which: exec.LookPath, home: home, image: imageProgram}
}

// Find gives the first server that the machine has: on the PATH, where NVIDIA's images
// have it, the wheel that .ci/fetch-triton brought, the wheel of the python3 on the
// PATH, an image of docker or podman. The error is of the family Missing, with what to do.
func Find(ctx context.Context) (Installation, error) { return newFinder().find(ctx) }

// Named gives the server that a user names: the path of a tritonserver, of a Python
// that has nvidia-pytriton, or docker:IMAGE or podman:IMAGE.
func Named(ctx context.Context, name string) (Installation, error) {
	return newFinder().named(ctx, name)
}

func (f finder) find(ctx context.Context) (Installation, error) {
	if path, err := f.which(program); err == nil {
		return programAt(path), nil
	}
	if isFile(f.image) {
		return programAt(f.image), nil
	}
	for _, python := range f.pythons() {
		if i, err := wheelOf(ctx, python); err == nil {
			return i, nil
		}
	}
	for _, engine := range []string{"docker", "podman"} {
		if image := f.localImage(ctx, engine); image != "" {
			return container(engine, image), nil
		}
	}
	if err := ctx.Err(); err != nil {
		return Installation{}, err
	}
	return Installation{}, fault.New(fault.Missing, "this machine has no Triton server: none on the PATH, no nvidia-pytriton, no container image").
		With("python3 -m pip install --no-deps nvidia-pytriton==0.7.0, or docker pull nvcr.io/nvidia/tritonserver:24.10-py3")
}

func (f finder) named(ctx context.Context, name string) (Installation, error) {
	if engine, image, isContainer := strings.Cut(name, ":"); isContainer && (engine == "docker" || engine == "podman") {
		if _, err := f.which(engine); err != nil {
			return Installation{}, fault.New(fault.Missing, "%s: there is no %s on the PATH", name, engine)
		}
		return container(engine, image), nil
	}
	path, err := f.which(name)
	if err != nil {
		return Installation{}, fault.New(fault.Missing, "%s is no program: name a tritonserver, a python that has nvidia-pytriton, docker:IMAGE or podman:IMAGE", name)
	}
	if strings.HasPrefix(filepath.Base(path), "python") {
		i, err := wheelOf(ctx, path)
		if err != nil {
			return Installation{}, fault.New(fault.Missing, "%w", err).With("%s -m pip install --no-deps nvidia-pytriton==0.7.0", name)
		}
		return i, nil
	}
	return programAt(path), nil
}

// programAt is a server that stands alone, with the backends beside it.
func programAt(path string) Installation {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	i := Installation{Program: path, backends: imageBackends}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	// A wheel's own program and that of a folder such as /opt/tritonserver/bin look alike.
	root := filepath.Dir(filepath.Dir(real))
	if isFolder(filepath.Join(root, "backends")) {
		i.backends = filepath.Join(root, "backends")
	}
	if isFolder(filepath.Join(root, "caches")) {
		i.caches = filepath.Join(root, "caches")
	}
	return i
}

// pythons are interpreters that may have the wheel.
func (f finder) pythons() (out []string) {
	cache := f.getenv(CacheVariable)
	if cache == "" && f.home != "" {
		cache = filepath.Join(f.home, ".cache", "npuctl")
	}
	if runtime.GOOS != "linux" {
		return nil // the wheel exists for Linux alone
	}
	for _, venv := range []string{f.getenv("VIRTUAL_ENV"), filepath.Join(cache, "triton", "venv")} {
		if path := filepath.Join(venv, "bin", "python3"); venv != "" && isFile(path) {
			out = append(out, path)
		}
	}
	if path, err := f.which("python3"); err == nil {
		out = append(out, path)
	}
	return out
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
