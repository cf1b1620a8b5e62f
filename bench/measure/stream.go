package measure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/load"
)

// A stream of records is a CSV file with comments: what an observer is told, in the order
// in which it is told it. The first line holds the settings, so that the file alone makes
// the level again. Times are nanoseconds from the beginning of the run.
//
//	# npuctl requests 1 {"mode": "open", …}
//	number,worker,warm,outcome,intended_ns,…
//	0,3,0,ok,1000000,…
//	# observed NOW SETTLED
//	# ended {"Ending": "enough", …}
const (
	streamTitle    = "# npuctl requests 1 "
	streamObserved = "# observed "
	streamEnded    = "# ended "
	streamColumns  = "number,worker,warm,outcome,intended_ns,ready_ns,sent_ns,done_ns,queue_ns,batch_ns,h2d_ns,compute_ns,d2h_ns," +
		"items,kind,batch_items,batch_lead,gear,elements,padding,reason"
)

// numbers is how many columns stand before the reason.
const numbers = 20

// StreamWriter writes what it is told as a stream. It is a [load.Observer].
type StreamWriter struct {
	out  *bufio.Writer
	line []byte
	err  error
}

// NewStreamWriter begins a stream of a level. Close must be called at its end.
func NewStreamWriter(w io.Writer, s Settings) (*StreamWriter, error) {
	if s.Stability == (Stability{}) {
		s.Stability = DefaultStability()
	}
	if s.Limits == (Limits{}) {
		s.Limits = DefaultLimits()
	}
	settings, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the settings of a level: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	_, err = fmt.Fprintf(out, "%s%s\n%s\n", streamTitle, settings, streamColumns)
	return &StreamWriter{out: out, err: err}, nil
}

// Observe writes records. It has never seen enough.
func (w *StreamWriter) Observe(now, settled time.Duration, records []load.Record) (bool, error) {
	for i := range records {
		w.line = appendRecord(w.line[:0], &records[i])
		w.write(w.line)
	}
	w.line = append(w.line[:0], streamObserved...)
	w.line = append(strconv.AppendInt(w.line, int64(now), 10), ' ')
	w.line = append(strconv.AppendInt(w.line, int64(settled), 10), '\n')
	w.write(w.line)
	return false, w.failed()
}

// Ended writes how the run ended.
func (w *StreamWriter) Ended(e load.End) {
	end, err := json.Marshal(e)
	if err != nil {
		w.err = errors.Join(w.err, err)
	}
	w.write(append(append([]byte(streamEnded), end...), '\n'))
}

// Close writes what is left. It leaves the file open.
func (w *StreamWriter) Close() error {
	if err := w.out.Flush(); w.err == nil {
		w.err = err
	}
	return w.failed()
}

func (w *StreamWriter) write(line []byte) {
	if _, err := w.out.Write(line); w.err == nil {
		w.err = err
	}
}

func (w *StreamWriter) failed() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("keep the records: %w", w.err)
}

func appendRecord(line []byte, r *load.Record) []byte {
	integer := func(n int64) { line = append(strconv.AppendInt(line, n, 10), ',') }
	integer(r.Number)
	integer(int64(r.Worker))
	integer(bit(r.Warm))
	line = append(append(line, r.Outcome.String()...), ',')
	for _, t := range [...]time.Duration{r.Intended, r.Ready, r.Sent, r.Done} {
		integer(int64(t))
	}
	for _, t := range r.Stages[load.Queue:load.Respond] {
		integer(int64(t))
	}
	integer(int64(r.Items))
	integer(int64(r.Kind))
	integer(int64(r.Batch.Items))
	integer(bit(r.Batch.Lead))
	integer(int64(r.Batch.Gear))
	integer(r.Batch.Elements)
	integer(r.Batch.Padding)
	if r.Reason != "" {
		line = appendText(line, r.Reason)
	}
	return append(line, '\n')
}

