package atcemu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/onnx"
)

// product is what a compile comes to.
type product struct {
	file *omwriter.File
	// archive is the result instead, for an OM2 package.
	archive []byte
	// path is the file's name, with the suffix that host code asks for.
	path string
	// warnings are told on the screen before the verdict.
	warnings []string
	// constants are the weights that go to files of their own.
	constants []constantFile
	// original is the model before it was compiled; nil when nobody asked for it.
	original *omwriter.File
	kernels  []string // names of what a device would run
	isStatic bool
}

// constantFile is a file of weights beside the result.
type constantFile struct {
	path string // relative to the result's folder
	data []byte
}

// compiler makes products for one chip, under one version of the emulator.
type compiler struct {
	request *request
	version string // of the emulator
	// hasHostCode makes dynamic models carry code for the host, as newer releases do.
	hasHostCode bool
}

// compile turns an opened model, which the parser has let pass, into a product. The
// model is edited.
func (c compiler) compile(ctx context.Context, m *onnx.Model) (*product, error) {
	r := c.request
	carried, err := r.carry(ctx, m)
	if err != nil {
		return nil, err
	}
	infos, err := inferAll(ctx, m)
	if err != nil {
		return nil, err
	}
	data, err := carried.encode(func(v *onnx.Value) *onnx.Type { return infos.Of(v).Type() })
	if err != nil {
		return nil, err
	}
	if len(data) > math.MaxInt32 {
		return nil, fmt.Errorf("npuctl's emulator carries models of up to 2 GiB, and this is one of %d bytes", len(data))
	}
	a, err := analyse(ctx, r, carried, data)
	if err != nil {
		return nil, err
	}
	signature, err := r.signature(carried, a)
	if err != nil {
		return nil, err
	}
	engines, err := chooseEngines(r.chip, a)
	if err != nil {
		return nil, err
	}
	d := definition{request: r, carried: carried, analysis: a, signature: signature, engines: engines, names: engines.names}
	return c.assemble(d, data)
}

// assemble puts the parts of the .om together.
func (c compiler) assemble(d definition, data []byte) (*product, error) {
	r, a := c.request, d.analysis
	weights := storeWeights(a.model, r)
	p := &product{path: r.output + ".om", constants: weights.files, warnings: d.engines.warnings, isStatic: !a.isDynamic}
	memory := c.memory(a, d.signature)
	def := &omwriter.ModelDef{
		Name: modelNameOf(r.output), Version: 2, Platform: omwriter.DefaultPlatform,
		Graphs: d.graphs(), Compress: r.compressAttributes, Attributes: c.attributes(d, memory, weights.size),
	}
	info, err := c.info(d)
	if err != nil {
		return nil, err
	}
	parts := omwriter.Parts{
		Signature: d.signature, ModelDef: def, Weights: weights.inside, AICPUKernels: omwriter.Kernels{},
		Kernels: d.engines.kernels(), Tasks: d.engines.tasks(memory, weights.size),
		Emulation: omwriter.Emulation{{Key: omwriter.EmulationInfo, Value: info}, {Key: omwriter.EmulatedModel, Value: data}},
	}
	for _, k := range parts.Kernels {
		p.kernels = append(p.kernels, k.Name)
	}
	if a.isDynamic && c.hasHostCode {
		parts.SharedObjects = omwriter.SharedObjects{{Name: "libnpuctl_emulated_registry.so", Vendor: "npuctl", Binary: elfStub}}
		def.Attributes = append(def.Attributes, omwriter.Attribute{Name: "host_env_os", Value: omwriter.Text(r.hostSystem)},
			omwriter.Attribute{Name: "host_env_cpu", Value: omwriter.Text(r.hostProcessor)})
		p.path = fmt.Sprintf("%s_%s_%s.om", r.output, r.hostSystem, r.hostProcessor)
	}
	p.file = &omwriter.File{Name: def.Name, IsDynamic: a.isDynamic, NeedsHost: parts.SharedObjects != nil, Models: []omwriter.Model{omwriter.NewModel(parts)}}
	if r.isPackage {
		p.path = r.output + ".om2"
		if p.archive, err = package2(r, d.signature, weights.inside, data); err != nil {
			return nil, err
		}
	}
	if r.saveOriginal {
		p.original = c.original(def, d.signature, data)
	}
	return p, nil
}

