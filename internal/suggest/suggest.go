// Package suggest finds the name that somebody probably meant.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// Nearest gives the known name closest to name, or "" when none is close: letters
// that differ, are missing or stand in the wrong place count one each, case a little.
func Nearest(name string, known []string) string {
	best, bestDistance := "", 2*(max(len(name), 3)/3)+1
	for _, k := range known {
		d := distance(name, k)
		if strings.EqualFold(name, k) {
			d = min(d, 1)
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Text says which name was probably meant, and which there are when they are few.
func Text(name string, known []string) string {
	if n := Nearest(name, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	switch {
	case len(known) == 0:
		return "it has none at all"
	case len(known) <= 8:
		return "there are " + strings.Join(quoted(known), ", ")
	}
	return fmt.Sprintf("there are %d, such as %s", len(known), strings.Join(quoted(known[:8]), ", "))
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return out
}

// distance is twice the number of edits that turn a into b, where two letters
// that changed places are one edit and a letter of the other case is half of one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 200 || len(y) > 200 {
		return 2 * max(len(x), len(y))
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = 2 * i
	}
	for j := range rows[0] {
		rows[0][j] = 2 * j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			rows[i][j] = min(rows[i-1][j]+2, rows[i][j-1]+2, rows[i-1][j-1]+substitution(x[i-1], y[j-1]))
			if i > 1 && j > 1 && slices.Equal(x[i-2:i], []rune{y[j-1], y[j-2]}) {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+2)
			}
		}
	}
	return rows[len(x)][len(y)]
}

func substitution(a, b rune) int {
	switch {
	case a == b:
		return 0
	case strings.EqualFold(string(a), string(b)):
		return 1
	}
	return 2
}
