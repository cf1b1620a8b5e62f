package infer

import (
	"math"
	"math/bits"
	"slices"
)

// Dim is an integer expression: a polynomial with integer coefficients over
// symbols, in a canonical form. The zero Dim is the number 0. Dims are immutable.
//
// Arithmetic never fails: what overflows an int64 or grows beyond a small bound
// becomes [Unknown], which is equal to nothing, itself included.
type Dim struct {
	constant int64
	form     *form // the terms that have symbols; nil for a number
}

// form is the part of an expression that is no number. Without terms it stands
// for an unknown.
type form struct{ terms []term }

// term is a product of symbols, sorted, with a coefficient that is not zero.
type term struct {
	coefficient int64
	factors     []*symbol
}

// Expressions larger than this become unknown: they come from hostile or
// pathological models, and comparing them would cost more than they tell.
const (
	maxTerms  = 12
	maxDegree = 8
)

// unknownForm marks the unknown Dim; it is never written to.
var unknownForm = &form{}

// Const is the number n.
func Const(n int64) Dim { return Dim{constant: n} }

// Unknown is the expression of which nothing is known.
func Unknown() Dim { return Dim{form: unknownForm} }

// IsUnknown says whether d came out of arithmetic that could not be expressed.
func (d Dim) IsUnknown() bool { return d.form == unknownForm }

// Known gives the number that d is, if it is one.
func (d Dim) Known() (int64, bool) { return d.constant, d.form == nil }

// Is says whether d is the number n.
func (d Dim) Is(n int64) bool { return d.form == nil && d.constant == n }

// Symbol gives the name when d is nothing but a symbol that the model names.
func (d Dim) Symbol() (name string, ok bool) {
	s := d.bare()
	if s == nil || s.operation != opName {
		return "", false
	}
	return s.text, true
}

// bare is the symbol that d consists of, or nil.
func (d Dim) bare() *symbol {
	if d.form == nil || d.constant != 0 || len(d.form.terms) != 1 {
		return nil
	}
	if t := d.form.terms[0]; t.coefficient == 1 && len(t.factors) == 1 {
		return t.factors[0]
	}
	return nil
}

// terms lists the terms of d that have symbols.
func (d Dim) terms() []term {
	if d.form == nil {
		return nil
	}
	return d.form.terms
}

// newDim makes a Dim of terms in canonical order.
func newDim(constant int64, terms []term) Dim {
	switch {
	case len(terms) == 0:
		return Const(constant)
	case len(terms) > maxTerms:
		return Unknown()
	}
	return Dim{constant: constant, form: &form{terms}}
}

// Equal says whether d and e are the same for every value of their symbols.
func (d Dim) Equal(e Dim) bool {
	if d.constant != e.constant || d.IsUnknown() || e.IsUnknown() {
		return false
	}
	if d.form == e.form {
		return true
	}
	return slices.EqualFunc(d.terms(), e.terms(), func(a, b term) bool {
		return a.coefficient == b.coefficient && compareFactors(a.factors, b.factors) == 0
	})
}

// compareFactors orders products: higher degree first, then by symbol. It is a
// monomial order, as polynomial division needs it.
func compareFactors(a, b []*symbol) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	for i := range a {
		if c := a[i].compare(b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// Add gives d + e.
func (d Dim) Add(e Dim) Dim {
	sum, ok := addInt(d.constant, e.constant)
	switch {
	case !ok || d.IsUnknown() || e.IsUnknown():
		return Unknown()
	case e.form == nil:
		return Dim{sum, d.form}
	case d.form == nil:
		return Dim{sum, e.form}
	}
	terms, ok := addTerms(d.form.terms, e.form.terms)
	if !ok {
		return Unknown()
	}
	return newDim(sum, terms)
}

func addTerms(a, b []term) (sum []term, ok bool) {
	sum = make([]term, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := compareFactors(a[0].factors, b[0].factors); {
		case c < 0:
			sum, a = append(sum, a[0]), a[1:]
		case c > 0:
			sum, b = append(sum, b[0]), b[1:]
		default:
			k, ok := addInt(a[0].coefficient, b[0].coefficient)
			if !ok {
				return nil, false
			}
			if k != 0 {
				sum = append(sum, term{k, a[0].factors})
			}
			a, b = a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...), true
}

// AddConst gives d + n.
func (d Dim) AddConst(n int64) Dim { return d.Add(Const(n)) }

// Sub gives d - e.
func (d Dim) Sub(e Dim) Dim { return d.Add(e.MulConst(-1)) }

// MulConst gives d · n.
func (d Dim) MulConst(n int64) Dim {
	switch {
	case d.IsUnknown():
		return d
	case n == 0:
		return Const(0)
	case n == 1:
		return d
	}
	constant, ok := mulInt(d.constant, n)
	terms := make([]term, len(d.terms()))
	for i, t := range d.terms() {
		k, fits := mulInt(t.coefficient, n)
		terms[i], ok = term{k, t.factors}, ok && fits
	}
	if !ok {
		return Unknown()
	}
	return newDim(constant, terms)
}

// Mul gives d · e.
func (d Dim) Mul(e Dim) Dim {
	switch {
	case e.form == nil:
		return d.MulConst(e.constant)
	case d.form == nil:
		return e.MulConst(d.constant)
	case d.IsUnknown() || e.IsUnknown():
		return Unknown()
	}
	product := d.MulConst(e.constant)
	for _, t := range e.form.terms {
		product = product.Add(d.mulTerm(t))
	}
	return product
}

func (d Dim) mulTerm(t term) Dim {
	product := make([]term, 0, len(d.form.terms)+1)
	for _, s := range d.form.terms {
		k, ok := mulInt(s.coefficient, t.coefficient)
		if !ok || len(s.factors)+len(t.factors) > maxDegree {
			return Unknown()
		}
		factors := slices.Concat(s.factors, t.factors)
		slices.SortFunc(factors, (*symbol).compare)
		product = append(product, term{k, factors})
	}
	if d.constant != 0 {
		k, ok := mulInt(d.constant, t.coefficient)
		if !ok {
			return Unknown()
		}
		product = append(product, term{k, t.factors})
	}
	slices.SortFunc(product, func(a, b term) int { return compareFactors(a.factors, b.factors) })
	return newDim(0, product)
}

// newest is the serial number of the youngest nameless symbol in d, 0 when there is none.
func (d Dim) newest() int {
	n := 0
	for _, t := range d.terms() {
		for _, s := range t.factors {
			n = max(n, s.newest)
		}
	}
	return n
}

func addInt(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > math.MaxInt64 {
		return 0, false
	}
	return a * b, true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
