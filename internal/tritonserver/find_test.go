package tritonserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
)

// machine is a made-up machine: programs by name.
func machine(t *testing.T, programs map[string]string) finder {
	t.Helper()
	return finder{
		getenv: func(string) string { return "" },
		which: func(name string) (string, error) {
			if path, ok := programs[name]; ok {
				return path, nil
			}
			if strings.Contains(name, "/") {
				return name, nil
			}
			return "", errors.New("none")
		},
		home: t.TempDir(), image: filepath.Join(t.TempDir(), "none"),
	}
}

// script writes a shell script.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// wheel lays nvidia-pytriton out, and a python that tells of it.
func wheel(t *testing.T, python string) {
	t.Helper()
	packages := t.TempDir()
	server := filepath.Join(packages, "pytriton", "tritonserver", "bin", "tritonserver")
	script(t, server, "exit 0")
	if err := os.Chmod(server, 0o644); err != nil { // as pip leaves it
		t.Fatal(err)
	}
	script(t, python, fmt.Sprintf(`echo '{"packages": "%s", "version": "3.11", "library": "/usr/lib", "program": "%s"}'`, packages, python))
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T) finder
		want string
	}{
		{"on the path", func(t *testing.T) finder {
			return machine(t, map[string]string{"tritonserver": "/somewhere/tritonserver", "python3": "/none"})
		}, "/somewhere/tritonserver"},
		{"where images have it", func(t *testing.T) finder {
			f := machine(t, nil)
			script(t, f.image, "exit 0")
			return f
		}, "none"},
		{"the wheel that .ci/fetch-triton brought", func(t *testing.T) finder {
			f := machine(t, nil)
			wheel(t, filepath.Join(f.home, ".cache", "npuctl", "triton", "venv", "bin", "python3"))
			return f
		}, "pytriton/tritonserver/bin/tritonserver"},
		{"an image, the newest, and not the clients'", func(t *testing.T) finder {
			docker := script(t, filepath.Join(t.TempDir(), "docker"), `printf '%s\n' python:3 nvcr.io/nvidia/tritonserver:23.01-py3 nvcr.io/nvidia/tritonserver:24.10-py3 nvcr.io/nvidia/tritonserver:25.01-py3-sdk`)
			t.Setenv("PATH", filepath.Dir(docker)+":/bin:/usr/bin")
			return machine(t, map[string]string{"docker": docker})
		}, "docker:nvcr.io/nvidia/tritonserver:24.10-py3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if os.PathSeparator != '/' {
				t.Skip("the scripts are of the shell")
			}
			i, err := test.make(t).find(context.Background())
			if err != nil || !strings.HasSuffix(i.String(), test.want) {
				t.Errorf("%s, %v", i, err)
			}
		})
	}
	_, err := machine(t, nil).find(context.Background())
	if fault.FamilyOf(err) != fault.Missing {
		t.Errorf("a machine without a server: %v", err)
	}
}

func TestNamed(t *testing.T) {
	docker := machine(t, map[string]string{"docker": "/bin/docker"})
	if i, err := docker.named(context.Background(), "docker:triton:24.10"); err != nil || i.Image != "triton:24.10" || i.Engine != "docker" {
		t.Errorf("%+v, %v", i, err)
	}
	for _, name := range []string{"podman:triton:24.10", "nothing", filepath.Join(t.TempDir(), "python3")} {
		if _, err := docker.named(context.Background(), name); fault.FamilyOf(err) != fault.Missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server in a container sees the repository read-only, and its ports are open on the
// loopback address alone.
func TestContainerCommand(t *testing.T) {
	s := &Server{installation: container("docker", "triton:24.10"), repository: "/models", folder: "/tmp/x", name: "npuctl-1",
		HTTP: "127.0.0.1:101", GRPC: "127.0.0.1:102", Metrics: "127.0.0.1:103", standIns: []string{"npu_ge"}}
	got := strings.Join(s.command(), " ")
	for _, want := range []string{
		"docker run --rm --init --name npuctl-1 ", "--volume /models:/npuctl/models:ro ", "--publish 127.0.0.1:101:8000 ", "--publish 127.0.0.1:102:8001 ",
		"--volume /tmp/x/backends/npu_ge:/opt/tritonserver/backends/npu_ge:ro", " triton:24.10 tritonserver --model-repository=/npuctl/models ",
		"--http-address=0.0.0.0 --http-port=8000 ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}
