package atc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Toggle is a truth value that may be left to ATC.
type Toggle int

// The values of a Toggle.
const (
	Unset Toggle = iota // the flag is not given; ATC's default counts
	On
	Off
)

// Options are the flags that matter for an ONNX model, typed. A zero field is a
// flag that is not given. Framework and mode are not here: it is always ONNX, and
// always a model that is built.
type Options struct {
	Model  string // path of the .onnx
	Output string // path of the result without extension
	SoC    string // exact chip name

	InputFormat string       // NCHW, ND or NCDHW; "" is NCHW
	InputShapes []InputShape // sizes, ranges, -1 for what gears change
	Gears       Gears

	OutNodes          []string // node:index, or tensor names; not mixed
	OutputType        string   // one type for all, or node:index:type;…
	InputFP16Nodes    []string // inputs that become float16
	InputHWLayout     []bool   // for each of these, whether it is NC1HWC0
	OutputHWLayout    []bool   // the same for OutNodes
	InsertOpConf      string   // AIPP configuration
	ExternalWeight    int      // 0 inside the .om, 1 a file for each, 2 one file
	SaveOriginalModel Toggle

	CoreType    string // AiCore or VectorCore
	AICoreNum   string // 20|40, or 8
	VirtualType int    // 1 runs on slices of a device
	HostOS      string
	HostCPU     string
	DeviceID    string

	PrecisionMode      string // the older of two spellings
	PrecisionModeV2    string
	OpPrecisionMode    string // .ini file
	ModifyMixList      string // JSON file
	KeepDType          string // list file
	CustomizeDTypes    string // list file
	OpSelectImplMode   string
	OpTypeListForImpl  []string
	AllowHF32          Toggle
	Deterministic      int
	DeterministicLevel int    // 1 to 3
	IsWeightClip       string // 0 or 1; "" is 1

	FusionSwitchFile         string
	OptimizationSwitch       string // Pass:on;Pass:off
	OOLevel                  string // O1 or O3
	OOConstantFolding        Toggle
	OODeadCodeElimination    Toggle
	TopoSortingMode          string // 0 to 3; "" is 1
	BufferOptimize           string
	EnableSmallChannel       int
	EnableSingleStream       Toggle
	MultiStreamParallelMode  string // cv, LoadBalance:N, MainStream:N
	ACParallelEnable         int
	TilingScheduleOptimize   int
	JITCompile               string // 0, 1 or 2; "" is 1
	StaticModelOpsLowerLimit string // a number from -1
	H2DOverlap               string // 0, 1, or sizes
	DisableReuseMemory       int
	AtomicCleanPolicy        int

	CompressionOptimizeConf string
	EnableCompressWeight    Toggle
	CompressWeightConf      string
	EnableAttrCompression   Toggle
	Sparsity                int
	QuantDumpable           int

	OpCompilerCacheMode string // enable, force or disable
	OpCompilerCacheDir  string
	OpBankPath          string
	MdlBankPath         string
	DebugDir            string
	OpDebugLevel        int
	OpDebugConfig       string
	Log                 string
	DisplayModelInfo    int
	StatusCheck         int
	ExportCompileStat   string // 0, 1 or 2; "" is 1
	RawGEOptions        string // JSON file

	// Extra are words passed on as they are, behind all others.
	Extra []string
}

// field ties a field of Options to its flag: write gives the flag's value, "" for
// none; read takes it.
type field struct {
	flag  string
	write func(*Options) string
	read  func(*Options, string) error
}

