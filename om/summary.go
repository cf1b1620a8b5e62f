package om

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Summary is everything about a file as plain data. Its JSON form is the contract of
// `npuctl inspect --json`: fields are added, never renamed.
type Summary struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Kind  Kind   `json:"kind"`
	// Statement says what the file is when it is no plain .om.
	Statement string `json:"statement,omitempty"`
	// Emulated is set when npuctl's own emulator wrote the file: it holds no code for
	// a chip.
	Emulated bool `json:"emulated"`

	Name          string `json:"name"`           // in the header
	FormatVersion string `json:"format_version"` // "0x20000000"
	ModelType     int    `json:"model_type"`
	Platform      string `json:"platform"`
	Table         string `json:"table"` // "wide" or "tiny"
	Models        int    `json:"models"`
	Dynamic       bool   `json:"dynamic"` // shapes are open until the model runs
	Encrypted     bool   `json:"encrypted"`
	NeedsHost     bool   `json:"needs_host"` // runs only with the host that provenance names

	SoC         string     `json:"soc"` // of an OM2 package, what its command line says
	ToolVersion string     `json:"tool_version"`
	CommandLine string     `json:"command_line"`
	Provenance  Provenance `json:"provenance"`

	Inputs      []Tensor     `json:"inputs"`
	Outputs     []Tensor     `json:"outputs"`
	Hidden      []Tensor     `json:"hidden_inputs,omitempty"`
	Gears       *Gears       `json:"gears"` // null for a model without
	GearOutputs []GearOutput `json:"gear_outputs,omitempty"`
	// SignatureFrom is the partition that the signature was read from, or, of an OM2
	// package, the file in it; empty when there is none that can be read.
	SignatureFrom string `json:"signature_from"`

	Needs Needs `json:"needs"`
	// PartitionBytes is what the compiler noted of partition sizes: weights, kernels,
	// AI CPU kernels, tasks and, in newer files, host libraries.
	PartitionBytes []int64       `json:"partition_bytes,omitempty"`
	Partitions     []SummaryPart `json:"partitions"`

	// Graphs and Operators count those of the root model; OperatorTypes says how
	// often each type occurs.
	Graphs        int            `json:"graphs"`
	Operators     int            `json:"operators"`
	OperatorTypes map[string]int `json:"operator_types"`
	Kernels       []KernelCount  `json:"kernels"`

	// Remarks are what is odd about the file, or could not be read.
	Remarks []string `json:"remarks,omitempty"`
}

// SummaryPart is one partition.
type SummaryPart struct {
	Model  int    `json:"model"`
	Type   uint32 `json:"type"`
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
}

const (
	// maxOperatorTypes is far more than GE has; others are counted together.
	maxOperatorTypes = 4096
	// maxNamedOperators is of how many operators the type is kept by name.
	maxNamedOperators = 1 << 17
)

// others counts together what is beyond maxOperatorTypes.
const others = "(others)"

// Summary reads everything. A part that cannot be read is told among the remarks,
// except for the signature of an .om, without which there is nothing to say.
func (f *File) Summary() (Summary, error) {
	s := f.outline()
	if f.Kind == KindOM2 {
		f.addPackage(&s)
		return s, nil
	}
	if f.Header.Encrypted {
		return s, nil
	}
	if err := f.addSignature(&s); err != nil {
		if f.Kind == KindOM {
			return Summary{}, err
		}
		s.remark("signature", err)
	}
	if _, ok := f.Partition(0, ModelDef); !ok {
		return s, nil
	}
	if err := f.addModel(&s); err != nil {
		s.remark("provenance", err)
		return s, nil
	}
	names, err := f.addOperators(&s)
	if err != nil {
		s.remark("operators", err)
	}
	if err := f.addKernels(&s, names); err != nil {
		s.remark("kernels", err)
	}
	return s, nil
}

func (s *Summary) remark(what string, err error) {
	s.Remarks = append(s.Remarks, fmt.Sprintf("%s could not be read: %v", what, err))
}