// appendText writes a text as CSV does, on one line.
func appendText(line []byte, text string) []byte {
	line = append(line, '"')
	for _, c := range []byte(text[:min(len(text), mostText)]) {
		switch {
		case c == '"':
			line = append(line, '"', '"')
		case c < ' ':
			line = append(line, ' ')
		default:
			line = append(line, c)
		}
	}
	return append(line, '"')
}

// mostText is how many bytes of a reason are kept.
const mostText = 1 << 12

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Replay reads a stream, and sums up its level as it was summed up when it was measured. A
// stream that breaks off, as that of a process that was killed, gives what is there.
func Replay(r io.Reader) (*Level, error) {
	p := replay{in: bufio.NewReaderSize(r, 1<<16)}
	if err := p.begin(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.number, err)
	}
	for {
		line, err := p.line()
		switch {
		case err == io.EOF:
			return p.end()
		case err != nil:
			return nil, err
		}
		if err := p.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.number, err)
		}
	}
}

// replay is a stream while it is read.
type replay struct {
	in       *bufio.Reader
	number   int // of the line
	recorder *Recorder
	records  []load.Record
	reasons  map[string]string
	last     time.Duration
	long     []byte // a line that is longer than the buffer
}

// The longest line, and the most records between two observations.
const (
	mostLine    = 1 << 22
	mostRecords = 1 << 18
)

// line gives the next line, without its end. A last one that has no end is not whole, and
// not given.
func (p *replay) line() ([]byte, error) {
	p.long = p.long[:0]
	for {
		part, err := p.in.ReadSlice('\n')
		switch {
		case err == nil && len(p.long) == 0:
			p.number++
			return bytes.TrimRight(part, "\r\n"), nil
		case err == nil || err == bufio.ErrBufferFull:
			if p.long = append(p.long, part...); len(p.long) > mostLine {
				return nil, fmt.Errorf("line %d is longer than %d bytes", p.number+1, mostLine)
			}
			if err == nil {
				p.number++
				return bytes.TrimRight(p.long, "\r\n"), nil
			}
		case err == io.EOF:
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("read the records: %w", err)
		}
	}
}

func (p *replay) begin() error {
	title, err := p.line()
	if err != nil && err != io.EOF {
		return err
	}
	text, is := bytes.CutPrefix(title, []byte(streamTitle))
	if !is {
		return errors.New("this is no file of requests, as npuctl bench --out keeps it")
	}
	var s Settings
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("the settings of the level: %w", err)
	}
	if p.recorder, err = NewRecorder(s); err != nil {
		return err
	}
	p.reasons = map[string]string{}
	if columns, err := p.line(); err != nil || string(columns) != streamColumns {
		return errors.New("the columns are not those of this version")
	}
	return nil
}

func (p *replay) read(line []byte) error {
	if text, is := bytes.CutPrefix(line, []byte(streamObserved)); is {
		return p.observed(string(text))
	}
	if text, is := bytes.CutPrefix(line, []byte(streamEnded)); is {
		var e load.End
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("how the run ended: %w", err)
		}
		if e.At < 0 || e.Last < 0 || e.At > longestRun || e.Last > longestRun {
			return errors.New("how the run ended: its times are out of range")
		}
		p.recorder.Ended(e)
		return nil
	}
	p.records = append(p.records, load.Record{})
	record := &p.records[len(p.records)-1]
	if err := p.record(string(line), record); err != nil {
		return err
	}
	p.last = max(p.last, record.Done)
	if len(p.records) < mostRecords {
		return nil
	}
	return p.observe(p.last, 0)
}

func (p *replay) observed(text string) error {
	first, second, _ := strings.Cut(text, " ")
	now, errNow := strconv.ParseInt(first, 10, 64)
	settled, errSettled := strconv.ParseInt(second, 10, 64)
	if errNow != nil || errSettled != nil || now < 0 || settled < 0 {
		return fmt.Errorf("%q are no two times", text)
	}
	return p.observe(time.Duration(now), time.Duration(settled))
}

