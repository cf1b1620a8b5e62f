package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/modelstats"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/onnxpass"
)

func newInspectCommand(a *app) *cobra.Command {
	f := &sizeFlags{}
	cmd := &cobra.Command{
		Use:   "inspect MODEL.onnx|MODEL.om",
		Short: "Say what a model is: signature, operators, parameters, MACs",
		Long: "Prints a summary, the inputs and outputs with their types, which axes are dynamic,\n" +
			"how often each operator occurs, how much is stored and how much is computed. With\n" +
			"sizes for open dims it counts the work of that size; the file is never changed.\n\n" +
			"Of a compiled model (.om, .om2, .exeom) it prints signature, gears, chip, memory,\n" +
			"command line, partitions, operators and kernels.",
		Example:           "  npuctl inspect model.onnx\n  npuctl inspect model.onnx --batch 8\n  npuctl inspect model.om",
		Args:              takes("MODEL"),
		ValidArgsFunction: completeAnyModel,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.inspect(cmd, f, args[0]) },
	}
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	return cmd
}

func (a *app) inspect(cmd *cobra.Command, f *sizeFlags, path string) error {
	sizes, err := f.specialization()
	if err != nil {
		return err
	}
	if isOffline(path) {
		if f.isSet() {
			return fault.New(fault.Usage, "%s is compiled: its sizes are fixed", path).With("leave --batch, --dim and --input-shape out")
		}
		return a.inspectOffline(path)
	}
	m, err := modelfile.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := onnxpass.Specialize(m, sizes); err != nil {
		return err
	}
	d, err := modelstats.Describe(cmd.Context(), m, f.isSet())
	switch {
	case cmd.Context().Err() != nil:
		return cmd.Context().Err()
	case err != nil:
		return fault.New(fault.Input, "%s: %w", path, err)
	case a.json:
		return a.printJSON(d)
	case a.quiet:
		return nil
	}
	return a.printDescription(d)
}

func (a *app) printDescription(d *modelstats.Description) error {
	w := labelled{a.out, a.palette()}
	w.line("file", "%s, %s", terminal.Clean(d.File), terminal.Bytes(d.Bytes))
	if len(d.OutsideFiles) > 0 {
		w.line("outside", "%s in %s", terminal.Bytes(d.BytesOutside), terminal.Clean(strings.Join(d.OutsideFiles, ", ")))
	}
	w.line("format", "IR %d, %s", d.IRVersion, opsetText(d.Opsets))
	w.line("producer", "%s", terminal.Clean(strings.TrimSpace(d.Producer+" "+d.ProducerVersion)))
	w.list("functions", d.Functions)
	for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
		w.line("metadata", "%s: %s", terminal.Clean(key), terminal.Shorten(terminal.Clean(d.Metadata[key]), 80))
	}
	if err := signatureTable(d).Write(a.out); err != nil {
		return err
	}
	for _, axis := range d.DynamicAxes {
		w.line("dynamic", "%s: %s (--dim %s=SIZE fixes it)", terminal.Clean(axis.Name), terminal.Clean(strings.Join(axis.Places, ", ")), terminal.Clean(axis.Name))
	}
	if err := histogram(d).Write(a.out); err != nil {
		return err
	}
	w.line("parameters", "%s, %s%s", terminal.Count(d.Parameters.Count), terminal.Bytes(d.Parameters.Bytes), typeShares(d.Parameters.ByType))
	w.line("MACs", "%s", macsText(d.MACs))
	w.conflicts(d)
	if len(d.Largest) == 0 {
		return nil
	}
	return largestTable(d.Largest).Write(a.out)
}

// conflicts says what the model contradicts itself in, and whether it can run all the same.
func (w labelled) conflicts(d *modelstats.Description) {
	w.list("conflicts", d.Conflicts)
	if !d.Runnable {
		w.line("", "%s", w.p.Bad("it can never run so, whatever its inputs are"))
	}
}

