package atc

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/soc"
)

func noAutoTune(c *checker) *Diagnosis {
	mode := c.value("auto_tune_mode")
	if mode == "" {
		return nil
	}
	d := wrongValue("E10001", "auto_tune_mode", mode, "tuning is no longer part of ATC").with("leave it out; the AOE tool tunes")
	return &d
}

// deterministicPair asks for both or neither, once deterministic_level is given.
func deterministicPair(c *checker) *Diagnosis {
	on, level := c.value("deterministic"), c.value("deterministic_level")
	if !c.isSet("deterministic_level") || (on == "0") == (level == "0") {
		return nil
	}
	d := problem("E10001", "deterministic_level", "ge.deterministic / ge.deterministicLevel are %s / %s: both are 0 or neither is", on, level).
		about("--deterministic").with("add --deterministic=1, or leave --deterministic_level out")
	if on != "0" {
		d = d.with("give --deterministic_level 1, 2 or 3, or leave it out")
	}
	return &d
}

func singleOpAlone(c *checker) *Diagnosis {
	if c.value("display_model_info") != "1" && c.value("framework") == "-1" && c.value("insert_op_conf") == "" && c.value("mode") == "0" {
		return nil
	}
	d := wrongValue("E10001", "singleop", c.value("singleop"), "it stands without --framework, --insert_op_conf, --display_model_info=1 and other modes").
		with("leave --singleop out to compile a model")
	return &d
}

// singleOpFile looks at the file only as far as that it is JSON.
func singleOpFile(c *checker) *Diagnosis {
	name := c.value("singleop")
	data, err := readLimited(c.path(name), mostRawOptions)
	var d Diagnosis
	switch {
	case err != nil:
		d = wrongValue("E10023", "singleop", name, "%v", err).about(name).with("%s", c.fileRemedy(name))
	case !json.Valid(data):
		d = problem("E10025", "singleop", "--singleop=%s: the file is not valid JSON", name).about(name)
	default:
		return nil
	}
	return &d
}

func frameworkGiven(c *checker) *Diagnosis {
	if c.value("framework") != "-1" {
		return nil
	}
	d := problem("E10007", "framework", "--framework is required: 5 for ONNX (0 Caffe, 1 MindSpore, 3 TensorFlow)").
		with("add --framework=5")
	return &d
}

// frameworkParsed asks for --framework where only the parser misses it.
func frameworkParsed(c *checker) *Diagnosis {
	if d := frameworkGiven(c); d != nil {
		d.Code = "E19999"
		return d
	}
	return nil
}

func caffeWeight(c *checker) *Diagnosis {
	if c.value("framework") != "0" || c.value("weight") != "" {
		return nil
	}
	d := problem("E10008", "weight", "--weight is required with --framework=0 (Caffe)").with("for an ONNX model give --framework=5")
	return &d
}

// nanoChips lists the chips of mode 30, and only of it.
func nanoChips() (names []string) {
	for _, chip := range soc.Chips() {
		if chip.Family == soc.Family035 {
			names = append(names, chip.Name)
		}
	}
	return names
}

func nanoPair(c *checker) *Diagnosis {
	name, nano := c.value("soc_version"), nanoChips()
	isNano := slices.Contains(nano, name)
	if isNano == (c.value("mode") == "30") {
		return nil
	}
	d := problem("E10055", "mode", "--soc_version=%s and --mode=%s do not go together: %s are compiled with --mode=30, and only they", name, c.value("mode"), listed(nano)).
		about("--soc_version").with("add --mode=30")
	if !isNano {
		d = d.with("leave --mode=30 out")
	}
	return &d
}

func nanoDisplay(c *checker) *Diagnosis {
	if c.value("mode") != "30" || c.value("display_model_info") != "1" {
		return nil
	}
	d := wrongValue("E10001", "display_model_info", "1", "mode 30 has nothing to display").with("leave it out")
	return &d
}

func omGiven(c *checker) *Diagnosis {
	if c.value("om") != "" {
		return nil
	}
	d := problem("E10004", "om", "--om is empty: --mode=%s reads a file", c.value("mode")).with("give the file as --om=FILE")
	return &d
}

func jsonGiven(c *checker) *Diagnosis {
	if c.value("json") != "" {
		return nil
	}
	d := problem("E10004", "json", "--json is empty: --mode=%s writes a file", c.value("mode")).with("give it as --json=FILE.json")
	return &d
}

func omIsText(c *checker) *Diagnosis {
	name := c.value("om")
	if name[strings.LastIndexByte(name, '.')+1:] == "txt" {
		return nil
	}
	d := wrongValue("E10001", "om", name, "--mode=5 reads dumped graphs, whose names end in .txt").with("--mode=1 turns a model into JSON")
	return &d
}

