package infer

// maxSubstitutions bounds the search for a proof that an expression is not negative.
const maxSubstitutions = 24

// NonNegative says whether d is provably at least 0. All sizes are; a false
// answer says nothing.
func (d Dim) NonNegative() bool {
	p := prover{fuel: maxSubstitutions}
	return p.nonNegative(d)
}

// Positive says whether d is provably at least 1.
func (d Dim) Positive() bool { return d.AddConst(-1).NonNegative() }

// prover looks for a proof that an expression is not negative.
type prover struct {
	fuel  int             // substitutions left
	sizes map[string]bool // keys of expressions that are known not to be negative
}

// nonNegative looks for a lower bound that is a sum of sizes: symbols that stand
// for a floor or a maximum are replaced by what they are at least, or at most.
func (p *prover) nonNegative(d Dim) bool {
	if d.IsUnknown() {
		return false
	}
	if d.sumOfSizes() || len(p.sizes) > 0 && d.form != nil && p.sizes[d.key()] {
		return true
	}
	if p.fuel--; p.fuel < 0 {
		return false
	}
	for _, t := range d.terms() {
		if len(t.factors) == 1 && p.boundedBelow(d, t) {
			return true
		}
	}
	return false
}

func (d Dim) sumOfSizes() bool {
	if d.constant < 0 {
		return false
	}
	for _, t := range d.terms() {
		if t.coefficient < 0 {
			return false
		}
		for _, s := range t.factors {
			if !s.size {
				return false
			}
		}
	}
	return true
}

// boundedBelow tries the proof with t, a term of d, replaced by its lower bound.
func (p *prover) boundedBelow(d Dim, t term) bool {
	s, k := t.factors[0], t.coefficient
	switch s.operation {
	case opPositive:
		// max(a,0) is one of the two, and at least either.
		rest := d.Sub(newDim(0, []term{t}))
		zero := p.nonNegative(rest)
		if k > 0 && zero {
			return true
		}
		if k < 0 && !zero {
			return false
		}
		return p.nonNegative(rest.Add(s.a.MulConst(k)))
	case opFloor:
		c, ok := s.b.Known()
		if !ok {
			return false
		}
		// (a-c+1)/c <= floor(a/c) <= a/c
		bound := s.a
		if k > 0 {
			bound = bound.AddConst(1 - c)
		}
		rest := d.Sub(newDim(0, []term{t}))
		return p.nonNegative(rest.MulConst(c).Add(bound.MulConst(k)))
	case opNonzero:
		// It is one of two sizes, and 0 only where both are.
		rest := d.Sub(newDim(0, []term{t}))
		if k > 0 && p.nonNegative(rest.AddConst(k)) && (p.nonNegative(s.a.AddConst(-1)) || p.nonNegative(s.b.AddConst(-1))) {
			return true
		}
		return p.nonNegative(rest.Add(s.a.MulConst(k))) && (k > 0 || p.nonNegative(rest.Add(s.b.MulConst(k))))
	}
	return false
}

// positivePart gives max(d, 0).
func (d Dim) positivePart() Dim {
	if n, ok := d.Known(); ok {
		return Const(max(n, 0))
	}
	negated := d.MulConst(-1)
	switch {
	case d.IsUnknown() || d.NonNegative():
		return d
	case negated.NonNegative():
		return Const(0)
	case d.form.terms[0].coefficient < 0:
		// max(-x,0) = max(x,0) - x: one symbol for both signs.
		return negated.positivePart().Add(d)
	}
	if inner, k := d.lone(); inner != nil && inner.operation == opPositive && k == 1 {
		// max(max(x,0)-r, 0) = max(x-r, 0); here the number is negative.
		return inner.a.AddConst(d.constant).positivePart()
	}
	g := d.content()
	return derive(opPositive, d.shrink(g), Dim{}, true).MulConst(g)
}

// Max gives the larger of d and e.
func (d Dim) Max(e Dim) Dim { return e.Add(d.Sub(e).positivePart()) }

// Min gives the smaller of d and e.
func (d Dim) Min(e Dim) Dim { return d.Sub(d.Sub(e).positivePart()) }

// sameSize says whether d and e, both of which are sizes in every run that
// succeeds, are the same: max(x,0) is x when x is a size.
func (d Dim) sameSize(e Dim) bool { return d.Equal(e) || d.capped().Equal(e.capped()) }

// capped gives x for max(x,0), and everything else as it is.
func (d Dim) capped() Dim {
	if s := d.bare(); s != nil && s.operation == opPositive {
		return s.a
	}
	return d
}

// Compare says how d and e are ordered, -1, 0 or 1, when that is so for every
// value of their symbols.
func (d Dim) Compare(e Dim) (order int, ok bool) {
	difference := d.Sub(e)
	switch {
	case difference.IsUnknown():
		return 0, false
	case difference.Is(0):
		return 0, true
	case difference.Positive():
		return 1, true
	case difference.MulConst(-1).Positive():
		return -1, true
	}
	return 0, false
}

// Differ says whether d and e are provably never equal.
func (d Dim) Differ(e Dim) bool {
	order, ok := d.Compare(e)
	return ok && order != 0
}
