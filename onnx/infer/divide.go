package infer

import "slices"

// Div gives d / e rounded toward zero, as integer Div of ONNX does; e is not zero
// in a run that succeeds.
func (d Dim) Div(e Dim) Dim {
	if q, ok := d.quotient(e); ok {
		return q
	}
	if a, b, ok := numbers(d, e); ok {
		return Const(a / b)
	}
	if d.NonNegative() && e.NonNegative() {
		return d.FloorDiv(e)
	}
	if d.IsUnknown() || e.IsUnknown() || d.form == nil && e.form == nil {
		return Unknown()
	}
	d, e = cancel(d, e)
	return derive(opTruncate, d, e, false)
}

// numbers gives two expressions that are numbers and can be divided.
func numbers(d, e Dim) (a, b int64, ok bool) {
	a, aKnown := d.Known()
	b, bKnown := e.Known()
	return a, b, aKnown && bKnown && b != 0 && !(b == -1 && a == -a)
}

// FloorDiv gives d / e rounded down.
func (d Dim) FloorDiv(e Dim) Dim {
	if q, ok := d.quotient(e); ok {
		return q
	}
	if d.IsUnknown() || e.IsUnknown() || e.Is(0) {
		return Unknown()
	}
	d, e = cancel(d, e)
	c, ok := e.Known()
	switch {
	case ok && c < 0:
		return d.MulConst(-1).FloorDiv(Const(-c))
	case ok:
		return d.floorNumber(c)
	}
	return derive(opFloor, d, e, d.NonNegative() && e.NonNegative())
}

// CeilDiv gives d / e rounded up.
func (d Dim) CeilDiv(e Dim) Dim { return d.MulConst(-1).FloorDiv(e).MulConst(-1) }

// Mod gives d - e·floor(d/e): the remainder that has the sign of e.
func (d Dim) Mod(e Dim) Dim { return d.Sub(e.Mul(d.FloorDiv(e))) }

// Remainder gives d - e·trunc(d/e): the remainder that has the sign of d.
func (d Dim) Remainder(e Dim) Dim { return d.Sub(e.Mul(d.Div(e))) }

// floorNumber divides by a positive number. Whole multiples come out of the
// bracket, and what is inside is brought to one form: a numerator that begins
// with a plus, no floor of a floor, and no maximum inside.
func (d Dim) floorNumber(c int64) Dim {
	whole, rest := d.splitMultiples(c)
	if r, ok := rest.Known(); ok {
		return whole.AddConst(floorInt(r, c))
	}
	if rest.form.terms[0].coefficient < 0 {
		// floor(-x/c) = -ceil(x/c) = -floor((x+c-1)/c)
		flipped := rest.MulConst(-1).AddConst(c - 1)
		return whole.Sub(flipped.floorNumber(c))
	}
	inner, k := rest.lone()
	switch {
	case inner == nil:
	case inner.operation == opFloor && k == 1:
		if m, ok := inner.b.Known(); ok {
			// floor((floor(x/m)+r)/c) = floor((x+r·m)/(m·c))
			denominator, fits := mulInt(m, c)
			if !fits {
				return Unknown()
			}
			return whole.Add(inner.a.Add(Const(rest.constant).MulConst(m)).FloorDiv(Const(denominator)))
		}
	case inner.operation == opPositive:
		// floor((k·max(x,0)+r)/c) = max(floor((k·x+r)/c), 0), as 0 <= r < c
		return whole.Add(inner.a.MulConst(k).AddConst(rest.constant).FloorDiv(Const(c)).positivePart())
	}
	return whole.Add(derive(opFloor, rest, Const(c), rest.NonNegative()))
}

// lone gives the symbol and coefficient when d is k·s, or that and a number.
func (d Dim) lone() (s *symbol, k int64) {
	if terms := d.terms(); len(terms) == 1 && len(terms[0].factors) == 1 {
		return terms[0].factors[0], terms[0].coefficient
	}
	return nil, 0
}

