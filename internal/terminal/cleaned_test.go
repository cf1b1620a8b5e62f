package terminal

import (
	"bytes"
	"testing"
)

// What a program prints reaches a terminal at once, without what would command it.
func TestCleaned(t *testing.T) {
	var out bytes.Buffer
	c := &cleaned{out: &out}
	for _, step := range []struct{ in, want string }{
		{"..", ".."},
		{".\nred \x1b[31mtext\t1\r\n", "..." + "\nred \\x1b[31mtext\t1\n"},
		{"\xe5\x9b", "...\nred \\x1b[31mtext\t1\n"}, // half a letter
		{"\xbe!", "...\nred \\x1b[31mtext\t1\n图!"},
		{"\xff.", "...\nred \\x1b[31mtext\t1\n图!\\xff."},
	} {
		if n, err := c.Write([]byte(step.in)); n != len(step.in) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if out.String() != step.want {
			t.Errorf("%q: %q, want %q", step.in, out.String(), step.want)
		}
	}
	if w := Cleaned(&out); w != &out {
		t.Error("a pipe gets it as it is")
	}
}
