package infer

import (
	"slices"
	"strings"
)

// einsumOperators multiply and sum along named axes.
var einsumOperators = []operator{
	{name: "Einsum", since: 12, rule: einsum},
}

// ellipsis stands in a term for the dims that have no letter.
const ellipsis = "..."

// einsum reads an equation such as "bij,bjk->bik". Without an arrow the result
// has the dims of the ellipsis, then the letters that occur once, sorted.
func einsum(c *call) {
	equation := strings.ReplaceAll(c.string("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.inputs) {
		c.conflictf("equation %q has %d operands, the node %d inputs", equation, len(terms), len(c.inputs))
		return
	}
	if !explicit {
		right = implicitOutput(left)
	}
	letters := map[rune]Dim{}
	var broadcast []Dim
	for i, term := range terms {
		dims, ok := c.dims(i)
		if !ok {
			return
		}
		before, after, hasEllipsis := strings.Cut(term, ellipsis)
		named := len(before) + len(after)
		if named > len(dims) || !hasEllipsis && named != len(dims) {
			c.conflictf("term %q of the equation does not fit %s", term, c.describe(i))
			return
		}
		c.bindLetters(letters, before, dims, i)
		c.bindLetters(letters, after, dims[len(dims)-len(after):], i)
		if hasEllipsis {
			broadcast = c.broadcast(broadcast, dims[len(before):len(dims)-len(after)], i)
		}
	}
	c.einsumOutput(right, letters, broadcast)
}

func (c *call) einsumOutput(term string, letters map[rune]Dim, broadcast []Dim) {
	var out []Dim
	before, after, hasEllipsis := strings.Cut(term, ellipsis)
	for _, letter := range before {
		out = append(out, letters[letter])
	}
	if hasEllipsis {
		out = append(out, broadcast...)
	}
	for _, letter := range after {
		out = append(out, letters[letter])
	}
	c.setDims(0, out...)
}

// bindLetters notes the size of each letter; one that occurs again must fit.
func (c *call) bindLetters(letters map[rune]Dim, term string, dims []Dim, i int) {
	for k, letter := range term {
		d := dims[k]
		was, seen := letters[letter]
		if seen && !was.Is(1) {
			if d.Is(1) {
				continue
			}
			d = c.agreeDims(was, d, func() string { return "axes " + string(letter) + " of " + c.describe(i) + " and the inputs before" })
		}
		letters[letter] = d
	}
}

// implicitOutput is the right side that an equation without an arrow means.
func implicitOutput(left string) string {
	var once []string
	for _, letter := range strings.ReplaceAll(left, ellipsis, "") {
		if letter != ',' && strings.Count(left, string(letter)) == 1 {
			once = append(once, string(letter))
		}
	}
	slices.Sort(once)
	out := strings.Join(once, "")
	if strings.Contains(left, ellipsis) {
		out = ellipsis + out
	}
	return out
}
