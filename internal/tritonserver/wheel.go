package tritonserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// wheelQuestion asks a Python where it keeps nvidia-pytriton, and its own library, which
// the Python backend links. Nothing of the package is imported.
const wheelQuestion = `import importlib.util, json, os, sys, sysconfig
found = importlib.util.find_spec("pytriton")
print(json.dumps({"packages": os.path.dirname(os.path.dirname(found.origin)) if found and found.origin else "",
    "version": "%d.%d" % sys.version_info[:2], "library": sysconfig.get_config_var("LIBDIR") or "", "program": sys.executable}))`

// wheelAnswer is what it says.
type wheelAnswer struct {
	Packages string `json:"packages"`
	Version  string `json:"version"`
	Library  string `json:"library"`
	Program  string `json:"program"`
}

// wheelPatience is how long a Python may think.
const wheelPatience = 20 * time.Second

// wheelOf gives the server of a Python's nvidia-pytriton.
func wheelOf(ctx context.Context, python string) (Installation, error) {
	ctx, cancel := context.WithTimeout(ctx, wheelPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", wheelQuestion)
	cmd.Dir = "/" // a folder called pytriton where the user stands is not it
	out, err := cmd.Output()
	if err != nil {
		return Installation{}, fmt.Errorf("ask %s for nvidia-pytriton: %w", python, err)
	}
	var a wheelAnswer
	if err := json.Unmarshal(out, &a); err != nil {
		return Installation{}, fmt.Errorf("ask %s for nvidia-pytriton: %w", python, err)
	}
	home := filepath.Join(a.Packages, "pytriton", program)
	server := filepath.Join(home, "bin", program)
	if a.Packages == "" || !isFile(server) {
		return Installation{}, fmt.Errorf("%s has no nvidia-pytriton", python)
	}
	if err := makeExecutable(server); err != nil {
		return Installation{}, err
	}
	return Installation{
		Program: server, backends: filepath.Join(home, "backends"), caches: filepath.Join(home, "caches"),
		python: filepath.Dir(a.Program), version: a.Version,
		library: []string{filepath.Join(a.Packages, "nvidia_pytriton.libs"), a.Library},
	}, nil
}

// makeExecutable mends what pip does not always keep.
func makeExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 != 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode()|0o111); err != nil {
		return fmt.Errorf("make the server executable: %w", err)
	}
	return nil
}

// addPythonBackend lays the wheel's Python backend out in a folder of backends, with
// the program that runs models, which has to fit the interpreter's version. Without one
// of that version Python models do not load, as with the wheel itself.
func (i Installation) addPythonBackend(folder string) error {
	target := filepath.Join(folder, "python")
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	source := filepath.Join(i.backends, "python")
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil // a wheel without the backend
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(source, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	const stub = "triton_python_backend_stub"
	stubs, err := filepath.Glob(filepath.Join(filepath.Dir(i.backends), "python_backend_stubs", i.version, stub))
	if err != nil || len(stubs) == 0 {
		return err
	}
	if err := makeExecutable(stubs[0]); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(target, stub)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(stubs[0], filepath.Join(target, stub))
}
