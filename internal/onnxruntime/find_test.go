package onnxruntime

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const amd64Machine, arm64Machine = 62, 183

// elfHeader is the start of a shared library for the given ELF machine number.
func elfHeader(machine uint16) []byte {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	return append(binary.LittleEndian.AppendUint16(header[:elfMachine], machine), make([]byte, 44)...)
}

// tree makes files below a new folder and returns it. The content is the header of
// a library for amd64, unless the name ends in " (arm64)" or " (text)".
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range files {
		content := elfHeader(amd64Machine)
		if name, ok := strings.CutSuffix(file, " (arm64)"); ok {
			file, content = name, elfHeader(arm64Machine)
		}
		if name, ok := strings.CutSuffix(file, " (text)"); ok {
			file, content = name, []byte("INPUT(libsomething.so)")
		}
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// machine is a Linux machine on amd64 whose file system is root.
func machine(root string, environment map[string]string) *search {
	return &search{
		system: "linux", processor: "amd64", root: root,
		home:   filepath.Join(root, "home"),
		getenv: func(name string) string { return environment[name] },
	}
}

func TestFindTakesTheBestPlace(t *testing.T) {
	const (
		cache  = "home/.cache/npuctl/onnxruntime/libonnxruntime.so.1.24.3"
		system = "usr/lib/x86_64-linux-gnu/libonnxruntime.so.1.21"
		venv   = "venv/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.22.0"
		user   = "home/.local/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.1"
		pyenv  = "home/.pyenv/versions/3.13.1/lib/python3.13/site-packages/onnxruntime/capi/libonnxruntime.so.1.32.0"
		node   = "usr/local/lib/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"
	)
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"cache before all", []string{node, user, system, cache}, cache},
		{"system before Python", []string{node, user, system}, system},
		{"virtual environment before the user's", []string{user, venv}, venv},
		{"user's before pyenv's", []string{pyenv, user}, user},
		{"pyenv", []string{node, pyenv}, pyenv},
		{"node_modules of the system", []string{node}, node},
		{"newest of one place", []string{"usr/lib/libonnxruntime.so.1.9.0", "usr/lib/libonnxruntime.so.1.20.0", "usr/lib/libonnxruntime.so.1.19.2"}, "usr/lib/libonnxruntime.so.1.20.0"},
		{"a name without a release", []string{"usr/local/lib/libonnxruntime.so"}, "usr/local/lib/libonnxruntime.so"},
		{"another processor is passed over", []string{cache + " (arm64)", user}, user},
		{"an old release is passed over", []string{"usr/lib/libonnxruntime.so.1.16.3", node}, node},
		{"a linker script is passed over", []string{"usr/lib/libonnxruntime.so (text)", node}, node},
		{"other libraries of ONNX Runtime are not it", []string{filepath.Join(filepath.Dir(venv), "libonnxruntime_providers_shared.so"), node}, node},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := tree(t, test.files...)
			got, _, err := machine(root, map[string]string{"VIRTUAL_ENV": filepath.Join(root, "venv")}).find("")
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(root, test.want); got != want {
				t.Errorf("found %s, want %s", got, want)
			}
		})
	}
}

// A library runs code when it is opened: one that came with a downloaded model,
// into the working directory or above it, must not be found by itself.
func TestFindDoesNotLookAroundTheWorkingDirectory(t *testing.T) {
	const below = "onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"
	root := tree(t, "work/project/node_modules/"+below, "work/node_modules/"+below, "modules/"+below)
	t.Chdir(filepath.Join(root, "work/project"))
	for _, nodePath := range []string{"", "node_modules", "../node_modules"} {
		if path, _, err := machine(root, map[string]string{"NODE_PATH": nodePath}).find(""); err == nil {
			t.Errorf("NODE_PATH=%q: found %s", nodePath, path)
		}
	}
	path, _, err := machine(root, map[string]string{"NODE_PATH": filepath.Join(root, "modules")}).find("")
	if want := filepath.Join(root, "modules", below); err != nil || path != want {
		t.Errorf("found %q, %v; want %q", path, err, want)
	}
}

