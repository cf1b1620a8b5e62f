package main

import (
	"io"
	"os"
	"slices"

	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/om"
)

// offlineMarks are how files of compiled models begin: an .om, and an OM2 package, which
// is a zip archive. No other file that is inspected begins so.
var offlineMarks = []string{"IMOD", "PK\x03\x04"}

// isOffline says whether a file is a compiled model, by its name or by its first bytes.
func isOffline(path string) bool {
	if compiledmodel.Is(path) {
		return true
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // and not opened: a pipe would wait for a writer
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	mark := make([]byte, len(offlineMarks[0]))
	_, err = io.ReadFull(f, mark)
	return err == nil && slices.Contains(offlineMarks, string(mark))
}

// inspectOffline describes a compiled model.
func (a *app) inspectOffline(path string) error {
	f, err := om.Open(path)
	if err != nil {
		return sortOffline(path, err)
	}
	defer f.Close()
	s, err := f.Summary()
	switch {
	case err != nil:
		return sortOffline(path, err)
	case a.json:
		return a.printJSON(s)
	case a.quiet:
		return nil
	}
	return a.printReport(s.Report(terminal.Bytes))
}

// sortOffline makes what is wrong with a file the input's fault.
func sortOffline(path string, err error) error {
	if fault.FamilyOf(err) != fault.Internal {
		return err
	}
	return fault.New(fault.Input, "%s: %w", path, err)
}

// printReport prints facts and tables.
func (a *app) printReport(r om.Report) error {
	w := labelled{a.out, a.palette()}
	for _, f := range r.Facts {
		w.line(f.Label, "%s", terminal.Clean(f.Text))
	}
	for _, t := range r.Tables {
		w.line(t.Title, "")
		table := terminal.Table{Header: t.Header, Right: t.Right}
		for _, row := range t.Rows {
			cells := make([]string, len(row))
			for i, c := range row {
				cells[i] = terminal.Shorten(terminal.Clean(c), 60)
			}
			table.Rows = append(table.Rows, cells)
		}
		if err := table.Write(a.out); err != nil {
			return err
		}
	}
	return nil
}
