package atc

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Facts is what the caller knows of the model and the run: it decides where ATC's
// text alone could mean several things. The zero Facts know nothing.
type Facts struct {
	// Opset is the version of ONNX's own operators that the model imports.
	Opset int64
	// Gears are the gears as they were given to ATC, in its order.
	Gears []string
	// SoC is the chip that was asked for.
	SoC string
	// Signal and ExitCode are how the program ended.
	Signal   string
	ExitCode int
	// Ended says that Signal and ExitCode are known, so that 0 is one.
	Ended bool
}

// isSilentEnd says whether a program ended as if it had succeeded, and did not say so.
func (f Facts) isSilentEnd(log Log) bool {
	return f.Ended && f.Signal == "" && f.ExitCode == 0 && !log.Succeeded && !log.Failed
}

// silentEnd is the diagnosis of that.
func silentEnd() Diagnosis {
	return Diagnosis{Message: "it ended with exit code 0 and did not say that it succeeded (ATC run success)",
		Remedy: "what it wrote is not to be trusted: see what it printed, and whether a script stands in for atc"}
}

// Diagnose says why a run failed: what ATC printed (log), and what the process log
// tells beyond it. The first diagnosis is the most likely cause; the others stand
// in the order of how much they say. It is never empty.
//
// What names a missing thing says most, then a limit with its two numbers, then a
// node or an option, then the chip's own text, and a bare number least: the code
// that ATC puts first is often only where the fault came to light.
func Diagnose(log Log, process []LogLine, facts Facts) []Diagnosis {
	texts := make([]string, 0, len(log.Messages)+len(process))
	for _, m := range log.Messages {
		texts = append(texts, m.Text)
	}
	for _, l := range process {
		texts = append(texts, l.Text)
	}
	code := log.Leading()
	var found []ranked
	for i := range readings {
		if d, at, ok := readings[i].apply(texts, facts); ok {
			d.Code = cmp.Or(codeAt(log, at), code)
			found = append(found, ranked{readings[i].rank, at, d})
		}
	}
	for i, m := range log.Messages {
		if m.IsFlagError {
			found = append(found, ranked{rankNode, i, flagDiagnosis(m)})
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at)) })
	out := make([]Diagnosis, 0, len(found)+1)
	told := map[int]bool{} // a text tells one thing: the most it can
	for _, f := range found {
		if !told[f.at] {
			out = append(out, f.Diagnosis)
		}
		told[f.at] = true
	}
	if m, ok := log.lead(); ok && !slices.ContainsFunc(out, func(d Diagnosis) bool { return d.Code == m.Code }) {
		out = append(out, codeDiagnosis(log, m))
	}
	switch {
	case len(out) == 0:
		out = append(out, lastResort(log, process, facts))
	case facts.isSilentEnd(log):
		out = append(out, silentEnd())
	}
	for i := range out {
		if out[i].Names == nil {
			out[i].Names = []string{} // which JSON shows as a list
		}
	}
	return out
}

// ranked is a diagnosis with how much it says and where it was read.
type ranked struct {
	rank, at int
	Diagnosis
}

// codeAt is the code of the message that stands at a place, when it has one that tells.
func codeAt(log Log, at int) string {
	if at < len(log.Messages) && !isInternal(log.Messages[at].Code) {
		return log.Messages[at].Code
	}
	return ""
}

// reading is a text of CANN's that tells a cause.
type reading struct {
	rank int
	text *regexp.Regexp
	// names, message and remedy may use the groups of text as {1}, {2} …; of a
	// text that occurs several times, names has them all and {all} in message lists
	// the first group of each.
	names           []string
	message, remedy string
	// refine changes what facts or the details decide; matches are all there are, one
	// at least.
	refine func(d *Diagnosis, matches [][]string, facts Facts)
}

// How much a reading says, the most first.
const (
	rankMissing = iota // a missing thing by its name
	rankLimit          // a limit, with two numbers
	rankNode           // a node, an operator or an option
	rankChip           // the chip's own words
	rankNumber         // a number
)

// maxNamed bounds how many names a message lists.
const maxNamed = 20

// apply looks for the reading's text and says what it means.
func (r *reading) apply(texts []string, facts Facts) (d Diagnosis, at int, ok bool) {
	var matches [][]string
	var all []string
	for i, text := range texts {
		match := r.text.FindStringSubmatch(text)
		if match == nil {
			continue
		}
		if matches == nil {
			at = i
		}
		matches = append(matches, match)
		for _, n := range r.names {
			if name := fill(n, match, nil); name != "" && !slices.Contains(d.Names, name) {
				d.Names = append(d.Names, name)
			}
		}
		if len(match) > 1 && !slices.Contains(all, match[1]) {
			all = append(all, match[1])
		}
	}
	if matches == nil {
		return d, 0, false
	}
	d.Message, d.Remedy = fill(r.message, matches[0], all), fill(r.remedy, matches[0], all)
	if r.refine != nil {
		r.refine(&d, matches, facts)
	}
	return d, at, true
}

