package atc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Setting is one flag as it was given.
type Setting struct {
	Flag  *FlagSpec
	Value string
}

// CommandLine is a command line as ATC understands it.
type CommandLine struct {
	// Settings lists the flags in the order given; a flag may occur again.
	Settings []Setting
	// Stray lists the words that belong to no flag.
	Stray []string
	// Help says that --help was met. ATC looks at nothing behind it.
	Help bool
	// Unknown lists what looks like a flag and is none of the table's: a mistake, or
	// one of a newer release.
	Unknown []UnknownFlag
}

// UnknownFlag is a flag that the table does not have.
type UnknownFlag struct {
	Name string // without dashes
	// Value is what the flag was given; HasValue says whether it was given anything.
	Value    string
	HasValue bool

	problem Diagnosis
}

// Known leaves out of the problems of [Parse] those that say no more than that a flag is
// none of the table's. A real toolkit may be newer, and says so itself in a moment.
func (c *CommandLine) Known(problems []Diagnosis) []Diagnosis {
	return c.without(problems, func(UnknownFlag) bool { return true })
}

// without leaves out the problems of some of the unknown flags.
func (c *CommandLine) without(problems []Diagnosis, which func(UnknownFlag) bool) []Diagnosis {
	return slices.DeleteFunc(slices.Clone(problems), func(d Diagnosis) bool {
		return slices.ContainsFunc(c.Unknown, func(u UnknownFlag) bool {
			return which(u) && d.Code == u.problem.Code && d.Message == u.problem.Message
		})
	})
}

// Value gives what counts of a flag: the last value given that ATC takes, else its
// default.
func (c *CommandLine) Value(name string) string {
	for _, s := range slices.Backward(c.Settings) {
		if s.Flag.Name == name && s.Flag.check(s.Value) == nil {
			return s.Value
		}
	}
	if f := findFlag(name); f != nil {
		return f.Default
	}
	return ""
}

// IsSet says whether the flag is given at all.
func (c *CommandLine) IsSet(name string) bool {
	return slices.ContainsFunc(c.Settings, func(s Setting) bool { return s.Flag.Name == name })
}

// Parse reads a command line, without the program's name, as ATC's getopt_long
// does. Everything wrong with it is told, in the order in which ATC meets it: ATC
// itself stops at the first.
func Parse(args []string) (*CommandLine, []Diagnosis) {
	p := parser{words: make([]string, len(args)), line: &CommandLine{}}
	for i, arg := range args {
		p.words[i] = fold(arg)
	}
	for p.next < len(p.words) && !p.line.Help {
		p.word()
	}
	if !p.line.Help {
		p.strayWords()
	}
	return p.line, p.problems
}

type parser struct {
	words    []string
	next     int // the word to read
	line     *CommandLine
	unclear  []int // stray words that belong to a flag we do not know
	stray    []int
	problems []Diagnosis
}

// fold writes a word as ATC does before it reads it: a single dash before a name
// becomes two, dashes inside a name become underscores. A name begins with two
// letters here, so -h and a negative number stay.
func fold(word string) string {
	if isName(strings.TrimPrefix(word, "-")) && strings.HasPrefix(word, "-") {
		word = "-" + word
	}
	rest, isLong := strings.CutPrefix(word, "--")
	if !isLong || !isName(rest) {
		return word
	}
	name, value, hasValue := strings.Cut(rest, "=")
	word = "--" + strings.ReplaceAll(name, "-", "_")
	if hasValue {
		word += "=" + value
	}
	return word
}