func infoAlone(c *checker) *Diagnosis {
	if c.value("framework") == "-1" {
		return nil
	}
	d := problem("E10057", "framework", "--om and --mode=6 stand alone: --framework does not belong to them").
		about("--om", "--mode").with("leave --framework out")
	return &d
}

// omHeader is the size, in bytes, of an .om's header; omMagic its first bytes and
// zipMagic those of an .om2.
const (
	omHeader = 256
	omMagic  = "IMOD"
	zipMagic = "PK\x03\x04"
)

// omFormat looks whether --om is a compiled model, where it has to be one.
func omFormat(c *checker) *Diagnosis {
	if c.value("framework") != "-1" {
		return nil
	}
	name := c.value("om")
	if err := regular(c.path(name)); err != nil {
		d := wrongValue("E10001", "om", name, "%v", err).about(name)
		return &d
	}
	f, err := os.Open(c.path(name))
	if err != nil {
		return nil // told already
	}
	defer f.Close()
	head := make([]byte, omHeader)
	n, _ := io.ReadFull(f, head)
	info, err := f.Stat()
	var d Diagnosis
	switch text := string(head[:n]); {
	case strings.HasPrefix(text, zipMagic) && c.kind == toJSON:
		return nil
	case strings.HasPrefix(text, zipMagic):
		d = wrongValue("E19999", "om", name, "--mode=6 does not display OM2 packages")
	case err != nil || n < omHeader || !strings.HasPrefix(text, omMagic) || !omLength(head, info.Size()):
		d = wrongValue("E10001", "om", name, "it is no offline model").about(name).
			with("give an .om; for an ONNX file use --mode=1 --framework=5")
	default:
		return nil
	}
	return &d
}

// omLength says whether an .om's header tells its file's size: in the 32-bit field
// of old releases, or the 64-bit field of models beyond 4 GiB.
func omLength(head []byte, size int64) bool {
	const short, long = 76, 184
	length := uint64(binary.LittleEndian.Uint32(head[short:]))
	if wide := binary.LittleEndian.Uint64(head[long:]); wide != 0 {
		length = wide
	}
	return length == uint64(size-omHeader)
}

// inputFormats are the layouts of each framework's inputs.
var inputFormats = map[string][]string{
	"0": {"NCHW", "ND"}, "3": {"NCHW", "NHWC", "ND", "NCDHW", "NDHWC"}, "5": {"NCHW", "ND", "NCDHW"},
}

func inputFormat(c *checker) *Diagnosis {
	format, formats := c.value("input_format"), inputFormats[c.value("framework")]
	if format == "" || formats == nil || slices.Contains(formats, format) {
		return nil
	}
	d := wrongValue("E10001", "input_format", format, "it takes %s", listed(formats))
	if format == "NHWC" || format == "NDHWC" {
		d = d.with("ONNX models are NCHW; ND takes any layout as it is")
	}
	return &d
}

// layout is the input format that counts.
func (c *checker) layout() string {
	switch {
	case c.value("input_format") != "":
		return c.value("input_format")
	case c.value("framework") == "3":
		return "NHWC"
	}
	return "NCHW"
}

// suffix is what ATC puts behind --output.
func (c *checker) suffix() string {
	switch c.value("mode") {
	case "7":
		return ".om2"
	case "30":
		return ".exeom"
	}
	return ".om"
}

func outputPath(c *checker) *Diagnosis {
	path := c.value("output")
	if c.kind == singleOp {
		return c.outputFile("output", path)
	}
	return c.outputFile("output", path+c.suffix())
}

