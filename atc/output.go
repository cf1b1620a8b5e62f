package atc

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Log is what an ATC, or a program like it, printed.
type Log struct {
	Started   bool // ATC said that it begins
	Succeeded bool // it said that all went well
	Failed    bool // it said that not
	// Messages are what it complains about, in order, and every other line as a
	// message without a code.
	Messages []Message
}

// Message is one complaint.
type Message struct {
	Code     string // such as E10001; "" for a line without
	Title    string // such as Invalid_Argument, in newer releases
	Text     string
	Cause    string // what ATC itself thinks
	Solution string // what ATC itself proposes
	Nested   bool   // it stands below another one, as what led there
	Place    string // file:line of the program, when it says so
	// IsFlagError says that the line came from the reading of options.
	IsFlagError bool
}

// The bounds of what is kept: a program that has gone mad prints without end. Of lines
// without a code maxPlain are kept, and the last one; what ATC complains about stands
// at the end, and has room of its own.
const (
	maxLine     = 64 << 10
	maxPlain    = 4000
	maxMessages = 2 * maxPlain
)

// codePattern finds codes anywhere in a line: people copy logs with whatever
// stood before. A sequence of letters and digits that only looks like one (a
// date of another logger's) has no such end.
var codePattern = regexp.MustCompile(`(?:^|[^A-Za-z0-9])([EW][A-Z0-9][0-9]{4})(:|\)| |\[PID)`)

// damagedCode is a code that lost a digit, at the beginning of a line.
var damagedCode = regexp.MustCompile(`^\s*([EW][A-Z0-9][0-9]{3}):`)

// stamp is what stands between a code and its text: process, time, and in the
// newest form of internal errors the code again.
var stamp = regexp.MustCompile(`^[:) ]*(?:\[?PID: ?\d+\]?)? *(?:\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d{3}){0,2})? *(?:\w*\([EW][A-Z0-9][0-9]{4}\):)?\s*`)

// titlePattern is the title of newer releases, right before a code in parentheses.
var titlePattern = regexp.MustCompile(`([A-Z][A-Za-z_]*)\($`)

// sourcePattern is where in the program a message comes from.
var sourcePattern = regexp.MustCompile(`\s*\[FUNC:([^\]]*)\]\[FILE:([^\]]*)\]\[LINE:(\d+)\]\.?\s*$`)

// innerError is the empty header of an internal error; what happened follows.
var innerError = regexp.MustCompile(`^(?:Inner|Internal) Error\b`)

// numbered is a further line of a solution: 2. Do that.
var numbered = regexp.MustCompile(`^\d+\. ?\S`)

// ReadLog reads what ATC printed, of any release and copied from anywhere.
func ReadLog(text string) Log {
	r := logReader{}
	for line := range strings.Lines(text) {
		if len(line) > maxLine {
			line = line[:maxLine]
		}
		r.line(strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), "\r\n \t"))
	}
	return r.log
}

type logReader struct {
	log         Log
	inTraceBack bool
	inSolution  bool
}

// readers are the kinds of lines, in the order in which they are tried.
var readers = []func(r *logReader, line string) bool{
	(*logReader).verdict,
	(*logReader).remark,
	(*logReader).processLog,
	(*logReader).flagError,
	(*logReader).coded,
	(*logReader).nested,
}

func (r *logReader) line(line string) {
	text := strings.TrimSpace(line)
	if text == "" {
		r.inTraceBack, r.inSolution = false, false
		return
	}
	for _, read := range readers {
		if read(r, line) {
			return
		}
	}
	r.inTraceBack, r.inSolution = false, false
	if strings.Trim(text, ".") != "" { // dots are its progress
		r.add(Message{Text: text})
	}
}

func (r *logReader) add(m Message) {
	if at := sourcePattern.FindStringSubmatchIndex(m.Text); at != nil {
		m.Place = m.Text[at[4]:at[5]] + ":" + m.Text[at[6]:at[7]]
		m.Text = m.Text[:at[0]]
	}
	n := len(r.log.Messages)
	isPlain := m.Code == "" && !m.IsFlagError
	isFull := n >= maxMessages || isPlain && n >= maxPlain
	switch {
	case !isFull:
		r.log.Messages = append(r.log.Messages, m)
	case isPlain && r.log.Messages[n-1].Code == "":
		r.log.Messages[n-1] = m
	}
}

func (r *logReader) last() *Message {
	if len(r.log.Messages) == 0 {
		return nil
	}
	return &r.log.Messages[len(r.log.Messages)-1]
}

// verdict reads the lines by which ATC begins and ends.
func (r *logReader) verdict(line string) bool {
	switch {
	case strings.Contains(line, "ATC start working now"):
		r.log.Started = true
	case strings.Contains(line, "ATC run success"):
		r.log.Succeeded = true
	case strings.Contains(line, "ATC run failed"):
		r.log.Failed = true
	default:
		return false
	}
	r.inTraceBack, r.inSolution = false, false
	return true
}

// remark reads what belongs to the message before.
func (r *logReader) remark(line string) bool {
	text := strings.TrimSpace(line)
	last := r.last()
	switch cause, solution := cutLabel(text, "Possible Cause:"), cutLabel(text, "Solution:"); {
	case strings.HasPrefix(text, "TraceBack (most recent call last"):
		r.inTraceBack, r.inSolution = true, false
		return true
	case last == nil:
		return false
	case cause != "":
		last.Cause, r.inSolution = cause, false
	case solution != "":
		last.Solution, r.inSolution = solution, true
	case r.inSolution && numbered.MatchString(text):
		last.Solution += " " + text
	default:
		return false
	}
	return true
}