// fields is the one table of Options, in the order of Arguments.
var fields = []field{
	textField("model", func(o *Options) *string { return &o.Model }),
	textField("output", func(o *Options) *string { return &o.Output }),
	textField("soc_version", func(o *Options) *string { return &o.SoC }),
	textField("input_format", func(o *Options) *string { return &o.InputFormat }),
	{"input_shape", writeShapes, readShapes},
	gearField(BatchGears), gearField(ImageGears), gearField(DimsGears),
	listField("out_nodes", ";", func(o *Options) *[]string { return &o.OutNodes }),
	textField("output_type", func(o *Options) *string { return &o.OutputType }),
	listField("input_fp16_nodes", ";", func(o *Options) *[]string { return &o.InputFP16Nodes }),
	truthsField("is_input_adjust_hw_layout", func(o *Options) *[]bool { return &o.InputHWLayout }),
	truthsField("is_output_adjust_hw_layout", func(o *Options) *[]bool { return &o.OutputHWLayout }),
	textField("insert_op_conf", func(o *Options) *string { return &o.InsertOpConf }),
	numberField("external_weight", func(o *Options) *int { return &o.ExternalWeight }),
	toggleField("save_original_model", func(o *Options) *Toggle { return &o.SaveOriginalModel }),

	textField("core_type", func(o *Options) *string { return &o.CoreType }),
	textField("aicore_num", func(o *Options) *string { return &o.AICoreNum }),
	numberField("virtual_type", func(o *Options) *int { return &o.VirtualType }),
	textField("host_env_os", func(o *Options) *string { return &o.HostOS }),
	textField("host_env_cpu", func(o *Options) *string { return &o.HostCPU }),
	textField("device_id", func(o *Options) *string { return &o.DeviceID }),

	textField("precision_mode", func(o *Options) *string { return &o.PrecisionMode }),
	textField("precision_mode_v2", func(o *Options) *string { return &o.PrecisionModeV2 }),
	textField("op_precision_mode", func(o *Options) *string { return &o.OpPrecisionMode }),
	textField("modify_mixlist", func(o *Options) *string { return &o.ModifyMixList }),
	textField("keep_dtype", func(o *Options) *string { return &o.KeepDType }),
	textField("customize_dtypes", func(o *Options) *string { return &o.CustomizeDTypes }),
	textField("op_select_implmode", func(o *Options) *string { return &o.OpSelectImplMode }),
	listField("optypelist_for_implmode", ",", func(o *Options) *[]string { return &o.OpTypeListForImpl }),
	toggleField("allow_hf32", func(o *Options) *Toggle { return &o.AllowHF32 }),
	numberField("deterministic", func(o *Options) *int { return &o.Deterministic }),
	numberField("deterministic_level", func(o *Options) *int { return &o.DeterministicLevel }),
	textField("is_weight_clip", func(o *Options) *string { return &o.IsWeightClip }),

	textField("fusion_switch_file", func(o *Options) *string { return &o.FusionSwitchFile }),
	textField("optimization_switch", func(o *Options) *string { return &o.OptimizationSwitch }),
	textField("oo_level", func(o *Options) *string { return &o.OOLevel }),
	toggleField("oo_constant_folding", func(o *Options) *Toggle { return &o.OOConstantFolding }),
	toggleField("oo_dead_code_elimination", func(o *Options) *Toggle { return &o.OODeadCodeElimination }),
	textField("topo_sorting_mode", func(o *Options) *string { return &o.TopoSortingMode }),
	textField("buffer_optimize", func(o *Options) *string { return &o.BufferOptimize }),
	numberField("enable_small_channel", func(o *Options) *int { return &o.EnableSmallChannel }),
	toggleField("enable_single_stream", func(o *Options) *Toggle { return &o.EnableSingleStream }),
	textField("multi_stream_parallel_mode", func(o *Options) *string { return &o.MultiStreamParallelMode }),
	numberField("ac_parallel_enable", func(o *Options) *int { return &o.ACParallelEnable }),
	numberField("tiling_schedule_optimize", func(o *Options) *int { return &o.TilingScheduleOptimize }),
	textField("jit_compile", func(o *Options) *string { return &o.JITCompile }),
	textField("static_model_ops_lower_limit", func(o *Options) *string { return &o.StaticModelOpsLowerLimit }),
	textField("h2d_overlapped_with_compute", func(o *Options) *string { return &o.H2DOverlap }),
	numberField("disable_reuse_memory", func(o *Options) *int { return &o.DisableReuseMemory }),
	numberField("atomic_clean_policy", func(o *Options) *int { return &o.AtomicCleanPolicy }),

	textField("compression_optimize_conf", func(o *Options) *string { return &o.CompressionOptimizeConf }),
	toggleField("enable_compress_weight", func(o *Options) *Toggle { return &o.EnableCompressWeight }),
	textField("compress_weight_conf", func(o *Options) *string { return &o.CompressWeightConf }),
	toggleField("enable_attr_compression", func(o *Options) *Toggle { return &o.EnableAttrCompression }),
	numberField("sparsity", func(o *Options) *int { return &o.Sparsity }),
	numberField("quant_dumpable", func(o *Options) *int { return &o.QuantDumpable }),

	textField("op_compiler_cache_mode", func(o *Options) *string { return &o.OpCompilerCacheMode }),
	textField("op_compiler_cache_dir", func(o *Options) *string { return &o.OpCompilerCacheDir }),
	textField("op_bank_path", func(o *Options) *string { return &o.OpBankPath }),
	textField("mdl_bank_path", func(o *Options) *string { return &o.MdlBankPath }),
	textField("debug_dir", func(o *Options) *string { return &o.DebugDir }),
	numberField("op_debug_level", func(o *Options) *int { return &o.OpDebugLevel }),
	textField("op_debug_config", func(o *Options) *string { return &o.OpDebugConfig }),
	textField("log", func(o *Options) *string { return &o.Log }),
	numberField("display_model_info", func(o *Options) *int { return &o.DisplayModelInfo }),
	numberField("status_check", func(o *Options) *int { return &o.StatusCheck }),
	textField("export_compile_stat", func(o *Options) *string { return &o.ExportCompileStat }),
	textField("raw_ge_options", func(o *Options) *string { return &o.RawGEOptions }),
}