func (p *replay) observe(now, settled time.Duration) error {
	_, err := p.recorder.Observe(now, settled, p.records)
	p.records = p.records[:0]
	return err
}

func (p *replay) end() (*Level, error) {
	brokeOff := !p.recorder.ended
	if brokeOff {
		p.recorder.Ended(load.End{Ending: load.Interrupted, At: p.last, Last: p.last})
	}
	if err := p.observe(p.last, p.last); err != nil {
		return nil, err
	}
	level := p.recorder.Level()
	if brokeOff {
		level.Notes = append(level.Notes, "the records break off: the run was not ended in order")
	}
	return level, nil
}

// longestRun is three years.
const longestRun = time.Duration(1e17)

// bounds are the least and the largest number of each column.
var bounds = [numbers][2]int64{
	0: {0, 1 << 60}, 1: {-1, 1 << 20}, 2: {0, 1}, 4: {0, int64(longestRun)}, 5: {0, int64(longestRun)}, 6: {0, int64(longestRun)}, 7: {0, int64(longestRun)},
	8: {0, int64(longestRun)}, 9: {0, int64(longestRun)}, 10: {0, int64(longestRun)}, 11: {0, int64(longestRun)}, 12: {0, int64(longestRun)},
	13: {1, 1<<31 - 1}, 14: {0, 1 << 20}, 15: {0, 1<<31 - 1}, 16: {0, 1}, 17: {0, 1 << 20}, 18: {0, 1 << 50}, 19: {0, 1 << 50},
}

// columnOutcome is the column that holds no number.
const columnOutcome = 3

// record reads a row.
func (p *replay) record(line string, r *load.Record) error {
	var values [numbers]int64
	rest := line
	for i := range values {
		field, after, found := strings.Cut(rest, ",")
		if !found {
			return fmt.Errorf("%d fields, and there are %d columns", i+1, numbers+1)
		}
		rest = after
		if i == columnOutcome {
			values[i] = int64(slices.Index(load.OutcomeNames[:], field))
			if values[i] < 0 {
				return fmt.Errorf("there is no outcome %q", field)
			}
			continue
		}
		value, err := strconv.ParseInt(field, 10, 64)
		if err != nil || value < bounds[i][0] || value > bounds[i][1] {
			return fmt.Errorf("%s: %q is no number from %d to %d", strings.Split(streamColumns, ",")[i], field, bounds[i][0], bounds[i][1])
		}
		values[i] = value
	}
	fill(r, &values)
	if r.Intended > r.Ready || r.Ready > r.Sent || r.Sent > r.Done {
		return errors.New("its times are not in the order intended, ready, sent, done")
	}
	r.Reason = p.reason(rest)
	r.Complete()
	return nil
}

func fill(r *load.Record, v *[numbers]int64) {
	r.Number, r.Worker, r.Warm, r.Outcome = v[0], int32(v[1]), v[2] == 1, load.Outcome(v[3])
	r.Intended, r.Ready, r.Sent, r.Done = time.Duration(v[4]), time.Duration(v[5]), time.Duration(v[6]), time.Duration(v[7])
	for i := range r.Stages[load.Queue:load.Respond] {
		r.Stages[int(load.Queue)+i] = time.Duration(v[8+i])
	}
	r.Items, r.Kind = int32(v[13]), int32(v[14])
	r.Batch = load.Batch{Items: int32(v[15]), Lead: v[16] == 1, Gear: int32(v[17]), Elements: v[18], Padding: v[19]}
}

// reason reads a reason, and keeps each once.
func (p *replay) reason(field string) string {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		field = strings.ReplaceAll(field[1:len(field)-1], `""`, `"`)
	}
	if same, known := p.reasons[field]; known {
		return same
	}
	if len(p.reasons) < mostReasons {
		field = strings.Clone(field)
		p.reasons[field] = field
	}
	return field
}
