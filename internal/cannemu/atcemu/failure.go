package atcemu

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// failure is a refusal as ATC tells it: a code, a sentence, and what is printed around.
type failure struct {
	code    string
	title   string // what stands before the code; "" takes that of the code's family
	message string
	cause   string
	remedy  string
	trace   []string // the lines under TraceBack, the most recent first
}

func (f *failure) Error() string { return f.code + ": " + f.message }

// internalFailure is one without a cause that the user could mend: E19999, with the
// function and file that found it.
func internalFailure(message, function, file string) *failure {
	return &failure{code: "E19999", message: fmt.Sprintf("%s[FUNC:%s][FILE:%s][LINE:%d]", message, function, file, 1),
		trace: []string{fmt.Sprintf("build graph failed, graph id:0, ret:4294967295[FUNC:BuildModelWithGraphId][FILE:ge_generator.cc][LINE:%d]", 1)}}
}

// titles are the words in front of a code, by how the code begins.
var titles = []struct{ prefix, title string }{
	{"E13010", "Unsupported_Operator"}, {"E16", "Invalid_Model"}, {"E130", "File_Error"},
	{"EZ30", "Unsupported_Operator"}, {"E", "Invalid_Argument"}, {"W", "Warning"},
}

func titleOf(code string) string {
	for _, t := range titles {
		if strings.HasPrefix(code, t.prefix) {
			return t.title
		}
	}
	return "Error"
}

// internal codes are those that say nothing but "look below".
var internalCodes = map[string]bool{"E19999": true, "EZ9999": true}

// stamp writes the time as CANN does: 2026-11-30-16:22:36.861.696.
func stamp(t time.Time) string {
	micro := t.Nanosecond() / 1000
	return t.Format("2006-01-02-15:04:05") + fmt.Sprintf(".%03d.%03d", micro/1000, micro%1000)
}

// print writes the block that follows "ATC run failed", as the newest releases have it.
func (f *failure) print(w io.Writer, pid int, now time.Time) {
	if internalCodes[f.code] {
		fmt.Fprintf(w, "%s: Inner Error!\n", f.code)
		fmt.Fprintf(w, "%s[PID: %d] %s (%s):  %s\n", f.code, pid, stamp(now), f.code, f.message)
	} else {
		title := f.title
		if title == "" {
			title = titleOf(f.code)
		}
		fmt.Fprintf(w, "[PID: %d] %s %s(%s): %s\n", pid, stamp(now), title, f.code, f.message)
	}
	for _, line := range []struct{ label, text string }{{"Possible Cause", f.cause}, {"Solution", f.remedy}} {
		if line.text != "" {
			fmt.Fprintf(w, "        %s: %s\n", line.label, line.text)
		}
	}
	if len(f.trace) == 0 {
		return
	}
	fmt.Fprintln(w, "        TraceBack (most recent call last):")
	indent := "        "
	if internalCodes[f.code] {
		indent = "       "
	}
	for _, line := range f.trace {
		fmt.Fprintf(w, "%s%s\n", indent, line)
	}
}
