package om

import "strings"

// Provenance is who made a model, from what, and for which chip. Fields are empty
// where the file does not say; those of 2020 say next to nothing.
type Provenance struct {
	Model string `json:"model,omitempty"` // the graph's name
	// SoC is the chip the model was compiled for, as --soc_version has it.
	SoC        string `json:"soc,omitempty"`
	ArchType   string `json:"arch_type,omitempty"`
	TargetType string `json:"target_type,omitempty"` // MINI on every Ascend: no chip name
	// Framework is where the model came from: "ONNX".
	Framework string `json:"framework,omitempty"`
	// Tool is the version of the compiler, which is not that of CANN.
	Tool          string `json:"tool_version,omitempty"`
	Compiler      string `json:"compiler_version,omitempty"`
	Operators     string `json:"operators_version,omitempty"`
	CommandLine   string `json:"command_line,omitempty"`
	HostOS        string `json:"host_os,omitempty"`
	HostCPU       string `json:"host_cpu,omitempty"`
	CustomVersion string `json:"custom_version,omitempty"`
}

// attrCommandLine is the command that made the model.
const attrCommandLine = "atc_cmdline"

// frameworks are the numbers of --framework, which some versions store.
var frameworks = map[string]string{"0": "Caffe", "1": "MindSpore", "3": "TensorFlow", "5": "ONNX"}

func provenanceOf(m *model) Provenance {
	text := func(name string) string { t, _ := m.attributes.Text(name); return t }
	p := Provenance{
		Model: m.name, SoC: text("soc_version"), ArchType: text("arch_type"), TargetType: text("target_type"),
		Framework: text("framework_type"), Tool: text("atc_version"), Compiler: text("compiler_version"),
		Operators: text("opp_version"), CommandLine: text(attrCommandLine),
		HostOS: text("host_env_os"), HostCPU: text("host_env_cpu"), CustomVersion: m.customVersion,
	}
	if name, ok := frameworks[p.Framework]; ok {
		p.Framework = name
	}
	return p
}

// Option is an option of the command line that made a model.
type Option struct {
	Name  string `json:"name"` // without dashes
	Value string `json:"value,omitempty"`
}

// Options takes the command line apart. The file has the arguments joined by blanks,
// without quotes, so a value that holds " --" cannot be told from an option.
func (p Provenance) Options() []Option {
	var options []Option
	for i, part := range strings.Split(p.CommandLine, " --") {
		if i == 0 {
			continue // the program
		}
		name, value, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found {
			name, value, _ = strings.Cut(name, " ")
		}
		options = append(options, Option{Name: name, Value: value})
	}
	return options
}

// Needs is what loading the model takes on the device. Bytes are those that the
// compiler planned; open shapes need more while they run.
type Needs struct {
	MemoryBytes   int64 `json:"memory_bytes"` // intermediate results
	WeightBytes   int64 `json:"weight_bytes"`
	ZeroCopyBytes int64 `json:"zero_copy_bytes"` // of the memory, that of inputs and outputs
	PeerBytes     int64 `json:"peer_bytes"`      // shared with other devices
	SessionBytes  int64 `json:"session_bytes"`
	Streams       int64 `json:"streams"`
	Events        int64 `json:"events"`
	Notifies      int64 `json:"notifies"`
	Labels        int64 `json:"labels"`
}

func needsOf(a Attributes) Needs {
	return Needs{
		MemoryBytes: a.Int("memory_size"), WeightBytes: a.Int("weight_size"), ZeroCopyBytes: a.Int("zero_copy_memory_size"),
		PeerBytes: a.Int("p2p_memory_size"), SessionBytes: a.Int("session_scope_memory_size"),
		Streams: a.Int("stream_num"), Events: a.Int("event_num"), Notifies: a.Int("notify_num"), Labels: a.Int("label_num"),
	}
}

// Provenance reads where the root model comes from.
func (f *File) Provenance() (Provenance, error) {
	m, err := f.model(0)
	if err != nil {
		return Provenance{}, named(f.Name, err)
	}
	return provenanceOf(m), nil
}

// Needs reads what loading the root model takes.
func (f *File) Needs() (Needs, error) {
	m, err := f.model(0)
	if err != nil {
		return Needs{}, named(f.Name, err)
	}
	return needsOf(m.attributes), nil
}
