package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

// failureJSON is how a failure looks in --json.
type failureJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// detailed is a failure with what was found on the way, which --json prints beside
// the error: a value that becomes a JSON object.
type detailed struct {
	error
	details any
}

func (d *detailed) Unwrap() error { return d.error }

// told is a failure that a command has told of itself: its exit code is all that is
// left to give.
type told struct{ error }

func (t *told) Unwrap() error { return t.error }

// report prints a failure: for people in a line, for machines as one object.
func (a *app) report(err error) {
	var t *told
	if errors.As(err, &t) {
		return
	}
	fmt.Fprintf(a.err, "npuctl: %s\n", readable(err.Error()))
	// A flag that does not parse keeps those behind it from being read.
	if !a.json && (a.isRunning || !wantsJSON(a.args)) {
		return
	}
	failure := failureJSON{Code: fault.FamilyOf(err).String(), Message: err.Error()}
	var f *fault.Error
	if errors.As(err, &f) {
		failure.Message, failure.Remedy = f.Err.Error(), f.Remedy
	}
	object := map[string]any{}
	var d *detailed
	if errors.As(err, &d) {
		data, marshalErr := json.Marshal(d.details)
		if marshalErr == nil {
			marshalErr = json.Unmarshal(data, &object)
		}
		if marshalErr != nil {
			fmt.Fprintf(a.err, "npuctl: details as JSON: %v\n", marshalErr)
		}
	}
	object["error"] = failure
	a.out.Reset(sorted{a.stdout}) // what a command had printed before it failed is no part of the object
	if err := a.printJSON(object); err != nil {
		fmt.Fprintf(a.err, "npuctl: %v\n", err)
	}
}

// longestLine is how many characters of a failure's line are printed. A graph nested a
// hundred deep names every graph on the way; --json has them all.
const longestLine = 1000

// readable makes a failure fit to print: it may quote names of a model, and what another
// program printed.
func readable(text string) string {
	lines := strings.Split(terminal.CleanLines(text), "\n")
	for i, line := range lines {
		lines[i] = terminal.Shorten(line, longestLine)
	}
	return strings.Join(lines, "\n")
}

// wantsJSON says whether --json stands among arguments that were not all read.
func wantsJSON(args []string) (wants bool) {
	for _, arg := range args {
		name, value, hasValue := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return wants
		case name != "--json":
		case !hasValue:
			wants = true
		default: // the last one counts, as it does for the parser
			on, err := strconv.ParseBool(value)
			wants = on && err == nil
		}
	}
	return wants
}

// printJSON prints the one object of --json.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fault.New(fault.Internal, "print the result as JSON: %w", err)
	}
	_, err := a.out.Write(escaped(b.Bytes()))
	return err
}

// escaped writes what a terminal might obey, or hide, as JSON's own escapes: the encoder
// leaves in strings what is harmless to a program that reads them.
func escaped(object []byte) []byte {
	harmful := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
	if !bytes.ContainsFunc(object, harmful) {
		return object
	}
	var b bytes.Buffer
	for _, r := range string(object) {
		if !harmful(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// issues is where faults of npuctl are reported.
const issues = "https://github.com/npuctl/npuctl/issues"

// crash makes a failure of a panic; it is called while panicking. Users see one
// line: what happened, where, and what to do with it.
func crash(reason any) error {
	return fault.New(fault.Internal, "a fault of npuctl: %v (%s)", reason, panicPlace()).
		With("please report it at %s, with the model or its `npuctl inspect --json`", issues)
}

// panicPlace is the place in our own code where the panic began.
func panicPlace() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	panicked := false
	for {
		frame, more := frames.Next()
		isRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !isRuntime {
			return fmt.Sprintf("%s, %s:%d", filepath.Base(frame.Function), filepath.Base(frame.File), frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic" || frame.Function == "runtime.sigpanic"
		if !more {
			return "unknown place"
		}
	}
}
