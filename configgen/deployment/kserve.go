package deployment

// The parts of KServe's objects that a server of a model repository needs.
type (
	inferenceServiceSpec struct {
		Predictor predictor `yaml:"predictor"`
	}
	predictor struct {
		MinReplicas int       `yaml:"minReplicas"`
		MaxReplicas int       `yaml:"maxReplicas"`
		Model       modelSpec `yaml:"model"`
	}
	modelSpec struct {
		ModelFormat     modelFormat     `yaml:"modelFormat"`
		Runtime         string          `yaml:"runtime"`
		ProtocolVersion string          `yaml:"protocolVersion"`
		StorageURI      string          `yaml:"storageUri"`
		Ports           []containerPort `yaml:"ports"`
		Resources       *limits         `yaml:"resources,omitempty"`
	}
	modelFormat struct {
		Name       string `yaml:"name"`
		Version    string `yaml:"version,omitempty"`
		AutoSelect *bool  `yaml:"autoSelect,omitempty"`
	}
	servingRuntimeSpec struct {
		SupportedModelFormats []modelFormat `yaml:"supportedModelFormats"`
		ProtocolVersions      []string      `yaml:"protocolVersions"`
		Containers            []container   `yaml:"containers"`
		Volumes               []volume      `yaml:"volumes,omitempty"`
	}
)

// KServe's own: where it puts models, and the ports of its runtimes.
const (
	kserveModels   = "/mnt/models"
	kserveHTTPPort = 8080
	kserveGRPCPort = 9000
)

// KServe is an InferenceService and the ServingRuntime that it runs on, as YAML. The
// runtime that KServe brings for Triton has neither the backends nor the NPUs.
func (s *Service) KServe() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.needResource(); err != nil {
		return nil, err
	}
	l, err := s.locate()
	if err != nil {
		return nil, err
	}
	if l.scheme == "" || l.scheme == "nfs" {
		return nil, s.wrongStorage("KServe", "pvc://claim/path, and downloads from s3://, gs://, https:// and the like; OSS speaks s3://")
	}
	name, no := s.label("-"), false
	runtime := name + "-triton"
	server := container{
		Name: "kserve-container", Image: s.Image, Command: command()[:1],
		Args: []string{"--model-repository=" + kserveModels, "--http-port=8080", "--grpc-port=9000", "--allow-http=true", "--allow-grpc=true"},
		// The probe of the platform asks whether the port is open, which it is only when all
		// models are loaded; a start may take that long.
		StartupProbe: &probe{httpGet{"/v2/health/ready", kserveHTTPPort}, 10, startMinutes * 6},
	}
	pod := podSpec{Containers: []container{server}}
	s.addSharedMemory(&pod)
	port, protocol := containerPort{"http1", kserveHTTPPort, "TCP"}, "v2"
	if s.Protocol == GRPC {
		port, protocol = containerPort{"h2c", kserveGRPCPort, "TCP"}, "grpc-v2"
	}
	return s.write([]object{
		{"serving.kserve.io/v1alpha1", "ServingRuntime", metadata{Name: runtime}, servingRuntimeSpec{
			[]modelFormat{{"triton", "2", &no}}, []string{"v2", "grpc-v2"}, pod.Containers, pod.Volumes}},
		{"serving.kserve.io/v1beta1", "InferenceService", metadata{Name: name}, inferenceServiceSpec{predictor{
			s.Replicas, s.Replicas, modelSpec{modelFormat{Name: "triton", Version: "2"}, runtime, protocol, s.Storage, []containerPort{port}, s.limits()}}}},
	})
}
