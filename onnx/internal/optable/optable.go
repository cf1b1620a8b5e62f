// Package optable looks operators up in tables by domain, name and version: a row
// holds from the version it names until a later row of the same operator takes over.
// The interpreter's kernels and the rules of inference are such tables.
package optable

import (
	"cmp"
	"maps"
	"slices"
)

// Operator names an operator: by its canonical domain ("" is the default one) and name.
type Operator struct{ Domain, Name string }

// Key says what a row is about: an operator from version Since on.
type Key struct {
	Operator
	Since int
}

type row[T any] struct {
	since int
	value T
}

// Table is the look-up form of rows. It does not change once made.
type Table[T any] struct {
	rows map[Operator][]row[T]
}

// New makes a table of families of rows; key says what a row is about.
func New[T any](families [][]T, key func(T) Key) Table[T] {
	t := Table[T]{rows: map[Operator][]row[T]{}}
	for _, family := range families {
		for _, value := range family {
			k := key(value)
			t.rows[k.Operator] = append(t.rows[k.Operator], row[T]{k.Since, value})
		}
	}
	for _, rows := range t.rows {
		slices.SortStableFunc(rows, func(a, b row[T]) int { return cmp.Compare(a.since, b.since) })
	}
	return t
}

// Lookup gives the row that holds for an operator at an opset of its domain.
func (t Table[T]) Lookup(domain, name string, opset int) (found T, ok bool) {
	for _, r := range t.rows[Operator{domain, name}] {
		if r.since > opset {
			break
		}
		found, ok = r.value, true
	}
	return found, ok
}

// Operators lists what the table has rows for, by domain and name.
func (t Table[T]) Operators() []Operator {
	return slices.SortedFunc(maps.Keys(t.rows), func(a, b Operator) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name))
	})
}
