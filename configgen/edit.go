package configgen

import (
	"cmp"
	"fmt"
	"slices"
)

// Edit replaces a part of a file: the bytes from Start to End.
type Edit struct {
	Start, End int
	Text       string
}

// ApplyEdits makes the edits, whose parts may not overlap, and leaves every other
// byte as it is. What is inserted where another part begins comes before it.
func ApplyEdits(text string, edits []Edit) (string, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(min(a.End-a.Start, 1), min(b.End-b.Start, 1)))
	})
	var out []byte
	at := 0
	for _, e := range edits {
		if e.Start < at || e.End < e.Start || e.End > len(text) {
			return "", fmt.Errorf("edit of bytes %d to %d: it overlaps another one or lies outside the text", e.Start, e.End)
		}
		out = append(append(out, text[at:e.Start]...), e.Text...)
		at = e.End
	}
	return string(append(out, text[at:]...)), nil
}
