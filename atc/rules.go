package atc

import "slices"

// rule is one thing that a command line has to keep.
type rule struct {
	name string
	// codes are what it answers with.
	codes []string
	// where says from where the rule is known: a source of ATC, a page of its guide.
	where string
	tasks task
	// reads lists the flags it depends on, without dashes: when one of them is known
	// to be wrong already, the rule says nothing.
	reads []string
	check func(*checker) []Diagnosis
}

// isGuide says whether only the user guide has the rule: ATC does not look.
func (r rule) isGuide() bool {
	return slices.Contains(r.codes, CodeRule) || slices.Contains(r.codes, CodeLimit)
}

func answers(codes ...string) []string { return codes }
func flags(names ...string) []string   { return names }

// one makes a check of many results out of a check of one.
func one(check func(*checker) *Diagnosis) func(*checker) []Diagnosis {
	return func(c *checker) []Diagnosis {
		if d := check(c); d != nil {
			return []Diagnosis{*d}
		}
		return nil
	}
}

// file checks that a flag's file is there, when the flag is given.
func file(flag string) func(*checker) []Diagnosis {
	return one(func(c *checker) *Diagnosis { return c.inputFile(flag) })
}

// takes checks that a flag's value is one of a few.
func takes(code, flag string, values ...string) func(*checker) []Diagnosis {
	return one(func(c *checker) *Diagnosis {
		value := c.value(flag)
		if slices.Contains(values, value) {
			return nil
		}
		given := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		d := wrongValue(code, flag, value, "it takes %s", listed(given))
		if near := nearest(value, given); near != "" && len(value) > 1 {
			d = d.with("did you mean --%s=%s?", flag, near)
		}
		return &d
	})
}

// required checks that a flag has a value.
func required(flag string) func(*checker) []Diagnosis {
	return one(func(c *checker) *Diagnosis {
		if c.value(flag) != "" {
			return nil
		}
		d := problem("E10054", flag, "--%s is required and missing", flag).
			with("%s", "give it; when it is there, a value with ; in it may stand without quotes and end the command line")
		return &d
	})
}

// rules is every rule behind the reading of the command line, in the order in
// which ATC comes to them. What the user guide has beyond ATC stands at the end.
var rules = slices.Concat(globalRules, modeRules, fileRules, precisionRules, shapeRules, optionRules, targetRules, modelRules, outputRules, gearRules, guideRules)

// globalRules come first, whatever the task is.
var globalRules = []rule{
	{"raw-exists", answers("E10001"), "main_impl", anyTask, flags("raw_ge_options"), file("raw_ge_options")},
	{"raw-options", answers("E10032", "E10055", "E10001"), "main_impl", anyTask, flags("raw_ge_options"), ifGiven("raw_ge_options", rawNames)},
	{"raw-required", answers("E10001"), "main_impl", anyTask, flags("raw_ge_options"), ifGiven("raw_ge_options", rawRequired)},
	{"auto_tune_mode-gone", answers("E10001"), "main_impl", anyTask, flags("auto_tune_mode"), one(noAutoTune)},
	{"deterministic-pair", answers("E10001"), "main_impl", anyTask, flags("deterministic", "deterministic_level"), one(deterministicPair)},
}

// modeRules say what belongs to which --mode.
var modeRules = []rule{
	{"singleop-alone", answers("E10001"), "main_impl", singleOp, flags("singleop", "mode", "framework"), one(singleOpAlone)},
	{"mode1-framework", answers("E10001"), "main_impl", toJSON, flags("framework"), takes("E10001", "framework", "0", "3", "5", "-1")},
	{"weight-exists", answers("E10001"), "main_impl", byMode, flags("weight"), file("weight")},
	{"framework-required", answers("E10007"), "main_impl", build | preCheck, flags("framework"), one(frameworkGiven)},
	{"caffe-weight", answers("E10008"), "main_impl", build | preCheck, flags("framework", "weight"), one(caffeWeight)},
	{"nano-pair", answers("E10055"), "main_impl", byMode, flags("soc_version", "mode"), one(nanoPair)},

	{"mode5-om", answers("E10004"), "main_impl", textJSON | toJSON | modelInfo, flags("om"), one(omGiven)},
	{"mode5-txt", answers("E10001"), "main_impl", textJSON, flags("om"), one(omIsText)},
	{"json-given", answers("E10004"), "main_impl", textJSON | toJSON, flags("json"), one(jsonGiven)},
	{"om-exists", answers("E10001"), "util", textJSON | toJSON | modelInfo, flags("om"), file("om")},
	{"json-path", answers("E10001"), "util", textJSON | toJSON, flags("json"), one(func(c *checker) *Diagnosis { return c.outputFile("json", c.value("json")) })},
	{"mode6-alone", answers("E10057"), "main_impl", modelInfo, flags("framework"), one(infoAlone)},
	{"om-format", answers("E10001"), "model_parser_base", toJSON | modelInfo, flags("om", "framework"), one(omFormat)},
	{"om-onnx", answers("E13005", "E13015", "E16001", "E16004"), "onnx_parser", toJSON, flags("om", "framework"), one(func(c *checker) *Diagnosis { return c.modelFile("om") })},

	{"input_format-set", answers("E10001"), "main_impl", checks, flags("input_format", "framework"), one(inputFormat)},
}

