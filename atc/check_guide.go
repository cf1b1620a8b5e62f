package atc

import (
	"slices"

	"github.com/npuctl/npuctl/soc"
)

// gearLimit counts the gears. ATC compiles any number; the runtime's own queries
// cannot tell of too many.
func gearLimit(c *checker) *Diagnosis {
	kind, text, ok := c.gearText()
	if !ok {
		return nil
	}
	rows, _ := gearRows(kind, text)
	_, family, known := c.chip()
	most := soc.QueryGears
	if known && family.Name != "" {
		most = family.Gears()
	}
	var d Diagnosis
	switch {
	case len(rows) > most:
		d = problem(CodeLimit, kind.Flag(), "--%s has %d gears, a model for %s may have %d", kind.Flag(), len(rows), c.value("soc_version"), most).
			with("leave gears out: 3 to 10 well chosen ones waste little")
	case len(rows) == 0:
		d = problem(CodeLimit, kind.Flag(), "--%s has no gear at all, 2 is the least", kind.Flag())
	default:
		return nil
	}
	return &d
}

// gearScalars asks for the scalar inputs to be listed when there are gears.
func gearScalars(c *checker) (out []Diagnosis) {
	kind := c.shape().gears
	if kind == NoGears {
		return nil
	}
	given := c.inputs()
	for _, in := range c.graph().inputs {
		isScalar := !in.ranked && in.dims == nil && c.graph().isScalar(in.name)
		if !isScalar || slices.ContainsFunc(given, func(g sizedInput) bool { return g.name == in.name }) {
			continue
		}
		d := problem(CodeRule, "input_shape", "--input_shape leaves out %q, a scalar: with gears every scalar input is listed", in.name).
			about(in.name).with(`add "%s:" to --input_shape`, in.name)
		if kind == BatchGears {
			d = d.with("use --dynamic_dims, which takes scalars: list it as \"%s:\"", in.name)
		}
		out = append(out, d)
	}
	return out
}

// isScalar says whether the model declares the input as a scalar.
func (g *graphFacts) isScalar(name string) bool {
	v := g.model.Graph.Find(name)
	return v != nil && v.Type.IsTensor() && v.Type.Shape != nil && len(v.Type.Shape.Dims) == 0
}

// gearBatchAxes asks that -1 stands in front only, in every input: ATC is content
// when one input is so, and the compile fails later.
func gearBatchAxes(c *checker) (out []Diagnosis) {
	if c.shape().gears != BatchGears {
		return nil
	}
	for _, in := range c.sortedInputs() {
		if len(in.sizes) > 0 && in.sizes[0] != -1 && in.open() > 0 {
			out = append(out, problem(CodeRule, "input_shape", "--input_shape has -1 behind the first axis of %q, --dynamic_batch_size changes the first axis only", in.name).
				about(in.name).with("fix that axis, or use --dynamic_dims"))
		}
	}
	return out
}

func formatOfAIPP(c *checker) *Diagnosis {
	if c.value("insert_op_conf") == "" || slices.Contains([]string{"NCHW", "NHWC"}, c.layout()) {
		return nil
	}
	d := problem(CodeRule, "input_format", "--input_format=%s does not go with --insert_op_conf: AIPP makes images", c.layout()).
		about("--insert_op_conf").with("leave --input_format out")
	return &d
}

// precisionOfChip asks whether the chip has the number format of a precision mode.
func precisionOfChip(c *checker) *Diagnosis {
	_, family, known := c.chip()
	if !known || family.Name == "" {
		return nil
	}
	for _, flag := range []string{"precision_mode", "precision_mode_v2"} {
		mode := c.value(flag)
		if family.AllowsPrecision(mode) {
			continue
		}
		d := wrongValue(CodeRule, flag, mode, "%s does not compute in that number format", c.value("soc_version")).
			about("--soc_version").with("--precision_mode_v2=mixed_float16 mixes with float16")
		return &d
	}
	return nil
}

func singleStream(c *checker) *Diagnosis {
	mode := c.value("multi_stream_parallel_mode")
	if c.value("enable_single_stream") != "true" || !c.isSet("multi_stream_parallel_mode") || mode == "" {
		return nil
	}
	d := problem(CodeRule, "enable_single_stream", "--enable_single_stream=true and --multi_stream_parallel_mode=%s contradict each other", mode).
		about("--multi_stream_parallel_mode").with("keep one of them")
	return &d
}

// rangesOfChip refuses models of dynamic shape for chips whose guide has none.
func rangesOfChip(c *checker) *Diagnosis {
	_, family, known := c.chip()
	if !known || family.Name != soc.Family310B || c.shape().ranges == "" {
		return nil
	}
	d := problem(CodeRule, "input_shape", "--input_shape has ranges: %s runs no models of dynamic shape", c.value("soc_version")).
		about("--soc_version").with("fix the sizes, or use gears")
	return &d
}
