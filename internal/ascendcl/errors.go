package ascendcl

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed is the failure of everything that is used after its Close.
var ErrClosed = errors.New("already closed")

// ErrGivenUp is the failure of a session after a run that the device did not end in time.
var ErrGivenUp = errors.New("an earlier run of the model was given up, and the device may still be at it")

// Error is a call of AscendCL that failed.
type Error struct {
	Call string // aclmdlLoadFromFile
	Code int
	// Text is what AscendCL said; often several lines, or nothing.
	Text string
}

// Error gives call, code, its name, and the first line of what AscendCL said.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s failed with %d", e.Call, e.Code)
	if name := codeNames[e.Code]; name != "" {
		text += ", " + name
	}
	for line := range strings.Lines(e.Text) {
		if line = strings.TrimSpace(line); line != "" {
			return text + ": " + line
		}
	}
	return text
}

// codeNames says what the codes mean that users of a loaded model meet.
var codeNames = map[int]string{
	100000: "an argument is wrong",
	100001: "AscendCL is not initialised",
	100003: "the configuration file is wrong",
	100039: "this is the stub of the library, which only serves to compile",
	107001: "there is no such device",
	107002: "no context is current",
	100018: "an output does not suit its memory",
	145002: "the model file cannot be read",
	145003: "no such model is loaded",
	145006: "this is no .om file, or it is cut short",
	145009: "the model is loaded already",
	145012: "the buffer for the gear is too small",
	145013: "the model has no such gear",
	145021: "the shape does not suit the model",
	145022: "the element type does not suit the model",
	200000: "out of memory",
	200001: "this release does not support the call",
	207000: "this device does not support the call",
	207001: "the device is out of memory",
	207004: "there is no device",
	207005: "the device could not allocate",
	207006: "no permission",
	207008: "the device has no stream left",
	245000: "the device is out of memory",
	500002: "GE failed",
	500003: "the runtime failed",
	500004: "the driver failed",
	507008: "the model was compiled for another chip",
	507010: "the device gives no sign of life",
	507011: "the model failed on the device",
	507014: "an operator ran out of time",
	507015: "an operator failed on the device",
	507033: "the device could not be opened",
	507046: "the stream did not finish in time",
	507899: "the driver failed inside",
}

// Device says whether the failure is the device's or its driver's: then the context
// should be taken out of service. Codes below are a caller's mistakes (1xxxxx) and
// shortages (2xxxxx).
func (e *Error) Device() bool { return e.Code >= 300000 }

// Shortage says whether the device lacks something that others may have taken, or that
// this user may not have.
func (e *Error) Shortage() bool { return e.Code >= 200000 && e.Code < 300000 }