// fileRules ask for what every compile needs.
var fileRules = []rule{
	{"output-required", answers("E10054"), "main_impl", singleOp, flags("output"), required("output")},
	{"soc-required", answers("E10054"), "main_impl", checks | singleOp, flags("soc_version"), required("soc_version")},
	{"output-required", answers("E10054"), "main_impl", builds, flags("output"), required("output")},
	{"model-required", answers("E10054"), "main_impl", checks, flags("model"), required("model")},
	{"model-exists", answers("E10001"), "util", checks, flags("model"), file("model")},
	{"output-path", answers("E10001"), "util", builds | singleOp, flags("output"), one(outputPath)},
	{"output-name", answers("E10022"), "main_impl", builds, flags("output"), one(outputName)},
}

// precisionRules are about numbers and kernels.
var precisionRules = []rule{
	{"implmode-pair", answers("E10001"), "option_utils", checks | singleOp, flags("op_select_implmode", "optypelist_for_implmode"), one(implModePair)},
	{"op_precision_mode-exists", answers("E10001"), "main_impl", checks | singleOp, flags("op_precision_mode"), file("op_precision_mode")},
	{"is_weight_clip-01", answers("E10006"), "option_utils", checks | singleOp, flags("is_weight_clip"), takes("E10006", "is_weight_clip", "0", "1")},
	{"precision-exclusive", answers("E10056"), "option_utils", checks | singleOp, flags("precision_mode", "precision_mode_v2"), one(precisionExclusive)},
	{"modify_mixlist-mode", answers("E10001"), "option_utils", checks | singleOp, flags("modify_mixlist", "precision_mode", "precision_mode_v2"), one(mixListMode)},
}

var gearFlagNames = flags("dynamic_batch_size", "dynamic_image_size", "dynamic_dims")

// shapeRules are the grammars of shapes and gears, without the model.
var shapeRules = []rule{
	{"shape-form", answers("E10002", "E10040"), "option_utils", checks, flags("input_shape", "input_shape_range"), one(shapeForm)},
	{"gear-no-hint", answers("E10001"), "option_utils", checks, append(flags("input_hint_shape"), gearFlagNames...), one(gearNoHint)},
	{"gear-exclusive", answers("E10009"), "option_utils", checks, append(flags("input_shape_range"), gearFlagNames...), one(gearExclusive)},
	{"range-form", answers("E10048"), "option_utils", checks, append(flags("input_shape", "input_shape_range"), gearFlagNames...), one(rangeForm)},
	{"gear-shape-needed", answers("E10004"), "option_utils", checks, append(flags("input_shape"), gearFlagNames...), one(gearShapeNeeded)},
	{"gear-shape-form", answers("E10002", "E10013", "E10014"), "option_utils", checks, append(flags("input_shape"), gearFlagNames...), one(gearShapeForm)},
	{"gear-batch", answers("E10012", "E10018", "E10031", "E10003"), "option_utils, multi_batch_options", checks, append(flags("input_shape"), gearFlagNames...), one(gearBatch)},
	{"gear-image", answers("E10019", "E10003", "E10020"), "option_utils, multi_batch_options", checks, append(flags("input_shape", "input_format"), gearFlagNames...), one(gearImage)},
	{"gear-dims", answers("E10001", "E10058", "E10003"), "option_utils", checks, append(flags("input_shape"), gearFlagNames...), one(gearDims)},
	{"gear-dims-aipp", answers("E10001"), "main_impl", checks, flags("insert_op_conf", "dynamic_dims"), one(gearDimsAIPP)},
}

