package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/internal/tritonserver"
	"github.com/npuctl/npuctl/internal/validation"
)

// validationReport is what a validation prints.
type validationReport struct {
	findings.Report
	result *validation.Result
	plan   validationPlan
}

// validationDocument is what --json prints.
type validationDocument struct {
	findings.Document
	// NoChip is set when no chip was named for models that run on one.
	NoChip bool `json:"no_chip,omitempty"`
	// Server and Loaded are there with --load, Numerics with --check-numerics.
	Server   string                 `json:"server,omitempty"`
	Loaded   []tritonserver.Outcome `json:"loaded,omitempty"`
	Numerics *validation.Comparison `json:"numerics,omitempty"`
}

func (r validationReport) document() validationDocument {
	return validationDocument{findings.NewDocument(r.Findings, string(r.result.Verdict)), r.result.NoChip, r.result.Server, r.result.Outcomes, r.result.Numerics}
}

// printValidation writes the findings in their form to the file or to standard output.
func (a *app) printValidation(f *validateFlags, r validationReport) error {
	if f.output != "" {
		err := atomicfile.Write(f.output, func(file *os.File) error { return r.write(file, terminal.Palette{}) })
		if err != nil {
			return fault.New(fault.Missing, "write the findings: %w", err)
		}
		return nil
	}
	format := r.plan.format
	if a.quiet && format == "table" || format == "json" && r.Reaches(r.plan.failOn) {
		return nil // a failure prints the object itself
	}
	return r.write(a.out, a.palette())
}

func (r validationReport) write(w io.Writer, p terminal.Palette) error {
	switch r.plan.format {
	case "json":
		return findings.WriteJSON(w, r.document())
	case "sarif":
		return findings.WriteSARIF(w, r.Report, versionText())
	case "junit":
		return findings.WriteJUnit(w, r.Report, r.plan.failOn)
	case "github":
		return findings.WriteGitHub(w, r.Findings)
	}
	return r.print(w, p)
}

// print writes what people read: the numbers, the findings, the verdict.
func (r validationReport) print(w io.Writer, p terminal.Palette) error {
	if c := r.result.Numerics; c != nil {
		if err := printComparison(w, c, p); err != nil {
			return err
		}
	}
	if err := r.printFindings(w, p); err != nil {
		return err
	}
	if r.result.Server == "" {
		return nil
	}
	ready := 0
	for _, o := range r.result.Outcomes {
		if o.State == tritonserver.Ready {
			ready++
		}
	}
	_, err := fmt.Fprintf(w, rules.Text{"%s loaded %d of %d\n", "%s 加载了 %d / %d\n"}.In(r.plan.job.Language), terminal.Clean(r.result.Server), ready, len(r.result.Outcomes))
	return err
}

// printComparison writes how a model and its original compared.
func printComparison(w io.Writer, c *validation.Comparison, p terminal.Palette) error {
	what := "compared with " + terminal.Clean(c.Original)
	if c.Optimised {
		what = "compared with what optimize makes of it"
	}
	fmt.Fprintf(w, "%s %s: %s, by %s\n", p.Bold(terminal.Clean(c.Model)), what, terminal.Counted(c.Samples, "sample"), terminal.Clean(c.Engine))
	t := terminal.Table{Header: []string{"output", "type", "cosine", "max abs", "allowed of each + of all", ""}, Right: []int{2, 3, 4}}
	for _, o := range c.Outputs {
		verdict := p.Good("within")
		if !o.Equal {
			verdict = p.Bad("beyond")
		}
		t.Rows = append(t.Rows, []string{terminal.Clean(o.Name), o.Type, fmt.Sprintf("%.9f", o.Cosine), fmt.Sprintf("%.3g", o.MaxAbs), fmt.Sprintf("%.1g + %.1g", o.Relative, o.Absolute), verdict})
	}
	return t.Write(w)
}

// verdictTexts are how a table ends.
var verdictTexts = map[rules.Verdict]rules.Text{
	rules.Accept: {"the server accepts it", "服务器会接受"},
	rules.Refuse: {"the server refuses it", "服务器会拒绝"},
}

// noChip says what was not looked at, and how to have it looked at.
var noChip = rules.Text{
	"no chip is named: what its AI Core computes was not looked at (--soc Ascend910B3, or soc in npuctl.yaml)",
	"未指定芯片：未检查其 AI Core 能否计算各算子（--soc Ascend910B3，或 npuctl.yaml 中的 soc）",
}

