package optimization

import (
	"slices"

	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/infer"
	"github.com/npuctl/npuctl/onnxpass"
)

// Result says what an optimisation did. Its JSON form is the contract of
// `npuctl optimize --json`: fields are added, never renamed.
type Result struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	// Replaced says that Output was there before.
	Replaced bool `json:"replaced"`

	// Nodes of all subgraphs and function bodies, by operator and in sum.
	NodesBefore int            `json:"nodes_before"`
	NodesAfter  int            `json:"nodes_after"`
	OpsBefore   map[string]int `json:"ops_before"`
	OpsAfter    map[string]int `json:"ops_after"`

	// Sizes of the model files without side files, of what their tensors have in side
	// files, and of all stored tensors.
	BytesBefore        int64 `json:"bytes_before"`
	BytesAfter         int64 `json:"bytes_after"`
	BytesOutsideBefore int64 `json:"bytes_outside_before"`
	BytesOutsideAfter  int64 `json:"bytes_outside_after"`
	// OutsideFiles are the side files of the result, relative to its folder;
	// SharedFiles those among them that the input has, too, and that must stay.
	OutsideFiles     []string `json:"outside_files"`
	SharedFiles      []string `json:"shared_files"`
	ParametersBefore int64    `json:"parameters_before"`
	ParametersAfter  int64    `json:"parameters_after"`

	// Static says whether every shape is known; Dynamic lists those that are not.
	Static  bool               `json:"static"`
	Dynamic []onnxpass.Dynamic `json:"dynamic"`

	Passes    []onnxpass.PassChanges `json:"passes"`
	Kept      []onnxpass.Kept        `json:"kept"`
	Conflicts []string               `json:"conflicts"`
	Advice    []Advice               `json:"advice"`
	Check     *Check                 `json:"check,omitempty"`
	Seconds   float64                `json:"seconds"`
}

// before takes down what the model was.
func (r *Result) before(m *onnx.Model) {
	r.NodesBefore, r.OpsBefore = countOperators(m)
	r.ParametersBefore = countParameters(m)
	r.BytesOutsideBefore, _ = modelstats.Outside(m)
}

// written takes down what was saved; sides are the side files of the input. A result
// that has none, as most, is not read again for that.
func (r *Result) written(j Job, sides []string) error {
	r.BytesAfter = fileSize(j.Output)
	r.OutsideFiles, r.SharedFiles = []string{}, []string{}
	maySplit := j.External == onnx.SplitExternal || r.BytesBefore > 1<<30 // a file of 2 GiB is split anyhow
	if j.External == onnx.InlineExternal || len(sides) == 0 && !maySplit {
		return nil
	}
	m, err := onnx.Open(j.Output)
	if err != nil {
		return err
	}
	defer m.Close()
	r.BytesOutsideAfter, r.OutsideFiles = modelstats.Outside(m)
	for i, path := range sideFiles(m) {
		if slices.ContainsFunc(sides, func(side string) bool { return sameFile(side, path) }) {
			r.SharedFiles = append(r.SharedFiles, r.OutsideFiles[i])
		}
	}
	return nil
}

// after takes down what the passes made of it.
func (r *Result) after(m *onnx.Model, report *onnxpass.Report) {
	r.NodesAfter, r.OpsAfter = countOperators(m)
	r.ParametersAfter = countParameters(m)
	r.Dynamic = append([]onnxpass.Dynamic{}, report.Dynamic...)
	r.Static = len(r.Dynamic) == 0
	r.Passes = report.Changes
	r.Kept = append([]onnxpass.Kept{}, report.Kept...)
	r.Conflicts = conflictTexts(report.Conflicts)
	r.Advice = advise(m, r)
}

func countOperators(m *onnx.Model) (total int, byName map[string]int) {
	byName = map[string]int{}
	for n := range m.Nodes() {
		byName[n.OpType]++
		total++
	}
	return total, byName
}

// countParameters counts the elements of all stored tensors, Constant nodes included.
func countParameters(m *onnx.Model) (total int64) {
	for g := range m.Graphs() {
		for _, v := range g.Initializers() {
			total += int64(v.Initializer().Len())
		}
		for _, n := range g.Nodes() {
			if t := n.ConstantValue(); t != nil {
				total += int64(t.Len())
			}
		}
	}
	return total
}

func conflictTexts(conflicts []infer.Conflict) []string {
	out := make([]string, len(conflicts))
	for i, c := range conflicts {
		out[i] = c.Message
	}
	return out
}
