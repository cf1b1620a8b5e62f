package rules

import (
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// Rule is one row of the table.
type Rule struct {
	ID       string
	Severity findings.Severity
	// Refuses is set when the server does not load such a model, or dies or hangs.
	Refuses verdict
	// Title says what the rule is about; Effect what happens at run time; Fix what to do.
	Title, Effect, Fix Text
	// message is the format of a finding's message; both languages take the same
	// arguments in the same order.
	message Text
	// check looks for the thing in one model. Rules about files that could not be read
	// as models have none: they are reported where reading fails.
	check func(*context)
}

// IsOutside says whether the rule is found outside of this package: see [Find].
func (r Rule) IsOutside() bool { return byID(outsideRules(), r.ID) != nil }

// finding makes a finding of the rule about a whole file or folder.
func (r *Rule) finding(l Language, file string, args ...any) findings.Finding {
	return findings.Finding{
		Rule: r.ID, Severity: r.Severity, Refuses: bool(r.Refuses), File: file,
		Message: fmt.Sprintf(r.message.In(l), args...), Effect: r.Effect.In(l), Fix: r.Fix.In(l),
	}
}

// verdict says what a rule means to the server.
type verdict bool

const (
	refuses verdict = true
	loads   verdict = false
)

const (
	errorLevel   = findings.Error
	warningLevel = findings.Warning
	noteLevel    = findings.Note
)

// notLoaded is what happens when nothing more special does.
var notLoaded = Text{
	"the server does not load the model",
	"服务器不加载该模型",
}

// Rules gives the table.
func Rules() []Rule {
	return slices.Concat(syntaxRules(), pollRules(), ensembleRules(), loadRules(), repositoryRules(), tensorRules(),
		batchingRules(), warmupRules(), backendRules(), modelFileRules(), chipRules(), outsideRules())
}

// context is what a rule's function sees: one model, its repository, and where to
// report to.
type context struct {
	*Model
	repository *Repository
	options    Options
	rule       *Rule
	found      []findings.Finding
	told       map[*Rule]int // how many findings of each rule
}

// maxTold is how many findings of one rule are told of one model.
const maxTold = 100

// report adds a finding of the present rule at an offset in the model's config. The
// arguments are those of the rule's message.
func (c *context) report(offset int, args ...any) *findings.Finding {
	if c.Doc == nil {
		return c.reportFile(c.Path, args...) // a folder without a config
	}
	f := c.reportFile(c.ConfigPath, args...)
	if f.File != "" { // a place in a long line takes time to find
		f.Line, f.Column = c.Doc.Place(offset)
	}
	return f
}

// reportFile adds a finding of the present rule about a whole file or folder. Beyond
// maxTold it gives an empty one that goes nowhere.
func (c *context) reportFile(path string, args ...any) *findings.Finding {
	if c.told == nil {
		c.told = map[*Rule]int{}
	}
	if c.told[c.rule] == maxTold {
		return &findings.Finding{}
	}
	c.told[c.rule]++
	c.found = append(c.found, c.rule.finding(c.options.Language, path, args...))
	f := &c.found[len(c.found)-1]
	if c.told[c.rule] == maxTold {
		f.Message += Text{"; more of the kind are left out", "；其余同类问题不再列出"}.In(c.options.Language)
	}
	return f
}

// near adds to a finding which name was probably meant.
func (c *context) near(f *findings.Finding, name string) {
	if name != "" {
		f.Fix += fmt.Sprintf(Text{"; did you mean %q?", "；是否想写 %q？"}.In(c.options.Language), name)
	}
}

// nearValue adds which name was probably meant, and lets --fix write it.
func (c *context) nearValue(f *findings.Finding, v *configgen.Value, name string) {
	c.near(f, name)
	if name != "" {
		replace(f, v, quoted(name))
	}
}

// says adds what the server says.
func says(f *findings.Finding, format string, args ...any) { f.Server = fmt.Sprintf(format, args...) }

// refuse reports and adds what the server says.
func (c *context) refuse(offset int, server string, args ...any) {
	says(c.report(offset, args...), "%s", server)
}

// replace lets --fix write another value for a field's only value.
func replace(f *findings.Finding, v *configgen.Value, text string) {
	f.Edits = append(f.Edits, findings.Edit{Start: v.Start, End: v.End, Text: text})
}

// remove lets --fix take a whole field out.
func remove(f *findings.Finding, doc *configgen.Document, field *configgen.Field) {
	f.Edits = append(f.Edits, doc.Removal(field))
}

// byID gives the row of an id, or nil.
func byID(table []Rule, id string) *Rule {
	for i := range table {
		if table[i].ID == id {
			return &table[i]
		}
	}
	return nil
}

// use makes the rule of an id the one that reports.
func (c *context) use(id string) { c.rule = byID(c.options.table, id) }
