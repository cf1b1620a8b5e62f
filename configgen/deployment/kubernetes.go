package deployment

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
)

// The parts of Kubernetes' objects that a server of a model repository needs, in the
// order in which people write them.
type (
	object struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       any      `yaml:"spec"`
	}
	metadata struct {
		Name   string            `yaml:"name,omitempty"`
		Labels map[string]string `yaml:"labels,omitempty"`
	}
	deploymentSpec struct {
		Replicas int         `yaml:"replicas"`
		Selector selector    `yaml:"selector"`
		Template podTemplate `yaml:"template"`
	}
	selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	podTemplate struct {
		Metadata metadata `yaml:"metadata"`
		Spec     podSpec  `yaml:"spec"`
	}
	podSpec struct {
		Containers []container `yaml:"containers"`
		Volumes    []volume    `yaml:"volumes,omitempty"`
	}
	container struct {
		Name           string          `yaml:"name"`
		Image          string          `yaml:"image"`
		Command        []string        `yaml:"command,omitempty"`
		Args           []string        `yaml:"args,omitempty"`
		Ports          []containerPort `yaml:"ports,omitempty"`
		Resources      *limits         `yaml:"resources,omitempty"`
		StartupProbe   *probe          `yaml:"startupProbe,omitempty"`
		ReadinessProbe *probe          `yaml:"readinessProbe,omitempty"`
		LivenessProbe  *probe          `yaml:"livenessProbe,omitempty"`
		VolumeMounts   []volumeMount   `yaml:"volumeMounts,omitempty"`
	}
	containerPort struct {
		Name          string `yaml:"name,omitempty"`
		ContainerPort int    `yaml:"containerPort"`
		Protocol      string `yaml:"protocol,omitempty"`
	}
	limits struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	}
	probe struct {
		HTTPGet          httpGet `yaml:"httpGet"`
		PeriodSeconds    int     `yaml:"periodSeconds"`
		FailureThreshold int     `yaml:"failureThreshold,omitempty"`
	}
	httpGet struct {
		Path string `yaml:"path"`
		Port any    `yaml:"port"` // a number, or the name of one of the container's
	}
	volumeMount struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		SubPath   string `yaml:"subPath,omitempty"`
		ReadOnly  bool   `yaml:"readOnly,omitempty"`
	}
	volume struct {
		Name     string    `yaml:"name"`
		Claim    *claim    `yaml:"persistentVolumeClaim,omitempty"`
		NFS      *nfs      `yaml:"nfs,omitempty"`
		HostPath *hostPath `yaml:"hostPath,omitempty"`
		EmptyDir *emptyDir `yaml:"emptyDir,omitempty"`
	}
	claim struct {
		ClaimName string `yaml:"claimName"`
		ReadOnly  bool   `yaml:"readOnly"`
	}
	nfs struct {
		Server   string `yaml:"server"`
		Path     string `yaml:"path"`
		ReadOnly bool   `yaml:"readOnly"`
	}
	hostPath struct {
		Path string `yaml:"path"`
		Type string `yaml:"type"`
	}
	emptyDir struct {
		Medium    string `yaml:"medium"`
		SizeLimit string `yaml:"sizeLimit"`
	}
	serviceSpec struct {
		Selector map[string]string `yaml:"selector"`
		Ports    []servicePort     `yaml:"ports"`
	}
	servicePort struct {
		Name       string `yaml:"name"`
		Port       int    `yaml:"port"`
		TargetPort string `yaml:"targetPort"`
		Protocol   string `yaml:"appProtocol,omitempty"`
	}
)

// startMinutes is how long a server may take before it is ready: GE compiles the graph
// of each stream anew whenever it starts.
const startMinutes = 30

