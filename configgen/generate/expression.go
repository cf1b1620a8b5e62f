package generate

import (
	"strconv"
	"strings"
)

// deepest bounds brackets within brackets: names come from files.
const deepest = 64

// expression is the text of a dim's name that is being computed, as npu_ge does it:
// whole numbers and names of dims with + - * / and brackets, where / rounds down.
type expression struct {
	rest  string
	sizes map[string]int64
	depth int
}

// evaluate computes an expression; false where it is none, a name has no size, or the
// result is no size of a dim.
func evaluate(text string, sizes map[string]int64) (size int64, isKnown bool) {
	e := &expression{rest: text, sizes: sizes}
	size, isKnown = e.sum()
	return size, isKnown && e.next() == 0 && size > 0
}

// next is the next character that is no blank; 0 at the end.
func (e *expression) next() byte {
	if e.rest = strings.TrimLeft(e.rest, " "); e.rest == "" {
		return 0
	}
	return e.rest[0]
}

func (e *expression) sum() (int64, bool) { return e.chain(e.product, '+', '-') }

func (e *expression) product() (int64, bool) { return e.chain(e.value, '*', '/') }

// chain computes values that stand between operators of one rank, from the left.
func (e *expression) chain(value func() (int64, bool), first, second byte) (total int64, ok bool) {
	total, ok = value()
	for ok && (e.next() == first || e.next() == second) {
		operator := e.rest[0]
		e.rest = e.rest[1:]
		n, isValue := value()
		if !isValue {
			return 0, false
		}
		total, ok = compute(total, operator, n)
	}
	return total, ok
}

// mostSize bounds results in between, so that none overflows.
const mostSize = 1 << 31

func compute(a int64, operator byte, b int64) (int64, bool) {
	switch {
	case operator == '+':
		a += b
	case operator == '-':
		a -= b
	case operator == '*':
		a *= b
	case b == 0:
		return 0, false
	default:
		quotient := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			quotient--
		}
		a = quotient
	}
	return a, a >= -mostSize && a <= mostSize
}

// value is a number, the size of a name, or what stands in brackets.
func (e *expression) value() (int64, bool) {
	if e.next() == '(' {
		if e.depth++; e.depth > deepest {
			return 0, false
		}
		e.rest = e.rest[1:]
		n, ok := e.sum()
		if !ok || e.next() != ')' {
			return 0, false
		}
		e.rest = e.rest[1:]
		e.depth--
		return n, true
	}
	end := 0
	for end < len(e.rest) && !strings.ContainsRune(" +-*/()", rune(e.rest[end])) {
		end++
	}
	word := e.rest[:end]
	e.rest = e.rest[end:]
	if n, err := strconv.ParseInt(word, 10, 32); err == nil {
		return n, true
	}
	n, ok := e.sizes[word]
	return n, ok && word != "" && n <= mostSize
}
