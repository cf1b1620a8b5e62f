package terminal

import (
	"io"
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// IsTerminal says whether what is written to w is seen at once by a person.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Palette colours text, or leaves it as it is.
type Palette struct{ on bool }

// PaletteFor gives the palette for text that goes to w: with colours only on a
// terminal, and not when the environment variable NO_COLOR is set to anything, or
// TERM says that the terminal is a dumb one (see no-color.org).
func PaletteFor(w io.Writer, getenv func(string) string) Palette {
	return Palette{on: IsTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

// Good is for what got better, or is in order.
func (p Palette) Good(s string) string { return p.paint(s, color.FgGreen) }

// Warn is for what deserves a look.
func (p Palette) Warn(s string) string { return p.paint(s, color.FgYellow) }

// Bad is for what failed.
func (p Palette) Bad(s string) string { return p.paint(s, color.FgRed) }

// Faint is for what matters less.
func (p Palette) Faint(s string) string { return p.paint(s, color.Faint) }

// Bold is for headings.
func (p Palette) Bold(s string) string { return p.paint(s, color.Bold) }

func (p Palette) paint(s string, attribute color.Attribute) string {
	if !p.on || s == "" {
		return s
	}
	c := color.New(attribute)
	c.EnableColor() // the library's own guess looks at standard output alone
	return c.Sprint(s)
}
