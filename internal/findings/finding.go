package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
)

// Severity is how much a finding matters.
type Severity int

// The severities.
const (
	Note    Severity = iota + 1 // good to know
	Warning                     // works, but hardly as meant
	Error                       // does not work
)

// String is the severity's word in every output.
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return "none"
}

// ParseSeverity reads a severity; "none" is above all, so that nothing reaches it.
func ParseSeverity(word string) (Severity, error) {
	for _, s := range []Severity{Note, Warning, Error, Error + 1} {
		if s.String() == word {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%q is no severity: use error, warning, note or none", word)
}

// MarshalText makes a severity its word in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// Finding is one thing that a rule found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Line and Column count from 1; 0 when the finding is about the whole file.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Message says what is wrong, with names and numbers.
	Message string `json:"message"`
	// Effect is what happens at run time.
	Effect string `json:"effect,omitempty"`
	// Fix is what to do.
	Fix string `json:"fix"`
	// Server is what the server itself says, where it refuses the model.
	Server string `json:"server,omitempty"`

	// Refuses is set when the server does not load the model, or dies or hangs over it.
	Refuses bool `json:"-"`
	// Edits repair the file; empty when that takes a decision.
	Edits []Edit `json:"-"`
}

// Edit replaces a part of the finding's file.
type Edit = configgen.Edit

// Place is where the finding is, as compilers write it.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// Rule is what outputs say of a rule itself.
type Rule struct {
	ID, Title, Effect, Fix string
	Severity               Severity
}

// Report is everything that was found.
type Report struct {
	Findings []Finding
	// Rules are those that were looked at, for outputs that list them.
	Rules []Rule
	// Checked are the files and folders that were looked at.
	Checked []string
}

// Refused says whether the server would refuse a model.
func (r Report) Refused() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Refuses })
}

// Count gives how many findings there are of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Reaches says whether a finding is at or above a severity.
func (r Report) Reaches(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity >= s })
}

// Sort brings findings into the order of files; within one, what the server refuses
// stays first and in the server's own order, the rest goes by place.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Refuses != b.Refuses {
			if a.Refuses {
				return -1
			}
			return 1
		}
		if a.Refuses {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
