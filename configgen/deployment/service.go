package deployment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/soc"
)

// Repository is what a cluster must know of a model repository.
type Repository struct {
	// Models are the names of its models, sorted.
	Models []string
	// UsesNPU says whether any of them runs on NPUs, UsesPython whether one runs in the
	// Python backend, whose processes share memory with the server.
	UsesNPU, UsesPython bool
	// NPUs is the largest number of NPUs that a config names; 1 where none does.
	NPUs int
	// devices are the ids that configs name, by model.
	devices map[string][]int
}

// Bounds of what is read of a repository.
const (
	mostModels    = 10000
	largestConfig = 4 << 20
)

// Read looks at a repository. Folders without a readable config count as models that
// nothing is known of.
func Read(folder string) (*Repository, error) { return ReadWith(folder, "", nil) }

// ReadWith looks at a repository as it will be when a model has this config. With the
// name "" it is as [Read]; else the folder need not be there yet.
func ReadWith(folder, name string, config []byte) (*Repository, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && (name == "" || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fault.New(fault.Input, "read the repository: %w", err)
	}
	r := &Repository{NPUs: 1, devices: map[string][]int{}}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if e.Name() == name {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if r.Models = append(r.Models, e.Name()); len(r.Models) > mostModels {
			return nil, fault.New(fault.Input, "%s holds more than %d models", folder, mostModels)
		}
		r.add(e.Name(), path)
	}
	if name != "" {
		r.Models = append(r.Models, name)
		r.addConfig(name, filepath.Join(folder, name), config)
		slices.Sort(r.Models)
	}
	if len(r.Models) == 0 {
		return nil, fault.New(fault.Input, "%s holds no models", folder)
	}
	return r, nil
}

// add notes what the config of a model says.
func (r *Repository) add(name, folder string) {
	path := filepath.Join(folder, "config.pbtxt")
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestConfig {
		return
	}
	if data, err := os.ReadFile(path); err == nil {
		r.addConfig(name, folder, data)
	}
}

func (r *Repository) addConfig(name, folder string, data []byte) {
	doc, err := configgen.ParseLenient(filepath.Join(folder, "config.pbtxt"), data)
	if err != nil {
		return // validate tells of it
	}
	c := doc.Config()
	switch c.Backend {
	case "npu_ge":
		r.UsesNPU = true
	case "python":
		r.UsesPython = true
		r.UsesNPU = r.UsesNPU || hasCompiled(folder)
	}
	value, _ := c.Parameter("device_ids")
	for word := range strings.SplitSeq(value, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && n >= 0 {
			r.devices[name] = append(r.devices[name], n)
		}
	}
	r.NPUs = max(r.NPUs, len(r.devices[name]))
}

// hasCompiled says whether a version of a model is a compiled one. What cannot be read
// holds none that could be served.
func hasCompiled(folder string) bool {
	versions, _ := os.ReadDir(folder)
	for _, v := range versions {
		files, _ := os.ReadDir(filepath.Join(folder, v.Name()))
		if slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasSuffix(f.Name(), ".om") }) {
			return true
		}
	}
	return false
}

// Protocol is what clients speak.
type Protocol string

// The protocols.
const (
	HTTP Protocol = "http"
	GRPC Protocol = "grpc"
)

// The ports of the server.
const (
	httpPort    = 8000
	grpcPort    = 8001
	metricsPort = 8002
)

func (p Protocol) port() int {
	if p == GRPC {
		return grpcPort
	}
	return httpPort
}

// Service is a server that serves a repository in a cluster.
type Service struct {
	*Repository
	// Name is the service's; characters that a platform does not take are replaced.
	Name string
	// Protocol is what clients speak; "" is HTTP.
	Protocol Protocol
	// Image is the container image that holds the server and its backends.
	Image string
	// Storage is where the repository lies for the cluster: oss://bucket/path/,
	// nfs://server/path, pvc://claim/path, a path on the node, and for KServe whatever
	// URI it downloads from.
	Storage string
	// Resource is the name by which pods ask for NPUs; needed where models use them.
	Resource string
	// Replicas is how many servers run; 0 is 1.
	Replicas int
	// SharedMemoryGiB is what the Python backend gets; 0 is 1.
	SharedMemoryGiB int
	// MemoryBytes is the host memory of one server; 0 leaves it to the platform, and 16 GB
	// to EAS, which wants a number.
	MemoryBytes int64
}

// resources are the names of Huawei's device plugin. It calls the first generation and
// everything named 910 alike; newer chips are just NPUs.
var resources = map[soc.FamilyName]string{
	soc.Family310: "huawei.com/Ascend310", soc.Family310B: "huawei.com/Ascend310",
	soc.Family310P: "huawei.com/Ascend310P",
	soc.Family910:  "huawei.com/Ascend910", soc.Family910B: "huawei.com/Ascend910", soc.FamilyA3: "huawei.com/Ascend910",
	soc.Family950: "huawei.com/npu",
}

// Resource is the name by which Huawei's device plugin offers chips of a family; "" for
// those that it does not know.
func Resource(family soc.FamilyName) string { return resources[family] }

// qualifiedName is Kubernetes' grammar of a resource's name.
var qualifiedName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// Bounds of what can be meant.
const (
	mostReplicas     = 1000
	mostSharedMemory = 1024
)

