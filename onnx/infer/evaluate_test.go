package infer

// assignment gives symbols that have no operation a number, by their key.
type assignment map[string]int64

// of computes an expression; ok is false when it holds a symbol without a
// number, or divides by zero.
func (a assignment) of(d Dim) (n int64, ok bool) {
	if d.IsUnknown() {
		return 0, false
	}
	n = d.constant
	for _, t := range d.terms() {
		product := t.coefficient
		for _, s := range t.factors {
			x, ok := a.symbol(s)
			if !ok {
				return 0, false
			}
			product *= x
		}
		n += product
	}
	return n, true
}

func (a assignment) symbol(s *symbol) (int64, bool) {
	if s.operation == opName || s.operation == opNameless {
		n, ok := a[s.key]
		return n, ok
	}
	x, ok := a.of(s.a)
	y, okToo := a.of(s.b)
	if !ok || !okToo {
		return 0, false
	}
	switch s.operation {
	case opPositive:
		return max(x, 0), true
	case opNonzero:
		if x == 0 {
			return y, true
		}
		return x, true
	case opBroadcast:
		if x == 1 {
			return y, true
		}
		return x, true
	case opTruncate:
		if y == 0 {
			return 0, false
		}
		return x / y, true
	}
	if y == 0 {
		return 0, false
	}
	return floorQuotient(x, y), true
}

func floorQuotient(x, y int64) int64 {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}
