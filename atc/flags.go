package atc

import (
	"slices"
	"strings"
)

// Kind says what a flag's value is, and how the flag is written.
type Kind int

// The kinds of flags.
const (
	Text   Kind = iota // a value behind = or as the next word
	Number             // the same; only digits
	Switch             // a truth value, behind = only; without it the flag means true
)

// FlagSpec is what ATC knows of one flag.
type FlagSpec struct {
	Name    string // without dashes
	Kind    Kind
	Default string
	// Values lists what the flag takes, letter by letter; nil is anything.
	Values []string
	// Code is what ATC answers to another value.
	Code string
	// NotForOM2 says that mode 7 refuses the flag.
	NotForOM2 bool
	// Since is the CANN release whose documentation has it first, as far as known:
	// "" is long before 8.0, "after 8.5" may be missing on 8.5 and before.
	Since string
}

// afterCANN85 marks flags of the sources after release 8.5.
const afterCANN85 = "after 8.5"

var (
	bits          = []string{"0", "1"}
	implModes     = []string{"high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all"}
	precisionV1   = []string{"force_fp16", "force_fp32", "cube_fp16in_fp32out", "allow_mix_precision", "allow_fp32_to_fp16", "must_keep_origin_dtype", "allow_mix_precision_fp16", "allow_mix_precision_bf16", "allow_fp32_to_bf16"}
	precisionV2   = []string{"fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "cube_hif8", "mixed_hif8"}
	logLevels     = []string{"debug", "info", "warning", "error", "null"}
	optimizations = []string{"l1_optimize", "l2_optimize", "off_optimize"}
)

// flagTable is every flag that ATC registers. A value outside Values is refused
// while the command line is read; what is looked at later is a rule (rules.go).
var flagTable = []FlagSpec{
	{Name: "help", Kind: Switch, Default: "false"},
	{Name: "mode", Kind: Number, Default: "0", Values: []string{"0", "1", "3", "5", "6", "7", "30"}, Code: "E10001"},

	// What is compiled, and into what.
	{Name: "model"},
	{Name: "weight"},
	{Name: "om", NotForOM2: true},
	{Name: "singleop", NotForOM2: true},
	{Name: "framework", Kind: Number, Default: "-1", Values: []string{"0", "1", "3", "5"}, Code: "E10007"},
	{Name: "output"},
	{Name: "json", NotForOM2: true},
	{Name: "check_report", Default: "check_result.json", NotForOM2: true},
	{Name: "input_format"},
	{Name: "input_shape"},
	{Name: "input_shape_range", NotForOM2: true},
	{Name: "input_hint_shape", NotForOM2: true, Since: afterCANN85},
	{Name: "dynamic_batch_size"},
	{Name: "dynamic_image_size"},
	{Name: "dynamic_dims"},
	{Name: "out_nodes"},
	{Name: "output_type"},
	{Name: "input_fp16_nodes"},
	{Name: "is_input_adjust_hw_layout"},
	{Name: "is_output_adjust_hw_layout"},
	{Name: "insert_op_conf"},
	{Name: "op_name_map", NotForOM2: true},
	{Name: "save_original_model", NotForOM2: true},
	{Name: "external_weight", Default: "0", Values: []string{"0", "1", "2"}, Code: "E10006"},
	{Name: "raw_ge_options", Since: afterCANN85},
	{Name: "raw_ge_options_ignore_unsupported", Kind: Switch, Default: "false", Since: afterCANN85},

	// What it is compiled for.
	{Name: "soc_version"},
	{Name: "core_type", Default: "AiCore", Values: []string{"AiCore", "VectorCore"}, Code: "E10001"},
	{Name: "aicore_num"},
	{Name: "virtual_type", Kind: Number, Default: "0", Values: bits, Code: "E10001", NotForOM2: true},
	{Name: "host_env_os"},
	{Name: "host_env_cpu"},
	{Name: "device_id", Default: "0"},
	{Name: "target"},

	// Precision, and which kernels are taken.
	{Name: "precision_mode", Values: precisionV1, Code: "E10001"},
	{Name: "precision_mode_v2", Values: precisionV2, Code: "E10001"},
	{Name: "op_precision_mode"},
	{Name: "modify_mixlist"},
	{Name: "keep_dtype"},
	{Name: "customize_dtypes"},
	{Name: "op_select_implmode", Values: implModes, Code: "E10001"},
	{Name: "optypelist_for_implmode"},
	{Name: "allow_hf32"},
	{Name: "deterministic", Default: "0", Values: bits, Code: "E10006"},
	{Name: "deterministic_level", Default: "0", Values: []string{"0", "1", "2", "3"}, Code: "E10001", Since: afterCANN85},
	{Name: "is_weight_clip", Default: "1"},

	// How the graph is changed and laid out.
	{Name: "fusion_switch_file"},
	{Name: "optimization_switch", Since: afterCANN85},
	{Name: "oo_level", Default: "O3", Since: afterCANN85},
	{Name: "oo_constant_folding", Default: "false", Since: afterCANN85},
	{Name: "oo_dead_code_elimination", Default: "false", Since: afterCANN85},
	{Name: "topo_sorting_mode", Default: "false", Since: afterCANN85},
	{Name: "buffer_optimize", Default: "l2_optimize", Values: optimizations, Code: "E10001"},
	{Name: "enable_small_channel", Default: "0"},
	{Name: "enable_single_stream"},
	{Name: "multi_stream_parallel_mode", Default: "false", Since: afterCANN85},
	{Name: "ac_parallel_enable", Default: "0", NotForOM2: true},
	{Name: "tiling_schedule_optimize", Default: "0", NotForOM2: true},
	{Name: "jit_compile", Default: "1", Values: []string{"0", "1", "2"}, Code: "E10001"},
	{Name: "static_model_ops_lower_limit", NotForOM2: true, Since: afterCANN85},
	{Name: "h2d_overlapped_with_compute", NotForOM2: true, Since: afterCANN85},
	{Name: "disable_reuse_memory", Kind: Number, Default: "0", Values: bits, Code: "E10006"},
	{Name: "atomic_clean_policy", Default: "0", Values: bits, Code: "E10006"},
	{Name: "shape_generalized_build_mode", Default: "shape_precise", Values: []string{"shape_generalized", "shape_precise"}, Code: "E10001"},
	{Name: "enable_scope_fusion_passes"},
	{Name: "cluster_config", NotForOM2: true},
	{Name: "hccl_sub_comm_config", NotForOM2: true, Since: afterCANN85},

	// Compression and quantisation.
	{Name: "compression_optimize_conf"},
	{Name: "enable_compress_weight", Default: "false", NotForOM2: true},
	{Name: "compress_weight_conf", NotForOM2: true},
	{Name: "enable_attr_compression", Default: "true", NotForOM2: true, Since: afterCANN85},
	{Name: "sparsity", Kind: Number, Default: "0", Values: bits, Code: "E10006"},
	{Name: "cal_conf"},
	{Name: "quant_dumpable", NotForOM2: true},

	// Caches, tuning, what is told.
	{Name: "op_compiler_cache_mode", Default: "disable", Values: []string{"enable", "disable", "force"}, Code: "E10001"},
	{Name: "op_compiler_cache_dir"},
	{Name: "op_bank_path"},
	{Name: "mdl_bank_path"},
	{Name: "auto_tune_mode"},
	{Name: "debug_dir"},
	{Name: "op_debug_level", Kind: Number, Default: "0", Values: []string{"0", "1", "2", "3", "4"}, Code: "E10001"},
	{Name: "op_debug_config"},
	{Name: "log", Default: "null", Values: logLevels, Code: "E10010"},
	{Name: "dump_mode", Default: "0", Values: bits, Code: "E10006", NotForOM2: true},
	{Name: "display_model_info", Default: "0", Values: bits, Code: "E10006", NotForOM2: true},
	{Name: "status_check", Default: "0", Values: bits, Code: "E10006", NotForOM2: true},
	{Name: "export_compile_stat", Default: "false", Since: afterCANN85},
	{Name: "build_config", Since: afterCANN85},
}

// Flags lists every flag of ATC.
func Flags() []FlagSpec { return slices.Clone(flagTable) }

// findFlag gives the flag of that full name, or nil.
func findFlag(name string) *FlagSpec {
	for i := range flagTable {
		if flagTable[i].Name == name {
			return &flagTable[i]
		}
	}
	return nil
}

func flagNames() []string {
	names := make([]string, len(flagTable))
	for i, f := range flagTable {
		names[i] = f.Name
	}
	return names
}

// check says what is wrong with a value of the flag, as ATC does while it reads
// the command line; nil is nothing.
func (f *FlagSpec) check(value string) *Diagnosis {
	var d Diagnosis
	switch _, isTruth := truth(value); {
	case f.Values != nil && !slices.Contains(f.Values, value):
		d = f.outside(value)
	case f.Kind == Switch && !isTruth:
		d = wrongValue("E10003", f.Name, value, "it takes a truth value").
			with("write --%s=true or --%s=false", f.Name, f.Name)
	default:
		return nil
	}
	return &d
}

func (f *FlagSpec) outside(value string) Diagnosis {
	if value == "" {
		return wrongValue(f.Code, f.Name, value, "the value is empty; it takes %s", listed(f.Values))
	}
	d := wrongValue(f.Code, f.Name, value, "it takes %s", listed(f.Values))
	if near := nearest(value, f.Values); near != "" && len(value) > 1 {
		d = d.with("did you mean --%s=%s?", f.Name, near)
	}
	return d
}

// truth reads a switch's value as ATC does.
func truth(value string) (isOn, ok bool) {
	switch strings.ToLower(value) {
	case "", "1", "t", "true", "y", "yes":
		return true, true
	case "0", "f", "false", "n", "no":
		return false, true
	}
	return false, false
}
