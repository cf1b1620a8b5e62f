package compilation

import (
	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnxpass"
)

// Result says what a job did. Its JSON form is the contract of `npuctl compile
// --json`: fields are added, never renamed.
type Result struct {
	// Emulated says that npuctl's emulator compiled, and not CANN.
	Emulated bool         `json:"emulated"`
	Toolkit  *atc.Toolkit `json:"toolkit,omitempty"`
	// Chosen says what was taken for what the command line left out, and why.
	Chosen  []string `json:"chosen"`
	Builds  []Build  `json:"builds"`
	Seconds float64  `json:"seconds"`
}

// Status is what became of a build.
type Status string

// The states of a build.
const (
	Built     Status = "built"
	Unchanged Status = "unchanged" // it was built before, of the same
	Planned   Status = "planned"   // --dry-run
	Failed    Status = "failed"
)

// Kind is how a build's shapes are.
type Kind string

// The kinds.
const (
	StaticKind  Kind = "static"
	GearsKind   Kind = "gears"
	DynamicKind Kind = "dynamic"
)

// Build is one model for one chip.
type Build struct {
	Model  string `json:"model"`
	SoC    string `json:"soc"`
	Status Status `json:"status"`
	Kind   Kind   `json:"kind,omitempty"`
	// Emulated says that the .om is the emulator's, and runs on no NPU.
	Emulated bool `json:"emulated"`

	Output string `json:"output"`
	Graph  string `json:"graph,omitempty"`  // the optimised graph beside it
	Record string `json:"record,omitempty"` // the build record beside it
	Bytes  int64  `json:"bytes,omitempty"`  // of the .om
	// Replaced lists the files that were there before.
	Replaced []string `json:"replaced,omitempty"`

	// CommandLine is what ATC was, or would be, called with: quoted for a shell.
	CommandLine string   `json:"command_line,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`

	Gears   *gears.Plan  `json:"gears,omitempty"`
	Inputs  []om.Tensor  `json:"inputs,omitempty"`
	Outputs []om.Tensor  `json:"outputs,omitempty"`
	Nodes   *NodesChange `json:"nodes,omitempty"`

	// Dynamic lists what --static found not to be known, Open the dims of inputs.
	Dynamic []onnxpass.Dynamic `json:"dynamic,omitempty"`
	Open    []OpenDim          `json:"open_dims,omitempty"`
	// Diagnoses say why it failed; Notes what else there is to know.
	Diagnoses []atc.Diagnosis `json:"diagnoses,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	// LogLines are the lines of ATC's process log that matter, LogFolder holds all.
	LogLines  []string `json:"log_lines,omitempty"`
	LogFolder string   `json:"log_folder,omitempty"`
	Error     string   `json:"error,omitempty"`

	Seconds    float64 `json:"seconds"`
	ATCSeconds float64 `json:"atc_seconds,omitempty"`
	// EstimatedSeconds is what ATC was expected to take, by earlier builds; 0 when
	// there was none of the like.
	EstimatedSeconds float64 `json:"estimated_seconds,omitempty"`
}

// NodesChange counts nodes before and after optimising.
type NodesChange struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// OpenDim is a dim of an input that nothing fixes, and how to fix it.
type OpenDim struct {
	Input string `json:"input"`
	Dim   int    `json:"dim"`
	Name  string `json:"name,omitempty"` // symbolic name
	Fix   string `json:"fix"`            // flags that do
}
