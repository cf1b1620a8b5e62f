package eval

import (
	"slices"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// scan is the state of one execution of a Scan.
type scan struct {
	call    *Call
	body    *onnx.Graph
	state   []Value
	inputs  []scanned
	outputs []scanOutput
	length  int // rounds
}

// scanned is an input that each round gets a slice of.
type scanned struct {
	data      *tensor.Dense
	axis      int
	backwards bool
}

// scanOutput says how the rounds' results are put together.
type scanOutput struct {
	axis      int64
	backwards bool
}

// runScan runs the body once for every slice of the scanned inputs.
func runScan(c *Call) error {
	body, scans, err := scanBody(c, 0)
	if err != nil {
		return err
	}
	states := len(c.Inputs) - scans
	s := &scan{call: c, body: body, state: slices.Clone(c.Inputs[:states])}
	inAxes, inBack := c.scanPlaces("scan_input_axes", "scan_input_directions")
	for k := range scans {
		d, err := c.Tensor(states + k)
		if err != nil {
			return err
		}
		axis, err := normalAxis(c, at(inAxes, k), d.Rank())
		if err != nil {
			return err
		}
		s.inputs = append(s.inputs, scanned{d, axis, at(inBack, k) != 0})
	}
	outAxes, outBack := c.scanPlaces("scan_output_axes", "scan_output_directions")
	for k := range len(body.Outputs()) - states {
		s.outputs = append(s.outputs, scanOutput{at(outAxes, k), at(outBack, k) != 0})
	}
	if s.length, err = s.countRounds(); err != nil {
		return err
	}
	results, err := s.run()
	if err != nil {
		return err
	}
	copy(c.Outputs, results)
	return nil
}

// runScan8 is Scan as opset 8 had it: all inputs and outputs have a batch axis in
// front, the sequence axis follows, and an input may give each batch's length.
// What lies beyond a batch's length is zero.
func runScan8(c *Call) error {
	body, scans, err := scanBody(c, 1)
	if err != nil {
		return err
	}
	all, err := c.Tensors(1)
	if err != nil {
		return err
	}
	states := len(all) - scans
	batches, longest, err := scan8Extent(c, all, states)
	if err != nil {
		return err
	}
	lengths, err := c.IntsInput(0)
	if err != nil {
		return err
	}
	if lengths != nil && len(lengths) != batches {
		return c.Errorf("%d sequence lengths for %d batches", len(lengths), batches)
	}
	back, _ := c.Ints("directions")
	columns := make([][]*tensor.Dense, len(body.Outputs()))
	for b := range batches {
		s := &scan{call: c, body: body, length: longest, outputs: make([]scanOutput, len(body.Outputs())-states)}
		if lengths != nil {
			if s.length = int(lengths[b]); s.length < 0 || s.length > longest {
				return c.Errorf("sequence length %d is outside 0 to %d", s.length, longest)
			}
		}
		for k, d := range all {
			row, err := c.takeIndex(d, 0, b)
			if err != nil {
				return err
			}
			if k < states {
				s.state = append(s.state, row)
			} else {
				s.inputs = append(s.inputs, scanned{row, 0, at(back, k-states) != 0})
			}
		}
		results, err := s.run()
		if err != nil {
			return err
		}
		for i, v := range results {
			d, ok := v.(*tensor.Dense)
			if !ok {
				return c.Errorf("output %d is no tensor", i)
			}
			if i >= states {
				if d, err = c.padRows(d, longest); err != nil {
					return err
				}
			}
			columns[i] = append(columns[i], d)
		}
	}
	for i := range c.Outputs {
		d, err := c.stackRounds(columns[i], 0, false, body.Outputs()[i])
		if err != nil {
			return err
		}
		c.Outputs[i] = d
	}
	return nil
}

// scan8Extent gives the number of batches and the length of their sequences.
func scan8Extent(c *Call, all []*tensor.Dense, states int) (batches, longest int, err error) {
	batches, longest = -1, -1
	for k, d := range all {
		if d.Rank() < 1 || k >= states && d.Rank() < 2 {
			return 0, 0, c.Errorf("input %d of shape %v lacks the batch or sequence axis", k+1, d.Shape())
		}
		if batches < 0 {
			batches = d.Shape()[0]
		}
		if k >= states && longest < 0 {
			longest = d.Shape()[1]
		}
		if d.Shape()[0] != batches || k >= states && d.Shape()[1] != longest {
			return 0, 0, c.Errorf("input %d of shape %v differs from the others in batches or length", k+1, d.Shape())
		}
	}
	return batches, longest, nil
}

// scanBody gives the body and the number of scanned inputs; first is the number
// of inputs that are neither state nor scanned.
func scanBody(c *Call, first int) (*onnx.Graph, int, error) {
	body, err := c.Subgraph("body")
	if err != nil {
		return nil, 0, err
	}
	values := len(c.Inputs) - first
	scans := c.Int("num_scan_inputs", 0)
	if scans < 1 || scans > int64(values) {
		return nil, 0, c.Errorf("num_scan_inputs is %d for %d inputs", scans, values)
	}
	states := values - int(scans)
	if len(body.Inputs()) != values || len(body.Outputs()) < states || len(c.Outputs) > len(body.Outputs()) {
		return nil, 0, c.Errorf("the body has %d inputs and %d outputs, which does not fit %d states, %d scanned inputs and %d outputs",
			len(body.Inputs()), len(body.Outputs()), states, scans, len(c.Outputs))
	}
	return body, int(scans), nil
}

func (c *Call) scanPlaces(axes, directions string) (a, d []int64) {
	a, _ = c.Ints(axes)
	d, _ = c.Ints(directions)
	return a, d
}

// at gives item k of a list whose missing items are 0.
func at(list []int64, k int) int64 {
	if k < len(list) {
		return list[k]
	}
	return 0
}

func (s *scan) countRounds() (int, error) {
	length := -1
	for _, in := range s.inputs {
		n := in.data.Shape()[in.axis]
		if length >= 0 && n != length {
			return 0, s.call.Errorf("scanned inputs have lengths %d and %d", length, n)
		}
		length = n
	}
	return length, nil
}

// run gives the states after the last round, then what was put together.
func (s *scan) run() ([]Value, error) {
	c := s.call
	columns := make([][]*tensor.Dense, len(s.outputs))
	args := make([]Value, len(s.state)+len(s.inputs))
	for round := range s.length {
		if err := c.frame.run.step(); err != nil {
			return nil, err
		}
		copy(args, s.state)
		for k, in := range s.inputs {
			i := round
			if in.backwards {
				i = s.length - 1 - round
			}
			row, err := c.takeIndex(in.data, in.axis, i)
			if err != nil {
				return nil, err
			}
			args[len(s.state)+k] = row
		}
		out, err := c.RunGraph(s.body, args...)
		if err != nil {
			return nil, err
		}
		c.Release(args...)
		copy(s.state, out)
		if err := c.collect(columns, out[len(s.state):]); err != nil {
			return nil, err
		}
	}
	results := slices.Clone(s.state)
	for k, o := range s.outputs {
		d, err := c.stackRounds(columns[k], int(o.axis), o.backwards, s.body.Outputs()[len(s.state)+k])
		if err != nil {
			return nil, err
		}
		results = append(results, d)
	}
	return results, nil
}

// padRows makes the first axis n long, with zeros.
func (c *Call) padRows(d *tensor.Dense, n int) (*tensor.Dense, error) {
	if d.Rank() < 1 || d.Shape()[0] >= n {
		return d, nil
	}
	shape := slices.Clone(d.Shape())
	shape[0] = n
	out, err := c.New(d.Type(), shape...)
	if err != nil {
		return nil, err
	}
	copyPart(out, 0, d, 0, d.Len())
	return out, nil
}
