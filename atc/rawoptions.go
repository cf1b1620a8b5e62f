package atc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"
)

// rawOptionFlags gives, for each of GE's option keys that --raw_ge_options may
// hold, the flag it stands for.
var rawOptionFlags = map[string]string{
	"input_format": "input_format", "input_shape": "input_shape", "ge.inputShape": "input_shape",
	"input_shape_range": "input_shape_range", "op_name_map": "op_name_map", "target": "target",
	"check_report": "check_report", "is_input_adjust_hw_layout": "is_input_adjust_hw_layout",
	"is_output_adjust_hw_layout": "is_output_adjust_hw_layout", "enable_scope_fusion_passes": "enable_scope_fusion_passes",
	"ge.dynamicBatchSize": "dynamic_batch_size", "ge.dynamicImageSize": "dynamic_image_size", "ge.dynamicDims": "dynamic_dims",
	"ge.exec.op_precision_mode": "op_precision_mode", "ge.exec.precision_mode": "precision_mode",
	"ge.exec.precision_mode_v2": "precision_mode_v2", "ge.exec.modify_mixlist": "modify_mixlist",
	"ge.socVersion": "soc_version", "ge.virtual_type": "virtual_type", "ge.engineType": "core_type",
	"ge.aicoreNum": "aicore_num", "ge.opSelectImplmode": "op_select_implmode",
	"ge.optypelistForImplmode": "optypelist_for_implmode", "ge.opDebugLevel": "op_debug_level",
	"ge.debugDir": "debug_dir", "ge.op_compiler_cache_dir": "op_compiler_cache_dir",
	"ge.op_compiler_cache_mode": "op_compiler_cache_mode", "ge.mdl_bank_path": "mdl_bank_path",
	"ge.op_bank_path": "op_bank_path", "ge.display_model_info": "display_model_info",
	"ge.exec.tuneDeviceIds": "device_id", "ge.enableSmallChannel": "enable_small_channel",
	"ge.enableSparseMatrixWeight": "sparsity", "ge.exec.atomicCleanPolicy": "atomic_clean_policy",
	"ge.externalWeight": "external_weight", "ge.deterministic": "deterministic",
	"ge.deterministicLevel": "deterministic_level", "ge.customizeDtypes": "customize_dtypes",
	"keep_dtype": "keep_dtype", "compress_weight_conf": "compress_weight_conf", "ge.frameworkType": "framework",
	"ge.calibrationConfFile": "cal_conf", "ge.outputNodeName": "out_nodes", "ge.insertOpFile": "insert_op_conf",
	"ge.exec.allow_hf32": "allow_hf32", "ge.outputDatatype": "output_type", "ge.INPUT_NODES_SET_FP16": "input_fp16_nodes",
	"ge.exec.disableReuseMemory": "disable_reuse_memory", "ge.autoTuneMode": "auto_tune_mode",
	"ge.bufferOptimize": "buffer_optimize", "ge.fusionSwitchFile": "fusion_switch_file",
	"ge.compressionOptimizeConf": "compression_optimize_conf", "op_debug_config": "op_debug_config",
	"ge.enableCompressWeight": "enable_compress_weight", "ge.enableAttrCompression": "enable_attr_compression",
	"ge.enableSingleStream": "enable_single_stream", "ac_parallel_enable": "ac_parallel_enable",
	"ge.tiling_schedule_optimize": "tiling_schedule_optimize", "log": "log", "dump_mode": "dump_mode",
	"ge.status_check": "status_check", "ge.saveOriginalModel": "save_original_model",
	"ge.shape_generalized_build_mode": "shape_generalized_build_mode", "ge.host_env_os": "host_env_os",
	"ge.host_env_cpu": "host_env_cpu", "ge.quant_dumpable": "quant_dumpable", "ge.is_weight_clip": "is_weight_clip",
	"ge.cluster_config": "cluster_config", "ge.hccl_sub_comm_config": "hccl_sub_comm_config", "ge.oo.level": "oo_level",
	"ge.inputHintShape": "input_hint_shape", "ge.jit_compile": "jit_compile", "ge.optimizationSwitch": "optimization_switch",
	"ge.exec.static_model_ops_lower_limit": "static_model_ops_lower_limit", "ge.buildConfig": "build_config",
	"ge.oo.constantFolding": "oo_constant_folding", "ge.oo.deadCodeElimination": "oo_dead_code_elimination",
	"ge.topoSortingMode": "topo_sorting_mode", "ge.exportCompileStat": "export_compile_stat",
	"ge.autoMultistreamParallelMode": "multi_stream_parallel_mode",
}

// notByRawOptions are the flags that have to stand on the command line itself.
var notByRawOptions = []string{"model", "output", "framework", "soc_version"}

// rawSections are the parts of the file's object, the weakest first.
var rawSections = []string{"global", "session", "graph"}

// mostRawOptions bounds the file, in bytes: it is read whole.
const mostRawOptions = 16 << 20

type rawOption struct{ key, section, value string }

