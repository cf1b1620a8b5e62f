package deployment_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/configgen/deployment"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/soc"
)

var update = flag.Bool("update", false, "write the golden files anew")

// repository makes a model repository of configs by model; names that end in .om are
// files.
func repository(t testing.TB, files map[string]string) *deployment.Repository {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := deployment.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	onNPU   = `backend: "npu_ge" parameters { key: "device_ids" value { string_value: "0,1" } }`
	onCPU   = `backend: "onnxruntime"`
	onTwo   = `backend: "npu_ge" parameters { key: "device_ids" value { string_value: "4,5" } }`
	python  = `backend: "python"`
	pairing = `platform: "ensemble"`
)

// What is written for each platform; run with -update after a change, and read the diff.
func TestGolden(t *testing.T) {
	pipeline := map[string]string{"resize/config.pbtxt": python, "clip/config.pbtxt": onNPU, "pipeline/config.pbtxt": pairing, "README.md": "not a model"}
	for _, test := range []struct {
		name    string
		files   map[string]string
		service deployment.Service
		write   func(*deployment.Service) ([]byte, error)
	}{
		{"eas_http.json", map[string]string{"resnet50/config.pbtxt": onNPU},
			deployment.Service{Name: "ResNet-50.v2", Storage: "oss://bucket/models"}, (*deployment.Service).EAS},
		{"eas_grpc_python.json", pipeline,
			deployment.Service{Name: "clip", Storage: "nfs://1-a.cn-hangzhou.nas.aliyuncs.com/models", Protocol: deployment.GRPC, Replicas: 3, SharedMemoryGiB: 4, MemoryBytes: 64e9}, (*deployment.Service).EAS},
		{"k8s.yaml", map[string]string{"resnet50/config.pbtxt": onNPU},
			deployment.Service{Name: "resnet50", Storage: "pvc://models/triton", Resource: "huawei.com/Ascend910", MemoryBytes: 32e9}, (*deployment.Service).Kubernetes},
		{"k8s_python.yaml", pipeline,
			deployment.Service{Name: "clip", Storage: "/data/models", Resource: "huawei.com/Ascend310P", Replicas: 2}, (*deployment.Service).Kubernetes},
		{"k8s_cpu.yaml", map[string]string{"net/config.pbtxt": onCPU},
			deployment.Service{Name: "50 nets", Storage: "nfs://10.0.0.1/export/models"}, (*deployment.Service).Kubernetes},
		{"kserve_http.yaml", map[string]string{"resnet50/config.pbtxt": onNPU},
			deployment.Service{Name: "resnet50", Storage: "pvc://models/triton", Resource: "huawei.com/Ascend910"}, (*deployment.Service).KServe},
		{"kserve_grpc_python.yaml", pipeline,
			deployment.Service{Name: "clip", Storage: "s3://bucket/models", Protocol: deployment.GRPC, Resource: "huawei.com/npu", Replicas: 2}, (*deployment.Service).KServe},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := test.service
			service.Repository, service.Image = repository(t, test.files), "registry.example/triton-npu:24.02"
			got, err := test.write(&service)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", test.name)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			reads(t, test.name, got)
		})
	}
}

