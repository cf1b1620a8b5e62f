package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/soc"
)

// validateFlags are what the command line says.
type validateFlags struct {
	failOn, format, output string
	baseline               string
	updateBaseline, fix    bool
	lang, soc              string
	listRules              bool
}

// validateFormats are the forms of output.
var validateFormats = []string{"table", "json", "sarif", "junit", "github"}

func newValidateCommand(a *app) *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check a Triton model repository before it is deployed",
		Long: "Says what a Triton server with the Ascend GE backend would refuse, and what it would\n" +
			"take and then suffer from: each finding with its place, what happens at run time and\n" +
			"how to repair it. PATH is a repository, a model's folder, a config.pbtxt, an .onnx or\n" +
			"an .om. A config file that stands alone is judged in a repository made up around it.\n\n" +
			"A comment lets a rule pass: # npuctl:ignore RULE reason. It covers its own line and\n" +
			"the next; above everything else in a file, it covers the file.",
		Example: "  npuctl validate models\n  npuctl validate models --fix\n  npuctl validate models --format sarif --output findings.sarif",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !f.listRules {
				return fault.New(fault.Usage, "%s takes PATH..., not 0 arguments", cmd.CommandPath()).With("see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.validate(f, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.failOn, "fail-on", "error", "exit with 4 from this `severity` on: error, warning, note, none")
	flags.StringVar(&f.format, "format", "table", "`form` of the output: table, json, sarif, junit, github")
	flags.StringVarP(&f.output, "output", "o", "", "write the output to a `file`")
	flags.BoolVar(&f.fix, "fix", false, "repair what takes no decision, in place")
	flags.StringVar(&f.soc, "soc", "", "hold models against this `chip`: Ascend910B3")
	flags.StringVar(&f.baseline, "baseline", "", "leave out the findings that this `file` knows")
	flags.BoolVar(&f.updateBaseline, "update-baseline", false, "write the findings to the baseline")
	flags.StringVar(&f.lang, "lang", "", "`language` of the texts: en, zh (default: that of LANG)")
	flags.BoolVar(&f.listRules, "list-rules", false, "list all rules, and check nothing")
	completeWords(cmd, "fail-on", "error", "warning", "note", "none")
	completeWords(cmd, "format", validateFormats...)
	completeWords(cmd, "lang", "en", "zh")
	return cmd
}

// validation is what the flags mean.
type validation struct {
	options rules.Options
	failOn  findings.Severity
	format  string
}

func (a *app) validation(f *validateFlags) (v validation, err error) {
	if v.failOn, err = findings.ParseSeverity(f.failOn); err != nil {
		return v, fault.New(fault.Usage, "--fail-on: %w", err)
	}
	v.format = f.format
	if a.json {
		v.format = "json"
	}
	if !slices.Contains(validateFormats, v.format) {
		return v, fault.New(fault.Usage, "--format %s: there are %s", f.format, strings.Join(validateFormats, ", "))
	}
	if v.options.Language, err = languageOf(f.lang); err != nil {
		return v, err
	}
	if f.soc != "" {
		chip, err := soc.Lookup(f.soc)
		if err != nil {
			return v, fault.New(fault.Usage, "--soc: %w", err)
		}
		v.options.Chip = &chip
	}
	if f.updateBaseline && f.baseline == "" {
		return v, fault.New(fault.Usage, "--update-baseline needs --baseline FILE")
	}
	return v, nil
}

// languageOf gives the language that a flag or the environment asks for.
func languageOf(flag string) (rules.Language, error) {
	switch flag {
	case "en":
		return rules.English, nil
	case "zh":
		return rules.Chinese, nil
	case "":
		return rules.LanguageOf(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))), nil
	}
	return 0, fault.New(fault.Usage, "--lang %s: there are en and zh", flag)
}

func (a *app) validate(f *validateFlags, paths []string) error {
	v, err := a.validation(f)
	if err != nil {
		return err
	}
	if f.listRules {
		return a.listRules(v)
	}
	result, err := rules.Check(paths, v.options)
	if err != nil {
		return err
	}
	if f.fix {
		if result, err = a.fixFindings(paths, v, result); err != nil {
			return err
		}
	}
	found, err := applyBaseline(f, result.Findings)
	if err != nil {
		return err
	}
	report := findings.Report{Findings: found, Rules: describeRules(v.options.Language), Checked: result.Checked}
	if err := a.printValidation(f, v, report, result.Verdict); err != nil {
		return err
	}
	if !report.Reaches(v.failOn) {
		return nil
	}
	failure := fault.New(fault.Goal, "%s", countText(report, rules.English))
	if v.format == "json" && f.output == "" {
		return &detailed{failure, findings.NewDocument(found, string(result.Verdict))}
	}
	return failure
}