// printFindings writes a table a file, and what the server would say where there is
// something for it to judge.
func (r validationReport) printFindings(w io.Writer, p terminal.Palette) error {
	l := r.plan.job.Language
	for i := 0; i < len(r.Findings); {
		end := i
		t := terminal.Table{Header: []string{"", rules.Text{"place", "位置"}.In(l), rules.Text{"rule", "规则"}.In(l), rules.Text{"finding", "问题"}.In(l)}}
		for ; end < len(r.Findings) && r.Findings[end].File == r.Findings[i].File; end++ {
			t.Rows = append(t.Rows, findingRow(r.Findings[end], p))
		}
		fmt.Fprintln(w, p.Bold(terminal.Clean(r.Findings[i].File)))
		if err := t.Write(w); err != nil {
			return err
		}
		i = end
	}
	verdict := ""
	if r.result.Judged {
		verdict = "; " + verdictTexts[r.result.Verdict].In(l)
	}
	if _, err := fmt.Fprintln(w, countText(r.Report, l)+verdict); err != nil || !r.result.NoChip {
		return err
	}
	_, err := fmt.Fprintln(w, p.Faint(noChip.In(l)))
	return err
}

func findingRow(f findings.Finding, p terminal.Palette) []string {
	paint := map[findings.Severity]func(string) string{findings.Error: p.Bad, findings.Warning: p.Warn, findings.Note: p.Faint}[f.Severity]
	place := ""
	if f.Line > 0 {
		place = fmt.Sprintf("%d:%d", f.Line, f.Column)
	}
	lines := wrap(f.Message)
	for _, part := range []string{f.Effect, f.Fix} {
		if part != "" {
			lines = append(lines, indent(wrap(part))...)
		}
	}
	if f.Server != "" {
		for _, line := range indent(wrap("Triton: " + f.Server)) {
			lines = append(lines, p.Faint(line))
		}
	}
	return []string{paint(f.Severity.String()), place, f.Rule, strings.Join(lines, "\n")}
}

func indent(lines []string) []string {
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// findingWidth is how wide the last column gets. A Chinese character takes two.
const findingWidth = 80

// wrap breaks a text into lines at blanks, and between Chinese characters.
func wrap(text string) (lines []string) {
	line, width := "", 0
	for _, word := range breakable(terminal.Clean(text)) {
		n := displayWidth(strings.TrimRight(word, " "))
		if width+n > findingWidth && line != "" {
			lines = append(lines, strings.TrimRight(line, " "))
			line, width = "", 0
		}
		line += word
		width += displayWidth(word)
	}
	return append(lines, strings.TrimRight(line, " "))
}

// breakable cuts a text behind blanks and behind wide characters.
func breakable(text string) (words []string) {
	start := 0
	runes := []rune(text)
	for i, r := range runes {
		if r == ' ' || isWide(r) && i+1 < len(runes) && !strings.ContainsRune("，。；：）、", runes[i+1]) {
			words = append(words, string(runes[start:i+1]))
			start = i + 1
		}
	}
	return append(words, string(runes[start:]))
}

func isWide(r rune) bool { return r >= 0x2e80 && r <= 0xffef }

func displayWidth(s string) (n int) {
	for _, r := range s {
		n++
		if isWide(r) {
			n++
		}
	}
	return n
}

// countTexts are numbers of findings: of one, and of several.
var countTexts = map[findings.Severity][2]rules.Text{
	findings.Error:   {{"%d error", "%d 个错误"}, {"%d errors", "%d 个错误"}},
	findings.Warning: {{"%d warning", "%d 个警告"}, {"%d warnings", "%d 个警告"}},
	findings.Note:    {{"%d note", "%d 条提示"}, {"%d notes", "%d 条提示"}},
}

// countText says how many findings there are of each severity.
func countText(r findings.Report, l rules.Language) string {
	var parts []string
	for _, s := range []findings.Severity{findings.Error, findings.Warning, findings.Note} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, fmt.Sprintf(countTexts[s][min(n, 2)-1].In(l), n))
		}
	}
	if parts == nil {
		return rules.Text{"no findings", "没有问题"}.In(l)
	}
	return strings.Join(parts, rules.Text{", ", "，"}.In(l))
}
