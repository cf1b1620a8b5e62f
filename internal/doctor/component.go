package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/internal/tritonserver"
)

// findRuntime finds and opens ONNX Runtime.
func findRuntime() (path, version string, tried []string, err error) {
	path, tried, err = onnxruntime.Find("")
	if err != nil {
		return "", "", tried, err
	}
	library, err := onnxruntime.Open(path)
	if err != nil {
		return path, "", tried, err
	}
	defer library.Close()
	return path, library.Version(), tried, nil
}

func (m machine) onnxRuntime() Component {
	c := Component{Name: "ONNX Runtime", NeededFor: "an independent judge for optimize --check; infer --engine ort"}
	path, version, tried, err := m.ort()
	switch {
	case err == nil:
		c.Found, c.Path, c.Version = true, path, version
	case path != "":
		c.Path, c.Detail, c.Remedy = path, err.Error(), m.runtimeRemedy()
	default:
		c.Looked, c.Remedy = tried, m.runtimeRemedy()
	}
	return c
}

// runtimeRemedy says how to get ONNX Runtime into use. A build that cannot open
// libraries gains nothing from having it installed.
func (m machine) runtimeRemedy() string {
	switch {
	case m.os != "linux" && m.os != "darwin":
		return "use npuctl on Linux or macOS: this build of it opens no libraries; the built-in interpreter does the work here"
	case !m.cgo:
		return "build npuctl with cgo (CGO_ENABLED=1 and a C compiler), then " + onnxruntime.Remedy
	}
	return onnxruntime.Remedy
}

// toolkit is what `npuctl compile` would take, found as it finds it; looked says where
// there is none.
func (m machine) toolkit() (kit atc.Toolkit, looked []atc.Place, err error) {
	root := strings.TrimSuffix(m.root, string(filepath.Separator))
	kit, err = atc.Finder{Getenv: m.getenv, Which: m.which, Home: m.home, Prefix: root}.Find()
	var missing *atc.NotFoundError
	if errors.As(err, &missing) {
		looked = missing.Looked
	}
	return kit, looked, err
}

func (m machine) cann() Component {
	c := Component{Name: "CANN toolkit", NeededFor: "compiling for Ascend and running on it"}
	kit, looked, err := m.toolkit()
	if err != nil {
		return withoutCompiler(c, looked)
	}
	c.Found, c.Path, c.Version = true, kit.Root, kit.Version
	switch {
	case kit.Emulated:
		c.Name, c.Version, c.Emulated = "CANN", "emulated", true
		c.Detail = fmt.Sprintf("emulated at %s by npuctl %s: what it makes runs on no NPU", kit.Root, kit.Version)
	case !kit.IsNamed():
		c.Detail, c.Remedy = "its environment is not set", "source "+filepath.Join(kit.Root, "set_env.sh")
	}
	return c
}

// withoutCompiler is the row of a machine without an ATC: it may have CANN's runtime.
func withoutCompiler(c Component, looked []atc.Place) Component {
	for _, place := range looked {
		if place.IsToolkit {
			c.Found, c.Path, c.Version, c.Looked = true, place.Path, atc.ToolkitVersion(place.Path), nil
			c.Detail = "it has no atc: it runs models and compiles none"
			return c
		}
		c.Looked = append(c.Looked, place.String())
	}
	c.Remedy = "install the CANN toolkit from hiascend.com, or use a container image with it, and source its set_env.sh" + orEmulator
	return c
}

// orEmulator is the other remedy of a machine without CANN.
const orEmulator = `; or go without: eval "$(npuctl emulator env)" builds an emulator of it, with gcc`

// program looks for a program on the path.
func (m machine) program(c Component, name string) Component {
	path, err := m.which(name)
	if err == nil {
		c.Found, c.Path, c.Remedy = true, path, ""
		return c
	}
	c.Looked = []string{fmt.Sprintf("%s: not on the PATH", name)}
	if !errors.Is(err, exec.ErrNotFound) {
		c.Looked = []string{err.Error()}
	}
	return c
}

