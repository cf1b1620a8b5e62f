package atc

import (
	"bufio"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// LogLine is a line of CANN's process log (plog), or of the same text on the screen.
type LogLine struct {
	Level   string `json:"level"`  // ERROR, WARNING, …
	Module  string `json:"module"` // GE, FE, TEFUSION, RUNTIME, …
	Process string `json:"process"`
	Time    string `json:"time"`
	Place   string `json:"place"` // file:line of the program
	Text    string `json:"text"`
}

// logLine is [LEVEL] MODULE(pid,process):time [file:line]tid Func:[STAGE]text. The
// fraction of the time, the thread, the function and the stages may be missing.
var logLine = regexp.MustCompile(`^\[(DEBUG|INFO|WARNING|ERROR|EVENT|TRACE)\] ?([A-Z_0-9]+)\((\d+),([^)]*)\): ?(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d{3}){0,2}) ?\[([^\]]*)\](.*)$`)

// threadAndFunction is what stands before a line's text; both parts may be missing.
var threadAndFunction = regexp.MustCompile(`^\d* ?(?:[A-Za-z_~][\w:~]*:)?\s*`)

// stageMarks are marks such as [EXEC][DEFAULT], and the number that GE puts first.
var stageMarks = regexp.MustCompile(`^(?:ErrorNo: \d+\([^)]*\) )?(?:\[[A-Z_]+\])*\s*`)

// ParseLogLine reads a line of a process log.
func ParseLogLine(line string) (LogLine, bool) {
	m := logLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	if m == nil {
		return LogLine{}, false
	}
	text := m[7]
	text = text[len(threadAndFunction.FindString(text)):]
	if marks := stageMarks.FindString(text); len(marks) < len(text) {
		text = text[len(marks):]
	}
	return LogLine{Level: m[1], Module: m[2], Process: m[4], Time: m[5], Place: m[6], Text: strings.TrimSpace(text)}, true
}

// harmless are errors that runs that go well print, too.
var harmless = []string{
	"Pcie Host Register failed", "DrvMngGetConsoleLogLevel failed", "allocFunc failed, init count", "Mem_remote_map ioctl error",
}

func (l LogLine) isHarmless() bool {
	return slices.ContainsFunc(harmless, func(s string) bool { return strings.Contains(l.Text, s) })
}

// The bounds of what is read of the logs of one run.
const (
	maxLogFiles = 64
	maxLogBytes = 16 << 20
	maxLogLines = 2000
)

// ReadProcessLogs reads the errors in the logs that a run left in a folder, in the
// order of time, without those that good runs have as well. Files that cannot be
// read are left out: a log is no reason to fail.
func ReadProcessLogs(folder string) (lines []LogLine) {
	budget := int64(maxLogBytes)
	for _, path := range logFiles(folder) {
		if len(lines) >= maxLogLines || budget <= 0 {
			break
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		lines = append(lines, readErrors(f, &budget, maxLogLines-len(lines))...)
		f.Close()
	}
	slices.SortStableFunc(lines, func(a, b LogLine) int { return cmp.Compare(a.Time, b.Time) })
	return lines
}

func logFiles(folder string) (paths []string) {
	// What cannot be walked holds no logs for us.
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() && filepath.Ext(path) == ".log" && len(paths) < maxLogFiles {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

func readErrors(f *os.File, budget *int64, limit int) (lines []LogLine) {
	scan := bufio.NewScanner(f)
	scan.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scan.Scan() && *budget > 0 && len(lines) < limit {
		*budget -= int64(len(scan.Bytes())) + 1
		if l, ok := ParseLogLine(scan.Text()); ok && l.Level == "ERROR" && !l.isHarmless() {
			lines = append(lines, l)
		}
	}
	return lines
}
