package atc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/soc"
)

// remedies that several readings share.
const (
	sourceEnvironment = "source the toolkit's set_env.sh in the shell that runs this, after any conda environment"
	oneRelease        = "compile and run with one release of CANN, and a driver that fits it"
	otherOperator     = "see whether another opset of the export gives an operator that the chip has, or rewrite the node"
)

// readings are the texts that tell a cause, in no order: ranks decide. Each stands
// for failures that people met; the texts are those of the releases of 2019 to 2026.
var readings = []reading{
	{
		rank: rankMissing, text: regexp.MustCompile(`No module named '?([\w.]+)'?`), names: []string{"{1}"},
		message: "the Python that ATC starts has no module {1}", refine: pythonModule,
	},
	{
		rank: rankMissing, text: regexp.MustCompile("(?:`?np\\.(\\w+)`? was removed in the NumPy 2|numpy\\.core\\.multiarray failed to import)"), names: []string{"numpy"},
		message: "the Python that ATC starts has NumPy 2, which this release does not work with",
		remedy:  `pip install "numpy<2" into the python3 that is first on the PATH`,
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`cannot pickle 'FrameLocalsProxy'|module 'sys' has no attribute 'argv'`), names: []string{"python3"},
		message: "the Python that ATC starts is newer than this release works with",
		remedy:  "put a python3 of 3.7 to 3.10 (or what the release's notes say) first on the PATH",
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`error while loading shared libraries: ([^\s:]+)`), names: []string{"{1}", "LD_LIBRARY_PATH"},
		message: "the library {1} is not found", remedy: sourceEnvironment + "; a service gets it from its unit or start script", refine: missingLibrary,
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`([^\s:/]+\.so[\w.]*): undefined symbol: (\w+)`), names: []string{"{1}", "{2}"},
		message: "the library {1} lacks the symbol {2}: libraries of two releases are mixed",
		remedy:  "leave one toolkit in LD_LIBRARY_PATH, and use plugins built for it",
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`\[?(ASCEND_\w+|LD_LIBRARY_PATH|PYTHONPATH)\]? is invalid`), names: []string{"{1}", "set_env.sh"},
		message: "the environment variable {1} leads nowhere", remedy: sourceEnvironment,
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`(?:atc|atc\.bin): (?:command )?not found`), names: []string{"atc", "PATH"},
		message: "atc is not found", remedy: sourceEnvironment,
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`init runtime platform info failed, SocVersion ?= ?(\w+)`), names: []string{"{1}"},
		message: "the toolkit has no description of the chip {1}",
		remedy:  "source set_env.sh, and install the operator package of this chip",
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`[Nn]o space left on device|[Dd]isk (?:is )?full`),
		message: "the disk is full", remedy: "make room where the .om goes, in the folder of the operator cache and in the temporary folder",
	},
	{
		rank: rankMissing, text: regexp.MustCompile(`EOFError|MemoryError|Cannot allocate memory|std::bad_alloc|^\S*\s*Killed\b`), names: []string{"TE_PARALLEL_COMPILER"},
		message: "this machine ran out of memory while compiling",
		remedy:  "set TE_PARALLEL_COMPILER=1, close what else runs, add swap, or compile on a larger machine",
	},

	{
		rank: rankLimit, text: regexp.MustCompile(`opp version of the model does not match.*Model is \[([^\]]*)\], opp run package is \[([^\]]*)\]`), names: []string{"{1}", "{2}"},
		message: "the model was compiled with the operator package {1}, and {2} is installed", remedy: oneRelease,
	},
	{
		rank: rankLimit, text: regexp.MustCompile(`supported socVersion=(\w+), but the model socVersion=(\w+)`), names: []string{"--soc_version", "{1}", "{2}"},
		message: "the model was compiled for {2}, the device is {1}",
		remedy:  "compile with the exact name, --soc_version={1}",
	},
	{
		rank: rankLimit, text: regexp.MustCompile(`sub_memory_info.*expect (\d+) actual (\d+)|Assert .*expect (\d+) actual (\d+)`),
		message: "the file and the program that reads it are of two releases: the runtime is older than the compiler was", remedy: oneRelease,
	},
	{
		rank: rankLimit, text: regexp.MustCompile(`input image size\[(\d+)\] is not equal to model input size\[(\d+)\]`), names: []string{"--compression_optimize_conf", "{1}", "{2}"},
		message: "the calibration data has {1} bytes for an input of {2}", remedy: "make shape and type of the calibration data those of the configuration's input_shape",
	},
	{
		rank: rankLimit, text: regexp.MustCompile(`set device=(\d+), valid device range is (\[\d+, ?\d+\))`), names: []string{"{1}"},
		message: "there is no device {1}: numbers are in {2}", remedy: "ASCEND_RT_VISIBLE_DEVICES numbers devices anew, from 0",
	},
	{
		rank: rankLimit, text: regexp.MustCompile(`--?domain_version\]? fields|model has \[?\d+\]? .*domain_version`), names: []string{"opset_import"},
		message: "the model imports more than one operator domain",
		remedy:  "remove the import of the domain that no node uses (npuctl optimize does), or move its nodes to ONNX's own",
	},

	{
		rank:  rankNode,
		text:  regexp.MustCompile(`No (?:parser|operator plugin) is registered for Op:? \[?(.+?), optype:? \[?(?:[\w.]*::(\d+)::)?([^\]\s]+?)\]{0,2}\.?(?:\s|$)`),
		names: []string{"{3}", "{1}"}, refine: noParser,
	},
	{
		rank:  rankNode,
		text:  regexp.MustCompile(`No supported Ops kernel and engine are found for \[([^\]]+)\], optype \[([^\]]+)\]`),
		names: []string{"{2}", "{1}"}, message: "the chip's operators have nothing for {2} (node {all})", remedy: otherOperator, refine: noKernel,
	},
	{
		rank:  rankNode,
		text:  regexp.MustCompile(`Optype \[([^\]]+)\] of Ops kernel \[([^\]]+)\] is unsupported\. Reason: (.*)`),
		names: []string{"{1}", "{2}"}, message: "the engine {2} does not take {1} as it is: {3}",
		remedy: "another precision or another type of its inputs may do; check that the operator package fits the chip and the release",
	},
	{
		rank:  rankNode,
		text:  regexp.MustCompile(`Failed to compile Op \[([^\]]+)\]\.? ?\(optype: \[([^\]]+)\]\)`),
		names: []string{"{2}"}, message: "the operator {2} of node {1} could not be compiled",
		remedy: "look at the node's types, shapes and bounds; try another precision, and npuctl optimize", refine: userNode,
	},
	{
		rank: rankNode, text: regexp.MustCompile(`Value \[?-1\]? for parameter \[?([^\]]+?)\]? is invalid`), names: []string{"{1}", "--input_shape"},
		message: "the input {1} has an open dim that nothing sets",
		remedy:  "name it in --input_shape exactly as the model does, with a size or a gear for every open dim",
	},
	{
		rank: rankNode, text: regexp.MustCompile(`Value \[?-?\d+\]? for shape \[?(\d+)\]? is invalid.*(--dynamic_batch_size)`), names: []string{"{2}", "--input_shape"},
		message: "with {2} only the first axis may be -1, and axis {1} is too", remedy: "fix the other axes in --input_shape, or use --dynamic_dims",
	},
	{
		rank: rankNode, text: regexp.MustCompile(`\[?--framework\]? is required`), names: []string{"--framework"},
		message: "--framework is missing", remedy: "for ONNX pass --framework=5; atc itself works",
	},
	{
		rank: rankNode, text: regexp.MustCompile(`src_out_anchor`), names: []string{"Resize"},
		message: "an empty optional input broke the parser, most often roi or scales of a Resize",
		remedy:  "write empty constants in place of the empty inputs before ATC",
	},
	{
		rank: rankNode, text: regexp.MustCompile(`Failed to import Python module \[(.+?)\]\.?$`), names: []string{"python3"},
		message: "the Python that ATC starts fails: {1}", remedy: "install what is named into the python3 that is first on the PATH; " + sourceEnvironment,
	},
	{
		rank: rankNode, text: regexp.MustCompile(`origin_op_name \[([^\]]+)\]`), message: "the node {1} failed while running",
		remedy: oneRelease + "; compile for this very chip, and try a smaller batch", refine: userNode,
	},

	{
		rank: rankChip, text: regexp.MustCompile(`error code = (0x[0-9a-f]+).*errorStr: ([^\[]+)`), names: []string{"{1}"},
		message: "a kernel failed on the chip ({1}): {2}", remedy: oneRelease + "; compile for this very chip",
	},
	{
		rank: rankChip, text: regexp.MustCompile(`(?:aicore|aivec)\w* error,.*error code = (0x[0-9a-f]+)`), names: []string{"{1}"},
		message: "a kernel failed on the chip ({1})", remedy: oneRelease + "; compile for this very chip",
	},
	{
		rank: rankChip, text: regexp.MustCompile(`[Tt]oo many streams|Alloc sq cq failed, stream_id=(\d+)`), names: []string{"{1}"},
		message: "the device has no more streams", remedy: "use fewer instances and processes on the device, and destroy streams that are not used",
	},
	{
		rank: rankChip, text: regexp.MustCompile(`runtime result = 207001|ret = 207001|Failed to allocate (?:device )?memory`), names: []string{"207001"},
		message: "the device has no memory left", remedy: "free it (npu-smi info shows who holds it), or use a smaller batch, fewer gears or FP16 inputs",
	},

	{
		rank: rankChip, text: regexp.MustCompile(`dcmi.*(-8005|-8020)`), names: []string{"{1}"},
		message: "the device is not there for this container ({1})",
		remedy:  "pass the nodes /dev/davinciN, davinci_manager, devmm_svm and hisi_hdc and the driver's folders, and see that nobody else holds the card",
	},

	{rank: rankNumber, text: regexp.MustCompile(`(?:ret|retCode|ErrCode|errorCode|error code is|code|result|failed) ?[=:\[]? ?(\d{6}|0x7BC[0-9A-Fa-f]{2})\b`), refine: resultNumber},
	{rank: rankNumber, text: regexp.MustCompile(`CANN failure (\d{6})`), refine: resultNumber},
}