// rounds bounds how often files are fixed and checked again.
const rounds = 5

// fixFindings repairs until nothing more can be repaired, and gives what is left.
func (a *app) fixFindings(paths []string, v validation, result rules.Result) (rules.Result, error) {
	fixed := map[string]bool{}
	for range rounds {
		changed, err := findings.Fix(result.Findings)
		if err != nil {
			return result, fault.New(fault.Input, "fix: %w", err)
		}
		if len(changed) == 0 {
			break
		}
		for _, path := range changed {
			fixed[path] = true
		}
		if result, err = rules.Check(paths, v.options); err != nil {
			return result, err
		}
	}
	if !a.quiet {
		for _, path := range slices.Sorted(maps.Keys(fixed)) {
			fmt.Fprintf(a.err, "npuctl: fixed %s\n", terminal.Clean(path))
		}
	}
	return result, nil
}

// applyBaseline leaves out what the baseline knows, or writes it anew.
func applyBaseline(f *validateFlags, all []findings.Finding) ([]findings.Finding, error) {
	switch {
	case f.baseline == "":
		return all, nil
	case f.updateBaseline:
		if err := findings.WriteBaseline(f.baseline, all); err != nil {
			return nil, fault.New(fault.Missing, "write the baseline: %w", err)
		}
		return nil, nil
	}
	b, err := findings.ReadBaseline(f.baseline)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err).With("--update-baseline makes one")
	}
	return b.Apply(all, f.baseline), nil
}

// describeRules gives the table for outputs that list rules.
func describeRules(l rules.Language) []findings.Rule {
	var out []findings.Rule
	for _, r := range rules.Rules() {
		out = append(out, findings.Rule{ID: r.ID, Title: r.Title.In(l), Effect: r.Effect.In(l), Fix: r.Fix.In(l), Severity: r.Severity})
	}
	return out
}

// printValidation writes the findings in their form to the file or to standard output.
func (a *app) printValidation(f *validateFlags, v validation, r findings.Report, verdict rules.Verdict) error {
	isFailing := r.Reaches(v.failOn)
	if f.output != "" {
		err := atomicfile.Write(f.output, func(file *os.File) error { return a.writeValidation(file, v, r, verdict, terminal.Palette{}) })
		if err != nil {
			return fault.New(fault.Missing, "write the findings: %w", err)
		}
		return nil
	}
	if a.quiet && v.format == "table" || v.format == "json" && isFailing {
		return nil // a failure prints the object itself
	}
	return a.writeValidation(a.out, v, r, verdict, a.palette())
}

func (a *app) writeValidation(w io.Writer, v validation, r findings.Report, verdict rules.Verdict, p terminal.Palette) error {
	switch v.format {
	case "json":
		return findings.WriteJSON(w, r.Findings, string(verdict))
	case "sarif":
		return findings.WriteSARIF(w, r, versionText())
	case "junit":
		return findings.WriteJUnit(w, r, v.failOn)
	case "github":
		return findings.WriteGitHub(w, r.Findings)
	}
	return printFindings(w, r, verdict, v.options.Language, p)
}

// verdictTexts are how a table ends.
var verdictTexts = map[rules.Verdict]rules.Text{
	rules.Accept: {"the server accepts it", "服务器会接受"},
	rules.Refuse: {"the server refuses it", "服务器会拒绝"},
}

// printFindings writes a table a file, and what the server would say.
func printFindings(w io.Writer, r findings.Report, verdict rules.Verdict, l rules.Language, p terminal.Palette) error {
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
	_, err := fmt.Fprintf(w, "%s; %s\n", countText(r, l), verdictTexts[verdict].In(l))
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

// listRules prints the table of rules.
func (a *app) listRules(v validation) error {
	list := describeRules(v.options.Language)
	if v.format == "json" {
		return a.printJSON(map[string]any{"rules": ruleRows(list)})
	}
	t := terminal.Table{Header: []string{"rule", "", "about"}}
	for _, r := range list {
		t.Rows = append(t.Rows, []string{r.ID, r.Severity.String(), r.Title})
	}
	return t.Write(a.out)
}

// ruleRow is a rule as --list-rules --json prints it.
type ruleRow struct {
	ID       string            `json:"id"`
	Severity findings.Severity `json:"severity"`
	Title    string            `json:"title"`
	Effect   string            `json:"effect"`
	Fix      string            `json:"fix"`
}

func ruleRows(list []findings.Rule) []ruleRow {
	out := make([]ruleRow, len(list))
	for i, r := range list {
		out[i] = ruleRow{r.ID, r.Severity, r.Title, r.Effect, r.Fix}
	}
	return out
}