// original is the file of --save_original_model: the graph before it was compiled, so
// without kernels and tasks.
func (c compiler) original(def *omwriter.ModelDef, s *omwriter.Signature, data []byte) *omwriter.File {
	return &omwriter.File{Name: def.Name, Models: []omwriter.Model{omwriter.NewModel(omwriter.Parts{ModelDef: def, Signature: s,
		Emulation: omwriter.Emulation{{Key: omwriter.EmulatedModel, Value: data}}})}}
}

func modelNameOf(output string) string { return filepath.Base(output) }

// attributes are the provenance and the needs that the model states.
func (c compiler) attributes(d definition, memory, weights int64) []omwriter.Attribute {
	var names omwriter.Texts
	var zeroCopy uint64
	for _, out := range d.signature.Outputs {
		names = append(names, out.Name)
		zeroCopy += out.Bytes
	}
	for _, in := range d.signature.Inputs {
		zeroCopy += in.Bytes
	}
	version := omwriter.Text("npuctl-emulator " + c.version)
	return []omwriter.Attribute{
		{Name: "memory_size", Value: omwriter.Int(memory)},
		{Name: "weight_size", Value: omwriter.Int(weights)},
		{Name: "zero_copy_memory_size", Value: omwriter.Int(zeroCopy)},
		{Name: "p2p_memory_size", Value: omwriter.Int(0)},
		{Name: "session_scope_memory_size", Value: omwriter.Int(0)},
		{Name: "stream_num", Value: omwriter.Int(1)},
		{Name: "event_num", Value: omwriter.Int(0)},
		{Name: "notify_num", Value: omwriter.Int(0)},
		{Name: "label_num", Value: omwriter.Int(len(d.request.gears.Rows))},
		{Name: "soc_version", Value: omwriter.Text(d.request.chip)},
		{Name: "arch_type", Value: omwriter.Text("0")},
		{Name: "target_type", Value: omwriter.Text("MINI")},
		{Name: "core_type", Value: omwriter.Text("AiCore")},
		{Name: "framework_type", Value: omwriter.Text("Onnx")},
		{Name: "atc_version", Value: version},
		{Name: "compiler_version", Value: version},
		{Name: "opp_version", Value: version},
		{Name: "atc_cmdline", Value: omwriter.Text(d.request.commandLine)},
		{Name: "attr_model_out_nodes_name", Value: names},
	}
}

// info tells people what the file is.
func (c compiler) info(d definition) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]any{
		"emulated": true, "emulator": "npuctl " + c.version, "soc": d.request.chip,
		"about": "made by the CANN emulator of npuctl; it holds no code for a chip", "dynamic": d.analysis.reason,
		"on_ai_cpu": d.engines.onAICPU(),
	})
	return b.Bytes(), err
}

// memory estimates what the intermediate results take on the device: the most that
// is alive at one time, each rounded up to 512 bytes as GE allocates. 0 for a dynamic
// model, which allocates when it runs.
func (c compiler) memory(a *analysis, s *omwriter.Signature) int64 {
	if a.isDynamic || c.request.gears.Kind != atc.NoGears {
		return gearMemory(a, s)
	}
	nodes := a.model.Graph.Nodes()
	last := map[*onnx.Value]int{}
	for i, n := range nodes {
		for _, v := range n.Inputs() {
			if v != nil && v.Producer() != nil && !v.IsOutput() {
				last[v] = i
			}
		}
	}
	ends := map[int][]int64{}
	var alive, most int64
	for i, n := range nodes {
		for _, v := range n.Outputs() {
			if v == nil || v.Constant() != nil {
				continue
			}
			size := aligned(a.infos.Of(v).Type())
			alive += size
			if at, isRead := last[v]; isRead {
				ends[at] = append(ends[at], size)
			}
		}
		most = max(most, alive)
		for _, size := range ends[i] {
			alive -= size
		}
	}
	return most
}

// gearMemory is a stand-in where sizes depend on the run: inputs and outputs twice.
func gearMemory(a *analysis, s *omwriter.Signature) (size int64) {
	if a.isDynamic {
		return 0
	}
	for _, p := range slices.Concat(s.Inputs, s.Outputs) {
		size += 2 * inBlocks(p.Bytes)
	}
	return size
}

// inBlocks rounds a size up to the 512 bytes in which GE allocates.
func inBlocks(bytes uint64) int64 { return (int64(bytes) + 511) / 512 * 512 }

func aligned(t *onnx.Type) int64 {
	if !t.IsTensor() {
		return 0
	}
	return inBlocks(bytesOf(t.Elem, dimsOf(t)))
}
