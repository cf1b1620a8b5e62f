package atc

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/soc"
)

// testFiles are the files the rows of this test name.
var testFiles = map[string]string{
	"list.txt":      "relu\nOpType::Relu\n",
	"types.txt":     "OpType::relu\n",
	"empty.onnx":    "",
	"text.onnx":     "this is no model",
	"dump.txt":      "graph { }",
	"aipp.cfg":      "aipp_op { aipp_mode: static related_input_rank: 0 input_format: RGB888_U8 }",
	"aipp_odd.cfg":  "# aipp_op { aipp_mode: static }\naipp_op { related_input_rank: 3 }",
	"aipp_open.cfg": "aipp_op { aipp_mode: dynamic }",
	"aipp_size.cfg": "aipp_op {\n  aipp_mode: static\n  src_image_size_w: 8\n}",
	"op.json":       `[]`,
	"good.om":       "IMOD" + strings.Repeat("\x00", 72) + "\x03\x00\x00\x00" + strings.Repeat("\x00", 176) + "abc",
	"wide.om":       "IMOD" + strings.Repeat("\x00", 180) + "\x02\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 64) + "ab",
	"short.om":      "IMOD" + strings.Repeat("\x00", 72) + "\x09\x00\x00\x00" + strings.Repeat("\x00", 176) + "abc",
	"pack.om2":      "PK\x03\x04",
	"raw.json":      `{"compile options": {"global": {"ge.exec.precision_mode_v2": "fp16"}, "graph": {"ge.exec.precision_mode_v2": "origin"}}}`,
	"raw_null.json": `{"compile options": {"graph": null}}`,
	"raw_list.json": `[1]`,
	"raw_key.json":  `{"compile options": {"graph": {"": "1"}}}`,
	"raw_num.json":  `{"compile options": {"session": {"ge.jit_compile": 0}}}`,
	"raw_bad.json":  `{"compile options": {"session": {"ge.jit_compile": "7"}}}`,
	"raw_late.json": `{"compile options": {"session": {"ge.topoSortingMode": "9"}}}`,
	"raw_ops.json":  `{"compile options": {"session": {"ge.exec.static_model_ops_lower_limit": "-2"}}}`,
	"raw_lost.json": `{"compile options": {"session": {"ge.exec.precision_mod": "fp16"}}}`,
	"raw_need.json": `{"compile options": {"session": {"ge.frameworkType": "5"}}}`,
	"raw_open.json": `{"compile options":`,
	"raw_none.json": `{"options": {}}`,
	"raw_part.json": `{"compile options": {"device": {}}}`,
	"raw_om2.json":  `{"compile options": {"session": {"ge.status_check": "1"}}}`,
}

// testModels are its models.
var testModels = map[string]string{
	"fixed":    `g (float[1,3,8,8] x) => (float[1,3,8,8] y) { [relu] y = Relu (x) }`,
	"open":     `g (float[n,3,h,w] x) => (float[n,3,h,w] y) { [relu] y = Relu (x) }`,
	"two":      `g (int64[n,s] ids, int64[n,s] mask) => (int64[n,s] y) { [add] y = Add (ids, mask) }`,
	"scalar":   `g (float[n,8] x, float s) => (float[n,8] y) { [mul] y = Mul (x, s) }`,
	"colon":    `g (float[1,4] "a:0", float[1,4] "b-1") => (float[1,4] y) { [add] y = Add ("a:0", "b-1") }`,
	"unnamed":  `g (float[1,4] x) => (float[1,2] p, float[1,2] q) { t = Relu (x) p, q = Split <axis = 1> (t) }`,
	"same":     `g (float[1,4] x) => (float[1,4] y) { [a] t = Relu (x) [a] y = Relu (t) }`,
	"likeIn":   `g (float[1,4] x) => (float[1,4] y) { [x] y = Relu (x) }`,
	"noInput":  `g () => (float[2] y) <float[2] w = {1, 2}> { [relu] y = Relu (w) }`,
	"noOutput": `g (float[2] x) => () { [relu] y = Relu (x) }`,
	"unranked": `g (float[] x) => (float[] y) { [relu] y = Relu (x) }`,
	"stored":   `g (float[1,4] x, float[4] w = {1, 2, 3, 4}) => (float[1,4] y) { [add] y = Add (x, w) }`,
	"newer":    `<opset_import: ["": 21]> g (float[1,4] x) => (float[1,4] y) { [relu] y = Relu (x) }`,
	"unknown":  `g (float[1,4] x) => (float[1,4] y) { [first] t = Relu (x) [odd] y = Rellu (t) }`,
	"custom":   `<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[1,4] x) => (float[1,4] y) { [odd] y = mine.Special (x) }`,
	"nested": `g (bool c, float[1,4] x) => (float[1,4] y) { [if] y = If (c) <
		then_branch = a () => (p) { [odd] p = Rellu (x) },
		else_branch = b () => (q) { q = Relu (x) }> }`,
	"images": `g (float[1,3,h,w] x, float[n,k] z) => (float[1,3,h,w] y) { [relu] y = Relu (x) [other] t = Relu (z) }`,
}

// headed gives a model an opset that ATC knows, unless it says its own.
func headed(source string) string {
	if strings.HasPrefix(source, "<") {
		return source
	}
	return `<ir_version: 8, opset_import: ["": 17]> ` + source
}

func testFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range testFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, source := range testModels {
		if err := text.MustParse(t, headed(source)).Save(filepath.Join(dir, name+".onnx"), onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	writeExternal(t, filepath.Join(dir, "placed.onnx"))
	writeExternal(t, filepath.Join(dir, "summed.onnx"), &onnxpb.StringStringEntryProto{Key: proto.String("checksum"), Value: proto.String("da39a3")})
	return dir
}

// need is what every build of a model has; a row's own words stand behind it, and
// the last one counts.
const need = "--framework=5 --output=out/m --soc_version=Ascend910B4 --model="

// rows: the model (or a - for none of the usual words), what stands behind, the
// rule that answers ("" is accepted, flag is the reading of the command line), its
// code, and what the message must hold.
var rows = []struct{ model, args, rule, code, holds string }{
	{"fixed", "", "", "", ""},
	{"fixed", "--mode=3", "", "", ""},
	{"fixed", "--mode=7", "", "", ""},

	{"fixed", "--mode=4", "flag", "E10001", "--mode"},
	{"fixed", "--mode=", "flag", "E10001", "--mode"},
	{"fixed", "--virtual_type=yes", "flag", "E10001", "--virtual_type"},
	{"fixed", "--sparsity=2", "flag", "E10006", "--sparsity"},
	{"fixed", "--framework=1 --framework=9", "flag", "E10007", "--framework"},
	{"fixed", "--log=loud", "flag", "E10010", "loud"},
	{"fixed", "--raw_ge_options_ignore_unsupported=perhaps", "flag", "E10003", "--raw_ge_options_ignore_unsupported"},
	{"fixed", "--lgo=info", "flag", CodeStderr, "lgo"},
	{"fixed", "--dynamic=1", "flag", CodeStderr, "dynamic"},
	{"fixed", "--debug_dir", "flag", CodeStderr, "debug_dir"},
	{"fixed", "word", "flag", CodeStderr, "word"},
	{"fixed", "-- --log=info", "flag", CodeStderr, "--log=info"},
	{"fixed", "-x", "flag", CodeStderr, "x"},
	{"fixed", "-op-debug-level 1 -LOG=info", "flag", CodeStderr, "LOG"},
	{"fixed", "-op-debug-level 1", "", "", ""},

	{"fixed", "--raw_ge_options=gone.json", "raw-exists", "E10001", "--raw_ge_options"},
	{"fixed", "--raw_ge_options=raw.json", "", "", ""},
	{"fixed", "--raw_ge_options=raw_open.json", "raw-options", "E10032", "raw_open.json"},
	{"fixed", "--raw_ge_options=.", "raw-options", "E10032", "folder"},
	{"fixed", "--raw_ge_options=raw_list.json", "raw-options", "E10032", "object"},
	{"fixed", "--raw_ge_options=raw_none.json", "raw-options", "E10032", "compile options"},
	{"fixed", "--raw_ge_options=raw_part.json", "raw-options", "E10032", "device"},
	{"fixed", "--raw_ge_options=raw_null.json", "raw-options", "E10032", "graph"},
	{"fixed", "--raw_ge_options=raw_key.json", "raw-options", "E10032", "without a name"},
	{"fixed", "--raw_ge_options=raw_num.json", "raw-options", "E10032", "ge.jit_compile"},
	{"fixed", "--raw_ge_options=raw_bad.json", "raw-options", "E10001", "--jit_compile"},
	{"fixed", "--raw_ge_options=raw_ops.json", "raw-options", "E10001", "--static_model_ops_lower_limit"},
	{"fixed", "--raw_ge_options=raw_late.json", "raw-options", "E19999", "topo_sorting_mode"},
	{"fixed", "--raw_ge_options=raw_lost.json", "raw-options", "E10055", "ge.exec.precision_mod"},
	{"fixed", "--raw_ge_options=raw_lost.json --raw_ge_options_ignore_unsupported", "", "", ""},
	{"-", "--model=fixed.onnx --output=m --soc_version=Ascend910B4 --raw_ge_options=raw_need.json", "raw-required", "E10001", "--framework"},
	{"fixed", "--raw_ge_options=raw.json --precision_mode=force_fp16", "precision-exclusive", "E10056", "precision_mode_v2"},
	{"fixed", "--auto_tune_mode=GA", "auto_tune_mode-gone", "E10001", "--auto_tune_mode"},
	{"fixed", "--deterministic=1 --deterministic_level=0", "deterministic-pair", "E10001", "deterministicLevel"},
	{"fixed", "--deterministic=0 --deterministic_level=0", "", "", ""},

	{"-", "--singleop=op.json --output=ops --soc_version=Ascend910B4", "", "", ""},
	{"-", "--singleop=op.json --framework=5 --output=ops --soc_version=Ascend910B4", "singleop-alone", "E10001", "--singleop"},
	{"-", "--singleop=gone.json --output=ops --soc_version=Ascend910B4", "singleop-file", "E10023", "--singleop"},
	{"-", "--singleop=dump.txt --output=ops --soc_version=Ascend910B4", "singleop-file", "E10025", "dump.txt"},
	{"-", "--singleop=op.json --soc_version=Ascend910B4", "output-required", "E10054", "--output"},
	{"-", "--mode=1 --framework=1 --om=fixed.onnx --json=m.json", "mode1-framework", "E10001", "--framework"},
	{"-", "--mode=1 --framework=5 --om=fixed.onnx --json=m.json", "", "", ""},
	{"-", "--mode=1 --framework=5 --om=text.onnx --json=m.json", "om-onnx", "E13005", "text.onnx"},
	{"-", "--mode=1 --om=fixed.onnx --json=m.json", "om-format", "E10001", "om"},
	{"-", "--mode=1 --om=pack.om2 --json=m.json", "", "", ""},
	{"-", "--mode=6 --om=pack.om2", "om-format", "E19999", "OM2"},
	{"-", "--mode=6 --om=good.om", "", "", ""},
	{"-", "--mode=6 --om=wide.om", "", "", ""},
	{"-", "--mode=6 --om=short.om", "om-format", "E10001", "short.om"},
	{"-", "--mode=6 --om=.", "om-format", "E10001", "folder"},
	{"-", "--mode=1 --framework=5 --om=fixed.onnx", "json-given", "E10004", "--json"},
	{"-", "--mode=1 --framework=5 --om=fixed.onnx --json=a*b", "json-path", "E10001", "--json"},
	{"-", "--mode=5 --json=m.json", "mode5-om", "E10004", "--om"},
	{"-", "--mode=5 --om=fixed.onnx --json=m.json", "mode5-txt", "E10001", "--om"},
	{"-", "--mode=5 --om=dump.txt --json=m.json", "", "", ""},
	{"-", "--mode=6 --om=gone.om", "om-exists", "E10001", "--om"},
	{"-", "--mode=6 --om=fixed.onnx --framework=5", "mode6-alone", "E10057", "--mode"},
	{"fixed", "--weight=gone.bin", "weight-exists", "E10001", "--weight"},
	{"-", "--model=fixed.onnx --output=m --soc_version=Ascend910B4", "framework-required", "E10007", "--framework"},
	{"fixed", "--framework=0", "caffe-weight", "E10008", "--weight"},
	{"fixed", "--mode=30", "nano-pair", "E10055", "Ascend910B4"},
	{"fixed", "--soc_version=Ascend035B", "nano-pair", "E10055", "Ascend035B"},
	{"fixed", "--soc_version=Ascend035B --mode=30", "", "", ""},
	{"fixed", "--soc_version=Ascend035B --mode=30 --display_model_info=1", "nano-display", "E10001", "--display_model_info"},
	{"fixed", "--input_format=nchw", "input_format-set", "E10001", "--input_format"},
	{"fixed", "--input_format=", "", "", ""},

	{"fixed", "--soc_version=", "soc-required", "E10054", "--soc_version"},
	{"fixed", "--output=", "output-required", "E10054", "--output"},
	{"fixed", "--mode=3 --output=", "", "", ""},
	{"fixed", "--model=", "model-required", "E10054", "--model"},
	{"gone", "", "model-exists", "E10001", "--model"},
	{"fixed", "--output=a+b", "output-path", "E10001", "a+b.om"},
	{"fixed", "--output=list.txt/m", "output-path", "E10001", "--output"},
	{"fixed", "--output=" + strings.Repeat("a/", 2100) + "m", "output-path", "E10001", "--output"},
	{"fixed", "--output=out/", "output-name", "E10022", "--output"},
	{"fixed", `--output=out\`, "output-path", "E10001", "--output"},

	{"fixed", "--optypelist_for_implmode=Relu", "implmode-pair", "E10001", "--op_select_implmode"},
	{"fixed", "--op_precision_mode=gone.ini", "op_precision_mode-exists", "E10001", "--op_precision_mode"},
	{"fixed", "--is_weight_clip=", "is_weight_clip-01", "E10006", "--is_weight_clip"},
	{"fixed", "--modify_mixlist=list.txt --precision_mode=force_fp32", "modify_mixlist-mode", "E10001", "--modify_mixlist"},
	{"fixed", "--modify_mixlist=list.txt --precision_mode=allow_mix_precision", "", "", ""},

	// Fixed sizes.
	{"fixed", "--input_shape=x:1,3,8,8", "", "", ""},
	{"fixed", "--input_shape=x:1,3,,8", "shape-static", "E10014", "--input_shape"},
	{"fixed", "--input_shape=x:1,3,8,+8", "shape-static", "E10002", "+8"},
	{"fixed", "--input_shape=x:1,3,8,99999999999999999999", "shape-static", "E10013", "--input_shape"},
	{"fixed", "--input_shape=x:1,3,8,-8", "shape-static", "E10011", "-8"},
	{"fixed", "--input_shape=x:1,3,8.5,8", "shape-static", "E10002", "8.5"},
	{"fixed", "--input_shape=x", "shape-static", "E10002", "x"},
	{"fixed", "--input_shape=x:1,3,8", "shape-rank", "E19999", "x"},
	{"fixed", "--input_shape=x:", "shape-rank", "E19999", "x"},
	{"unranked", "--input_shape=x:1,3,8", "", "", ""},
	{"scalar", "--input_shape=x:4,8;s:", "", "", ""},
	{"two", "--input_shape=ids:1,8", "shape-needed", "E10001", "--input_shape"},
	{"fixed", "--input_shape=z:1", "shape-names", "E10016", "z"},
	{"fixed", "--input_shape=relu:1", "shape-names", "E10017", "relu"},
	{"stored", "--input_shape=w:4", "shape-names", "E10016", "w"},
	{"fixed", "--mode=3 --input_shape=z:1", "", "", ""},

	// Ranges.
	{"open", "--input_shape=x:1~8,3,-1,8", "", "", ""},
	{"open", "--input_shape=:1~8,3,-1,8", "shape-form", "E10002", "name"},
	{"open", "--input_shape=x:1~b,3,-1,8", "shape-form", "E10002", "b"},
	{"open", "--input_shape=x-1~8", "shape-form", "E10002", "x"},
	{"open", "--input_shape=-1,3,8,8", "range-positions", "E10048", "-1,3,8,8"},
	{"open", "--input_shape=x:1~8~9,3,8,8", "range-form", "E10048", "1~8~9"},
	{"open", "--input_shape=x:1~,3,8,8", "range-form", "E10048", "1~"},
	{"open", "--input_shape_range=x:1,3", "range-form", "E10048", "1,3"},
	{"open", "--input_shape_range=x:", "range-form", "E10048", "x"},
	{"open", "--input_shape_range=x:[1~8,3,8,8];", "range-form", "E10048", ""},
	{"open", "--input_shape_range=[1~8,3,8,8]", "range-positions", "E10048", "[1~8,3,8,8]"},
	{"open", "--input_shape_range=z:[1~8]", "range-names", "E10016", "z"},
	{"open", "--input_shape=relu:-1", "range-names", "E10017", "relu"},
	{"open", "--input_shape=x:-1,3,8", "range-fits", "E10049", "4"},
	{"open", "--input_shape=x:-1,4~6,8,8", "range-fits", "E10050", "3"},
	{"open", "--input_shape=x:-1,1~2,8,8", "range-fits", "E10050", "3"},
	{"fixed", "--input_shape=x:-1,3,8,-12", "range-fits", "E10048", "-12"},
	{"open", "--input_shape=x:8~1,3,8,8", "", "", ""},
	{"colon", "--input_shape=a:0:1,4;b-1:1,4", "", "", ""},

	// Gears.
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1,2,", "", "", ""},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1,,2", "", "", ""},
	{"open", "--input_shape=x:1~8,3,8,8 --dynamic_batch_size=1,2", "shape-form", "E10040", "--dynamic_batch_size"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1,2 --input_hint_shape=0:[1]", "gear-no-hint", "E10001", "--input_hint_shape"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1,2 --dynamic_image_size=8,8;9,9", "gear-exclusive", "E10009", "--dynamic_image_size"},
	{"open", "--dynamic_dims=1,2", "gear-shape-needed", "E10004", "--input_shape"},
	{"open", "--input_shape=x:-1,3,b,8 --dynamic_batch_size=1,2", "gear-shape-form", "E10014", "b"},
	{"scalar", "--input_shape=x:-1,8;s: --dynamic_batch_size=1,2", "gear-batch", "E10012", "s"},
	{"open", "--input_shape=x:-1,3,8,-1 --dynamic_batch_size=1,2", "gear-batch", "E10018", "3"},
	{"open", "--input_shape=x:1,3,8,-1 --dynamic_batch_size=1,2", "gear-batch", "E10031", "--dynamic_batch_size"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1;2", "gear-batch", "E10003", "--dynamic_batch_size"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=-1,2", "gear-batch", "E10003", "--dynamic_batch_size"},
	{"images", "--input_shape=x:1,3,-1,-1;z:2,2 --dynamic_image_size=8,8;9,9", "", "", ""},
	{"images", "--input_shape=x:1,3,-1,-1;z:-1,2 --dynamic_image_size=8,8;9,9", "gear-image", "E10019", "z"},
	{"open", "--input_shape=x:-1,3,-1,-1 --dynamic_image_size=8,8;9,9", "gear-image", "E10019", "--dynamic_image_size"},
	{"open", "--input_shape=x:1,3,8,8 --dynamic_image_size=8,8;9,9", "gear-image", "E10019", "--dynamic_image_size"},
	{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8,8;9,9 --input_format=NCDHW", "gear-image", "E10003", "--input_format"},
	{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8;9", "gear-image", "E10020", "8;9"},
	{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8,8;;9,9", "gear-image", "E10020", "8,8;;9,9"},
	{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8x8;9x9", "gear-image", "E10003", "--dynamic_image_size"},
	{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8,;9,9", "gear-rows", "E10037", "--dynamic_image_size"},
	{"two", "--input_shape=ids:-1,-1;mask:-1,-1 --dynamic_dims=1,2,1,2;1,4,1,4;", "", "", ""},
	{"two", "--input_shape=ids:1,2;mask:1,2 --dynamic_dims=1;2", "gear-dims", "E10001", "--input_shape"},
	{"two", "--input_shape=ids:-1,-1;mask:-1,-1 --dynamic_dims=;", "gear-dims", "E10058", "--dynamic_dims"},
	{"two", "--input_shape=ids:-1,-1;mask:-1,-1 --dynamic_dims=1,2;1,4", "gear-dims", "E10003", "--dynamic_dims"},
	{"two", "--input_shape=ids:-1,-1;mask:-1,-1 --dynamic_dims=1,2,1,-2;1,4,1,4", "gear-dims", "E10001", "--dynamic_dims"},
	{"two", "--input_shape=ids:-1,-1;ids:-1,-1 --dynamic_dims=1,2;1,4", "gear-rows", "E10001", "--dynamic_dims"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_dims=1;2 --insert_op_conf=aipp.cfg", "gear-dims-aipp", "E10001", "--insert_op_conf"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=4", "gear-rows", "E10035", "1"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_dims=4;04", "gear-rows", "E10039", "--dynamic_dims"},
	{"open", "--input_shape=z:-1,3,8,8 --dynamic_batch_size=1,2", "shape-names", "E10016", "z"},
	{"open", "--input_shape=x:-1,3,8 --dynamic_batch_size=1,2", "shape-rank", "E19999", "x"},
	{"two", "--input_shape=ids:-1,2;mask:2,-1,-1 --dynamic_batch_size=1,2", "shape-rank", "E19999", "mask"},
	{"open", "--input_shape=x:-1,3,8,8;z:-1 --dynamic_batch_size=1,2", "shape-names", "E10016", "z"},

	// Files and values.
	{"fixed", "--cal_conf=gone", "cal_conf-exists", "E10001", "--cal_conf"},
	{"fixed", "--op_name_map=gone", "op_name_map-exists", "E10001", "--op_name_map"},
	{"fixed", "--insert_op_conf=gone", "insert_op_conf-exists", "E10001", "--insert_op_conf"},
	{"fixed", "--compress_weight_conf=gone", "compress_weight_conf-exists", "E10001", "--compress_weight_conf"},
	{"fixed", "--enable_compress_weight=1", "compress_weight-bool", "E10005", "--enable_compress_weight"},
	{"fixed", "--enable_compress_weight=true --compress_weight_conf=list.txt", "compress-exclusive", "E10047", "--compress_weight_conf"},
	{"fixed", "--keep_dtype=gone", "keep_dtype-exists", "E10001", "--keep_dtype"},
	{"fixed", "--check_report=", "check_report-path", "E10004", "--check_report"},
	{"fixed", "--check_report=a~b", "check_report-path", "E10001", "--check_report"},
	{"fixed", "--save_original_model=True", "save_original_model-bool", "E10005", "--save_original_model"},
	{"fixed", "--enable_single_stream=0", "enable_single_stream-bool", "E10005", "--enable_single_stream"},
	{"fixed", "--ac_parallel_enable=true", "ac_parallel-01", "E10006", "--ac_parallel_enable"},
	{"fixed", "--tiling_schedule_optimize=2", "tiling_schedule-01", "E10006", "--tiling_schedule_optimize"},
	{"fixed", "--mode=7 --check_report=r.json", "om2-flags", "E10001", "check_report"},
	{"fixed", "--mode=7 --raw_ge_options=raw_om2.json", "om2-flags", "E10001", "status_check"},
	{"fixed", "--mode=7 --host_env_os=minios", "om2-host", "E10001", "--host_env_os/--host_env_cpu"},
	{"fixed", "--mode=7 --host_env_cpu=arm64", "", "", ""},
	{"fixed", "--host_env_os=Linux", "host_env-os", "E10001", "--host_env_os"},
	{"fixed", "--host_env_cpu=riscv", "host_env-cpu", "E10001", "--host_env_cpu"},
	{"fixed", "--host_env_cpu=arm", "", "", ""},
	{"fixed", "--allow_hf32=yes", "allow_hf32-bool", "E10005", "--allow_hf32"},
	{"fixed", "--quant_dumpable=true", "quant_dumpable-01", "E10006", "--quant_dumpable"},
	{"fixed", "--enable_attr_compression=on", "attr_compression-bool", "E10005", "--enable_attr_compression"},
	{"fixed", "--enable_attr_compression=True", "", "", ""},
	{"fixed", "--static_model_ops_lower_limit=+4", "static_model_ops-range", "E10001", "--static_model_ops_lower_limit"},
	{"fixed", "--static_model_ops_lower_limit=", "", "", ""},

	// The chip.
	{"fixed", "--soc_version=910B4", "soc-known", "E19999", "910B4"},
	{"fixed", "--aicore_num=20|41", "aicore_num", "E10001", "--aicore_num"},
	{"fixed", "--aicore_num=20|40|1", "aicore_num", "E10001", "--aicore_num"},
	{"fixed", "--aicore_num=12x", "aicore_num", "E10001", "12x"},
	{"fixed", "--aicore_num=x12", "aicore_num", "E10060", "x12"},
	{"fixed", "--aicore_num=+4", "aicore_num", "E10001", "+4"},
	{"fixed", "--aicore_num=4|3000000000", "aicore_num", "E10060", "3000000000"},
	{"fixed", "--aicore_num=0|", "", "", ""},
	{"fixed", "--aicore_num=|0", "", "", ""},
	{"fixed", "--aicore_num=8| --soc_version=Ascend310P3", "", "", ""},
	{"fixed", "--aicore_num=9 --soc_version=Ascend310P3", "aicore_num", "E10001", "9"},

	// The model.
	{"fixed", "--is_output_adjust_hw_layout=true,1", "output_hw_layout-bool", "E10005", "--is_output_adjust_hw_layout"},
	{"fixed", "--out_nodes=relu:0:0", "out_nodes-form", "E10001", "--out_nodes"},
	{"fixed", "--out_nodes=y;relu:0", "out_nodes-form", "E10001", "--out_nodes"},
	{"fixed", "--out_nodes=relu:0;", "out_nodes-form", "E10001", "--out_nodes"},
	{"fixed", "--out_nodes=relu:", "out_nodes-form", "E10014", "--out_nodes"},
	{"fixed", "--out_nodes=relu:4294967296", "out_nodes-form", "E10013", "--out_nodes"},
	{"text", "", "model-file", "E13005", "text.onnx"},
	{"empty", "", "model-file", "E13015", "empty.onnx"},
	{"-", "--model=. --framework=5 --output=m --soc_version=Ascend910B4", "model-file", "E13005", "folder"},
	{"noInput", "", "model-file", "E16001", "input"},
	{"noOutput", "", "model-file", "E16001", "output"},
	{"-", "--model=fixed.onnx --output=m --soc_version=Ascend910B4 --mode=7", "framework-parser", "E19999", "--framework"},
	{"newer", "", "model-nodes", "E13010", "relu"},
	{"unknown", "", "model-nodes", "E13010", "odd"},
	{"nested", "", "model-nodes", "E13010", "odd"},
	{"same", "", "model-nodes", "E13009", "a"},
	{"placed", "", "", "", ""},
	{"summed", "", "external-keys", "E10001", "checksum"},
	{"likeIn", "--mode=3", "model-nodes", "E13009", "x"},
	{"fixed", "--out_nodes=z", "out_nodes-tensor", "E19999", "z"},
	{"fixed", "--out_nodes=y;", "out_nodes-tensor", "E19999", ""},
	{"fixed", "--out_nodes=x", "", "", ""},
	{"fixed", "--is_input_adjust_hw_layout=yes", "hw_layout-bool", "E10005", "--is_input_adjust_hw_layout"},
	{"fixed", "--is_input_adjust_hw_layout=true", "", "", ""},
	{"two", "--input_shape=ids:1,2;mask:1,2 --input_fp16_nodes=ids;maks", "fp16_nodes", "E10016", "maks"},
	{"fixed", "--input_fp16_nodes=relu", "fp16_nodes", "E10017", "relu"},
	{"fixed", "--output_type=int8", "output_type", "E10001", "--output_type"},
	{"fixed", "--output_type=HIF8", "", "", ""},
	{"fixed", "--out_nodes=y --output_type=relu:0:FP16", "", "", ""},
	{"fixed", "--out_nodes=relu:0 --output_type=relu:00:FP16", "output_type", "E10001", "relu:00"},
	{"fixed", "--out_nodes=relu:0 --output_type=relu::FP16", "output_type", "E10014", "--output_type"},
	{"fixed", "--out_nodes=relu:0 --output_type=relu:99999999999:FP16", "output_type", "E10013", "--output_type"},
	{"unnamed", "--out_nodes=Relu_0:0;Split_1:1", "", "", ""},
	{"unnamed", "--out_nodes=q --output_type=Split_1:1:FP16", "", "", ""},
	{"unnamed", "--out_nodes=Split_0:0", "out_nodes-known", "E10016", "Split_0"},
	{"unnamed", "--out_nodes=Split_1:2", "out_nodes-known", "E10003", "--out_nodes"},
	{"fixed", "--keep_dtype=list.txt", "", "", ""},
	{"fixed", "--keep_dtype=types.txt", "keep_dtype-types", "E10003", "keep_dtype"},
	{"fixed", "--compression_optimize_conf=list.txt", "compression-amct", "E10001", "libamctacl.so"},
	{"fixed", "--oo_level=o3", "oo_level-set", "E10001", "oo_level"},
	{"fixed", "--export_compile_stat=", "export_compile_stat-set", "E10001", "export_compile_stat"},
	{"fixed", "--oo_constant_folding=on", "oo_constant_folding-bool", "E10001", "oo_constant_folding"},
	{"fixed", "--oo_dead_code_elimination=on", "oo_dead_code-bool", "E10001", "oo_dead_code_elimination"},
	{"fixed", "--topo_sorting_mode=DFS", "topo_sorting_mode-set", "E10001", "topo_sorting_mode"},
	{"fixed", "--oo_constant_folding= --topo_sorting_mode=", "", "", ""},
	{"fixed", "--insert_op_conf=aipp.cfg --input_fp16_nodes=x", "fp16_nodes-aipp", "E10034", "x"},

	// What only the engines look at.
	{"fixed", "--multi_stream_parallel_mode=nonsense --h2d_overlapped_with_compute=x --optimization_switch=? --device_id=z --fusion_switch_file=gone", "", "", ""},

	// What only the guide has.
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=" + counted(101), "gear-limit", CodeLimit, "100"},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=" + counted(101) + " --soc_version=Ascend950PR_9599", "", "", ""},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=" + counted(100), "", "", ""},
	{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=,", "gear-limit", CodeLimit, "2"},
	{"scalar", "--input_shape=x:-1,8 --dynamic_dims=1;2", "gear-scalar-listed", CodeRule, "s"},
	{"two", "--input_shape=ids:-1,2;mask:2,-1 --dynamic_batch_size=1,2", "gear-batch-axis", CodeRule, "mask"},
	{"fixed", "--insert_op_conf=aipp.cfg --input_format=ND", "aipp-format", CodeRule, "--input_format"},
	{"fixed", "--precision_mode_v2=mixed_bfloat16 --soc_version=Ascend310P3", "precision-chip", CodeRule, "Ascend310P3"},
	{"fixed", "--precision_mode_v2=cube_hif8", "precision-chip", CodeRule, "--precision_mode_v2"},
	{"fixed", "--enable_single_stream=true --multi_stream_parallel_mode=cv", "single-stream", CodeRule, "--multi_stream_parallel_mode"},
	{"fixed", "--enable_single_stream=true", "", "", ""},
	{"open", "--input_shape=x:-1,3,8,8 --soc_version=Ascend310B1", "range-chip", CodeRule, "Ascend310B1"},
}

func counted(n int) string {
	row := make([]int64, n)
	for i := range row {
		row[i] = int64(i + 1)
	}
	rows := make([][]int64, n)
	for i := range rows {
		rows[i] = row[i : i+1]
	}
	return Gears{BatchGears, rows}.String()
}

// words makes the command line of a row.
func words(model, args string) []string {
	if model == "-" {
		return strings.Fields(args)
	}
	return append(strings.Fields(need+model+".onnx"), strings.Fields(args)...)
}

func testEnvironment(dir string) Environment {
	return Environment{Dir: dir, HostOS: "linux", HostCPU: "x86_64", Lookup: func(string) (string, bool) { return "", false }}
}

func TestCheck(t *testing.T) {
	dir := testFolder(t)
	for _, row := range rows {
		t.Run(row.rule+" "+row.args, func(t *testing.T) {
			args := words(row.model, row.args)
			strict := mustCheck(t, args, testEnvironment(dir), Strict)
			asATC := mustCheck(t, args, testEnvironment(dir), AsATC)
			if row.code == "" {
				if !strict.Accept || !asATC.Accept {
					t.Fatalf("refused: %v, as ATC: %v", strict.Diagnoses, asATC.Diagnoses)
				}
				return
			}
			if strict.Accept {
				t.Fatalf("accepted")
			}
			first := strict.Diagnoses[0]
			if first.Code != row.code || !strings.Contains(first.Message, row.holds) {
				t.Errorf("got %v, want %s with %q", first, row.code, row.holds)
			}
			if strict.Stderr != (row.code == CodeStderr) {
				t.Errorf("Stderr is %t", strict.Stderr)
			}
			isGuide := row.code == CodeRule || row.code == CodeLimit
			switch {
			case isGuide && !asATC.Accept:
				t.Errorf("as ATC: %v", asATC.Diagnoses)
			case !isGuide && (len(asATC.Diagnoses) != 1 || asATC.Diagnoses[0].String() != first.String()):
				t.Errorf("as ATC: %v, not %v", asATC.Diagnoses, first)
			}
			if got := ruleOf(t, args, dir); got != row.rule {
				t.Errorf("rule %q answers, not %q", got, row.rule)
			}
		})
	}
}

func mustCheck(t *testing.T, args []string, e Environment, s Strictness) Verdict {
	t.Helper()
	v, err := Check(t.Context(), args, e, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ruleOf gives the rule that answers first, and holds its answer against its codes.
func ruleOf(t *testing.T, args []string, dir string) string {
	t.Helper()
	line, problems := Parse(args)
	if len(problems) > 0 {
		return "flag"
	}
	c := newChecker(line, testEnvironment(dir))
	defer c.close()
	for _, r := range rules {
		if !c.concerns(r) {
			continue
		}
		for _, d := range r.check(c) {
			if !slices.Contains(r.codes, d.Code) && d.Code != "E19999" && r.name != "raw-options" {
				t.Errorf("%s answers %s, its codes are %v", r.name, d.Code, r.codes)
			}
			return r.name
		}
	}
	return ""
}

// Every rule answers to some row: a new rule needs a new row.
func TestEveryRuleHasARow(t *testing.T) {
	for _, r := range rules {
		if !slices.ContainsFunc(rows, func(row struct{ model, args, rule, code, holds string }) bool { return row.rule == r.name }) {
			t.Errorf("no row for rule %s", r.name)
		}
		if r.where == "" || len(r.codes) == 0 || r.tasks == 0 {
			t.Errorf("rule %s says not enough of itself", r.name)
		}
		for _, flag := range r.reads {
			if findFlag(flag) == nil {
				t.Errorf("rule %s reads %s, which is no flag", r.name, flag)
			}
		}
	}
}

func TestCheckTellsAllThatIsIndependent(t *testing.T) {
	dir := testFolder(t)
	args := strings.Fields("--framework=5 --model=fixd.onnx --output=m --soc_version=910B4 --input_shapes x:1 --precision_mode_v2=fp61 --allow_hf32=1 --aicore_num=99")
	v := mustCheck(t, args, testEnvironment(dir), Strict)
	var got []string
	for _, d := range v.Diagnoses {
		got = append(got, d.Code+" "+d.Names[0]+" "+d.Remedy)
	}
	want := []string{
		"stderr --input_shapes did you mean --input_shape?",
		"E10001 --precision_mode_v2 did you mean --precision_mode_v2=fp16?",
		"E10001 --model did you mean fixed.onnx?",
		"E10005 --allow_hf32 ",
		"E19999 --soc_version did you mean Ascend910B4?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Values that the guide takes have no note.
func TestNoNotes(t *testing.T) {
	dir := testFolder(t)
	for _, args := range []string{
		"--device_id=3", "--optimization_switch=A:on;B:off", "--multi_stream_parallel_mode=cv", "--multi_stream_parallel_mode=LoadBalance:64",
		"--h2d_overlapped_with_compute=44,", "--h2d_overlapped_with_compute=0", "--h2d_overlapped_with_compute=44,64,68", "--insert_op_conf=aipp.cfg",
		"--enable_small_channel=1 --insert_op_conf=aipp.cfg", "--debug_dir=d --op_debug_level=1", "--input_hint_shape=0:[1,3,8,8]", "--op_bank_path=.",
	} {
		if v := mustCheck(t, words("fixed", args), testEnvironment(dir), Strict); !v.Accept || len(v.Notes) > 0 {
			t.Errorf("%s: %v, notes %v", args, v.Diagnoses, v.Notes)
		}
	}
}

// Every flag is looked at: by its values, by a rule, by a note; or here is why not.
func TestEveryFlagIsLookedAt(t *testing.T) {
	free := map[string]string{
		"help": "a truth value", "raw_ge_options_ignore_unsupported": "a truth value",
		"target": "no longer documented", "build_config": "no longer documented", "enable_scope_fusion_passes": "for TensorFlow",
		"cluster_config": "for models over several devices", "hccl_sub_comm_config": "for models over several devices",
		"op_compiler_cache_dir": "ATC makes the folder",
	}
	looked := map[string]bool{}
	for _, r := range rules {
		for _, flag := range r.reads {
			looked[flag] = true
		}
	}
	for _, r := range remarks {
		for _, flag := range r.reads {
			looked[flag] = true
			if findFlag(flag) == nil {
				t.Errorf("note %s reads %s, which is no flag", r.name, flag)
			}
		}
	}
	for _, flag := range append(slices.Collect(maps.Keys(lateForms)), lateFileFlags...) {
		looked[flag] = true
	}
	for _, f := range Flags() {
		isLooked := looked[f.Name] || f.Values != nil
		if why := free[f.Name]; isLooked == (why != "") {
			t.Errorf("--%s: looked at %v, and left alone %q", f.Name, isLooked, why)
		}
	}
}

func TestNotes(t *testing.T) {
	dir := testFolder(t)
	for _, row := range []struct{ model, args, want string }{
		{"fixed", "--log=info --log=debug", "more than once"},
		{"fixed", "--input_shape=x:1,4,8,8", `axis 1 of "x"`},
		{"fixed", "--input_shape_range=x:[1~8,3,8,8] --input_shape=x:1,3,8,8", "passed over"},
		{"fixed", "--weight=list.txt", "nothing for ONNX"},
		{"fixed", "--fusion_switch_file=gone", "no such file"},
		{"fixed", "--soc_version=Ascend910B", "first Ascend910"},
		{"fixed", "--is_input_adjust_hw_layout=true", "one for one"},
		{"open", "--input_shape=x:8~1,3,8,8", "swapped"},
		{"open", "--input_shape=x:-1,3,8,8 --dynamic_dims=0;1", "size of 0"},
		{"fixed", "--keep_dtype=list.txt --precision_mode_v2=origin", "does nothing here"},
		{"custom", "", "mine.Special"},
		{"fixed", "--enable_small_channel=7", "0 or 1"},
		{"fixed", "--enable_small_channel=1", "static AIPP only"},
		{"fixed", "--device_id=z", "the number of a device"},
		{"fixed", "--optimization_switch=Pass", "PASS:on"},
		{"fixed", "--multi_stream_parallel_mode=MainStream:65", "from 1 to 64"},
		{"fixed", "--h2d_overlapped_with_compute=64,44", "sizes that grow"},
		{"fixed", "--op_bank_path=gone", "no such file"},
		{"fixed", "--mdl_bank_path=\u6a21", "no Chinese characters"},
		{"fixed", "--keep_dtype=list.txt --customize_dtypes=list.txt", "wins over --keep_dtype"},
		{"fixed", "--optypelist_for_implmode=Relu --op_select_implmode=high_precision_for_all", "is for all types"},
		{"fixed", "--op_name_map=list.txt", "for Caffe"},
		{"fixed", "--dump_mode=1", "--mode=1 only"},
		{"fixed", "--debug_dir=d", "without --op_debug_level"},
		{"fixed", "--op_compiler_cache_mode=force --op_debug_level=1", "beside --op_debug_level=1"},
		{"fixed", "--shape_generalized_build_mode=shape_precise", "is deprecated"},
		{"fixed", "--allow_hf32=true", "is reserved"},
		{"open", "--input_shape=x:-1,3,8,8 --dynamic_batch_size=1,2049", "beyond 2048"},
		{"fixed", "--input_hint_shape=x:[1]", "index:[sizes]"},
		{"fixed", "--input_hint_shape=1:[1]", "no input 1"},
		{"fixed", "--input_hint_shape=0:[1,3]", "in the model it has 4 axes"},
		{"fixed", "--insert_op_conf=list.txt", "no aipp_op"},
		{"fixed", "--insert_op_conf=aipp_odd.cfg", `aipp_mode is ""`},
		{"fixed", "--insert_op_conf=aipp_odd.cfg", "related_input_rank is 3"},
		{"fixed", "--insert_op_conf=aipp_open.cfg", "needs max_src_image_size"},
		{"open", "--input_shape=x:1,3,-1,-1 --dynamic_image_size=8,8;9,9 --insert_op_conf=aipp_size.cfg", "wants no crop"},
	} {
		v := mustCheck(t, words(row.model, row.args), testEnvironment(dir), Strict)
		if !v.Accept || !slices.ContainsFunc(v.Notes, func(d Diagnosis) bool { return strings.Contains(d.Message, row.want) }) {
			t.Errorf("%s: %v, notes %v", row.args, v.Diagnoses, v.Notes)
		}
		if v := mustCheck(t, words(row.model, row.args), testEnvironment(dir), AsATC); len(v.Notes) > 0 {
			t.Errorf("%s: notes as ATC: %v", row.args, v.Notes)
		}
	}
}

// What the toolkit says of a chip wins over what npuctl knows.
func TestCheckAsksTheToolkitForChips(t *testing.T) {
	dir := testFolder(t)
	folder := filepath.Join(dir, "x86_64-linux", "data", "platform_config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	ini := "[version]\nSoC_version=new\n[SoCInfo]\nai_core_cnt=3\ncube_core_cnt=3\nvector_core_cnt = 6\n"
	for _, name := range []string{"Ascend910B4", "Ascend999"} {
		if err := os.WriteFile(filepath.Join(folder, name+".ini"), []byte(ini), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := testEnvironment(dir)
	e.Lookup = func(name string) (string, bool) { return dir, name == "ASCEND_HOME_PATH" }
	for args, code := range map[string]string{
		"--aicore_num=3|6": "", "--aicore_num=4|6": "E10001", "--soc_version=Ascend999 --aicore_num=3|6": "",
		"--soc_version=Ascend999 --aicore_num=3|7": "E10001", "--soc_version=Ascend999 --precision_mode_v2=mixed_bfloat16": "",
		"--soc_version=Ascend998": "E19999", "--soc_version=../Ascend999": "E19999",
	} {
		v := mustCheck(t, words("fixed", args), e, Strict)
		if v.Accept != (code == "") || !v.Accept && v.Diagnoses[0].Code != code {
			t.Errorf("%s: %v", args, v.Diagnoses)
		}
	}
}

// A real toolkit decides what the tables do not have; with none, and with the emulator,
// the tables do.
func TestCheckLeavesToTheToolkit(t *testing.T) {
	dir := testFolder(t)
	kit := filepath.Join(dir, "kit")
	place(t, kit, map[string]string{"x86_64-linux/data/platform_config/Ascend999.ini": "ai_core_cnt=3\nvector_core_cnt=6\n"})
	real := Toolkit{Root: kit, Program: filepath.Join(kit, "bin", "atc"), Version: "9.0"}
	emulated := real
	emulated.Emulated = true
	for _, row := range []struct {
		model, args, code string // of the refusal without a real toolkit
		note              string // with one
	}{
		{"newer", "", "E13010", `Relu: not in npuctl's table of ATC's parser (node "relu": the model imports opset 21;`},
		{"unknown", "", "E13010", "CANN 9.0 will decide"},
		{"nested", "", "E13010", "Rellu: not in npuctl's table"},
		{"fixed", "--soc_version=Ascend998", "E19999", "neither npuctl's table of chips nor CANN 9.0 has it; atc will decide"},
		{"fixed", "--soc_version=Ascend999", "", "npuctl's table of chips does not have it, CANN 9.0 does"},
	} {
		for kind, e := range map[string]Toolkit{"none": {}, "emulated": emulated, "real": real} {
			for _, s := range []Strictness{AsATC, Strict} {
				environment := testEnvironment(dir)
				environment.Toolkit = e
				v := mustCheck(t, words(row.model, row.args), environment, s)
				switch {
				case kind == "none" && row.code == "": // nobody knows the chip
				case kind == "real" || row.code == "":
					notes := []string{}
					for _, n := range v.Notes {
						notes = append(notes, n.Text())
					}
					all := strings.Join(notes, "\n")
					if !v.Accept || s == Strict && kind == "real" && !strings.Contains(all, row.note) {
						t.Errorf("%s %s, %s: %v, notes %s", row.model, row.args, kind, v.Diagnoses, all)
					}
				case v.Accept || v.Diagnoses[0].Code != row.code:
					t.Errorf("%s %s, %s: %v", row.model, row.args, kind, v.Diagnoses)
				}
			}
		}
	}
	// What no table is needed for stays refused.
	environment := testEnvironment(dir)
	environment.Toolkit = real
	for model, code := range map[string]string{"same": "E13009", "noInput": "E16001"} {
		if v := mustCheck(t, words(model, ""), environment, Strict); v.Accept || v.Diagnoses[0].Code != code {
			t.Errorf("%s: %v", model, v.Diagnoses)
		}
	}
}

func TestCheckOfHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--h"}, {"--he=yes"}, {"--help", "--nonsense"}} {
		if v := mustCheck(t, args, Environment{}, Strict); !v.Accept || !v.Help {
			t.Errorf("%v: %+v", args, v)
		}
	}
	if v := mustCheck(t, []string{"--help=no", "--framework=5"}, Environment{}, AsATC); v.Help || v.Accept {
		t.Errorf("--help=no: %+v", v)
	}
}

func TestCheckAsksTheEnvironment(t *testing.T) {
	dir := testFolder(t)
	e := testEnvironment(dir)
	e.Chip = func(string) (soc.Chip, error) { return soc.Chip{}, errors.New("none here") }
	if v := mustCheck(t, words("fixed", ""), e, AsATC); v.Accept || v.Diagnoses[0].Remedy != "none here" {
		t.Errorf("chips: %+v", v)
	}
	e = testEnvironment(dir)
	e.Lookup = func(name string) (string, bool) { return "a b", name == "ASCEND_WORK_PATH" }
	if v := mustCheck(t, words("fixed", ""), e, AsATC); v.Accept || v.Diagnoses[0].Names[0] != "--check_report" {
		t.Errorf("ASCEND_WORK_PATH: %+v", v)
	}
	if err := os.WriteFile(filepath.Join(dir, amctLibrary), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e.Lookup = func(name string) (string, bool) { return dir, name == "LD_LIBRARY_PATH" }
	if v := mustCheck(t, words("fixed", "--compression_optimize_conf=list.txt"), e, AsATC); !v.Accept {
		t.Errorf("LD_LIBRARY_PATH: %+v", v)
	}
	e = testEnvironment(dir) // or the toolkit has it
	e.Toolkit = Toolkit{Root: filepath.Join(dir, "amct"), Program: "atc"}
	place(t, e.Toolkit.Root, map[string]string{"lib64/" + amctLibrary: ""})
	if v := mustCheck(t, words("fixed", "--compression_optimize_conf=list.txt"), e, AsATC); !v.Accept {
		t.Errorf("the toolkit's library: %+v", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, words("fixed", ""), testEnvironment(dir), Strict); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A folder whose name ATC does not take makes every file in it unfit.
func TestCheckLooksAtRealPaths(t *testing.T) {
	dir := filepath.Join(testFolder(t), "a b")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := text.MustParse(t, headed(testModels["fixed"])).Save(filepath.Join(dir, "fixed.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	v := mustCheck(t, words("fixed", ""), testEnvironment(dir), AsATC)
	if v.Accept || v.Diagnoses[0].Code != "E10001" || !strings.Contains(v.Diagnoses[0].Message, "a b") {
		t.Errorf("%+v", v)
	}
}

func TestEffective(t *testing.T) {
	e := testEnvironment(testFolder(t))
	line := Effective(strings.Fields("--raw_ge_options=raw.json --log=info"), e)
	if got := line.Value("precision_mode_v2"); got != "origin" || line.Value("log") != "info" {
		t.Errorf("precision_mode_v2 is %q", got)
	}
	line = Effective(strings.Fields("--raw_ge_options=raw.json --precision_mode_v2=mixed_float16"), e)
	if got := line.Value("precision_mode_v2"); got != "mixed_float16" {
		t.Errorf("precision_mode_v2 is %q", got)
	}
}

func TestOM2RefusesSoManyFlags(t *testing.T) {
	n := 0
	for _, f := range Flags() {
		if f.NotForOM2 {
			n++
		}
	}
	if n != 22 {
		t.Errorf("%d flags", n)
	}
}

func TestCheckWritesNothing(t *testing.T) {
	dir := testFolder(t)
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, words("fixed", "--output=new/folder/m"), testEnvironment(dir), Strict)
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("%d files, then %d (%v)", len(before), len(after), err)
	}
}