// rawOptions reads --raw_ge_options. The options come in the order of their keys;
// the stronger section has replaced the weaker.
func (c *checker) rawOptions() ([]rawOption, *Diagnosis) {
	file := c.value("raw_ge_options")
	broken := func(format string, args ...any) ([]rawOption, *Diagnosis) {
		d := problem("E10032", "raw_ge_options", "--raw_ge_options=%s: %s", file, fmt.Sprintf(format, args...)).about(file).
			with(`it holds {"compile options": {"global": {…}, "session": {…}, "graph": {…}}}, every value a string`)
		return nil, &d
	}
	data, err := readLimited(c.path(file), mostRawOptions)
	if err != nil {
		return broken("%v", err)
	}
	var whole map[string]json.RawMessage
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !json.Valid(data) || !utf8.Valid(data) {
		return broken("it is not valid JSON")
	}
	if !decodeObject(data, &whole) {
		return broken("the whole of it has to be an object")
	}
	var sections map[string]json.RawMessage
	if !decodeObject(whole["compile options"], &sections) {
		return broken(`it has no object "compile options"`)
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if !slices.Contains(rawSections, name) {
			return broken("%q is no section of it; there are %s", name, listed(rawSections))
		}
	}
	options := map[string]rawOption{}
	for _, name := range rawSections {
		section, given := sections[name]
		if !given {
			continue
		}
		var entries map[string]json.RawMessage
		if !decodeObject(section, &entries) {
			return broken("section %q has to be an object", name)
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			var value *string
			switch err := json.Unmarshal(entries[key], &value); {
			case key == "":
				return broken("section %q has an option without a name", name)
			case err != nil || value == nil:
				return broken("the value of %s in section %q has to be a string", key, name)
			}
			options[key] = rawOption{key, name, *value}
		}
	}
	return slices.SortedFunc(maps.Values(options), func(a, b rawOption) int { return bytes.Compare([]byte(a.key), []byte(b.key)) }), nil
}

// decodeObject reads a JSON object; anything else, null too, is not one.
func decodeObject(data []byte, into *map[string]json.RawMessage) bool {
	return len(data) > 0 && json.Unmarshal(data, into) == nil && *into != nil
}

// rawNames holds every option of the file against the table, and its value
// against its flag.
func rawNames(c *checker) (out []Diagnosis) {
	options, d := c.rawOptions()
	if d != nil {
		return []Diagnosis{*d}
	}
	ignores, _ := truth(c.value("raw_ge_options_ignore_unsupported"))
	for _, o := range options {
		flag, known := rawOptionFlags[o.key]
		if !known {
			if !ignores {
				out = append(out, problem("E10055", "raw_ge_options", "%s in section %q of %s is no option that ATC takes", o.key, o.section, c.value("raw_ge_options")).
					about(o.key).with("%s", rawRemedy(o.key)))
			}
			continue
		}
		if d := findFlag(flag).check(o.value); d != nil {
			out = append(out, *d)
		} else if d := rawLater(flag, o.value); d != nil {
			out = append(out, *d)
		}
	}
	return out
}

// rawLater holds a value against the checks of its flag that come later when the
// flag stands on the command line. ATC has no code of its own for the second.
func rawLater(flag, value string) *Diagnosis {
	if flag == "static_model_ops_lower_limit" {
		return checkOpsLimit(value)
	}
	if values, ok := lateValues[flag]; ok && !slices.Contains(values, value) {
		d := wrongValue("E19999", flag, value, "it takes %s", listed(values))
		return &d
	}
	return nil
}

func rawRemedy(key string) string {
	if near := nearest(key, slices.Collect(maps.Keys(rawOptionFlags))); near != "" {
		return "did you mean " + near + "?"
	}
	return "take it out, or let ATC pass over it with --raw_ge_options_ignore_unsupported=true"
}

// rawRequired keeps the file from standing for flags that have to be given.
func rawRequired(c *checker) (out []Diagnosis) {
	options, d := c.rawOptions()
	if d != nil {
		return nil
	}
	for _, o := range options {
		if flag := rawOptionFlags[o.key]; slices.Contains(notByRawOptions, flag) && !c.line.IsSet(flag) {
			out = append(out, wrongValue("E10001", flag, o.value, "%s in %s does not replace the flag", o.key, c.value("raw_ge_options")).
				about(o.key).with("give --%s=%s on the command line", flag, o.value))
		}
	}
	return out
}

// applyRawOptions lets the options of the file count where the command line has
// no flag for them.
func (c *checker) applyRawOptions() {
	if c.value("raw_ge_options") == "" {
		return
	}
	options, d := c.rawOptions()
	if d != nil {
		return
	}
	for _, o := range options {
		flag, known := rawOptionFlags[o.key]
		if known && !c.line.IsSet(flag) && !slices.Contains(notByRawOptions, flag) && findFlag(flag).check(o.value) == nil {
			c.raw[flag] = o.value
		}
	}
}

// readLimited reads a file of at most so many bytes.
func readLimited(path string, most int64) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s", reasonOf(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s", reasonOf(err))
	case int64(len(data)) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return data, nil
}
