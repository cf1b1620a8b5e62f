package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/npuctl/npuctl/internal/fault"
)

// Journal keeps the trials of a search in a file, each as it is done, so that a search that
// was ended goes on where it was. The first line says what is searched: a journal of
// another search is refused. A nil journal keeps nothing.
type Journal struct {
	file   *os.File
	trials map[trialKey]Trial
	order  []Trial
}

type trialKey struct {
	rate    float64
	attempt int
}

// mostJournal is the largest file that is read as a journal.
const mostJournal = 1 << 24

// OpenJournal opens a journal, or makes one. The subject is whatever the trials depend on:
// goal, model, options. It is compared as JSON.
func OpenJournal(path string, subject any) (*Journal, error) {
	head, err := json.Marshal(map[string]any{"search": subject})
	if err != nil {
		return nil, fmt.Errorf("begin the journal: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fault.New(fault.Input, "open the journal: %w", err)
	}
	j := &Journal{file: file, trials: map[trialKey]Trial{}}
	if err := j.load(path, head); err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// load reads what is there, and puts the file's end after the last whole line.
func (j *Journal) load(path string, head []byte) error {
	data, err := io.ReadAll(io.LimitReader(j.file, mostJournal+1))
	if err != nil {
		return fault.New(fault.Input, "read the journal: %w", err)
	}
	if len(data) > mostJournal {
		return fault.New(fault.Input, "%s is no journal of a search: it is larger than %d bytes", path, mostJournal)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) == 0 && (len(data) == 0 || bytes.HasPrefix(head, data)) {
		return j.restart(head)
	}
	first, rest, _ := bytes.Cut(whole, []byte("\n"))
	if !bytes.Equal(first, head) {
		return fault.New(fault.Input, "%s is the journal of another search", path).With("give another file, or remove it")
	}
	if err := j.read(path, rest); err != nil {
		return err
	}
	if err := j.file.Truncate(int64(len(whole))); err != nil {
		return fmt.Errorf("cut the journal's last line, which is not whole: %w", err)
	}
	if _, err = j.file.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("go on with the journal: %w", err)
	}
	return nil
}

func (j *Journal) restart(head []byte) error {
	if _, err := j.file.WriteAt(append(head, '\n'), 0); err != nil {
		return fmt.Errorf("begin the journal: %w", err)
	}
	if _, err := j.file.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("begin the journal: %w", err)
	}
	return nil
}

func (j *Journal) read(path string, data []byte) error {
	number := 1
	for line := range bytes.Lines(data) {
		number++
		var t Trial
		if err := json.Unmarshal(line, &t); err != nil {
			return fault.New(fault.Input, "%s, line %d: %w", path, number, err)
		}
		if t.Verdict != Holds && t.Verdict != Misses && t.Verdict != Void {
			return fault.New(fault.Input, "%s, line %d: there is no verdict %q", path, number, t.Verdict)
		}
		j.trials[trialKey{t.Rate, t.Attempt}] = t
		j.order = append(j.order, t)
	}
	return nil
}

// Trials are those that the journal had when it was opened, in their order.
func (j *Journal) Trials() []Trial { return j.order }

func (j *Journal) trial(rate float64, attempt int) (Trial, bool) {
	if j == nil {
		return Trial{}, false
	}
	t, known := j.trials[trialKey{rate, attempt}]
	return t, known
}

func (j *Journal) keep(t Trial) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(t)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.file.Sync(), j.file.Close())
}