// pythonPackages are modules of the compiler's Python and the packages that bring
// them, where these have another name.
var pythonPackages = map[string]string{"attr": "attrs", "google": "protobuf", "google.protobuf": "protobuf", "absl": "absl-py"}

// toolkitModules come with the toolkit itself and are found by PYTHONPATH.
var toolkitModules = []string{"tbe", "te", "acl", "impl", "schedule_search", "auto_tune", "hccl", "ge"}

// pythonModule says how a missing module is had.
func pythonModule(d *Diagnosis, matches [][]string, _ Facts) {
	match := matches[0]
	top, _, _ := strings.Cut(match[1], ".")
	if slices.Contains(toolkitModules, top) {
		d.Names = append(d.Names, "PYTHONPATH")
		d.Remedy = "it comes with the toolkit: " + sourceEnvironment + " (copying it elsewhere does not help)"
		return
	}
	name := top
	if p, ok := pythonPackages[match[1]]; ok {
		name = p
	} else if p, ok := pythonPackages[top]; ok {
		name = p
	}
	if name != top {
		d.Names = append(d.Names, name)
	}
	d.Remedy = fmt.Sprintf("python3 -m pip install %s, with the python3 that is first on the PATH; it also wants decorator, attrs, psutil, scipy, sympy and numpy<2", name)
}