// splitMultiples writes d as c·whole + rest with a constant between 0 and c-1 in
// rest and coefficients below c in magnitude.
func (d Dim) splitMultiples(c int64) (whole, rest Dim) {
	var in, out []term
	for _, t := range d.terms() {
		if k := t.coefficient / c; k != 0 {
			out = append(out, term{k, t.factors})
		}
		if k := t.coefficient % c; k != 0 {
			in = append(in, term{k, t.factors})
		}
	}
	q := floorInt(d.constant, c)
	return newDim(q, out), newDim(d.constant-q*c, in)
}

func floorInt(a, c int64) int64 {
	q := a / c
	if a%c < 0 {
		q--
	}
	return q
}

// cancel divides both by their common factor.
func cancel(d, e Dim) (Dim, Dim) {
	g := gcd(d.content(), e.content())
	if g > 1 {
		d, e = d.shrink(g), e.shrink(g)
	}
	if d.constant != 0 || e.constant != 0 || e.form == nil || d.form == nil {
		return d, e
	}
	common := d.form.terms[0].factors
	for _, t := range slices.Concat(d.form.terms, e.form.terms) {
		common = intersect(common, t.factors)
	}
	if len(common) == 0 {
		return d, e
	}
	monomial := newDim(0, []term{{1, common}})
	dq, _ := d.quotient(monomial)
	eq, _ := e.quotient(monomial)
	return dq, eq
}

// content is the greatest number that divides d.
func (d Dim) content() int64 {
	g := gcd(d.constant, 0)
	for _, t := range d.terms() {
		g = gcd(g, t.coefficient)
	}
	return g
}

// shrink divides by a number that divides every coefficient.
func (d Dim) shrink(g int64) Dim {
	terms := make([]term, len(d.terms()))
	for i, t := range d.terms() {
		terms[i] = term{t.coefficient / g, t.factors}
	}
	return newDim(d.constant/g, terms)
}

// gcd of magnitudes; 0 is divisible by everything. The smallest int64 counts as 1.
func gcd(a, b int64) int64 {
	if a < 0 {
		a = -a
	}
	if b < 0 {
		b = -b
	}
	if a < 0 || b < 0 {
		return 1
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// intersect gives the common part of two sorted products.
func intersect(a, b []*symbol) []*symbol {
	var out []*symbol
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

// without divides a sorted product by another; ok is false when it does not divide.
func without(a, b []*symbol) (rest []*symbol, ok bool) {
	for _, s := range a {
		if len(b) > 0 && s.compare(b[0]) == 0 {
			b = b[1:]
			continue
		}
		rest = append(rest, s)
	}
	return rest, len(b) == 0
}

// quotient divides polynomials; ok is false when there is a remainder.
func (d Dim) quotient(e Dim) (q Dim, ok bool) {
	if d.IsUnknown() || e.IsUnknown() || e.Is(0) {
		return Dim{}, false
	}
	for range maxTerms + 1 {
		if d.Is(0) {
			return q, true
		}
		t, ok := leading(d).over(leading(e))
		if !ok {
			return Dim{}, false
		}
		part := Dim{constant: t.coefficient}
		if len(t.factors) > 0 {
			part = newDim(0, []term{t})
		}
		q, d = q.Add(part), d.Sub(part.Mul(e))
	}
	return Dim{}, false
}

// leading is the first term, or the number when there is none.
func leading(d Dim) term {
	if d.form == nil {
		return term{d.constant, nil}
	}
	if d.IsUnknown() {
		return term{}
	}
	return d.form.terms[0]
}

func (t term) over(u term) (term, bool) {
	if t.coefficient == 0 || u.coefficient == 0 || t.coefficient%u.coefficient != 0 || u.coefficient == -1 && t.coefficient == -t.coefficient {
		return term{}, false
	}
	factors, ok := without(t.factors, u.factors)
	return term{t.coefficient / u.coefficient, factors}, ok
}