func TestFindTellsWhatItLookedAt(t *testing.T) {
	root := tree(t, "home/.cache/npuctl/onnxruntime/libonnxruntime.so.1.24.3 (arm64)", "usr/lib/libonnxruntime.so.1.10.0", "usr/lib/libonnxruntime.so (text)")
	path, tried, err := machine(root, nil).find("")
	if err == nil {
		t.Fatalf("found %s", path)
	}
	for _, want := range []string{
		"libonnxruntime.so.1.24.3: it is made for the processor arm64, this machine is amd64",
		"libonnxruntime.so.1.10.0: it is version 1.10, which is too old: 1.17 or newer is needed",
		"usr/lib/libonnxruntime.so: it is not a shared library",
		filepath.Join(root, "usr/local/lib/libonnxruntime.so*") + ": nothing there",
		filepath.Join(root, "usr/lib/node_modules/onnxruntime-node/bin/napi-v*/linux/x64/libonnxruntime.so*") + ": nothing there",
	} {
		if !slices.ContainsFunc(tried, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is not among the places looked at:\n%s", want, strings.Join(tried, "\n"))
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
	if !strings.Contains(err.Error(), Remedy) {
		t.Errorf("the error has no remedy: %v", err)
	}
}

func TestFindObeysTheUser(t *testing.T) {
	root := tree(t, "mine/libonnxruntime.so.1.24.3", "mine/renamed", "home/.cache/npuctl/onnxruntime/libonnxruntime.so.1.30.0", "empty/other.so")
	tests := []struct {
		name, flag, variable string
		want, wantError      string
	}{
		{name: "flag with a file of any name", flag: "mine/renamed", want: "mine/renamed"},
		{name: "flag with a folder", flag: "mine", want: "mine/libonnxruntime.so.1.24.3"},
		{name: "flag before the variable", flag: "mine/renamed", variable: "mine", want: "mine/renamed"},
		{name: "variable before the cache", variable: "mine", want: "mine/libonnxruntime.so.1.24.3"},
		{name: "a wrong flag is not forgiven", flag: "gone.so", wantError: "that the flag names: ROOT/gone.so: no such file"},
		{name: "nor a wrong variable", variable: "gone.so", wantError: "that NPUCTL_ORT_LIB names: ROOT/gone.so: no such file"},
		{name: "nor a folder without it", variable: "empty", wantError: "ROOT/empty/libonnxruntime.so*: nothing there"},
	}
	at := func(path string) string {
		if path == "" {
			return ""
		}
		return filepath.Join(root, path)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, _, err := machine(root, map[string]string{EnvironmentVariable: at(test.variable)}).find(at(test.flag))
			if want := strings.ReplaceAll(test.wantError, "ROOT", root); want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("error %v, want %q in it", err, want)
				}
				return
			}
			if err != nil || path != at(test.want) {
				t.Fatalf("found %q, %v; want %q", path, err, at(test.want))
			}
		})
	}
}

func TestFindInAFolderWithPatternCharacters(t *testing.T) {
	root := tree(t, "odd [a-z]* dir/libonnxruntime.so.1.24.3")
	folder := filepath.Join(root, "odd [a-z]* dir")
	path, tried, err := machine(root, nil).find(folder)
	if err != nil || filepath.Dir(path) != folder {
		t.Fatalf("found %q, %v (%q)", path, err, tried)
	}
}

func TestAPIVersion(t *testing.T) {
	for version, want := range map[string]int{"1.17.0": 17, "1.24.3": 24, "1.32.0-dev": 32, "1.100": 100} {
		if got, err := apiVersion(version); err != nil || got != want {
			t.Errorf("apiVersion(%q) = %d, %v; want %d", version, got, err, want)
		}
	}
	for _, version := range []string{"", "1", "1.16.3", "0.20.0", "2.0.0", "one.two", "1.-20", "-1.20"} {
		if got, err := apiVersion(version); err == nil {
			t.Errorf("apiVersion(%q) = %d, want an error", version, got)
		}
	}
}

// Version strings come out of a library that may be anything.
func FuzzAPIVersion(f *testing.F) {
	for _, seed := range []string{"1.24.3", "1.17", "2.0.0", "1.16.3", "", "1.99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		minor, err := apiVersion(version)
		if err == nil && minor < oldestMinor {
			t.Errorf("apiVersion(%q) = %d, which is too old", version, minor)
		}
		if err == nil && !strings.HasPrefix(strings.TrimLeft(version, "0"), "1.") {
			t.Errorf("apiVersion(%q) takes it for release 1", version)
		}
	})
}