// Kubernetes is a Deployment and a Service, as YAML.
func (s *Service) Kubernetes() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.needResource(); err != nil {
		return nil, err
	}
	models, mount, err := s.modelVolume()
	if err != nil {
		return nil, err
	}
	name := s.label("-")
	labels := map[string]string{"app": name}
	server := container{
		Name: "tritonserver", Image: s.Image, Command: command()[:1], Args: command()[1:],
		Ports:     []containerPort{{"http", httpPort, ""}, {"grpc", grpcPort, ""}, {"metrics", metricsPort, ""}},
		Resources: s.limits(),
		// Only the first probe knows how long a start takes: the others begin after it.
		StartupProbe:   &probe{httpGet{"/v2/health/ready", "http"}, 10, startMinutes * 6},
		ReadinessProbe: &probe{httpGet{"/v2/health/ready", "http"}, 5, 0},
		LivenessProbe:  &probe{httpGet{"/v2/health/live", "http"}, 10, 6},
		VolumeMounts:   []volumeMount{mount},
	}
	pod := podSpec{Containers: []container{server}, Volumes: []volume{models}}
	s.addSharedMemory(&pod)
	objects := []object{
		{"apps/v1", "Deployment", metadata{name, labels}, deploymentSpec{s.Replicas, selector{labels}, podTemplate{metadata{"", labels}, pod}}},
		{"v1", "Service", metadata{name, labels}, serviceSpec{labels, []servicePort{
			{"http", httpPort, "http", ""}, {"grpc", grpcPort, "grpc", "grpc"}, {"metrics", metricsPort, "metrics", ""}}}},
	}
	return s.write(objects)
}

// limits are the resources of the server's container; NPUs are asked for as a whole.
func (s *Service) limits() *limits {
	amounts := map[string]string{}
	if s.UsesNPU {
		amounts[s.Resource] = strconv.Itoa(s.NPUs)
	}
	if s.MemoryBytes > 0 {
		amounts["memory"] = fmt.Sprintf("%dMi", (s.MemoryBytes+1<<20-1)>>20)
	}
	if len(amounts) == 0 {
		return nil
	}
	return &limits{Requests: amounts, Limits: amounts}
}

// addSharedMemory gives a pod what the processes of the Python backend share; Docker's
// own 64 MB are too little.
func (s *Service) addSharedMemory(pod *podSpec) {
	if !s.UsesPython {
		return
	}
	pod.Volumes = append(pod.Volumes, volume{Name: "shared-memory", EmptyDir: &emptyDir{"Memory", fmt.Sprintf("%dGi", s.SharedMemoryGiB)}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, volumeMount{Name: "shared-memory", MountPath: shmFolder})
}

// modelVolume is the volume of the repository and where it is mounted.
func (s *Service) modelVolume() (volume, volumeMount, error) {
	v, mount := volume{Name: "models"}, volumeMount{Name: "models", MountPath: modelsFolder, ReadOnly: true}
	l, err := s.locate()
	if err != nil {
		return v, mount, err
	}
	switch l.scheme {
	case "pvc":
		v.Claim = &claim{l.host, true}
		mount.SubPath = strings.Trim(l.path, "/")
	case "nfs":
		v.NFS = &nfs{l.host, "/" + l.path, true}
	case "":
		v.HostPath = &hostPath{l.path, "Directory"}
	default:
		return v, mount, s.wrongStorage("Kubernetes", "pvc://claim/path, nfs://server/path and /path/on/the/node")
	}
	return v, mount, nil
}

// write gives the objects as documents of one file, with what one must know above.
func (s *Service) write(objects []object) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Made by npuctl config. Models: %s.\n", strings.Join(shown(s.Models), ", "))
	if s.UsesNPU {
		fmt.Fprintf(&out, "# %s: the name is that of the cluster's device plugin; kubectl describe node shows it.\n", s.Resource)
		fmt.Fprintf(&out, "# The driver's files come into the container by the Ascend Docker runtime of the node.\n")
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, o := range objects {
		if err := encoder.Encode(o); err != nil {
			return nil, fault.New(fault.Internal, "write the %s: %w", o.Kind, err)
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, fault.New(fault.Internal, "write the objects: %w", err)
	}
	return out.Bytes(), nil
}

// shown are names fit for a comment, not too many of them.
func shown(names []string) []string {
	const most = 8
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, visible(n))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return out
}
