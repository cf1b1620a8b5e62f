package infer

// recurrentOperators step along a sequence.
var recurrentOperators = []operator{
	{name: "RNN", since: 1, rule: recurrent},
	{name: "GRU", since: 1, rule: recurrent},
	{name: "LSTM", since: 1, rule: recurrent},
}

// recurrent gives all states, and the last ones; an LSTM has two kinds of those.
// Layout 1, since opset 14, puts the batch first.
func recurrent(c *call) {
	sequence, batch, hidden := Unknown(), Unknown(), Unknown()
	batchFirst := c.int("layout", 0) != 0
	if dims, ok := c.dims(0); ok && len(dims) == 3 {
		sequence, batch = dims[0], dims[1]
		if batchFirst {
			sequence, batch = batch, sequence
		}
	}
	if weights, ok := c.dims(2); ok && len(weights) == 3 {
		hidden = weights[2]
	}
	if a := c.attribute("hidden_size"); a != nil {
		hidden = Const(a.Int())
	}
	directions := Const(1)
	if c.string("direction", "forward") == "bidirectional" {
		directions = Const(2)
	}
	// All outputs share the unknowns.
	for _, d := range []*Dim{&sequence, &batch, &hidden} {
		if d.IsUnknown() {
			*d = c.fresh()
		}
	}
	if batchFirst {
		c.setDims(0, batch, sequence, directions, hidden)
		c.setDims(1, batch, directions, hidden)
		c.setDims(2, batch, directions, hidden)
		return
	}
	c.setDims(0, sequence, directions, batch, hidden)
	c.setDims(1, directions, batch, hidden)
	c.setDims(2, directions, batch, hidden)
}