// optionRules are the other files and values, each for itself.
var optionRules = []rule{
	{"cal_conf-exists", answers("E10001"), "main_impl", checks, flags("cal_conf"), file("cal_conf")},
	{"op_name_map-exists", answers("E10001"), "main_impl", checks, flags("op_name_map"), file("op_name_map")},
	{"insert_op_conf-exists", answers("E10001"), "option_utils", checks, flags("insert_op_conf"), file("insert_op_conf")},
	{"compress_weight_conf-exists", answers("E10001"), "option_utils", checks, flags("compress_weight_conf"), file("compress_weight_conf")},
	{"compress_weight-bool", answers("E10005"), "option_utils", checks, flags("enable_compress_weight"), takes("E10005", "enable_compress_weight", "true", "false", "")},
	{"compress-exclusive", answers("E10047"), "option_utils", checks, flags("enable_compress_weight", "compress_weight_conf"), one(compressExclusive)},
	{"keep_dtype-exists", answers("E10001"), "option_utils", checks, flags("keep_dtype"), file("keep_dtype")},
	{"check_report-path", answers("E10001", "E10004"), "main_impl", checks, flags("check_report"), one(checkReport)},
	{"save_original_model-bool", answers("E10005"), "main_impl", checks, flags("save_original_model"), takes("E10005", "save_original_model", "true", "false", "")},
	{"enable_single_stream-bool", answers("E10005"), "option_utils", checks, flags("enable_single_stream"), takes("E10005", "enable_single_stream", "true", "false", "")},
	{"ac_parallel-01", answers("E10006"), "option_utils", checks, flags("ac_parallel_enable"), takes("E10006", "ac_parallel_enable", "0", "1", "")},
	{"tiling_schedule-01", answers("E10006"), "option_utils", checks, flags("tiling_schedule_optimize"), takes("E10006", "tiling_schedule_optimize", "0", "1", "")},
	{"nano-display", answers("E10001"), "main_impl", build, flags("display_model_info", "mode"), one(nanoDisplay)},
	{"om2-flags", answers("E10001"), "main_impl", buildOM2, nil, om2Flags},
	{"om2-host", answers("E10001"), "option_utils", buildOM2, flags("host_env_os", "host_env_cpu"), one(om2Host)},
	{"host_env-os", answers("E10001"), "option_utils", build | preCheck, flags("host_env_os"), takes("E10001", "host_env_os", "linux", "minios", "")},
	{"host_env-cpu", answers("E10001"), "option_utils", build | preCheck, flags("host_env_cpu"), takes("E10001", "host_env_cpu", "x86_64", "aarch64", "arm64", "arm", "")},
	{"allow_hf32-bool", answers("E10005"), "option_utils", checks | singleOp, flags("allow_hf32"), takes("E10005", "allow_hf32", "true", "false", "")},
	{"quant_dumpable-01", answers("E10006"), "option_utils", checks, flags("quant_dumpable"), takes("E10006", "quant_dumpable", "0", "1", "")},
	{"attr_compression-bool", answers("E10005"), "option_utils", checks, flags("enable_attr_compression"), one(attrCompression)},
	{"static_model_ops-range", answers("E10001"), "option_utils", checks, flags("static_model_ops_lower_limit"), one(opsLimit)},
}

// targetRules are about the chip; ATC starts its engines here.
var targetRules = []rule{
	{"soc-known", answers("E19999"), "model_helper", checks | singleOp, flags("soc_version"), one(socKnown)},
	{"aicore_num", answers("E10001", "E10060"), "core_num_utils", checks | singleOp, flags("aicore_num", "soc_version"), one(coreNumbers)},
	{"singleop-file", answers("E10023", "E10025"), "single_op_parser", singleOp, flags("singleop"), one(singleOpFile)},
}

// modelRules hold the command line against the model.
var modelRules = []rule{
	{"shape-static", answers("E10002", "E10011", "E10013", "E10014"), "option_utils", checks, flags("input_shape", "input_shape_range"), one(shapeStatic)},
	{"output_hw_layout-bool", answers("E10005"), "omg", checks, flags("is_output_adjust_hw_layout"), hwLayout("is_output_adjust_hw_layout")},
	{"out_nodes-form", answers("E10001", "E10013", "E10014"), "omg", checks, flags("out_nodes"), ifONNX(one(outNodesForm))},
	{"framework-parser", answers("E19999"), "omg", buildOM2, flags("framework"), one(frameworkParsed)},
	{"model-file", answers("E13005", "E13015", "E16001", "E16004"), "onnx_parser", checks, flags("model", "framework"), ifONNX(one(func(c *checker) *Diagnosis { return c.modelFile("model") }))},
	{"model-nodes", answers("E13009", "E13010"), "pre_checker", checks, flags("model"), ifONNX(modelNodes)},
	{"external-keys", answers("E10001"), "onnx_file_constant_parser", checks, flags("model"), ifONNX(one(externalKeys))},
	{"shape-rank", answers("E19999"), "onnx_data_parser", builds, flags("model", "input_shape", "input_shape_range"), ifONNX(shapeRank)},
	{"out_nodes-tensor", answers("E19999"), "onnx_parser", builds, flags("model", "out_nodes"), ifONNX(outTensors)},
	{"hw_layout-bool", answers("E10005"), "omg", builds, flags("is_input_adjust_hw_layout"), hwLayout("is_input_adjust_hw_layout")},
	{"fp16_nodes", answers("E10016", "E10017"), "omg", builds, flags("model", "input_fp16_nodes"), ifONNX(fp16Nodes)},
	{"shape-needed", answers("E10001"), "omg", builds, flags("model", "input_shape", "input_shape_range"), ifONNX(shapeNeeded)},
	{"shape-names", answers("E10016", "E10017"), "omg", builds, flags("model", "input_shape", "input_shape_range"), ifONNX(shapeNames)},
	{"range-positions", answers("E10048"), "option_utils", builds, flags("input_shape", "input_shape_range"), ifONNX(one(rangePositions))},
	{"range-names", answers("E10016", "E10017"), "option_utils", builds, flags("model", "input_shape", "input_shape_range"), ifONNX(rangeNames)},
	{"range-fits", answers("E10048", "E10049", "E10050"), "tensor_utils", builds, flags("model", "input_shape", "input_shape_range"), ifONNX(rangeFits)},
}

