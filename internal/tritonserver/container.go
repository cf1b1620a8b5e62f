package tritonserver

import (
	"context"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

// container is a server in an image.
func container(engine, image string) Installation {
	return Installation{Program: program, Engine: engine, Image: image, backends: imageBackends}
}

// enginePatience is how long docker and podman may think about a question.
const enginePatience = 10 * time.Second

// localImage gives the newest image of a Triton server that an engine has; nothing is
// pulled.
func (f finder) localImage(ctx context.Context, engine string) string {
	if _, err := f.which(engine); err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, enginePatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, engine, "images", "--format", "{{.Repository}}:{{.Tag}}").Output()
	if err != nil {
		return ""
	}
	images := slices.DeleteFunc(strings.Fields(string(out)), func(image string) bool {
		name, tag, _ := strings.Cut(path.Base(image), ":")
		// The images whose tags end in -sdk hold the clients alone.
		return name != program || tag == "<none>" || strings.HasSuffix(tag, "-sdk")
	})
	if len(images) == 0 {
		return ""
	}
	return slices.Max(images) // tags are years and months
}

// Where things of this machine stand in the container.
const (
	containerRepository = "/npuctl/models"
	containerPorts      = "8000 8001 8002" // HTTP, gRPC, metrics
)

// wrap puts a server's command into a container that goes away with it.
func (s *Server) wrap(command []string) []string {
	i := s.installation
	out := []string{i.Engine, "run", "--rm", "--init", "--name", s.name,
		"--memory", memoryText(s.options.memory()), "--shm-size", "256m",
		"--volume", s.repository + ":" + containerRepository + ":ro"}
	for _, name := range s.standIns {
		out = append(out, "--volume", path.Join(s.backendFolder(), name)+":"+path.Join(imageBackends, name)+":ro")
	}
	for n, port := range strings.Fields(containerPorts) {
		out = append(out, "--publish", s.addresses()[n]+":"+port)
	}
	return slices.Concat(out, []string{i.Image}, command)
}

// hasInImage says whether an image has a backend.
func (i Installation) hasInImage(ctx context.Context, backend string) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*enginePatience)
	defer cancel()
	return exec.CommandContext(ctx, i.Engine, "run", "--rm", "--entrypoint", "test", i.Image, "-d", path.Join(imageBackends, backend)).Run() == nil
}

// removeContainer ends a container that its engine left running.
func (s *Server) removeContainer() {
	ctx, cancel := context.WithTimeout(context.Background(), enginePatience)
	defer cancel()
	_ = exec.CommandContext(ctx, s.installation.Engine, "rm", "--force", s.name).Run() // as good when it has gone
}