// Arguments gives the words for atc, one word a flag, always in the same order.
// They are never put through a shell.
func (o Options) Arguments() []string {
	args := []string{"--framework=5"}
	for _, f := range fields {
		if value := f.write(&o); value != "" {
			args = append(args, "--"+f.flag+"="+value)
		}
	}
	return append(args, o.Extra...)
}

// FromCommandLine gives the options of a command line that builds an ONNX model.
// Flags that Options has no field for come out in Extra, as words; what
// --input_shape_range says comes out in InputShapes, and counts instead of
// --input_shape as it does for ATC. Of a flag that is given twice the last counts.
// An error names a flag that cannot be typed.
func FromCommandLine(line *CommandLine) (o Options, err error) {
	for i, s := range line.Settings {
		isLast := !slices.ContainsFunc(line.Settings[i+1:], func(later Setting) bool { return later.Flag == s.Flag })
		at := slices.IndexFunc(fields, func(f field) bool { return f.flag == s.Flag.Name })
		switch {
		case !isLast || s.Flag.Name == "input_shape_range":
		case at >= 0:
			if err := fields[at].read(&o, s.Value); err != nil {
				return Options{}, fmt.Errorf("--%s=%s: %w", s.Flag.Name, s.Value, err)
			}
		case s.Flag.Name == "framework" && s.Value == "5":
		default:
			o.Extra = append(o.Extra, "--"+s.Flag.Name+"="+s.Value)
		}
	}
	if ranges := line.Value("input_shape_range"); ranges != "" {
		named, d := parseRanges(ranges)
		if d != nil {
			return Options{}, fmt.Errorf("%s", d.Message)
		}
		o.InputShapes = nil
		for _, r := range named {
			o.InputShapes = append(o.InputShapes, InputShape{r.name, r.axes})
		}
	}
	return o, nil
}

func textField(flag string, at func(*Options) *string) field {
	return field{flag, func(o *Options) string { return *at(o) }, func(o *Options, value string) error {
		*at(o) = value
		return nil
	}}
}

func listField(flag, separator string, at func(*Options) *[]string) field {
	return field{flag, func(o *Options) string { return strings.Join(*at(o), separator) }, func(o *Options, value string) error {
		if *at(o) = nil; value != "" {
			*at(o) = strings.Split(value, separator)
		}
		return nil
	}}
}

func numberField(flag string, at func(*Options) *int) field {
	write := func(o *Options) string {
		if *at(o) == 0 {
			return "" // ATC's default, for all numbers here
		}
		return strconv.Itoa(*at(o))
	}
	return field{flag, write, func(o *Options, value string) (err error) {
		if *at(o), err = strconv.Atoi(value); err != nil {
			return fmt.Errorf("it is no number")
		}
		return nil
	}}
}

func toggleField(flag string, at func(*Options) *Toggle) field {
	words := []string{Unset: "", On: "true", Off: "false"}
	return field{flag, func(o *Options) string { return words[*at(o)] }, func(o *Options, value string) error {
		i := slices.Index(words, strings.ToLower(value))
		if i < 0 {
			return fmt.Errorf("it is neither true nor false")
		}
		*at(o) = Toggle(i)
		return nil
	}}
}

func truthsField(flag string, at func(*Options) *[]bool) field {
	write := func(o *Options) string {
		words := make([]string, len(*at(o)))
		for i, isOn := range *at(o) {
			words[i] = strconv.FormatBool(isOn)
		}
		return strings.Join(words, ",")
	}
	return field{flag, write, func(o *Options, value string) error {
		*at(o) = nil
		if value == "" {
			return nil
		}
		for _, word := range strings.Split(value, ",") {
			word = strings.TrimSpace(word)
			if word != "true" && word != "false" {
				return fmt.Errorf("%q is neither true nor false", word)
			}
			*at(o) = append(*at(o), word == "true")
		}
		return nil
	}}
}

func writeShapes(o *Options) string {
	words := make([]string, len(o.InputShapes))
	for i, s := range o.InputShapes {
		words[i] = s.String()
	}
	return strings.Join(words, ";")
}

func readShapes(o *Options, value string) error {
	o.InputShapes = nil
	if value == "" {
		return nil
	}
	shapes, d := ParseInputShape(value)
	if d != nil {
		return fmt.Errorf("%s", d.Message)
	}
	o.InputShapes = shapes
	return nil
}

func gearField(kind GearKind) field {
	write := func(o *Options) string {
		if o.Gears.Kind != kind {
			return ""
		}
		return o.Gears.String()
	}
	return field{kind.Flag(), write, func(o *Options, value string) error {
		if value == "" {
			return nil
		}
		gears, d := ParseGears(kind, value)
		switch {
		case d != nil:
			return fmt.Errorf("%s", d.Message)
		case o.Gears.Kind != NoGears:
			return fmt.Errorf("there are gears of --%s already", o.Gears.Kind.Flag())
		}
		o.Gears = gears
		return nil
	}}
}
