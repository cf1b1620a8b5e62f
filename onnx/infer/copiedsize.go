package infer

import "slices"

// A 0 in the target of a Reshape copies the input's dim at its place, also where it
// was computed: [N, L] of [4, N, 8] with N = 0 asks for [4, L]. So a computed element
// is the dim that comes out only where it cannot be 0, or where the dim that it would
// copy is 0, too, or where no run succeeds with it being 0. Anything else is a symbol
// of its own, nonzero(N, 4): what can be concluded from it is true of both readings.

// copyWhereZero gives the dims of a Reshape, for what its target asks for, with a
// computed 0 read as the input's dim. Unknown dims are those that are -1 or may be.
func (c *call) copyWhereZero(target []Value, wanted []Dim) []Dim {
	in, ok := c.dims(0)
	dims := slices.Clone(wanted)
	for k, d := range wanted {
		if d.form == nil || d.IsUnknown() || target[k].Dim().Is(0) || c.Positive(d) {
			continue
		}
		switch {
		case !ok:
			dims[k] = nonzero(d, c.fresh())
		case k < len(in) && !c.failsEmpty(in, wanted, k): // beyond the input's dims there is nothing to copy
			dims[k] = nonzero(d, in[k])
		}
	}
	// What the target asks for is no less than 0, or nothing comes out.
	c.noteSizes(wanted)
	return dims
}

// Positive says whether d is at least 1 in every run that succeeds: by proof, or
// because an operator that fails otherwise has it among its dims.
func (i *Inference) Positive(d Dim) bool {
	if i.isSize(d.AddConst(-1)) {
		return true
	}
	// A sum of sizes, one of which is a product of such dims.
	if d.IsUnknown() || d.constant < 0 {
		return false
	}
	found := false
	for _, t := range d.terms() {
		if t.coefficient < 0 || slices.ContainsFunc(t.factors, func(s *symbol) bool { return !s.size }) {
			return false
		}
		found = found || !slices.ContainsFunc(t.factors, func(s *symbol) bool { return !i.isSize(s.dim().AddConst(-1)) })
	}
	return found
}

// notePositive remembers that dims are at least 1, which the current node fails
// without. A node that may never run says nothing.
func (c *call) notePositive(dims []Dim) {
	for _, d := range dims {
		if !d.IsUnknown() && d.form != nil && len(c.sizes) < maxSizes && !c.conditional() && !c.Positive(d) {
			c.sizes[d.AddConst(-1).key()] = true
		}
	}
}

// nonzero gives d, or other where d is 0; both are sizes.
func nonzero(d, other Dim) Dim {
	switch {
	case other.vanishesWith(d):
		return d
	case other.isNonzeroOf(d):
		return other
	}
	return derive(opNonzero, d, other, true)
}

// isNonzeroOf says whether d is e, or something else where e is 0. Where the two must
// be equal, or broadcast, they are e: nothing but 1 and 0 goes with a 0.
func (d Dim) isNonzeroOf(e Dim) bool {
	s := d.bare()
	return s != nil && s.operation == opNonzero && s.a.Equal(e)
}

// failsEmpty says whether no run succeeds in which dim k of a Reshape's target is 0
// and copies an input's dim that is not: where the 0 comes with one in the input, the
// element counts agree only if another dim of the output is 0 as well.
func (c *call) failsEmpty(in, wanted []Dim, k int) bool {
	if slices.ContainsFunc(wanted, Dim.IsUnknown) || !anyVanishesWith(in, wanted[k]) {
		return false
	}
	for j, d := range wanted {
		if j == k || j >= len(in) || c.Positive(d) || c.Positive(in[j]) {
			continue
		}
		// Dim j is 0 where both are. That is out of the question if dim k of the input is 0 then.
		if !in[k].vanishesWith(d) && !in[k].vanishesWith(in[j]) {
			return false
		}
	}
	return true
}

// anyVanishesWith says whether one of the dims is 0 wherever e is.
func anyVanishesWith(dims []Dim, e Dim) bool {
	vanish := func(e Dim) bool {
		return slices.ContainsFunc(dims, func(d Dim) bool { return d.vanishesWith(e) })
	}
	if vanish(e) {
		return true
	}
	factors, ok := e.product()
	return ok && !slices.ContainsFunc(factors, func(s *symbol) bool { return !vanish(s.dim()) })
}

// vanishesWith says whether d is provably 0 wherever e is; a false answer says nothing.
func (d Dim) vanishesWith(e Dim) bool {
	if d.Is(0) || d.IsUnknown() {
		return d.Is(0)
	}
	if _, ok := d.quotient(e); ok {
		return true
	}
	factors, ok := e.product()
	return ok && !slices.ContainsFunc(factors, func(s *symbol) bool { return !d.vanishesWithSymbol(s) })
}

// vanishesWithSymbol says whether d is provably 0 wherever s is.
func (d Dim) vanishesWithSymbol(s *symbol) bool {
	return d.whereZero(s).Is(0) || s.operation == opNonzero && (d.vanishesWith(s.a) || d.vanishesWith(s.b))
}

// whereZero is d for s = 0.
func (d Dim) whereZero(s *symbol) Dim {
	sum := Const(d.constant)
	for _, t := range d.terms() {
		product := Const(t.coefficient)
		for _, f := range t.factors {
			if x := f.whereZero(s); x.Is(0) {
				product = x
				break
			} else {
				product = product.Mul(x)
			}
		}
		sum = sum.Add(product)
	}
	return sum
}

func (s *symbol) whereZero(zero *symbol) Dim {
	switch {
	case s.compare(zero) == 0:
		return Const(0)
	case s.operation == opName || s.operation == opNameless:
		return s.dim()
	}
	a, b := s.a.whereZero(zero), s.b.whereZero(zero)
	switch {
	case a.Equal(s.a) && b.Equal(s.b):
		return s.dim()
	case s.operation == opPositive:
		return a.positivePart()
	case s.operation == opFloor:
		return a.FloorDiv(b)
	case s.operation == opNonzero && a.Is(0):
		return b
	case s.operation == opBroadcast && a.Is(0) && b.Is(0):
		return a
	}
	return Unknown()
}

// product gives the factors of d when it is a product of symbols, times a number.
func (d Dim) product() (factors []*symbol, ok bool) {
	if terms := d.terms(); len(terms) == 1 && d.constant == 0 {
		return terms[0].factors, true
	}
	return nil, false
}
