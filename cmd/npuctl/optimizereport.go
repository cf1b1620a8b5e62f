package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/feeds"
	"github.com/npuctl/npuctl/internal/optimization"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnxpass"
)

// printOptimization shows people what was done: the table of operators that
// onnxsim made familiar, then what else there is to know, a line each.
func (a *app) printOptimization(r *optimization.Result) error {
	p := a.palette()
	fmt.Fprintf(a.out, "%s -> %s\n", terminal.Clean(r.Input), p.Bold(terminal.Clean(r.Output)))
	if err := operatorTable(r, p).Write(a.out); err != nil {
		return err
	}
	w := labelled{a.out, p}
	w.static(r)
	w.shared(r)
	w.line("changes", "%s", passText(r.Passes))
	w.kept(r.Kept)
	w.list("conflicts", r.Conflicts)
	w.advice(r.Advice)
	w.check(r.Check)
	if r.Replaced {
		w.line("replaced", "%s, which was there before", terminal.Clean(r.Output))
	}
	w.line("time", "%s", terminal.Duration(time.Duration(r.Seconds*float64(time.Second))))
	return nil
}

// operatorTable compares the operators before and after; rows that changed say by how much.
func operatorTable(r *optimization.Result, p terminal.Palette) terminal.Table {
	t := terminal.Table{Header: []string{"operator", "before", "after", "change"}, Right: []int{1, 2, 3}}
	names := slices.Sorted(maps.Keys(r.OpsBefore))
	for name := range r.OpsAfter {
		if _, known := r.OpsBefore[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	outside := r.BytesOutsideBefore+r.BytesOutsideAfter > 0
	for _, name := range names {
		t.Rows = append(t.Rows, changeRow(terminal.Clean(name), int64(r.OpsBefore[name]), int64(r.OpsAfter[name]), terminal.Count, p))
	}
	for _, row := range []struct {
		name          string
		before, after int64
		write         func(int64) string
	}{
		{"nodes", int64(r.NodesBefore), int64(r.NodesAfter), terminal.Count},
		{"file size", r.BytesBefore, r.BytesAfter, terminal.Bytes},
		{"external data", r.BytesOutsideBefore, r.BytesOutsideAfter, terminal.Bytes},
		{"in all", r.BytesBefore + r.BytesOutsideBefore, r.BytesAfter + r.BytesOutsideAfter, terminal.Bytes},
		{"parameters", r.ParametersBefore, r.ParametersAfter, terminal.Count},
	} {
		if !outside && (row.name == "external data" || row.name == "in all") {
			continue
		}
		t.Footer = append(t.Footer, changeRow(row.name, row.before, row.after, row.write, p))
	}
	return t
}

func changeRow(name string, before, after int64, write func(int64) string, p terminal.Palette) []string {
	change := ""
	switch {
	case after < before:
		change = p.Good("-" + write(before-after))
	case after > before:
		change = p.Warn("+" + write(after-before))
	}
	return []string{name, write(before), write(after), change}
}

// labelled writes lines with a word in front, aligned.
type labelled struct {
	out io.Writer
	p   terminal.Palette
}

const labelWidth = 12

func (w labelled) line(label, format string, args ...any) {
	fmt.Fprintf(w.out, "%s%s\n", w.p.Faint(fmt.Sprintf("%-*s", labelWidth, label)), fmt.Sprintf(format, args...))
}

// list writes entries below each other, the label before the first; nothing for an empty list.
func (w labelled) list(label string, entries []string) {
	for i, e := range entries {
		if i == shown && len(entries) > shown+1 {
			w.line("", "and %d more (--json lists all)", len(entries)-shown)
			return
		}
		w.line(label, "%s", terminal.Clean(e))
		label = ""
	}
}

// shown is how many entries of a list people get to see.
const shown = 5

// shared says which files of the input the result goes on reading.
func (w labelled) shared(r *optimization.Result) {
	if len(r.SharedFiles) > 0 && r.Input != r.Output {
		w.line("weights", "%s", w.p.Warn("in "+terminal.Clean(strings.Join(r.SharedFiles, ", "))+", the input's: the result needs it beside it"))
		w.line("", "(--external-data inline or split gives the result its own)")
	}
}

// static says whether every shape is known, and if not, names the first that are
// not and what they go back to.
func (w labelled) static(r *optimization.Result) {
	if r.Static {
		w.line("static", "%s", w.p.Good("yes"))
		return
	}
	w.line("static", "%s: %s of shapes that are known only when running", w.p.Warn("no"), terminal.Counted(len(r.Dynamic), "tensor"))
	for i, g := range groupDynamic(r.Dynamic) {
		if i == shown {
			w.line("", "and more (--static lists all)")
			return
		}
		first := g.tensors[0]
		more := ""
		if len(g.tensors) > 1 {
			more = fmt.Sprintf(" and %d more", len(g.tensors)-1)
		}
		w.line("", "%s %s%s: %s", terminal.Clean(first.Name), terminal.Clean(first.Type), more, terminal.Clean(g.reason))
	}
}

// dynamicGroup is the tensors that are dynamic for one reason.
type dynamicGroup struct {
	reason  string
	tensors []onnxpass.Dynamic
}

// groupDynamic groups tensors by their reason, in the order in which reasons come up.
func groupDynamic(list []onnxpass.Dynamic) (groups []dynamicGroup) {
	at := map[string]int{}
	for _, d := range list {
		i, known := at[d.Reason]
		if !known {
			i = len(groups)
			at[d.Reason] = i
			groups = append(groups, dynamicGroup{reason: d.Reason})
		}
		groups[i].tensors = append(groups[i].tensors, d)
	}
	return groups
}

// reasonsShown is how many reasons a failed --static tells people.
const reasonsShown = 3

// printDynamic says why tensors are not static: the reasons, each with the first
// tensor that it concerns, and what may be done about it.
func printDynamic(out io.Writer, list []onnxpass.Dynamic) {
	groups := groupDynamic(list)
	slices.SortStableFunc(groups, func(a, b dynamicGroup) int { return cmp.Compare(urgency(a.reason), urgency(b.reason)) })
	left := 0
	for i, g := range groups {
		if i >= reasonsShown {
			left += len(g.tensors)
			continue
		}
		first := g.tensors[0]
		by, more := "", ""
		if first.Node != "" {
			by = " of " + first.Node
		}
		if n := len(g.tensors) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more (--json lists all)", n)
		}
		fmt.Fprintf(out, "%s:\n  %s %s%s%s\n", terminal.Clean(g.reason), terminal.Clean(first.Name), terminal.Clean(first.Type), terminal.Clean(by), more)
		if advice := adviceOn(g.reason); advice != "" {
			fmt.Fprintf(out, "  %s\n", advice)
		}
	}
	if left > 0 {
		fmt.Fprintf(out, "and %d more tensors for %d more reasons (--json lists all)\n", left, len(groups)-reasonsShown)
	}
}

// dataDependent says what to do about operators whose result is as long as their data
// say: no flag makes that known.
var dataDependent = []struct{ operator, advice string }{
	{"NonZero", "export a mask and a Where instead of indices, or end the model before it and go on in the host"},
	{"NonMaxSuppression", "export the model without it (nms=False or the like), and run it in the host on the boxes"},
	{"Loop", "export with a fixed number of turns, which unrolls it, or make the loop's body the model and turn in the host"},
	{"Scan", "fix the length of its input with --dim or --input-shape"},
	{"Compress", "multiply by the mask instead, which keeps the size"},
	{"Unique", "end the model before it and go on in the host"},
}

// urgency sorts reasons: first the inputs, which flags fix and much may follow from,
// then what there is advice on.
func urgency(reason string) int {
	switch {
	case strings.HasPrefix(reason, "the input"):
		return 0
	case adviceOn(reason) != "":
		return 1
	}
	return 2
}

// adviceOn is what to do about a reason; "" when the reason says it itself.
func adviceOn(reason string) string {
	for _, d := range dataDependent {
		if strings.Contains(reason, " "+d.operator+" node ") {
			return d.advice
		}
	}
	return ""
}

// passText lists the passes that changed something, those that changed most first.
func passText(passes []onnxpass.PassChanges) string {
	var parts []string
	active := slices.DeleteFunc(slices.Clone(passes), func(p onnxpass.PassChanges) bool { return p.Changes == 0 })
	slices.SortStableFunc(active, func(a, b onnxpass.PassChanges) int { return cmp.Compare(b.Changes, a.Changes) })
	for _, p := range active {
		parts = append(parts, fmt.Sprintf("%s %s", p.Pass, terminal.Count(int64(p.Changes))))
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return "by pass: " + strings.Join(parts, ", ")
}

// kept says which nodes of constant inputs were not folded, a line for each reason.
func (w labelled) kept(list []onnxpass.Kept) {
	var reasons []string
	nodes := map[string][]string{}
	for _, k := range list {
		if nodes[k.Reason] == nil {
			reasons = append(reasons, k.Reason)
		}
		nodes[k.Reason] = append(nodes[k.Reason], k.Node)
	}
	var lines []string
	for _, reason := range reasons {
		what := nodes[reason][0]
		if n := len(nodes[reason]); n > 1 {
			what = fmt.Sprintf("%s and %d more", what, n-1)
		}
		lines = append(lines, what+": "+reason)
	}
	w.list("kept", lines)
}

// advice says what is better changed in the export.
func (w labelled) advice(list []optimization.Advice) {
	label := "export"
	for _, advice := range list {
		w.line(label, "%s", terminal.Clean(advice.Finding))
		w.line("", "  %s", w.p.Bold(terminal.Clean(advice.Option)))
		label = ""
	}
}

// setsText says how many sets of inputs were compared, and of which sorts.
func setsText(c *optimization.Check) string {
	edge := 0
	for _, s := range c.Sets {
		if slices.Contains(feeds.EdgeNames(), s.Values) {
			edge++
		}
	}
	var sorts []string
	if random := c.Inputs - edge; random > 0 {
		sorts = append(sorts, fmt.Sprintf("%d random", random))
	}
	if edge > 0 {
		sorts = append(sorts, fmt.Sprintf("%d of edge values", edge))
	}
	text := strings.Join(sorts, ", ")
	if refused := c.Tried - c.Inputs; refused > 0 {
		verb := "were"
		if refused == 1 {
			verb = "was"
		}
		text += fmt.Sprintf("; %d more %s refused by the original", refused, verb)
	}
	if c.Inputs == 1 {
		return fmt.Sprintf("the one set (%s)", text)
	}
	return fmt.Sprintf("all %d sets (%s)", c.Inputs, text)
}

// check says what the comparison with the original came to.
func (w labelled) check(c *optimization.Check) {
	if c == nil {
		return
	}
	judge := c.Engine
	if !c.Independent {
		judge = "the " + judge
	}
	w.line("check", "%s on %s, judged by %s", w.p.Good("equal"), setsText(c), judge)
	worst, name, byShape := 0.0, "", 0
	for _, o := range c.Outputs {
		if o.MaxAbs > worst {
			worst, name = o.MaxAbs, o.Name
		}
		if o.Compared == "shape" {
			byShape++
		}
	}
	if name != "" {
		w.line("", "largest difference %.3g, in output %s", worst, terminal.Clean(name))
	}
	for _, o := range c.Outputs {
		if o.Equal && o.Uncertain > 0 {
			w.line("", "output %s moves by %.3g when the inputs are rounded: that much may differ", terminal.Clean(o.Name), o.Uncertain)
		}
	}
	if byShape > 0 {
		w.line("", "%d of %d outputs depend on random numbers: compared by type and shape only", byShape, len(c.Outputs))
	}
	if c.Note != "" {
		w.line("", "%s", w.p.Warn(terminal.Clean(c.Note)))
	}
}
