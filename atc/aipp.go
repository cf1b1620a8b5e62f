package atc

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// aippOp is one aipp_op of a configuration for --insert_op_conf: its fields, of those
// that may be repeated the last.
type aippOp map[string]string

// aippComment and aippField find what a configuration, text of a protobuf message,
// consists of.
var (
	aippComment = regexp.MustCompile(`(?m)#.*$`)
	aippField   = regexp.MustCompile(`\b([a-z][a-z0-9_]*)\s*:\s*("[^"]*"|[^\s{}#]+)`)
)

// aippOps reads the configuration; nil when there is none that can be read, which other
// rules tell.
func (c *checker) aippOps() []aippOp {
	data, err := readLimited(c.path(c.value("insert_op_conf")), mostRawOptions)
	if err != nil {
		return nil
	}
	return parseAIPP(string(data))
}

// parseAIPP reads a configuration leniently: what ATC makes of a broken one ATC says.
func parseAIPP(text string) (ops []aippOp) {
	blocks := strings.Split(aippComment.ReplaceAllString(text, ""), "aipp_op")
	for _, block := range blocks[1:] {
		op := aippOp{}
		for _, m := range aippField.FindAllStringSubmatch(block, -1) {
			op[m[1]] = strings.Trim(m[2], `"`)
		}
		ops = append(ops, op)
	}
	return ops
}

// rank is the input that the operation is for: the first when it does not say; -1 for a
// number that is none.
func (o aippOp) rank() int {
	text, given := o["related_input_rank"]
	if !given {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// fp16AIPP refuses float16 for an input that AIPP makes, which is of bytes.
func fp16AIPP(c *checker) (out []Diagnosis) {
	list := c.value("input_fp16_nodes")
	if list == "" || c.value("insert_op_conf") == "" {
		return nil
	}
	named, inputs := strings.Split(list, ";"), c.graph().inputs
	for _, op := range c.aippOps() {
		rank := op.rank()
		if rank < 0 || rank >= len(inputs) || !slices.Contains(named, inputs[rank].name) {
			continue
		}
		out = append(out, problem("E10034", "input_fp16_nodes", "--input_fp16_nodes names %q, which AIPP feeds with bytes", inputs[rank].name).
			about("--insert_op_conf", inputs[rank].name).with("leave it out of one of the two"))
	}
	return out
}

// formOfAIPP notes what the guide wants of a configuration and ATC looks at late.
func formOfAIPP(c *checker) (out []Diagnosis) {
	conf := c.value("insert_op_conf")
	say := func(format string, args ...any) {
		out = append(out, note("insert_op_conf", "--insert_op_conf=%s: "+format, append([]any{conf}, args...)...).about(conf))
	}
	ops := c.aippOps()
	if len(ops) == 0 {
		say("it has no aipp_op")
	}
	inputs := len(c.graph().inputs)
	for _, op := range ops {
		mode := op["aipp_mode"]
		switch {
		case mode != "static" && mode != "dynamic":
			say("aipp_mode is %q, it takes static or dynamic", mode)
		case mode == "dynamic" && op["max_src_image_size"] == "":
			say("aipp_mode dynamic needs max_src_image_size")
		}
		if rank := op.rank(); rank < 0 || rank >= inputs {
			say("related_input_rank is %s, the model has %d inputs, counted from 0", op["related_input_rank"], inputs)
		}
		if c.value("dynamic_image_size") != "" && mode == "static" && op.changesSize() {
			say("beside --dynamic_image_size the guide wants no crop, no padding, and src_image_size_w and _h of 0")
		}
	}
	return out
}

// changesSize says whether the operation says what size pictures have.
func (o aippOp) changesSize() bool {
	for _, field := range []string{"crop", "padding", "src_image_size_w", "src_image_size_h"} {
		if v := o[field]; v != "" && v != "0" && v != "false" {
			return true
		}
	}
	return false
}