func outputName(c *checker) *Diagnosis {
	path := c.value("output")
	if path == "" || !strings.HasSuffix(path, "/") && !strings.HasSuffix(path, `\`) {
		return nil
	}
	d := wrongValue("E10022", "output", path, "the name of the file is missing").
		with("write --output=%smodel; ATC adds %s", path, c.suffix())
	return &d
}

func implModePair(c *checker) *Diagnosis {
	list := c.value("optypelist_for_implmode")
	if list == "" || c.value("op_select_implmode") != "" {
		return nil
	}
	d := problem("E10001", "op_select_implmode", "--op_select_implmode is missing: --optypelist_for_implmode=%s needs it", list).
		about("--optypelist_for_implmode").with("add --op_select_implmode=%s", listed(implModes[:2]))
	return &d
}

func precisionExclusive(c *checker) *Diagnosis {
	v1, v2 := c.value("precision_mode"), c.value("precision_mode_v2")
	if v1 == "" || v2 == "" {
		return nil
	}
	d := problem("E10056", "precision_mode", "precision_mode (%s) and precision_mode_v2 (%s) cannot both be given", v1, v2).
		about("--precision_mode_v2").with("keep --precision_mode_v2, which is the newer")
	return &d
}

// mixModes are the precision modes that --modify_mixlist goes with.
var mixModes = []string{"allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16", "mixed_float16", "mixed_bfloat16", "mixed_hif8"}

func mixListMode(c *checker) *Diagnosis {
	list := c.value("modify_mixlist")
	if list == "" || slices.Contains(mixModes, c.value("precision_mode")) || slices.Contains(mixModes, c.value("precision_mode_v2")) {
		return nil
	}
	d := wrongValue("E10001", "modify_mixlist", list, "it needs a mixed precision mode").
		with("add --precision_mode_v2=mixed_float16")
	return &d
}

func compressExclusive(c *checker) *Diagnosis {
	if c.value("enable_compress_weight") != "true" || c.value("compress_weight_conf") == "" {
		return nil
	}
	d := problem("E10047", "enable_compress_weight", "--enable_compress_weight and --compress_weight_conf exclude each other").
		about("--compress_weight_conf").with("keep one of them")
	return &d
}

// checkReport holds the report's path; without a flag it lies in the work folder.
func checkReport(c *checker) *Diagnosis {
	path := c.value("check_report")
	if work, ok := c.env.Lookup("ASCEND_WORK_PATH"); ok && work != "" && !c.isSet("check_report") {
		path = work + "/" + path
	}
	return c.outputFile("check_report", path)
}

func attrCompression(c *checker) *Diagnosis {
	value := c.value("enable_attr_compression")
	if value == "" || slices.Contains([]string{"true", "false"}, strings.ToLower(value)) {
		return nil
	}
	d := wrongValue("E10005", "enable_attr_compression", value, "it takes true or false")
	return &d
}

// om2Flags tells of the flags that mode 7 does not have.
func om2Flags(c *checker) (out []Diagnosis) {
	refused := func(flag *FlagSpec, value string) {
		if flag.NotForOM2 && !slices.ContainsFunc(out, func(d Diagnosis) bool { return d.Names[0] == "--"+flag.Name }) {
			out = append(out, problem("E10001", flag.Name, "%s (%s) is not supported in OM2 mode", flag.Name, value).
				with("leave it out, or leave --mode=7 out"))
		}
	}
	for _, s := range c.line.Settings {
		refused(s.Flag, s.Value)
	}
	for _, name := range flagNames() {
		if value, ok := c.raw[name]; ok {
			refused(findFlag(name), value)
		}
	}
	return out
}

// om2Host asks for this machine, or for one there is a cross compiler for.
func om2Host(c *checker) *Diagnosis {
	system, cpu := c.value("host_env_os"), c.value("host_env_cpu")
	if system == "" {
		system = c.env.HostOS
	}
	if cpu == "" {
		cpu = c.env.HostCPU
	}
	arm := func(cpu string) string { return strings.Replace(cpu, "arm64", "aarch64", 1) }
	if system == c.env.HostOS && arm(cpu) == arm(c.env.HostCPU) || system == "linux" && arm(cpu) == "aarch64" {
		return nil
	}
	d := problem("E10001", "host_env_os", "--host_env_os/--host_env_cpu are %s and %s: OM2 is compiled for this machine (%s, %s) or for linux and aarch64", system, cpu, c.env.HostOS, c.env.HostCPU).
		about("--host_env_cpu").with("leave both out")
	return &d
}

func opsLimit(c *checker) *Diagnosis {
	value := c.value("static_model_ops_lower_limit")
	if value == "" {
		return nil
	}
	return checkOpsLimit(value)
}

func checkOpsLimit(value string) *Diagnosis {
	n, err := strconv.ParseInt(value, 10, 64)
	if err == nil && n >= -1 && !strings.HasPrefix(value, "+") {
		return nil
	}
	d := wrongValue("E10001", "static_model_ops_lower_limit", value, "it takes a whole number from -1 on")
	return &d
}

// lateValues are the values of flags that only the compile looks at. Empty is the
// default in all but one.
var lateValues = map[string][]string{
	"export_compile_stat":      {"0", "1", "2"},
	"oo_constant_folding":      {"true", "false", ""},
	"oo_dead_code_elimination": {"true", "false", ""},
	"topo_sorting_mode":        {"0", "1", "2", "3", ""},
}

// lateSet checks such a flag, when it is given: its default is not looked at.
func lateSet(flag string) func(*checker) []Diagnosis {
	check := takes("E10001", flag, lateValues[flag]...)
	return func(c *checker) []Diagnosis {
		if !c.isSet(flag) {
			return nil
		}
		return check(c)
	}
}
