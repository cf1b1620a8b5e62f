package simulation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// Report is what `npuctl simulate --json` prints before the lists.
type Report struct {
	Config   string   `json:"config"`
	Arrivals string   `json:"arrivals"`
	Service  string   `json:"service"`
	Seed     uint64   `json:"seed"`
	Notes    []string `json:"notes"`
	Summary  *Result  `json:"summary"`
}

// WriteJSON writes one object: the report, and the lists `executions` and `requests`, with
// an entry a line. Written by hand, as there may be millions.
func (r *Report) WriteJSON(w io.Writer, kinds []Kind) error {
	head, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("print the summary as JSON: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.Write(head[:len(head)-1])
	out.WriteString(",\n\"executions\": [")
	line := make([]byte, 0, 1<<12)
	for i := range r.Summary.Runs {
		line = appendExecution(appendSeparator(line[:0], i), &r.Summary.Runs[i])
		out.Write(line)
	}
	out.WriteString("],\n\"requests\": [")
	shapes := make([][]byte, len(kinds))
	for i := range kinds {
		shapes[i] = quoted(kinds[i].Shape)
	}
	reasons := make([][]byte, len(r.Summary.Reasons))
	for i, text := range r.Summary.Reasons {
		reasons[i] = quoted(text)
	}
	for i := range r.Summary.Rows {
		row := &r.Summary.Rows[i]
		line = appendRow(appendSeparator(line[:0], i), row, shapes[row.Kind], reasons[row.Reason])
		out.Write(line)
	}
	out.WriteString("]}\n")
	return out.Flush()
}

func quoted(text string) []byte {
	data, _ := json.Marshal(text) // a string always can be
	return data
}

func appendSeparator(line []byte, i int) []byte {
	if i > 0 {
		line = append(line, ',')
	}
	return append(line, '\n')
}

func appendExecution(line []byte, e *Execution) []byte {
	line = appendTime(append(line, `{"start": `...), e.Start)
	line = appendTime(append(line, `, "end": `...), e.End)
	line = strconv.AppendInt(append(line, `, "device": `...), int64(e.Device), 10)
	line = strconv.AppendInt(append(line, `, "instance": `...), int64(e.Instance), 10)
	line = strconv.AppendQuote(append(line, `, "gear": `...), e.Gear)
	line = strconv.AppendInt(append(line, `, "items": `...), int64(e.Items), 10)
	line = append(line, `, "requests": [`...)
	for i, id := range e.Requests {
		if i > 0 {
			line = append(line, ", "...)
		}
		line = strconv.AppendInt(line, int64(id), 10)
	}
	return append(line, "]}"...)
}

func appendRow(line []byte, r *Row, shape, reason []byte) []byte {
	line = appendTime(append(line, `{"arrival": `...), r.Arrival)
	line = strconv.AppendInt(append(line, `, "size": `...), int64(r.Size), 10)
	line = append(append(line, `, "shape": `...), shape...)
	line = strconv.AppendInt(append(line, `, "level": `...), int64(r.Level), 10)
	if r.Outcome == executor.Waiting {
		return append(line, `, "queue": null, "latency": null, "outcome": "waiting"}`...)
	}
	line = appendTime(append(line, `, "queue": `...), r.Queue)
	line = appendTime(append(line, `, "latency": `...), r.Latency)
	line = append(append(append(line, `, "outcome": "`...), r.Outcome.String()...), '"')
	if r.Reason != 0 {
		line = append(append(line, `, "reason": `...), reason...)
	}
	return append(line, '}')
}

// appendTime writes milliseconds, to the nanosecond and without zeros at the end.
func appendTime(line []byte, t time.Duration) []byte {
	line = strconv.AppendInt(line, int64(t/time.Millisecond), 10)
	rest := int64(t % time.Millisecond)
	if rest == 0 {
		return line
	}
	digits := [7]byte{'.'}
	last := 0
	for i := 6; i > 0; i-- {
		digits[i] = byte('0' + rest%10)
		rest /= 10
		if last == 0 && digits[i] != '0' {
			last = i
		}
	}
	return append(line, digits[:last+1]...)
}
