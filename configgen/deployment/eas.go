package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// easService is the part of a PAI-EAS service that a server of a model repository needs.
type easService struct {
	Metadata   easMetadata    `json:"metadata"`
	Containers []easContainer `json:"containers"`
	Networking *easNetworking `json:"networking,omitempty"`
	Storage    []easStorage   `json:"storage"`
}

type easMetadata struct {
	Name     string `json:"name"`
	Instance int    `json:"instance"`
	CPU      int    `json:"cpu"`
	Memory   int64  `json:"memory"` // in MB
	NPU      int    `json:"npu,omitempty"`
}

type easContainer struct {
	Image   string `json:"image"`
	Command string `json:"command"`
	Port    int    `json:"port"`
}

type easNetworking struct {
	EnableHTTP2 bool `json:"enable_http2"`
}

// easStorage is one mount: of OSS, of NFS, or of memory.
type easStorage struct {
	MountPath string       `json:"mount_path"`
	OSS       *easOSS      `json:"oss,omitempty"`
	NFS       *easNFS      `json:"nfs,omitempty"`
	EmptyDir  *easEmptyDir `json:"empty_dir,omitempty"`
}

type easOSS struct {
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly"`
}

type easNFS struct {
	Server   string `json:"server"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly"`
}

type easEmptyDir struct {
	Medium    string `json:"medium"`
	SizeLimit int    `json:"size_limit"` // in GB
}

const (
	modelsFolder = "/models"
	shmFolder    = "/dev/shm"
	serverCPUs   = 8
	// usualMemory is the host memory of a server where nobody says otherwise.
	usualMemory = 16_000_000_000
)

// command is the server's command line. Models are not loaded from the folder that it
// runs in: the GE backend writes its dumps there.
func command() []string {
	return []string{"tritonserver", "--model-repository=" + modelsFolder}
}

// EAS is the JSON with which eascmd create makes a service. Of the two ports EAS
// forwards one: 8000, or 8001 with HTTP/2 on, which gRPC needs.
func (s *Service) EAS() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	mount, err := s.easStorage()
	if err != nil {
		return nil, err
	}
	memory := max(s.MemoryBytes, usualMemory)
	service := easService{
		Metadata:   easMetadata{Name: s.label("_"), Instance: s.Replicas, CPU: serverCPUs, Memory: memory / 1_000_000},
		Containers: []easContainer{{Image: s.Image, Command: strings.Join(command(), " "), Port: s.Protocol.port()}},
		Storage:    []easStorage{mount},
	}
	if s.UsesNPU {
		service.Metadata.NPU = s.NPUs
	}
	if s.Protocol == GRPC {
		service.Networking = &easNetworking{EnableHTTP2: true}
	}
	if s.UsesPython {
		service.Storage = append(service.Storage, easStorage{MountPath: shmFolder, EmptyDir: &easEmptyDir{"memory", s.SharedMemoryGiB}})
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(service); err != nil {
		return nil, fault.New(fault.Internal, "write the service of EAS: %w", err)
	}
	return out.Bytes(), nil
}

func (s *Service) easStorage() (easStorage, error) {
	l, err := s.locate()
	mount := easStorage{MountPath: modelsFolder}
	switch {
	case err != nil:
		return mount, err
	case l.scheme == "oss":
		mount.OSS = &easOSS{Path: fmt.Sprintf("oss://%s/%s", l.host, folderPath(l.path)), ReadOnly: true}
	case l.scheme == "nfs":
		mount.NFS = &easNFS{Server: l.host, Path: "/" + l.path, ReadOnly: true}
	default:
		return mount, s.wrongStorage("EAS", "oss://bucket/path/ and nfs://server/path")
	}
	return mount, nil
}

// folderPath ends with a slash: without, EAS takes the path for a file.
func folderPath(path string) string {
	if path == "" {
		return ""
	}
	return strings.TrimSuffix(path, "/") + "/"
}