// fill puts the groups of a match into a template.
func fill(template string, match, all []string) string {
	for i, group := range match {
		template = strings.ReplaceAll(template, fmt.Sprintf("{%d}", i), strings.TrimRight(group, ". "))
	}
	return strings.ReplaceAll(template, "{all}", list(all))
}

// list writes names one after the other, many of them in short.
func list(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// optionNames finds the options that a text speaks of; older releases put brackets around them.
var optionNames = regexp.MustCompile(`--[a-z][a-z0-9_]+`)

// bracketed finds what a text puts in brackets or quotes: values and names.
var bracketed = regexp.MustCompile(`\[([^\[\]]{1,200})\]|"([^"]{1,200})"`)

// codeDiagnosis is what a code alone tells.
func codeDiagnosis(log Log, m Message) Diagnosis {
	e, known := Explain(m.Code)
	d := Diagnosis{Code: m.Code, Names: namesIn(m.Text), Message: m.Text, Remedy: cmp.Or(e.Remedy, m.Solution, "read the process log")}
	if known {
		d.Message = strings.TrimSuffix(e.Meaning+": "+m.Text, ": ")
	}
	d.Message = cmp.Or(d.Message, "an error without a text")
	if isInternal(m.Code) {
		if deepest, ok := deepestUseful(log); ok && deepest.Text != m.Text {
			d.Message += "; below it: " + deepest.Text
			d.Names = append(d.Names, namesIn(deepest.Text)...)
		}
	}
	return d
}

func namesIn(text string) (names []string) {
	for _, option := range optionNames.FindAllString(text, -1) {
		if !slices.Contains(names, option) {
			names = append(names, option)
		}
	}
	for _, m := range bracketed.FindAllStringSubmatch(text, -1) {
		if name := cmp.Or(m[1], m[2]); !strings.HasPrefix(name, "--") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// deepestUseful is the lowest nested line that names an operator, a file or a limit.
func deepestUseful(log Log) (Message, bool) {
	for _, m := range slices.Backward(log.Messages) {
		if m.Nested && (bracketed.MatchString(m.Text) || strings.Contains(m.Text, "limit") || strings.Contains(m.Text, "expect")) {
			return m, true
		}
	}
	return Message{}, false
}

// flagDiagnosis is what a complaint about the options means.
func flagDiagnosis(m Message) Diagnosis {
	d := Diagnosis{Code: CodeStderr, Message: cmp.Or(m.Text, "an option is wrong"), Remedy: "npuctl atc --check says what is wrong with a command line before it runs"}
	for _, word := range strings.FieldsFunc(m.Text, func(r rune) bool { return strings.ContainsRune(" '\"[]", r) }) {
		if strings.HasPrefix(word, "-") {
			d.Names = append(d.Names, strings.TrimRight(word, ".,:;"))
		}
	}
	return d
}

// lastResort is for a failure without a text that anybody knows.
func lastResort(log Log, process []LogLine, facts Facts) Diagnosis {
	switch {
	case facts.Signal == "killed" || facts.ExitCode == 137:
		return Diagnosis{
			Names: []string{"TE_PARALLEL_COMPILER"}, Message: "the system killed atc, most likely for want of memory",
			Remedy: "set TE_PARALLEL_COMPILER=1, close what else runs, add swap, or compile on a larger machine",
		}
	case facts.Signal != "":
		return Diagnosis{Message: "atc ended by the signal " + facts.Signal, Remedy: "the process log may tell where; try again, and with another release"}
	case facts.ExitCode == 139:
		return Diagnosis{Message: "atc crashed", Remedy: "the process log may tell where; try again, and with another release"}
	case log.Succeeded && !log.Failed && facts.ExitCode != 0:
		return Diagnosis{Message: fmt.Sprintf("it said that all went well, and ended with exit code %d all the same", facts.ExitCode),
			Remedy: "something failed after the compile: read the process log; what it wrote is not to be trusted"}
	case facts.isSilentEnd(log):
		return silentEnd()
	case facts.ExitCode == 127:
		return Diagnosis{Message: "the launcher did not find atc.bin or what it needs", Remedy: "the toolkit is incomplete: install it again"}
	}
	if len(process) > 0 {
		return Diagnosis{Message: "it gave no reason; the first error of its process log is: " + process[0].Text, Remedy: "read the process log"}
	}
	for _, m := range slices.Backward(log.Messages) {
		if m.Text != "" {
			return Diagnosis{Names: namesIn(m.Text), Message: "it gave no reason; the last it said is: " + m.Text, Remedy: "read the process log"}
		}
	}
	return Diagnosis{Message: "it ended without a word", Remedy: "run it by hand with --log=info, and with ASCEND_GLOBAL_LOG_LEVEL=1"}
}