// check refuses what no platform takes, and fills in defaults.
func (s *Service) check() error {
	if s.Protocol == "" {
		s.Protocol = HTTP
	}
	switch {
	case s.Protocol != HTTP && s.Protocol != GRPC:
		return fault.New(fault.Usage, "--protocol %s: give http or grpc", s.Protocol)
	case s.Image == "":
		return fault.New(fault.Usage, "--image is missing: the container image that holds tritonserver and its backends")
	case len(s.Image) > longestImage || !imageName.MatchString(s.Image):
		return fault.New(fault.Usage, "--image %s: it is no name of an image", quoted(s.Image)).With("give one such as registry.example:5000/triton-npu:24.02, or NAME@sha256:…")
	case s.Storage == "":
		return fault.New(fault.Usage, "--storage is missing: where the repository lies for the cluster, as oss://bucket/models/ or pvc://claim/models")
	case s.Replicas < 0 || s.Replicas > mostReplicas:
		return fault.New(fault.Usage, "--replicas %d: give 1 to %d", s.Replicas, mostReplicas)
	case s.SharedMemoryGiB < 0 || s.SharedMemoryGiB > mostSharedMemory:
		return fault.New(fault.Usage, "--shared-memory %d: give 1 to %d, in GiB", s.SharedMemoryGiB, mostSharedMemory)
	case s.Resource != "" && !qualifiedName.MatchString(s.Resource):
		return fault.New(fault.Usage, "--npu-resource %s: give a name such as huawei.com/Ascend910", s.Resource)
	}
	s.Replicas = max(1, s.Replicas)
	s.SharedMemoryGiB = max(1, s.SharedMemoryGiB)
	return nil
}

// needResource refuses a service whose pods could not ask for NPUs.
func (s *Service) needResource() error {
	if s.UsesNPU && s.Resource == "" {
		return fault.New(fault.Usage, "nothing says by which name pods ask for NPUs").
			With("give the chip with --soc, or the name that kubectl describe node shows with --npu-resource")
	}
	return nil
}

// Notes tell what of the repository's configs does not go with a container.
func (s *Service) Notes() (out []string) {
	if !s.UsesNPU {
		return nil
	}
	for _, model := range s.Models {
		if i := slices.IndexFunc(s.devices[model], func(id int) bool { return id >= s.NPUs }); i >= 0 {
			out = append(out, fmt.Sprintf("%s names NPU %d in device_ids, and a container with %d counts them from 0: write the ids that it sees, or none for all", model, s.devices[model][i], s.NPUs))
		}
	}
	return out
}

// location is a Storage that was read.
type location struct{ scheme, host, path string }

// locate reads the storage: a URI, or a path on the node.
func (s *Service) locate() (l location, err error) {
	scheme, rest, isURI := strings.Cut(s.Storage, "://")
	if !isURI {
		if !strings.HasPrefix(s.Storage, "/") || !isPath(s.Storage) || slices.Contains(strings.Split(s.Storage, "/"), "..") {
			return l, fault.New(fault.Usage, "--storage %s: give a whole path on the node, or a URI such as pvc://claim/models", quoted(s.Storage))
		}
		return location{path: s.Storage}, nil
	}
	l.scheme = scheme
	l.host, l.path, _ = strings.Cut(rest, "/")
	if l.host == "" || !isPath(rest) || strings.ContainsAny(rest, " \"'") || slices.Contains(strings.Split(rest, "/"), "..") {
		return l, fault.New(fault.Usage, "--storage %s: give %s://NAME/PATH", quoted(s.Storage), visible(scheme))
	}
	return l, s.checkHost(l)
}

// checkHost holds the first part of a URI against what Kubernetes takes there.
func (s *Service) checkHost(l location) error {
	switch {
	case l.scheme == "pvc" && (len(l.host) > 253 || !claimName.MatchString(l.host)):
		return fault.New(fault.Usage, "--storage %s: %q is no name of a claim: use a-z 0-9 - and dots, with a letter or digit at both ends", s.Storage, l.host)
	case l.scheme == "nfs" && (len(l.host) > 253 || !serverName.MatchString(l.host)):
		return fault.New(fault.Usage, "--storage %s: %q is no server: give a name or an address without a port", s.Storage, l.host)
	}
	return nil
}

// The grammars of Kubernetes and of container registries.
var (
	claimName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	serverName = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:.]+\])$`)
	imageName  = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]{1,5})?/)?` + // the registry
		`[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*` + // the path
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z0-9]+:[0-9A-Fa-f]{32,})?$`) // tag and digest
)

// longestImage bounds the name of an image.
const longestImage = 1024

// isPath says whether a text has nothing in it that no path has.
func isPath(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) || r == '\\' })
}

// quoted is a text that may hold anything, for a message.
func quoted(text string) string {
	if visible(text) == text && text != "" {
		return text
	}
	return strconv.Quote(text)
}

func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// wrongStorage is the failure of a storage that a platform does not mount.
func (s *Service) wrongStorage(platform, takes string) error {
	return fault.New(fault.Usage, "--storage %s: %s mounts %s", s.Storage, platform, takes)
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// label is the name with only what Kubernetes takes in names.
func (s *Service) label(separator string) string {
	name := strings.Trim(unfit.ReplaceAllString(strings.ToLower(s.Name), separator), separator)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.Trim("model"+separator+name, separator)
	}
	return strings.Trim(name[:min(len(name), 40)], separator)
}
