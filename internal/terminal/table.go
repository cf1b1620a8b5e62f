package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is a table as it is printed. Characters of double width, as in Chinese,
// take two columns; colours of a [Palette] take none.
type Table struct {
	Header []string
	// Right lists the columns that are aligned to the right: numbers.
	Right []int
	Rows  [][]string
	// Footer rows stand below a line of their own: sums.
	Footer [][]string
}

// rendition is the one look of all tables, fixed here so that output does not
// change with the library.
func rendition() tw.Rendition {
	return tw.Rendition{
		Symbols: tw.NewSymbols(tw.StyleLight),
		Borders: tw.Border{Left: tw.On, Right: tw.On, Top: tw.On, Bottom: tw.On},
		Settings: tw.Settings{
			Separators: tw.Separators{BetweenColumns: tw.On, BetweenRows: tw.Off, ShowHeader: tw.On, ShowFooter: tw.On},
			Lines:      tw.Lines{ShowHeaderLine: tw.On, ShowFooterLine: tw.On},
		},
	}
}

// Write prints the table.
func (t Table) Write(w io.Writer) error {
	alignment := slices.Repeat(tw.Alignment{tw.AlignLeft}, len(t.Header))
	for _, column := range t.Right {
		alignment[column] = tw.AlignRight
	}
	out := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(rendition())),
		tablewriter.WithEastAsian(tw.Off), // what is ambiguous in width is narrow, whatever the locale
		tablewriter.WithAlignment(alignment),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithFooterAutoWrap(tw.WrapNone), tablewriter.WithFooterAutoFormat(tw.Off),
	)
	out.Header(t.Header)
	for _, row := range t.Rows {
		if err := out.Append(row); err != nil {
			return fmt.Errorf("add a row to a table: %w", err)
		}
	}
	if len(t.Footer) > 0 {
		out.Footer(joinRows(t.Footer))
	}
	if err := out.Render(); err != nil {
		return fmt.Errorf("print a table: %w", err)
	}
	return nil
}

// joinRows makes one row of many lines, which is how the library has footers.
func joinRows(rows [][]string) []string {
	out := slices.Clone(rows[0])
	for _, row := range rows[1:] {
		for i, cell := range row {
			out[i] += "\n" + cell
		}
	}
	return out
}

// Clean makes text from a file fit to print: what would move the cursor, switch
// colours or break a line is written as an escape.
func Clean(s string) string {
	if !strings.ContainsFunc(s, unprintable) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unprintable(r):
			quoted := fmt.Sprintf("%q", r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// CleanLines is [Clean] for text of several lines, which stay apart.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		parts := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for k, part := range parts {
			parts[k] = Clean(part)
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return strings.Join(lines, "\n")
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Shorten cuts text that is longer than width characters in the middle.
func Shorten(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := (width - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}
