package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/om"
)

// printCommandLines prints what ATC would be called with, ready for a shell, and
// nothing else: what is to be known of it goes to standard error.
func (a *app) printCommandLines(r *compilation.Result) error {
	if !a.quiet {
		w := labelled{a.err, a.paletteFor(a.err)}
		w.list("chosen", r.Chosen)
		if r.Emulated {
			w.line("emulated", "%s", w.p.Warn("npuctl's emulator would compile, not CANN: the result would run on no NPU"))
		}
		for _, b := range r.Builds {
			w.list("note", b.Notes)
		}
	}
	for _, b := range r.Builds {
		fmt.Fprintln(a.out, b.CommandLine)
	}
	return nil
}

// printCompilation tells people what was compiled, a block for each build.
func (a *app) printCompilation(r *compilation.Result) error {
	w := labelled{a.out, a.palette()}
	w.list("chosen", r.Chosen)
	w.toolkit(r)
	for i := range r.Builds {
		if err := w.build(&r.Builds[i]); err != nil {
			return err
		}
	}
	if len(r.Builds) > 1 {
		w.line("time", "%s", seconds(r.Seconds))
	}
	return nil
}

func (w labelled) toolkit(r *compilation.Result) {
	if r.Toolkit == nil {
		return
	}
	for _, p := range r.Toolkit.PassedOver {
		if strings.HasPrefix(p.From, "ASCEND_") { // the user meant it
			w.line("passed over", "%s", terminal.Clean(p.String()))
		}
	}
	if r.Emulated {
		w.line("emulated", "%s", w.p.Warn("npuctl's emulator compiled, not CANN ("+r.Toolkit.FoundBy+"): the result runs on no NPU"))
		return
	}
	version := "a CANN of unknown release"
	if r.Toolkit.Version != "" {
		version = "CANN " + r.Toolkit.Version
	}
	w.line("compiler", "%s, %s (%s)", terminal.Clean(version), terminal.Clean(r.Toolkit.Program), r.Toolkit.FoundBy)
}

func (w labelled) build(b *compilation.Build) error {
	mark := emulatedMark(b.Emulated)
	fmt.Fprintf(w.out, "%s -> %s%s\n", terminal.Clean(b.Model), w.p.Bold(terminal.Clean(b.Output)), mark)
	if b.Status == compilation.Unchanged {
		w.line("unchanged", "it was compiled of the same before (--force compiles again)")
		return nil
	}
	w.line("chip", "%s", b.SoC)
	w.line("shapes", "%s", shapesText(b))
	if err := portTable(b).Write(w.out); err != nil {
		return err
	}
	if b.Nodes != nil {
		w.line("graph", "%s, %s nodes (%s before)", terminal.Clean(b.Graph), terminal.Count(int64(b.Nodes.After)), terminal.Count(int64(b.Nodes.Before)))
	}
	w.line("size", "%s", terminal.Bytes(b.Bytes))
	w.list("replaced", b.Replaced)
	w.line("record", "%s", terminal.Clean(b.Record))
	w.list("note", b.Notes)
	w.line("time", "%s, of which atc %s%s", seconds(b.Seconds), seconds(b.ATCSeconds), mark)
	return nil
}

func shapesText(b *compilation.Build) string {
	if b.Gears == nil {
		return string(b.Kind)
	}
	axes := make([]string, len(b.Gears.Axes))
	for i, axis := range b.Gears.Axes {
		axes[i] = axis.String()
	}
	return terminal.Clean(fmt.Sprintf("%d gears of %s", len(b.Gears.Gears), strings.Join(axes, " and ")))
}

// portTable lists inputs and outputs as the .om has them. Of one with gears, outputs
// and bytes are those of the largest.
func portTable(b *compilation.Build) terminal.Table {
	t := terminal.Table{Header: []string{"", "name", "type", "bytes"}, Right: []int{3}}
	ofOutputs := ""
	if b.Gears != nil {
		t.Header[3] = "bytes (largest gear)"
		ofOutputs = " (largest gear)"
	}
	add := func(side string, tensors []om.Tensor, mark string) {
		for _, v := range tensors {
			name := v.Name
			if v.Tensor != "" {
				name = v.Tensor
			}
			size := "open"
			if v.Bytes > 0 {
				size = terminal.Bytes(v.Bytes)
			}
			t.Rows = append(t.Rows, []string{side, terminal.Clean(name), terminal.Clean(v.TypeText()) + mark, size})
		}
	}
	add("input", b.Inputs, "")
	add("output", b.Outputs, ofOutputs)
	return t
}

// compileFailed says what was chosen, which may be why, and what failed builds found: for
// people on standard error, for machines beside the error.
func (a *app) compileFailed(r *compilation.Result, chosen []string, err error) error {
	if !a.json && !a.quiet {
		labelled{a.err, a.paletteFor(a.err)}.list("chosen", chosen)
	}
	if r == nil {
		return err
	}
	if !a.json {
		for i := range r.Builds {
			a.printFailedBuild(a.err, &r.Builds[i], len(r.Builds) > 1)
		}
	}
	return &detailed{err, r}
}

func (a *app) printFailedBuild(out io.Writer, b *compilation.Build, several bool) {
	w := labelled{out, a.paletteFor(out)}
	if several {
		w.line(string(b.Status), "%s for %s", terminal.Clean(b.Model), b.SoC)
	}
	if len(b.Dynamic) > 0 {
		printDynamic(out, b.Dynamic)
	}
	w.open(b.Open)
	remedy := ""
	for i, d := range b.Diagnoses {
		if i > 0 || several { // the error tells the first
			if d.Remedy == remedy { // once is enough
				d.Remedy = ""
			}
			w.diagnosis(d)
		}
		remedy = cmp.Or(d.Remedy, remedy)
	}
	label := "log"
	for _, l := range b.LogLines {
		w.line(label, "%s", terminal.Shorten(terminal.Clean(l), 200))
		label = ""
	}
}

// open lists the dims of inputs that nothing fixes, those of one name in one line.
func (w labelled) open(list []compilation.OpenDim) {
	places := map[string][]string{}
	for _, d := range list {
		places[d.Name] = append(places[d.Name], fmt.Sprintf("%s[%d]", d.Input, d.Dim))
	}
	for _, d := range list {
		where := fmt.Sprintf("%s[%d]", d.Input, d.Dim)
		if d.Name != "" {
			all := places[d.Name]
			if len(all) == 0 {
				continue
			}
			delete(places, d.Name)
			where = fmt.Sprintf("%s (%s)", d.Name, strings.Join(all, ", "))
		}
		w.line("open", "%s", terminal.Clean(fmt.Sprintf("%s: fix it with %s", where, d.Fix)))
	}
}

// printDiagnoses tells people why a run of atc failed.
func (a *app) printDiagnoses(diagnoses []atc.Diagnosis, lines []string) {
	b := compilation.Build{Diagnoses: diagnoses, LogLines: lines}
	a.printFailedBuild(a.err, &b, false)
}
