package om

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// Package is what the manifest of an OM2 package says.
type Package struct {
	Version     string `json:"version"`
	Models      int    `json:"models"`
	CommandLine string `json:"command_line"`
	// Emulated is set when npuctl's own emulator made the package.
	Emulated bool `json:"emulated"`
}

const (
	manifestFile = "manifest.json"
	metaFile     = "data/model_0/model_meta.json"

	maxManifestBytes = 1 << 20 // far above what a manifest needs
	maxMetaBytes     = 64 << 20
)

// readPackage reads the manifest. Everything else is read when somebody asks.
func (f *File) readPackage() error {
	archive, err := zip.NewReader(f.source, f.size)
	if err != nil {
		return fault.New(fault.Input, "it begins like an OM2 package, but the archive is damaged: %w", err)
	}
	manifest := findManifest(archive)
	if manifest == nil {
		return fault.New(fault.Input, "a zip archive without manifest.json, so no OM2 package")
	}
	b, err := readMember(manifest, maxManifestBytes)
	if err != nil {
		return fault.New(fault.Input, "manifest.json: %w", err)
	}
	var m struct {
		Version  json.RawMessage `json:"om2_version"`
		Models   int             `json:"model_num"`
		Command  string          `json:"atc_command"`
		Emulated bool            `json:"emulated"`
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Version == nil {
		return fault.New(fault.Input, "its manifest.json is not that of an OM2 package")
	}
	f.Package = &Package{Version: strings.Trim(string(m.Version), `"`), Models: m.Models, CommandLine: m.Command, Emulated: m.Emulated}
	// Some writers put all members into a folder of the package's name.
	name := strings.TrimSuffix(manifest.Name, manifestFile) + metaFile
	if i := slices.IndexFunc(archive.File, func(z *zip.File) bool { return z.Name == name }); i >= 0 {
		f.meta = archive.File[i]
	}
	return nil
}

// findManifest looks for the manifest at the top of the archive, or in a folder there.
func findManifest(archive *zip.Reader) *zip.File {
	for _, z := range archive.File {
		if path.Base(z.Name) == manifestFile && strings.Count(z.Name, "/") < 2 {
			return z
		}
	}
	return nil
}

// readMember unpacks a member of an archive; one that would be larger than the limit,
// whatever the archive says of it, is an error.
func readMember(z *zip.File, limit int64) ([]byte, error) {
	member, err := z.Open()
	if err != nil {
		return nil, err
	}
	defer member.Close()
	b, err := io.ReadAll(io.LimitReader(member, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fault.New(fault.Input, "more than %d bytes", limit)
	}
	return b, err
}

// packageMeta is the part of model_meta.json that is looked into. Types and layouts
// stand there by name; numbers are taken as AscendCL's.
type packageMeta struct {
	Name          string            `json:"name"`
	Inputs        []packageTensor   `json:"inputs"`
	Outputs       []packageTensor   `json:"outputs"`
	WorkBytes     int64             `json:"work_size"`
	ZeroCopyBytes int64             `json:"zero_copy_size"`
	GearKind      int64             `json:"dynamic_type"`
	GearRows      []json.RawMessage `json:"dynamic_batch_info"`
	GearOrder     []string          `json:"user_designate_shape_order"`
	GearOutputs   []string          `json:"dynamic_output_shape"`
}

type packageTensor struct {
	Name   string          `json:"name"`
	Index  int             `json:"index"`
	Shape  []int64         `json:"shape"`
	Plain  []int64         `json:"shape_v2"`
	DType  json.RawMessage `json:"data_type"`
	Format json.RawMessage `json:"format"`
	Bytes  int64           `json:"size"`
	Ranges [][2]int64      `json:"shape_range"`
}

// readMeta reads the description of the package's first model.
func (f *File) readMeta() (*packageMeta, error) {
	if f.meta == nil {
		return nil, fault.New(fault.Input, "the package has no %s", metaFile)
	}
	b, err := readMember(f.meta, maxMetaBytes)
	if err != nil {
		return nil, fault.New(fault.Input, "%s: %w", metaFile, err)
	}
	var m packageMeta
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fault.New(fault.Input, "%s: %w", metaFile, err)
	}
	return &m, nil
}

func (m *packageMeta) signature() (*Signature, error) {
	s := &Signature{Inputs: packageTensors(m.Inputs), Outputs: packageTensors(m.Outputs)}
	var err error
	if s.GearOutputs, err = gearOutputs(m.GearOutputs); err != nil {
		return nil, err
	}
	if kind := gearKinds[m.GearKind]; kind != "" && len(m.GearRows) > 0 {
		s.Gears = &Gears{Kind: kind, Order: m.GearOrder}
		for _, raw := range m.GearRows {
			row, err := gearRow(raw)
			if err != nil {
				return nil, err
			}
			s.Gears.Rows = append(s.Gears.Rows, row)
		}
	}
	return s, nil
}

// gearRow reads the numbers of a gear; one number may stand for itself.
func gearRow(raw json.RawMessage) (row []int64, err error) {
	var one int64
	if json.Unmarshal(raw, &one) == nil {
		return []int64{one}, nil
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, fault.New(fault.Input, "%s is no gear", bytes.TrimSpace(raw))
	}
	return row, nil
}

// packageTensors gives inputs or outputs in the order of their indices.
func packageTensors(list []packageTensor) []Tensor {
	slices.SortStableFunc(list, func(a, b packageTensor) int { return a.Index - b.Index })
	tensors := make([]Tensor, len(list))
	for i, p := range list {
		t := Tensor{Name: p.Name, DType: undefined, Format: undefined, Dims: p.Shape, PlainDims: p.Plain, Ranges: p.Ranges, Bytes: p.Bytes}
		if t.Dims == nil {
			t.Dims = []int64{}
		}
		e := packageElement(p.DType)
		t.DType = e.name
		t.Format = packageFormat(p.Format)
		if size, ok := tensorBytes(e, t.Format, t.Dims); ok && t.Bytes == 0 {
			t.Bytes = size
		}
		tensors[i] = t
	}
	return tensors
}

// geNames are the element types that GE calls something else than DT_ and their name
// here in capitals.
var geNames = map[string]string{"float": "float32", "double": "float64", "bf16": "bfloat16"}

func packageElement(raw json.RawMessage) element {
	var number int64
	var text string
	switch {
	case json.Unmarshal(raw, &number) == nil:
		return elementOf(aclElements, number)
	case json.Unmarshal(raw, &text) != nil:
		return element{name: undefined}
	}
	name := strings.ToLower(strings.TrimPrefix(text, "DT_"))
	if other, ok := geNames[name]; ok {
		name = other
	}
	for _, e := range aclElements {
		if e.name == name {
			return e
		}
	}
	return element{name: "type " + text}
}

func packageFormat(raw json.RawMessage) string {
	var number int32
	var text string
	switch {
	case json.Unmarshal(raw, &number) == nil:
		return formatName(number)
	case json.Unmarshal(raw, &text) != nil || text == "":
		return undefined
	}
	return text
}