// isName says whether the text begins as a flag's name does.
func isName(text string) bool {
	return len(text) >= 2 && isLetter(text[0]) && isLetter(text[1])
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func (p *parser) word() {
	word := p.words[p.next]
	p.next++
	switch {
	case word == "--":
		for ; p.next < len(p.words); p.next++ {
			p.stray = append(p.stray, p.next)
		}
	case strings.HasPrefix(word, "--"):
		p.long(word[2:])
	case len(word) > 1 && word[0] == '-':
		p.short(word)
	default:
		p.stray = append(p.stray, p.next-1)
	}
}

// short reads a word of single letters, of which there is only h.
func (p *parser) short(word string) {
	if word[1] == 'h' {
		p.line.Help = true
		return
	}
	p.unknown(word[1:], nil)
}

func (p *parser) long(text string) {
	name, value, hasValue := strings.Cut(text, "=")
	flags := match(name)
	if len(flags) != 1 {
		d := p.unknown(name, flags)
		isApart := !hasValue && p.next < len(p.words) && !strings.HasPrefix(p.words[p.next], "-")
		if isApart {
			p.unclear = append(p.unclear, p.next)
			value = p.words[p.next]
		}
		if len(flags) == 0 && isName(name) {
			p.line.Unknown = append(p.line.Unknown, UnknownFlag{name, value, hasValue || isApart, d})
		}
		return
	}
	flag := flags[0]
	if !hasValue && flag.Kind != Switch {
		if p.next == len(p.words) {
			p.problems = append(p.problems, problem(CodeStderr, flag.Name, "--%s is missing its argument", flag.Name).
				with("write --%s=VALUE", flag.Name))
			return
		}
		value = p.words[p.next]
		p.next++
	}
	p.set(flag, value)
}

func (p *parser) set(flag *FlagSpec, value string) {
	p.line.Settings = append(p.line.Settings, Setting{flag, value})
	if d := flag.check(value); d != nil {
		p.problems = append(p.problems, *d)
		return
	}
	if isOn, _ := truth(value); flag.Name == "help" && isOn {
		p.line.Help = true
	}
}

// match gives the flag of that name, or else all that begin with it. h is another
// name of help.
func match(name string) (flags []*FlagSpec) {
	if name == "h" {
		name = "help"
	}
	for i := range flagTable {
		switch f := &flagTable[i]; {
		case f.Name == name:
			return []*FlagSpec{f}
		case strings.HasPrefix(f.Name, name):
			flags = append(flags, f)
		}
	}
	return flags
}

// unknown tells of a name that is no flag's, or the beginning of several.
func (p *parser) unknown(name string, candidates []*FlagSpec) Diagnosis {
	d := problem(CodeStderr, name, "--%s is no flag of ATC", name)
	switch near := nearest(name, flagNames()); {
	case len(candidates) > 1:
		names := make([]string, len(candidates))
		for i, f := range candidates {
			names[i] = "--" + f.Name
		}
		d.Message = fmt.Sprintf("--%s may be any of %d flags, so it is none", name, len(candidates))
		d = d.with("write out %s", listed(names[:min(len(names), 6)]))
	case near != "":
		d = d.about("--"+near).with("did you mean --%s?", near)
	default:
		d = d.with("`atc --help` lists the flags; newer ones are missing in older releases of CANN")
	}
	p.problems = append(p.problems, d)
	return d
}

// strayWords tells of the words that belong to no flag. ATC does so last.
func (p *parser) strayWords() {
	for _, at := range p.stray {
		word := p.words[at]
		p.line.Stray = append(p.line.Stray, word)
		if slices.Contains(p.unclear, at) && len(p.problems) > 0 {
			continue // the value of a flag that was told already
		}
		d := Diagnosis{Code: CodeStderr, Names: []string{word}, Message: fmt.Sprintf("%q belongs to no flag", word)}
		p.problems = append(p.problems, d.with("%s", p.strayRemedy(at)))
	}
}

func (p *parser) strayRemedy(at int) string {
	if at > 0 {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(p.words[at-1], "--"), "=")
		if f := findFlag(name); f != nil && f.Kind == Switch && !hasValue {
			return fmt.Sprintf("--%s takes its value behind = only: --%s=%s", name, name, p.words[at])
		}
	}
	return "every value stands behind a flag; put values with ; or blanks into quotes"
}

// nearest gives the known word that was probably meant, or "".
func nearest(word string, known []string) string { return suggest.Nearest(word, known) }
