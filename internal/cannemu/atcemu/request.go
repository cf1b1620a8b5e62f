package atcemu

import "github.com/npuctl/npuctl/atc"

// request is a compile as the options ask for it, after all checks.
type request struct {
	// commandLine is what atc_cmdline says: program and arguments, joined by blanks.
	commandLine string
	model       string // file of the ONNX model
	output      string // path of the result, without ".om"
	chip        string // --soc_version

	inputFormat string // "NCHW", "ND" or "NCDHW"
	// shapes are those of --input_shape or --input_shape_range, in their order.
	shapes []atc.InputShape
	gears  atc.Gears

	outNodes    []outNode
	outputType  string             // one type for all outputs, "" for the model's own
	outputTypes map[outNode]string // by output, where each has its own

	fp16Inputs []string // inputs that the caller feeds with FLOAT16
	// adjustInputs and adjustOutputs ask for FLOAT16 in the layout NC1HWC0, one for
	// each of fp16Inputs and of outNodes.
	adjustInputs, adjustOutputs []bool

	compressAttributes bool
	saveOriginal       bool
	externalWeight     int    // 0 inside the file, 1 a file for each constant, 2 one file
	hostSystem         string // of --host_env_os, or the machine's
	hostProcessor      string
	hostGiven          bool
	showInfo           bool // print the build information afterwards
	isPackage          bool // make an OM2 package, mode 7
}

// outNode names an output of the compiled model: an output of a node, or a tensor.
type outNode struct {
	node   string
	port   int
	tensor string // set where the user named the tensor
}