// outline is what header and tables say.
func (f *File) outline() Summary {
	h := f.Header
	s := Summary{
		File: f.Name, Bytes: f.size, Kind: f.Kind, Statement: f.Kind.Statement(),
		Name: h.Name, ModelType: int(h.Type), Platform: h.Platform, Models: int(h.ModelNum),
		Dynamic: h.Dynamic, Encrypted: h.Encrypted, NeedsHost: h.NeedsHost,
		Inputs: []Tensor{}, Outputs: []Tensor{}, Partitions: []SummaryPart{}, OperatorTypes: map[string]int{}, Kernels: []KernelCount{},
		Remarks: slices.Clone(f.remarks),
	}
	if f.Package != nil {
		s.Models, s.CommandLine, s.FormatVersion = f.Package.Models, f.Package.CommandLine, f.Package.Version
		s.Emulated, s.Provenance.CommandLine = f.Package.Emulated, s.CommandLine
		for _, o := range s.Provenance.Options() {
			if o.Name == "soc_version" {
				s.SoC, s.Provenance.SoC = o.Value, o.Value
			}
		}
		return s
	}
	s.FormatVersion, s.Table = h.VersionText(), "tiny"
	if h.Wide {
		s.Table = "wide"
	}
	for _, p := range f.partitions {
		s.Partitions = append(s.Partitions, SummaryPart{Model: p.Model, Type: uint32(p.Type), Name: p.Type.String(), Offset: p.Offset, Bytes: p.Bytes})
		s.Emulated = s.Emulated || p.Type == EmulatedModel
	}
	return s
}

// addPackage reads the description of the first model of an OM2 package.
func (f *File) addPackage(s *Summary) {
	meta, err := f.readMeta()
	if err == nil {
		s.Name, s.Provenance.Model = meta.Name, meta.Name
		s.Needs.MemoryBytes, s.Needs.ZeroCopyBytes = meta.WorkBytes, meta.ZeroCopyBytes
		err = f.addSignature(s)
	}
	if err != nil {
		s.remark("signature", err)
	}
	if f.Package.Models > 1 {
		s.Remarks = append(s.Remarks, fmt.Sprintf("inputs and outputs are those of the first of %d models", f.Package.Models))
	}
}

func (f *File) addSignature(s *Summary) error {
	signature, err := f.Signature()
	if err != nil {
		return err
	}
	s.Inputs = append(s.Inputs, signature.Inputs...)
	s.Outputs = append(s.Outputs, signature.Outputs...)
	s.Hidden, s.Gears, s.GearOutputs = signature.Hidden, signature.Gears, signature.GearOutputs
	switch {
	case f.Kind == KindOM2:
		s.SignatureFrom = "model_meta.json"
	case signature.FromGraph:
		s.SignatureFrom = ModelDef.String()
	default:
		s.SignatureFrom = ModelInOutInfo.String()
	}
	return nil
}

func (f *File) addModel(s *Summary) error {
	m, err := f.model(0)
	if err != nil {
		return err
	}
	s.Provenance, s.Needs = provenanceOf(m), needsOf(m.attributes)
	s.SoC, s.ToolVersion, s.CommandLine = s.Provenance.SoC, s.Provenance.Tool, s.Provenance.CommandLine
	s.PartitionBytes = m.attributes.Ints("om_info_list")
	s.Graphs = len(m.graphs)
	return nil
}

// addOperators counts operators and keeps which names and types there are.
func (f *File) addOperators(s *Summary) (kernelNames, error) {
	names := kernelNames{operators: map[string]string{}, types: map[string]string{}}
	for op, err := range f.Operators(0) {
		if err != nil {
			return names, err
		}
		s.Operators++
		t := op.Type
		if _, known := s.OperatorTypes[t]; !known && len(s.OperatorTypes) >= maxOperatorTypes {
			t = others
		}
		s.OperatorTypes[t]++
		names.types[strings.ToLower(t)] = t
		if len(names.operators) < maxNamedOperators {
			names.operators[op.Name] = t
		}
	}
	return names, nil
}

// addKernels counts the kernels of all models by store and operator type.
func (f *File) addKernels(s *Summary, names kernelNames) error {
	type key struct {
		store PartitionType
		kind  string
	}
	counts := map[key]*KernelCount{}
	defer func() {
		s.Kernels = append(s.Kernels, collect(maps.Values(counts))...)
	}()
	for model := range int(f.Header.ModelNum) {
		for k, err := range f.Kernels(model) {
			if err != nil {
				return err
			}
			at := key{k.Store, names.kind(k.Name)}
			if counts[at] == nil && len(counts) >= maxOperatorTypes {
				at.kind = others
			}
			if counts[at] == nil {
				counts[at] = &KernelCount{Store: at.store.String(), Type: at.kind}
			}
			counts[at].Count++
			counts[at].Bytes += k.Bytes
		}
	}
	return nil
}

// collect sorts counts: the stores apart, in each the most frequent first.
func collect(counts func(func(*KernelCount) bool)) []KernelCount {
	var list []KernelCount
	for c := range counts {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b KernelCount) int {
		return cmp.Or(cmp.Compare(b.Store, a.Store), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// byCount sorts names, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
