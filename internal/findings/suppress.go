package findings

import (
	"regexp"
	"slices"
	"strings"
)

// Suppression is a comment that lets a rule pass: npuctl:ignore RULE reason.
type Suppression struct {
	Rules  []string
	Reason string
	// Line is where the comment stands. It covers that line and the next one; a
	// comment before everything else in a file covers the whole file.
	Line      int
	WholeFile bool
	Used      bool
}

var suppressionPattern = regexp.MustCompile(`^\s*npuctl:ignore(?:\s+(\S+)(?:\s+(.*\S))?)?\s*$`)

// ParseSuppression reads a comment, given without its mark. Several rules are joined
// by commas.
func ParseSuppression(comment string, line int, wholeFile bool) (s Suppression, ok bool) {
	parts := suppressionPattern.FindStringSubmatch(comment)
	if parts == nil {
		return s, false
	}
	s = Suppression{Reason: parts[2], Line: line, WholeFile: wholeFile}
	for id := range strings.SplitSeq(parts[1], ",") {
		if id != "" {
			s.Rules = append(s.Rules, id)
		}
	}
	return s, true
}

// covers says whether a suppression lets a finding pass. Without a reason it does
// nothing.
func (s Suppression) covers(f Finding) bool {
	if s.Reason == "" || !slices.Contains(s.Rules, f.Rule) {
		return false
	}
	return s.WholeFile || f.Line == s.Line || f.Line == s.Line+1
}

// Suppress takes out the findings of one file that its comments let pass, and marks
// the comments that did something.
func Suppress(all []Finding, comments []Suppression) (kept []Finding) {
	for _, f := range all {
		i := slices.IndexFunc(comments, func(s Suppression) bool { return s.covers(f) })
		if i < 0 {
			kept = append(kept, f)
			continue
		}
		comments[i].Used = true
	}
	return kept
}
