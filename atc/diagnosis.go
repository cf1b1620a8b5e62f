package atc

import (
	"fmt"
	"strings"
)

// Codes of diagnoses that have no code of ATC's.
const (
	// CodeStderr marks what ATC tells on standard error only, without a code: a
	// flag that it does not know, a flag without its argument, a word that is none.
	CodeStderr = "stderr"
	// CodeLimit marks a number beyond what the user guide allows; ATC takes it.
	CodeLimit = "limit"
	// CodeRule marks what the user guide forbids otherwise; ATC lets it pass.
	CodeRule = "rule"
)

// Diagnosis is one thing wrong with a command line.
type Diagnosis struct {
	// Code is the code ATC answers with, such as E10001, or one of the Code
	// constants where it has none.
	Code string `json:"code"`
	// Names lists what it is about, the flag first: --input_shape, then inputs,
	// nodes or files.
	Names []string `json:"names"`
	// Message says what is wrong, in one line.
	Message string `json:"message"`
	// Remedy says what to do; empty when the message says so itself.
	Remedy string `json:"remedy"`
}

func (d Diagnosis) String() string {
	return d.Code + ": " + d.Text()
}

// Text is message and remedy, without the code.
func (d Diagnosis) Text() string {
	if d.Remedy == "" {
		return d.Message
	}
	return d.Message + "; " + d.Remedy
}

// Verdict is what a check comes to.
type Verdict struct {
	Accept bool
	// Diagnoses lists what is wrong, in the order in which ATC looks; the first is
	// what ATC reports. Empty when the command line is accepted.
	Diagnoses []Diagnosis
	// Notes lists what is worth a look although it is accepted. Only [Strict] has any.
	Notes []Diagnosis
	// Stderr says that ATC tells the first problem on standard error, and that the
	// block of errors on its standard output stays empty.
	Stderr bool
	// Help says that the command line asks for help, and nothing else counts.
	Help bool
}

// problem makes a diagnosis about a flag, given without its dashes.
func problem(code, flag, format string, args ...any) Diagnosis {
	return Diagnosis{Code: code, Names: []string{"--" + flag}, Message: fmt.Sprintf(format, args...)}
}

// about adds names that the diagnosis is about.
func (d Diagnosis) about(names ...string) Diagnosis {
	d.Names = append(d.Names, names...)
	return d
}

// with sets what to do about it.
func (d Diagnosis) with(format string, args ...any) Diagnosis {
	d.Remedy = fmt.Sprintf(format, args...)
	return d
}

// wrongValue is the diagnosis of a value that a flag does not take, and why.
func wrongValue(code, flag, value, why string, args ...any) Diagnosis {
	return problem(code, flag, "--%s=%s: %s", flag, value, fmt.Sprintf(why, args...))
}

// listed joins words as people list them: "a, b or c".
func listed(words []string) string {
	switch n := len(words); n {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}
