package atcemu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/soc"
)

// isRegistered says whether the parser has a plugin for the node's operator at the
// model's opset, exactly.
func isRegistered(n *onnx.Node) bool {
	o, err := soc.LookupOperator(n.CanonicalDomain(), n.OpType)
	return err == nil && o.Opsets.Has(n.Opset())
}

// geType is the operator that a node becomes; the main one where it becomes several.
func geType(n *onnx.Node) string {
	o, err := soc.LookupOperator(n.CanonicalDomain(), n.OpType)
	if err != nil || len(o.GEOperators) == 0 {
		return n.OpType
	}
	name, _, _ := strings.Cut(o.GEOperators[0], " ")
	name, _, _ = strings.Cut(name, "/")
	return name
}

// composed are the operators that become a graph of several, which is put in their
// place under a name of its own.
var composed = strings.Fields(`ArgMax ArgMin AveragePool Bernoulli BitShift Clip Col2Im Compress Concat ConstantOfShape
	Conv ConvTranspose EyeLike Gather Gemm GlobalMaxPool LayerNormalization LpNormalization LpPool Max MaxPool
	MaxUnpool Mean Min Multinomial NonMaxSuppression NonZero OneHot Pad RandomNormal RandomNormalLike RandomUniform
	RandomUniformLike ReduceLogSum Resize RoiAlign ScatterND Slice Split ThresholdedRelu Transpose Trilu Unique Upsample Xor`)

// geNodeName is the name under which an output's node is known; name is the user's.
func geNodeName(n *onnx.Node, name string) string {
	if n == nil || n.CanonicalDomain() != "" || !slices.Contains(composed, n.OpType) {
		return name
	}
	place := slices.Index(n.Graph().Nodes(), n)
	return "PartitionedCall_" + name + "_" + geType(n) + "_" + strconv.Itoa(max(place, 0))
}

// Kernel libraries, as GE calls them.
const (
	aiCore = "AIcoreEngine"
	aiCPU  = "aicpu_ascend_kernel"
	local  = "DNN_VM_GE_LOCAL_OP_STORE"
)

// engines says which engine takes each node that is left after folding.
type engines struct {
	libraries map[*onnx.Node]string
	nodes     []*onnx.Node
	names     map[*onnx.Node]string
	warnings  []string
}

// chooseEngines asks for every node which engine would take it: AI Core if it can,
// else AI CPU, for which ATC warns. A node that neither takes is a failure.
func chooseEngines(chip string, a *analysis) (engines, error) {
	e := engines{libraries: map[*onnx.Node]string{}, nodes: a.model.Graph.Nodes(), names: namesOf(a.model.Graph)}
	family := soc.Family{}
	if c, err := soc.Lookup(chip); err == nil {
		family = c.Shared()
	}
	for _, n := range e.nodes {
		library, err := chooseEngine(family, n, a, e.names[n])
		if err != nil {
			return e, err
		}
		e.libraries[n] = library
		if library == aiCPU {
			e.warnings = append(e.warnings, fmt.Sprintf("Op %s does not hit the high-priority operator information library, which might result in compromised performance.", e.names[n]))
		}
	}
	return e, nil
}

func chooseEngine(family soc.Family, n *onnx.Node, a *analysis, name string) (string, error) {
	o, err := soc.LookupOperator(n.CanonicalDomain(), n.OpType)
	if err != nil || !family.Engines {
		return aiCore, nil // of a branch or folded form that the table does not have
	}
	elem := elementOf(n, a)
	switch engine := o.Engine(family.Name); {
	case engine == soc.Host:
		return local, nil
	case n.Is("Where") && elem == tensor.Bool:
		return "", noKernel(n, name, "data type BOOL of its branches")
	case engine == soc.CPUOnly:
		return aiCPU, nil
	case engine == soc.CoreOr && !takes(o.CoreTypes(family.Name), elem):
		return aiCPU, nil
	}
	return aiCore, nil
}

// noKernel is the failure of a node that no engine takes.
func noKernel(n *onnx.Node, name, reason string) error {
	return &failure{
		code: "EZ3003", message: fmt.Sprintf("No supported Ops kernel and engine are found for [%s], optype [%s].", name, geType(n)),
		remedy: "Check the operator's types, or write it with other operators.",
		trace:  []string{fmt.Sprintf("Optype [%s] of Ops kernel [%s] is unsupported. Reason: %s.", geType(n), aiCore, reason)},
	}
}

// elementOf is the type by which an operator's kernel is chosen: that of its data.
func elementOf(n *onnx.Node, a *analysis) tensor.Type {
	data := 0
	if n.Is("Where") {
		data = 1
	}
	if v := n.Input(data); v != nil {
		return a.infos.Of(v).Elem
	}
	return tensor.Undefined
}

// takes says whether the AI Core has the type. Floats of 16 and 32 bits are turned into
// each other; a type that no list tells of is taken.
func takes(types soc.Types, elem tensor.Type) bool {
	has, known := types.Has(strings.ToLower(elem.String()))
	if has || !known || elem == tensor.Undefined {
		return true
	}
	isFloat := func(t tensor.Type) bool { return t == tensor.Float16 || t == tensor.Float32 || t == tensor.BFloat16 }
	other, _ := types.Has("float16")
	return isFloat(elem) && other
}

func (e engines) library(n *onnx.Node) string { return e.libraries[n] }

// onAICPU lists the nodes that do not run on the AI Core.
func (e engines) onAICPU() []string {
	list := []string{}
	for _, n := range e.nodes {
		if e.libraries[n] == aiCPU {
			list = append(list, e.names[n])
		}
	}
	return list
}

// elfStub begins as a kernel's binary does, and says what it is.
var elfStub = []byte("\x7fELF\x02\x01\x01\x00emulated by npuctl: no code")

// kernels are stand-ins for the binaries, one for each kind of operator.
func (e engines) kernels() omwriter.Kernels {
	kernels := omwriter.Kernels{}
	seen := map[string]bool{}
	for _, n := range e.nodes {
		name := kernelName(n)
		if e.libraries[n] != aiCore || seen[name] {
			continue
		}
		seen[name] = true
		kernels = append(kernels, omwriter.Kernel{Name: name, Binary: elfStub})
	}
	return kernels
}

func kernelName(n *onnx.Node) string {
	return "te_" + strings.ToLower(geType(n)) + "_emulated__kernel0"
}

// tasks launches one kernel for each node, all on one stream.
func (e engines) tasks(memory, weights int64) *omwriter.Tasks {
	t := &omwriter.Tasks{Version: "npuctl-emulator", MemorySize: uint64(memory), WeightSize: uint64(weights), StreamNum: 1}
	for _, n := range e.nodes {
		if e.libraries[n] != local {
			t.Tasks = append(t.Tasks, omwriter.Task{KernelName: kernelName(n), Blocks: 1})
		}
	}
	return t
}