// outputRules are about what comes out, and about switches the compile looks at.
var outputRules = []rule{
	{"output_type", answers("E10001", "E10013", "E10014"), "omg", builds, flags("output_type", "out_nodes", "model"), ifONNX(one(outputType))},
	{"out_nodes-known", answers("E10016", "E10003"), "omg", builds, flags("model", "out_nodes"), ifONNX(outNodes)},
	{"keep_dtype-types", answers("E10003"), "keep_dtype_option", builds, flags("keep_dtype"), one(keepTypes)},
	{"compression-amct", answers("E10001"), "main_impl", builds, flags("compression_optimize_conf"), one(compressionTool)},
	{"oo_level-set", answers("E10001"), "optimization_option", builds, flags("oo_level"), takes("E10001", "oo_level", "O1", "O3")},
	{"export_compile_stat-set", answers("E10001"), "option_register", builds, flags("export_compile_stat"), lateSet("export_compile_stat")},
	{"oo_constant_folding-bool", answers("E10001"), "option_register", builds, flags("oo_constant_folding"), lateSet("oo_constant_folding")},
	{"oo_dead_code-bool", answers("E10001"), "option_register", builds, flags("oo_dead_code_elimination"), lateSet("oo_dead_code_elimination")},
	{"topo_sorting_mode-set", answers("E10001"), "option_register", builds, flags("topo_sorting_mode"), lateSet("topo_sorting_mode")},
}

// gearRules hold gears against each other and against the inputs.
var gearRules = []rule{
	{"gear-rows", answers("E10035", "E10037", "E10039", "E10001", "E10046", "E19999"), "multi_batch_options", builds, append(flags("input_shape", "model"), gearFlagNames...), one(gearNumbers)},
	{"fp16_nodes-aipp", answers("E10034"), "guide: insert_op_conf", builds, flags("model", "input_fp16_nodes", "insert_op_conf"), ifONNX(fp16AIPP)},
}

// guideRules are what the user guide forbids and ATC does not look at.
var guideRules = []rule{
	{"gear-limit", answers(CodeLimit), "guide: dynamic_batch_size, dynamic_image_size, dynamic_dims", builds, append(flags("soc_version"), gearFlagNames...), one(gearLimit)},
	{"gear-scalar-listed", answers(CodeRule), "guide: input_shape", builds, append(flags("input_shape", "model"), gearFlagNames...), ifONNX(gearScalars)},
	{"gear-batch-axis", answers(CodeRule), "guide: dynamic_batch_size", builds, append(flags("input_shape"), gearFlagNames...), gearBatchAxes},
	{"aipp-format", answers(CodeRule), "guide: AIPP", builds, flags("insert_op_conf", "input_format"), one(formatOfAIPP)},
	{"precision-chip", answers(CodeRule), "guide: precision_mode, precision_mode_v2", builds | singleOp, flags("precision_mode", "precision_mode_v2", "soc_version"), one(precisionOfChip)},
	{"single-stream", answers(CodeRule), "guide: enable_single_stream", builds, flags("enable_single_stream", "multi_stream_parallel_mode"), one(singleStream)},
	{"range-chip", answers(CodeRule), "guide: input_shape", builds, flags("input_shape", "input_shape_range", "soc_version"), one(rangesOfChip)},
}

// ifGiven runs a check only when the flag has a value.
func ifGiven(flag string, check func(*checker) []Diagnosis) func(*checker) []Diagnosis {
	return func(c *checker) []Diagnosis {
		if c.value(flag) == "" {
			return nil
		}
		return check(c)
	}
}

// ifONNX runs a check only for ONNX models.
func ifONNX(check func(*checker) []Diagnosis) func(*checker) []Diagnosis {
	return func(c *checker) []Diagnosis {
		if !c.isONNX() {
			return nil
		}
		return check(c)
	}
}