// missingLibrary says where the driver's library comes from: it is no part of the toolkit.
func missingLibrary(d *Diagnosis, matches [][]string, _ Facts) {
	match := matches[0]
	if match[1] == driverLibrary {
		d.Message = "the driver's library " + driverLibrary + " is not found: there is no NPU driver here, or it is not on the path"
		d.Remedy = "without an NPU add the toolkit's " + architectureFolder() + "/devlib to LD_LIBRARY_PATH, where a stand-in lies; with one the folders of /usr/local/Ascend/driver/lib64, and never both"
	}
}

// noParser decides between an opset that is too new and an operator that is none of ONNX's.
func noParser(d *Diagnosis, matches [][]string, facts Facts) {
	match := matches[0]
	opset, _ := strconv.ParseInt(match[2], 10, 64) // 0 when it does not say
	if facts.Opset > 0 {
		opset = facts.Opset
	}
	if opset > soc.NewestOpset {
		d.Names = append(d.Names, fmt.Sprintf("opset %d", opset))
		d.Message = fmt.Sprintf("this release does not read opset %d, so that it knows no operator (the first is %s, node %s)", opset, match[3], match[1])
		d.Remedy = fmt.Sprintf("export with opset %d or lower (11 to 13 for old releases)", soc.NewestOpset)
		return
	}
	var ops []string
	for _, m := range matches {
		if !slices.Contains(ops, m[3]) {
			ops = append(ops, m[3])
		}
	}
	if opset > 0 {
		d.Names = append(d.Names, fmt.Sprintf("opset %d", opset))
	}
	d.Message = fmt.Sprintf("ATC knows no operator %s (first at node %s)", list(ops), match[1])
	d.Remedy = "an operator of ONNX needs another opset (or is spelt otherwise there); one of a plugin needs that plugin installed here; else rewrite the node"
}