func (m machine) atc() Component {
	c := Component{Name: "atc", NeededFor: "compiling .onnx to .om"}
	kit, looked, err := m.toolkit()
	if err != nil {
		for _, place := range looked {
			c.Looked = append(c.Looked, place.String())
		}
		c.Remedy = "it comes with the CANN toolkit: source its set_env.sh" + orEmulator
		return c
	}
	c.Found, c.Path, c.Detail = true, kit.Program, "found by: "+kit.FoundBy
	if kit.Emulated {
		c.Emulated, c.Version, c.Detail = true, "emulated", "npuctl's emulator of it: what it makes runs on no NPU"
	}
	return c
}

// above is the folder that holds the folder of a file, or "" when that is not called so.
func above(file, folder string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if filepath.Base(filepath.Dir(file)) != folder {
		return ""
	}
	return filepath.Dir(filepath.Dir(file))
}

// ascendCL is the library that runs models. It is not opened: that would start a device.
func (m machine) ascendCL() Component {
	c := Component{Name: "AscendCL library", NeededFor: "infer of .om files"}
	paths, tried, err := m.acl()
	if err != nil {
		c.Remedy = "install CANN, or its runtime package (nnrt), and source its set_env.sh" + orEmulator
		for _, folder := range tried {
			c.Looked = append(c.Looked, folder+": no libascendcl.so in it")
		}
		return c
	}
	c.Found, c.Path = true, paths[0]
	if _, err := cannemu.ReadMarker(above(c.Path, "lib64")); err == nil {
		c.Emulated, c.Version, c.Detail = true, "emulated", "npuctl's emulator of it, on the CPU: no NPU has a part in what it gives"
	}
	if !m.cgo {
		c.Found, c.Detail, c.Remedy = false, "this npuctl was built without cgo, and opens no libraries", "build npuctl with cgo (CGO_ENABLED=1 and a C compiler)"
	}
	return c
}

func (m machine) driver() Component {
	path := m.at("usr/local/Ascend/driver/version.info")
	c := Component{Name: "Ascend driver", NeededFor: "running on an NPU", Version: atc.VersionIn(path, "version")}
	if c.Version != "" {
		c.Found, c.Path = true, path
		return c
	}
	c.Looked = []string{path + ": nothing there"}
	c.Remedy = "install the NPU driver and firmware from hiascend.com; a container needs this file mounted"
	return c
}

// isDevice says whether a name in /dev is that of a card: davinci0, but not davinci_manager.
func isDevice(name string) bool {
	number, ok := strings.CutPrefix(name, "davinci")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func (m machine) devices() Component {
	c := Component{Name: "NPU devices", NeededFor: "running on an NPU"}
	entries, _ := os.ReadDir(m.at("dev")) // without it there are no devices
	var names, closed []string
	for _, e := range entries {
		if !isDevice(e.Name()) {
			continue
		}
		names = append(names, e.Name())
		if f, err := os.OpenFile(m.at("dev/"+e.Name()), os.O_RDONLY, 0); err == nil {
			f.Close()
		} else if errors.Is(err, os.ErrPermission) {
			closed = append(closed, e.Name())
		}
	}
	if len(names) == 0 {
		c.Looked = []string{m.at("dev/davinci*") + ": nothing there"}
		c.Remedy = "on a machine with a card: check the driver; in a container: pass the devices (--device /dev/davinci0 and so on)"
		return c
	}
	c.Found, c.Path, c.Detail = true, m.at("dev"), strings.Join(names, ", ")
	if len(closed) > 0 {
		c.Detail += "; not yours to open: " + strings.Join(closed, ", ")
		c.Remedy = "add your user to the device's group (HwHiAiUser by default)"
	}
	return c
}

func (m machine) npuSMI() Component {
	return m.program(Component{Name: "npu-smi", NeededFor: "the exact name of the chip, its load and temperature", Remedy: "it comes with the NPU driver"}, "npu-smi")
}

func (m machine) triton() Component {
	c := Component{Name: "tritonserver", NeededFor: "validate --load, which has the server itself load a repository"}
	name, err := m.server()
	if err != nil {
		c.Looked = []string{err.Error()}
		var missing *fault.Error
		if errors.As(err, &missing) {
			c.Looked, c.Remedy = []string{missing.Err.Error()}, missing.Remedy
		}
		return c
	}
	c.Found, c.Path = true, name
	return c
}

// serverPatience is how long programs may take to say whether they have a Triton server.
const serverPatience = 5 * time.Second

func findServer() (name string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), serverPatience)
	defer stop()
	i, err := tritonserver.Find(ctx)
	if err != nil {
		return "", err
	}
	return i.String(), nil
}