func cutLabel(text, label string) string {
	rest, found := strings.CutPrefix(text, label)
	if !found {
		return ""
	}
	return strings.TrimSpace(rest)
}

// processLog reads a line of the process log that went to the screen.
func (r *logReader) processLog(line string) bool {
	l, ok := ParseLogLine(strings.TrimSpace(line))
	if !ok {
		return false
	}
	if l.Level == "ERROR" && !l.isHarmless() {
		r.add(Message{Text: l.Text, Place: l.Place, Nested: len(r.log.Messages) > 0})
	}
	r.inTraceBack, r.inSolution = false, false
	return true
}

// flagError reads a complaint about the options, which carries no code.
func (r *logReader) flagError(line string) bool {
	text, found := strings.CutPrefix(strings.TrimSpace(line), "ERROR: ")
	if !found || codePattern.MatchString(text) {
		return false
	}
	r.add(Message{Text: text, IsFlagError: true})
	return true
}

// coded reads a line with a code.
func (r *logReader) coded(line string) bool {
	code, before, text := splitCode(line)
	if code == "" {
		return false
	}
	m := Message{Code: code, Text: strings.TrimSpace(text), Nested: r.inTraceBack && strings.TrimSpace(before) == "" && before != ""}
	if t := titlePattern.FindStringSubmatch(before); t != nil {
		m.Title = t[1]
	}
	r.inSolution = false
	last := r.last()
	isContent := last != nil && last.Code == code && isInternal(code) && innerError.MatchString(last.Text)
	if isContent {
		r.log.Messages = r.log.Messages[:len(r.log.Messages)-1]
	}
	if !m.Nested {
		r.inTraceBack = false
	}
	r.add(m)
	return true
}

// splitCode takes a line apart at its first code.
func splitCode(line string) (code, before, text string) {
	if at := codePattern.FindStringSubmatchIndex(line); at != nil {
		rest := line[at[3]:]
		return line[at[2]:at[3]], line[:at[2]], rest[len(stamp.FindString(rest)):]
	}
	at := damagedCode.FindStringSubmatchIndex(line)
	if at == nil {
		return "", "", ""
	}
	rest := line[at[3]:]
	return repairCode(line[at[2]:at[3]]), line[:at[2]], rest[len(stamp.FindString(rest)):]
}

// nested reads what led to the message above: the lines below a TraceBack.
func (r *logReader) nested(line string) bool {
	isIndented := line[0] == ' ' || line[0] == '\t'
	last := r.last()
	if !isIndented && !sourcePattern.MatchString(line) || last == nil || !r.inTraceBack && (last.Code == "" && !last.Nested) {
		return false
	}
	r.inSolution = false
	r.add(Message{Text: strings.TrimSpace(line), Nested: true})
	return true
}

// Leading is the code that says most: the first that does not just say that
// something failed inside, else the first; "" when there is none.
func (l Log) Leading() string {
	first := ""
	for _, m := range l.Messages {
		switch {
		case m.Code == "" || strings.HasPrefix(m.Code, "W"):
		case !isInternal(m.Code):
			return m.Code
		case first == "":
			first = m.Code
		}
	}
	return first
}

// lead is the message of the leading code.
func (l Log) lead() (Message, bool) {
	code := l.Leading()
	if code == "" {
		return Message{}, false
	}
	i := slices.IndexFunc(l.Messages, func(m Message) bool { return m.Code == code })
	return l.Messages[i], true
}

// compilerNode takes apart the names that the compiler makes of the user's nodes.
var (
	gearSuffix     = regexp.MustCompile(`_ascend_mbatch_batch_(\d+)$`)
	tuningPrefix   = regexp.MustCompile(`^-?\d+(?:_\d+)*_/`)
	hostSuffix     = regexp.MustCompile(`_(?:filter|bias)_host(?:_\d+)?$`)
	insertedByName = regexp.MustCompile(`^(?:trans_TransData_|trans_Cast_|trans_Transpose_|PartitionedCall_|ascend_mbatch_|ascend_aipp_)`)
)

// NodeName is a node as the compiler names it, led back to the user's.
type NodeName struct {
	Name string // of the user's node; of the inserted one when it is nobody's
	// Gear is the number of the gear, from 0, in whose branch it stands; -1 without.
	Gear int
	// Inserted says that the compiler made the node: it is in no file of the user's.
	Inserted bool
}

// UserNode leads the name of a node of the compiler's back to the user's graph.
func UserNode(name string) NodeName {
	n := NodeName{Name: name, Gear: -1}
	if m := gearSuffix.FindStringSubmatch(name); m != nil {
		if gear, err := strconv.Atoi(m[1]); err == nil {
			n.Gear = gear
		}
		n.Name = strings.TrimSuffix(name, m[0])
	}
	if p := tuningPrefix.FindString(n.Name); p != "" {
		n.Name = n.Name[len(p)-1:] // the slash is the name's own
	}
	if s := hostSuffix.FindString(n.Name); s != "" {
		n.Name, n.Inserted = strings.TrimSuffix(n.Name, s), true
	}
	n.Inserted = n.Inserted || insertedByName.MatchString(n.Name)
	return n
}