// noKernel knows the nodes that exist only to be folded.
func noKernel(d *Diagnosis, matches [][]string, _ Facts) {
	match := matches[0]
	n := UserNode(match[1])
	if n.Name != match[1] {
		d.Names = append(d.Names, n.Name)
	}
	if strings.HasSuffix(match[2], "FilterHost") || strings.HasSuffix(match[2], "BiasHost") {
		d.Names = append(d.Names, "--oo_constant_folding")
		d.Message = fmt.Sprintf("%s is a node that the compiler made beside %s to be folded, and folding is off", match[2], n.Name)
		d.Remedy = "leave constant folding on (--oo_constant_folding, or the option of the framework)"
	}
}

// userNode leads the node's name back to the user's graph, and its gear to the list.
func userNode(d *Diagnosis, matches [][]string, facts Facts) {
	match := matches[0]
	n := UserNode(match[1])
	d.Names = append(d.Names, n.Name)
	d.Message = strings.ReplaceAll(d.Message, match[1], n.Name)
	if n.Inserted {
		d.Message += ", which the compiler has put in beside a node of the model"
	}
	if n.Gear < 0 {
		return
	}
	gear := fmt.Sprintf("gear %d", n.Gear)
	if n.Gear < len(facts.Gears) {
		gear = fmt.Sprintf("gear %d (%s)", n.Gear, facts.Gears[n.Gear])
	}
	d.Names = append(d.Names, gear)
	d.Message += ", in " + gear + " counted from 0"
	d.Remedy = "check that this gear makes sense for the model (slices, caches), and compile it alone; " + d.Remedy
}

// resultNumbers are results of the runtime and of AscendCL that come without a text.
var resultNumbers = map[string]struct{ meaning, remedy string }{
	"100002": {"AscendCL was started twice in this process", "take it for success"},
	"107001": {"the device's number is out of range, or the driver is not loaded", "check npu-smi info; if device 0 fails, it is the driver"},
	"145000": {"the .om does not load", oneRelease},
	"145006": {"the file is no .om", "check that it is whole: npuctl inspect reads it"},
	"207000": {"the runtime library does not know this call", "build and run with the same toolkit"},
	"207001": {"the device has no memory left", "free it (npu-smi info shows who holds it), or use a smaller batch"},
	"207005": {"the device has no more streams", "use fewer instances and processes on the device"},
	"500001": {"AscendCL failed inside", "the nested lines tell; source set_env.sh"},
	"500002": {"the graph engine failed", "read the first error of the graph engine in the process log"},
	"507008": {"the chip could not be told, or does not fit", "check npu-smi info, the driver, and that exactly one toolkit is on the paths"},
	"507011": {"the model failed while running", oneRelease},
	"507013": {"a copy to or from the device failed", "on a board whose host is the device do not use pinned host memory"},
	"507033": {"the device could not be opened", "check driver and firmware: npuctl doctor"},
	"507899": {"the driver failed inside", "read the nested lines: often it is memory"},
}

// resultNumber explains a bare number, written in decimal or in hexadecimal.
func resultNumber(d *Diagnosis, matches [][]string, _ Facts) {
	match := matches[0]
	number := match[1]
	if n, err := strconv.ParseInt(number, 0, 64); err == nil {
		number = strconv.FormatInt(n, 10)
	}
	d.Names = append(d.Names, number)
	r, known := resultNumbers[number]
	if !known {
		d.Message, d.Remedy = "result "+number, "read the process log"
		return
	}
	d.Message, d.Remedy = number+": "+r.meaning, r.remedy
}
