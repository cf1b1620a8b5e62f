package om

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Report is a summary for people, as data: facts of one line each, then tables.
// Texts come from the file as they are; whoever prints them cleans them first.
type Report struct {
	Facts  []Fact
	Tables []Table
}

// Fact is a line with a label.
type Fact struct{ Label, Text string }

// Table is a titled table; Right lists the columns that are numbers.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
	Right  []int
}

// Report makes the report of a summary; bytes writes sizes.
func (s Summary) Report(bytes func(int64) string) Report {
	tables := []Table{s.signatureTable(bytes), s.gearTable(), s.partitionTable(bytes), s.operatorTable(), s.kernelTable(bytes)}
	return Report{
		Facts:  slices.DeleteFunc(s.facts(bytes), func(f Fact) bool { return f.Text == "" }),
		Tables: slices.DeleteFunc(tables, func(t Table) bool { return len(t.Rows) == 0 }),
	}
}

func (s Summary) facts(bytes func(int64) string) []Fact {
	p, n := s.Provenance, s.Needs
	facts := []Fact{
		{"file", fmt.Sprintf("%s, %s", s.File, bytes(s.Bytes))},
		{"is", s.Statement},
		{"emulated", choose(s.Emulated, "made by npuctl's emulator; it holds no code for a chip")},
		{"encrypted", choose(s.Encrypted, "nothing but the header can be read")},
		{"model", s.Name},
		{"chip", s.SoC},
		{"compiled by", s.compiler()},
		{"from", p.Framework},
		{"shapes", choose(s.Dynamic, "open until the model runs")},
		{"host", choose(s.NeedsHost, strings.TrimSpace("only with "+p.HostOS+" "+p.HostCPU))},
		{"memory", choose(n.MemoryBytes+n.WeightBytes > 0, fmt.Sprintf("%s to work in, %s of weights", bytes(n.MemoryBytes), bytes(n.WeightBytes)))},
		{"device", choose(n.Streams+n.Events > 0, fmt.Sprintf("%s, %s", count(n.Streams, "stream"), count(n.Events, "event")))},
		{"command", shellText(s.CommandLine)},
	}
	for _, r := range s.Remarks {
		facts = append(facts, Fact{"note", r})
	}
	return facts
}

// shellText makes a command line fit for a shell. What the compiler stored is its words
// with spaces between: an option is taken to begin at each " --", and its value is
// quoted where it holds what a shell would take for its own.
func shellText(command string) string {
	words := strings.Split(command, " --")
	for i, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok && i > 0 && !isPlain(value) {
			words[i] = name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " --")
}

// isPlain says whether a shell takes a word as it stands.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !isLetter && !strings.ContainsRune("_-./,:=+@%", r)
	})
}

func (s Summary) compiler() string {
	if s.ToolVersion == "" {
		return ""
	}
	return fmt.Sprintf("ATC %s (not the version of CANN)", s.ToolVersion)
}

func choose(when bool, text string) string {
	if !when {
		return ""
	}
	return text
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// signatureTable lists inputs and outputs. Of a file with gears, outputs and bytes are
// those of the largest.
func (s Summary) signatureTable(bytes func(int64) string) Table {
	t := Table{Title: "signature", Header: []string{"", "name", "type", "format", "bytes"}, Right: []int{4}}
	ofOutputs := ""
	if s.Gears != nil {
		t.Header[4] = "bytes (largest gear)"
		ofOutputs = " (largest gear)"
	}
	add := func(side string, tensors []Tensor, mark string) {
		for _, v := range tensors {
			size := "open"
			if v.Bytes > 0 {
				size = bytes(v.Bytes)
			}
			t.Rows = append(t.Rows, []string{side, nameText(v), v.TypeText() + mark, v.Format, size})
		}
	}
	add("input", s.Inputs, "")
	add("output", s.Outputs, ofOutputs)
	return t
}

// nameText is the name in the ONNX model, and behind it the compiler's where that is
// another.
func nameText(t Tensor) string {
	node, isMade := strings.CutSuffix(t.Name, ":"+t.Tensor)
	switch {
	case t.Tensor == "" || t.Tensor == t.Name:
		return t.Name
	case isMade:
		return fmt.Sprintf("%s (%s)", t.Tensor, node)
	}
	return fmt.Sprintf("%s (%s)", t.Tensor, t.Name)
}

// onnxTypes are the element types that ONNX calls something else than their name here
// in capitals.
var onnxTypes = map[string]string{"float32": "FLOAT", "float64": "DOUBLE"}

// TypeText writes element type and dims as ONNX models have theirs written:
// FLOAT[1,3,224,224]. An open dim is its range, 1..8 or 1.. without an end, or ?.
func (t Tensor) TypeText() string {
	element := onnxTypes[t.DType]
	if element == "" {
		element = strings.ToUpper(t.DType)
	}
	parts := make([]string, len(t.Dims))
	for i, d := range t.Dims {
		switch {
		case d >= 0:
			parts[i] = strconv.FormatInt(d, 10)
		case i < len(t.Ranges):
			parts[i] = rangeText(t.Ranges[i])
		default:
			parts[i] = "?"
		}
	}
	return element + "[" + strings.Join(parts, ",") + "]"
}

func rangeText(r [2]int64) string {
	if r[1] < 0 {
		return fmt.Sprintf("%d..", r[0])
	}
	return fmt.Sprintf("%d..%d", r[0], r[1])
}

func (s Summary) gearTable() Table {
	t := Table{Title: "gears"}
	if s.Gears == nil {
		return t
	}
	t.Header, t.Right = []string{"gear", s.Gears.Kind}, []int{0}
	if len(s.Gears.Order) > 0 {
		t.Header[1] += " of " + strings.Join(s.Gears.Order, ", ")
	}
	for i, row := range s.Gears.Rows {
		values := make([]string, len(row))
		for j, v := range row {
			values[j] = strconv.FormatInt(v, 10)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(i), strings.Join(values, ",")})
	}
	return t
}

func (s Summary) partitionTable(bytes func(int64) string) Table {
	t := Table{Title: "partitions", Header: []string{"model", "partition", "bytes"}, Right: []int{0, 2}}
	for _, p := range s.Partitions {
		t.Rows = append(t.Rows, []string{strconv.Itoa(p.Model), p.Name, bytes(p.Bytes)})
	}
	return t
}

// operatorTable lists the operators, the most frequent first.
func (s Summary) operatorTable() Table {
	t := Table{Title: "operators", Header: []string{"operator", "count"}, Right: []int{1}}
	for _, name := range byCount(s.OperatorTypes) {
		t.Rows = append(t.Rows, []string{name, strconv.Itoa(s.OperatorTypes[name])})
	}
	return t
}

func (s Summary) kernelTable(bytes func(int64) string) Table {
	t := Table{Title: "kernels", Header: []string{"store", "operator", "count", "bytes"}, Right: []int{2, 3}}
	for _, k := range s.Kernels {
		kind := k.Type
		if kind == "" {
			kind = "(not said)"
		}
		t.Rows = append(t.Rows, []string{k.Store, kind, strconv.Itoa(k.Count), bytes(k.Bytes)})
	}
	return t
}