func opsetText(opsets []modelstats.Opset) string {
	parts := make([]string, len(opsets))
	for i, o := range opsets {
		parts[i] = fmt.Sprintf("opset %d", o.Version)
		if o.Domain != "" {
			parts[i] = fmt.Sprintf("%s %d", terminal.Clean(o.Domain), o.Version)
		}
	}
	return strings.Join(parts, ", ")
}

func signatureTable(d *modelstats.Description) terminal.Table {
	t := terminal.Table{Header: []string{"", "name", "type"}}
	hasDefaults := slices.ContainsFunc(d.Inputs, func(p modelstats.Port) bool { return p.Default })
	if hasDefaults {
		t.Header = append(t.Header, "if left out")
	}
	add := func(side string, ports []modelstats.Port) {
		for _, p := range ports {
			row := []string{side, terminal.Clean(p.Name), terminal.Clean(p.Type)}
			switch {
			case p.Default:
				row = append(row, "has a default")
			case hasDefaults:
				row = append(row, "")
			}
			t.Rows = append(t.Rows, row)
		}
	}
	add("input", d.Inputs)
	add("output", d.Outputs)
	return t
}

// histogram lists the operators, the most frequent first.
func histogram(d *modelstats.Description) terminal.Table {
	t := terminal.Table{Header: []string{"operator", "nodes"}, Right: []int{1}}
	names := slices.SortedFunc(maps.Keys(d.Operators), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Operators[b], d.Operators[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		t.Rows = append(t.Rows, []string{terminal.Clean(name), terminal.Count(int64(d.Operators[name]))})
	}
	t.Footer = [][]string{{"all", terminal.Count(int64(d.Nodes))}}
	return t
}

// typeShares lists the element types when there are several.
func typeShares(types []modelstats.TypeCount) string {
	if len(types) < 2 {
		return ""
	}
	parts := make([]string, len(types))
	for i, t := range types {
		parts[i] = fmt.Sprintf("%s %s", t.Type, terminal.Count(t.Count))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func macsText(m modelstats.MACs) string {
	const fix = "(--batch, --dim and --input-shape fix them)"
	opaque := ""
	if m.Opaque > 0 {
		opaque = fmt.Sprintf("%d nodes are of operators that are not ONNX's", m.Opaque)
		if m.Opaque == 1 {
			opaque = "1 node is of an operator that is not ONNX's"
		}
	}
	switch {
	case m.Nodes == 0 && m.Opaque == 0:
		return "none: the model multiplies no matrices"
	case m.Nodes == 0:
		return "not known: " + opaque
	case m.Unknown == m.Nodes && m.Nodes == 1:
		return fmt.Sprintf("not known: the shapes of the one node that multiplies matrices are open %s", fix)
	case m.Unknown == m.Nodes:
		return fmt.Sprintf("not known: the shapes of all %d nodes that multiply matrices are open %s", m.Nodes, fix)
	case m.Unknown > 0 && m.Known == 0:
		return fmt.Sprintf("not known: the shapes of %d of %d nodes that multiply matrices are open %s", m.Unknown, m.Nodes, fix)
	}
	text := fmt.Sprintf("%s (%s)", terminal.Count(m.Known), terminal.Large(m.Known))
	if m.Unknown > 0 {
		text += fmt.Sprintf(", without %d of %d nodes whose shapes are open %s", m.Unknown, m.Nodes, fix)
	}
	if opaque != "" {
		text += fmt.Sprintf("; %s, not counted", opaque)
	}
	if m.Loops > 0 {
		text += fmt.Sprintf(", %s of unknown length counted once", terminal.Counted(m.Loops, "loop"))
	}
	return text
}

func largestTable(largest []modelstats.Stored) terminal.Table {
	t := terminal.Table{Header: []string{"largest tensors", "type", "size"}, Right: []int{2}}
	for _, s := range largest {
		t.Rows = append(t.Rows, []string{terminal.Shorten(terminal.Clean(s.Name), 60), s.Type, terminal.Bytes(s.Bytes)})
	}
	return t
}