// reads checks that a text is what its name says, and that names and selectors in it
// belong together.
func reads(t *testing.T, name string, text []byte) {
	t.Helper()
	if strings.HasSuffix(name, ".json") {
		if !json.Valid(text) {
			t.Error("no JSON")
		}
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var objects []map[string]any
	for {
		var o map[string]any
		if err := decoder.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if len(objects) != 2 {
		t.Fatalf("%d objects", len(objects))
	}
	at := func(o any, path string) any {
		for key := range strings.SplitSeq(path, ".") {
			m, _ := o.(map[string]any)
			o = m[key]
		}
		return o
	}
	if objects[0]["kind"] == "ServingRuntime" {
		if a, b := at(objects[0], "metadata.name"), at(objects[1], "spec.predictor.model.runtime"); a != b {
			t.Errorf("runtime %v, and the service asks for %v", a, b)
		}
		return
	}
	pod, service := at(objects[0], "spec.template.metadata.labels"), at(objects[1], "spec.selector")
	if d := cmp.Diff(pod, service); d != "" {
		t.Errorf("the service selects other pods\n%s", d)
	}
	if d := cmp.Diff(pod, at(objects[0], "spec.selector.matchLabels")); d != "" {
		t.Errorf("the deployment selects other pods\n%s", d)
	}
}

// A Python model with an .om runs on NPUs; one without does not.
func TestRead(t *testing.T) {
	r := repository(t, map[string]string{"a/config.pbtxt": python, "b/config.pbtxt": onCPU})
	if r.UsesNPU || !r.UsesPython || r.NPUs != 1 {
		t.Errorf("%+v", r)
	}
	r = repository(t, map[string]string{"wenet/config.pbtxt": python, "wenet/1/encoder.om": "", "other/config.pbtxt": "no config {"})
	if !r.UsesNPU || len(r.Models) != 2 {
		t.Errorf("%+v", r)
	}
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := deployment.Read(folder); fault.FamilyOf(err) != fault.Input {
			t.Errorf("%v", err)
		}
	}
}

func TestNotes(t *testing.T) {
	s := deployment.Service{Repository: repository(t, map[string]string{"a/config.pbtxt": onTwo, "b/config.pbtxt": onNPU})}
	want := []string{"a names NPU 4 in device_ids, and a container with 2 counts them from 0: write the ids that it sees, or none for all"}
	if d := cmp.Diff(want, s.Notes()); d != "" {
		t.Error(d)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name    string
		service deployment.Service
		write   func(*deployment.Service) ([]byte, error)
		want    string
	}{
		{"no image", deployment.Service{Image: "-", Storage: "pvc://a/b"}, (*deployment.Service).Kubernetes, "--image is missing"},
		{"no storage", deployment.Service{}, (*deployment.Service).EAS, "--storage is missing"},
		{"a protocol", deployment.Service{Storage: "oss://a/b", Protocol: "thrift"}, (*deployment.Service).EAS, "http or grpc"},
		{"no name for NPUs", deployment.Service{Storage: "pvc://a/b"}, (*deployment.Service).Kubernetes, "--npu-resource"},
		{"no name for NPUs in KServe", deployment.Service{Storage: "pvc://a/b"}, (*deployment.Service).KServe, "--npu-resource"},
		{"a name that is none", deployment.Service{Storage: "pvc://a/b", Resource: "Ascend910"}, (*deployment.Service).Kubernetes, "such as huawei.com/Ascend910"},
		{"OSS in Kubernetes", deployment.Service{Storage: "oss://a/b", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "Kubernetes mounts pvc://"},
		{"a claim in EAS", deployment.Service{Storage: "pvc://a/b"}, (*deployment.Service).EAS, "EAS mounts oss://"},
		{"a node's path in KServe", deployment.Service{Storage: "/models", Resource: "huawei.com/npu"}, (*deployment.Service).KServe, "KServe mounts pvc://"},
		{"a path that leads out", deployment.Service{Storage: "/models/../etc", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "a whole path"},
		{"a claim that leads out", deployment.Service{Storage: "pvc://a/../b", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "pvc://NAME/PATH"},
		{"a relative path", deployment.Service{Storage: "models", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "a whole path"},
		{"too many", deployment.Service{Storage: "oss://a/b", Replicas: 1e6}, (*deployment.Service).EAS, "--replicas"},
		{"a claim that is none", deployment.Service{Storage: "pvc://M_/a", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "no name of a claim"},
		{"a claim of dots", deployment.Service{Storage: "pvc://../x", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "pvc://NAME/PATH"},
		{"a claim of dots in KServe", deployment.Service{Storage: "pvc://.a/x", Resource: "huawei.com/npu"}, (*deployment.Service).KServe, "no name of a claim"},
		{"a server with a port", deployment.Service{Storage: "nfs://h:22/a", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "without a port"},
		{"a path with a line's end", deployment.Service{Storage: "/a\nb", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, `"/a\nb"`},
		{"a share with a bell", deployment.Service{Storage: "nfs://h/a\x07", Resource: "huawei.com/npu"}, (*deployment.Service).Kubernetes, "nfs://NAME/PATH"},
	} {
		service := test.service
		service.Repository = repository(t, map[string]string{"net/config.pbtxt": onNPU})
		if service.Name = "net"; service.Image == "" {
			service.Image = "image"
		} else {
			service.Image = ""
		}
		if _, err := test.write(&service); err == nil || !strings.Contains(err.Error(), test.want) || fault.FamilyOf(err) != fault.Usage {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Images are held against the grammar of registries.
func TestImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for image, isFit := range map[string]bool{
		"image": true, "server:1": true, "registry.example/triton-npu:24.02": true, "localhost:5000/a/b_c/d--e:v1.0-rc_1": true, "Registry.Example:443/a": true,
		"a" + digest: true, "r.example/a:1" + digest: true,
		"@": false, "-": false, "a:": false, "a b": false, "a//b": false, "/a": false, "a/": false, "A": false, "a@sha256:12": false, "a:-x": false, "a\nb": false,
		"registry.example:port/a": false, strings.Repeat("a", 2000): false,
	} {
		s := deployment.Service{Name: "net", Image: image, Storage: "oss://bucket/models", Repository: repository(t, map[string]string{"net/config.pbtxt": onCPU})}
		if _, err := s.EAS(); (err == nil) != isFit || err != nil && fault.FamilyOf(err) != fault.Usage {
			t.Errorf("%q: %v", image, err)
		}
	}
}

// A repository is told as it will be when a model is written.
func TestReadWith(t *testing.T) {
	r, err := deployment.ReadWith(filepath.Join(t.TempDir(), "none"), "net", []byte(onTwo))
	if err != nil || !r.UsesNPU || r.NPUs != 2 || len(r.Models) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"net": onTwo, "a": onCPU} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "config.pbtxt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err = deployment.ReadWith(folder, "net", []byte(onCPU)) // no longer on NPUs
	if err != nil || r.UsesNPU || r.NPUs != 1 || !slices.Equal(r.Models, []string{"a", "net"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Every family that cards are sold of has a name in the device plugin of their maker.
func TestResources(t *testing.T) {
	for family, want := range map[soc.FamilyName]string{
		soc.Family310: "huawei.com/Ascend310", soc.Family310B: "huawei.com/Ascend310", soc.Family310P: "huawei.com/Ascend310P",
		soc.Family910: "huawei.com/Ascend910", soc.Family910B: "huawei.com/Ascend910", soc.FamilyA3: "huawei.com/Ascend910",
		soc.Family950: "huawei.com/npu", soc.Family035: "",
	} {
		if got := deployment.Resource(family); got != want {
			t.Errorf("%s: %q, want %q", family, got, want)
		}
	}
}
