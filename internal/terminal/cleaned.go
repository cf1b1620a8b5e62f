package terminal

import (
	"io"
	"unicode/utf8"
)

// Cleaned gives what another program prints on to w as it comes: through [Clean], line by
// line, when w is a terminal, so that it cannot move the cursor or worse; else as it is.
func Cleaned(w io.Writer) io.Writer {
	if !IsTerminal(w) {
		return w
	}
	return &cleaned{out: w}
}

// cleaned keeps the first bytes of a letter until the others come.
type cleaned struct {
	out  io.Writer
	rest []byte
}

func (c *cleaned) Write(p []byte) (int, error) {
	text := append(c.rest, p...)
	whole := len(text)
	for i := max(0, len(text)-utf8.UTFMax); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
			break
		}
	}
	c.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(c.out, CleanLines(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
