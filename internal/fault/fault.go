// Package fault sorts what goes wrong by whom it concerns, so that exit codes and
// machine-readable errors mean the same in every command.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Family says whom a failure concerns; its number is the exit code.
type Family int

// The families, with the exit code of each.
const (
	Internal    Family = 1   // a fault of npuctl itself
	Usage       Family = 2   // the command line is wrong
	Input       Family = 3   // a file that was given is wrong
	Goal        Family = 4   // a stated goal was not reached: static, check, budget, gate, findings
	Missing     Family = 5   // something needed on this machine is missing
	Program     Family = 6   // a program that npuctl drove failed
	Interrupted Family = 130 // stopped by the user
)

// names are the stable codes of the families in --json output.
var names = map[Family]string{
	Internal: "internal", Usage: "usage", Input: "input", Goal: "goal",
	Missing: "missing", Program: "program", Interrupted: "interrupted",
}

// String is the family's stable code, such as "input".
func (f Family) String() string { return names[f] }

// Error is a failure with its family and what the reader can do about it.
type Error struct {
	Family Family
	Err    error
	// Remedy says what to do; empty when the message says so itself.
	Remedy string
}

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "; " + e.Remedy
}

// Unwrap gives the failure itself.
func (e *Error) Unwrap() error { return e.Err }

// New makes a failure of a family; the format may wrap another error with %w.
func New(f Family, format string, args ...any) *Error {
	return &Error{Family: f, Err: fmt.Errorf(format, args...)}
}

// With adds a remedy.
func (e *Error) With(format string, args ...any) *Error {
	e.Remedy = fmt.Sprintf(format, args...)
	return e
}

// FamilyOf gives the family of any error; one that nobody sorted is ours.
func FamilyOf(err error) Family {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Family
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Internal
}
