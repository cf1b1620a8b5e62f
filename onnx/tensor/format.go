package tensor

import (
	"fmt"
	"strconv"
	"strings"
)

// What [Dense.String] writes at most: so many elements, and so many bytes of a
// string element.
const (
	shownElements = 8
	shownString   = 40
)

// String returns type, shape and the first elements, for messages and tests:
// FLOAT[2,3]{1, 2, 3, 4, 5, 6}, or INT64[100]{0, 1, 2, 3, 4, 5, 6, 7, …}.
func (d *Dense) String() string {
	elements := d.head(shownElements).texts()
	if d.count > shownElements {
		elements = append(elements, "…")
	}
	dims := strings.Join(formatAll(d.shape), ",")
	return fmt.Sprintf("%v[%s]{%s}", d.typ, dims, strings.Join(elements, ", "))
}

// head returns the first n elements as an array of rank 1.
func (d *Dense) head(n int) *Dense {
	n = min(n, d.count)
	return &Dense{typ: d.typ, shape: []int{n}, base: d.base, count: n}
}

// texts formats all elements.
func (d *Dense) texts() []string {
	switch d.typ {
	case String:
		return quoteAll(view[string](d))
	case Bool:
		return formatAll(view[bool](d))
	case Complex64:
		return formatAll(view[complex64](d))
	case Complex128:
		return formatAll(view[complex128](d))
	case Uint64:
		return formatAll(view[uint64](d))
	case Float64:
		return formatAll(view[float64](d))
	}
	if small, ok := d.Float32s(); ok {
		return formatAll(small)
	}
	integers, _ := d.Int64s()
	return formatAll(integers)
}

func formatAll[T any](values []T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return texts
}

func quoteAll(values []string) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		if len(v) > shownString {
			texts[i] = strconv.Quote(v[:shownString]) + "…"
			continue
		}
		texts[i] = strconv.Quote(v)
	}
	return texts
}
