package compilation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
)

// runATC runs the compiler.
func (b *build) runATC(ctx context.Context, list arguments) (atc.Outcome, error) {
	logs, err := b.logFolder()
	if err != nil {
		return atc.Outcome{}, err
	}
	b.result.LogFolder = logs
	estimate := b.estimate()
	b.result.EstimatedSeconds = estimate.Seconds()
	run := atc.Run{
		Toolkit: b.toolkit, Args: list.words(), Folder: b.folder, LogFolder: logs, WorkFolder: filepath.Join(b.folder, "work"),
		Timeout: b.job.Timeout, Progress: func(elapsed time.Duration) { b.say("%s", progressText(b.toolkit, elapsed, estimate)) },
	}
	if run.WorkFolder, err = filepath.Abs(run.WorkFolder); err != nil {
		return atc.Outcome{}, fault.New(fault.Missing, "find the working folder: %w", err)
	}
	outcome, err := run.Do(ctx)
	b.result.ATCSeconds = outcome.Elapsed.Seconds()
	switch {
	case ctx.Err() != nil:
		_ = os.RemoveAll(logs) // a run that was stopped tells nothing
		b.result.LogFolder = ""
		return outcome, ctx.Err()
	case errors.Is(err, atc.ErrTimeout):
		return outcome, fault.New(fault.Program, "%s: atc ran for more than %s and was stopped", b.model, b.job.Timeout).
			With("allow more with --timeout; its log lies in %s", logs)
	case err != nil:
		return outcome, fault.New(fault.Missing, "%w", err)
	}
	return outcome, nil
}

func progressText(kit atc.Toolkit, elapsed, estimate time.Duration) string {
	program := "atc"
	if kit.Emulated {
		program = "emulated atc"
	}
	elapsed = elapsed.Round(time.Second)
	switch {
	case estimate <= 0:
		return fmt.Sprintf("%s, %s", program, elapsed)
	case elapsed > estimate:
		return fmt.Sprintf("%s, %s, longer than last time (%s)", program, elapsed, estimate.Round(time.Second))
	}
	return fmt.Sprintf("%s, %s of about %s", program, elapsed, estimate.Round(time.Second))
}

// judge decides whether a run went well, and finds what it made. It did if it ended
// with 0, said so, and the file is there.
func (b *build) judge(outcome atc.Outcome, name string) (made string, err error) {
	log := atc.ReadLog(outcome.Stdout + "\n" + outcome.Stderr)
	made, odd := madeAt(filepath.Join(b.folder, name), func(string) bool { return false })
	if outcome.ExitCode == 0 && log.Succeeded && made != "" {
		b.warn(log)
		return made, nil
	}
	process := atc.ReadProcessLogs(b.result.LogFolder)
	b.result.LogLines = linesThatMatter(process)
	b.keepOutput(outcome)
	if outcome.ExitCode == 0 && log.Succeeded {
		return "", b.notMade(name, odd)
	}
	facts := atc.Facts{Opset: b.opset, Gears: b.shapes.gearTexts(), SoC: b.chip.Name, Signal: outcome.Signal, ExitCode: outcome.ExitCode, Ended: true}
	diagnoses := atc.Diagnose(log, process, facts)
	for i := range diagnoses {
		b.origins.explain(&diagnoses[i])
	}
	b.result.Diagnoses = diagnoses
	first := diagnoses[0]
	code := ""
	if first.Code != "" {
		code = " (" + first.Code + ")"
	}
	return "", fault.New(fault.Program, "%s: atc failed%s: %s", b.model, code, first.Message).With("%s; the whole log lies in %s", first.Remedy, b.result.LogFolder)
}

// notMade is the failure of an ATC that said that it succeeded and left no .om; odd is
// what stands in its place.
func (b *build) notMade(name, odd string) error {
	d := atc.Diagnosis{Names: []string{name + ".om"}, Message: fmt.Sprintf("atc said that it succeeded and wrote no %s.om", name),
		Remedy: "see what it printed, and whether a script stands in for atc"}
	if odd != "" {
		d.Message = fmt.Sprintf("atc said that it succeeded and left %s in the place of %s.om", odd, name)
	}
	b.result.Diagnoses = []atc.Diagnosis{d}
	return fault.New(fault.Program, "%s: %s", b.model, d.Message).With("%s; its log lies in %s", d.Remedy, b.result.LogFolder)
}

// warn keeps what ATC warned of.
func (b *build) warn(log atc.Log) {
	for _, m := range log.Messages {
		if b.toolkit.Emulated && strings.Contains(m.Text, "emulated by npuctl") {
			continue // which the result says itself
		}
		if strings.HasPrefix(m.Code, "W") || m.Code == "" && strings.Contains(m.Text, "WARNING") {
			b.note("atc: " + strings.TrimSpace(m.Code+" "+m.Text))
		}
	}
}

// logLinesShown bounds the lines of a process log that a result tells.
const logLinesShown = 10

// linesThatMatter are the first errors of the process log: what follows them follows
// from them.
func linesThatMatter(process []atc.LogLine) (lines []string) {
	for _, l := range process[:min(len(process), logLinesShown)] {
		lines = append(lines, fmt.Sprintf("%s %s: %s", l.Module, l.Place, l.Text))
	}
	return lines
}

// keepOutput puts what ATC printed beside its logs.
func (b *build) keepOutput(outcome atc.Outcome) {
	for name, text := range map[string]string{"stdout.txt": outcome.Stdout, "stderr.txt": outcome.Stderr} {
		// It is an extra: that the run failed is what has to be told.
		_ = os.WriteFile(filepath.Join(b.result.LogFolder, name), []byte(text), 0o666)
	}
}

// logsKept is how many runs' logs stay in the cache.
const logsKept = 50

// logFolder makes the folder for this run's logs, and takes away those of long ago.
func (b *build) logFolder() (string, error) {
	parent := filepath.Join(b.job.cacheFolder(), "logs")
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return "", fault.New(fault.Missing, "make the folder of logs: %w", err).With(cacheRemedy)
	}
	pattern := fmt.Sprintf("%s-%s-%s-*", time.Now().UTC().Format("20060102T150405"), plainName(filepath.Base(b.target)), b.chip.Name)
	folder, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", fault.New(fault.Missing, "make the folder of logs: %w", err).With(cacheRemedy)
	}
	entries, err := os.ReadDir(parent) // sorted by name, and names begin with the time
	if err == nil && len(entries) > logsKept {
		for _, e := range entries[:len(entries)-logsKept] {
			removeOldLog(filepath.Join(parent, e.Name()), e)
		}
	}
	return filepath.Abs(folder)
}

// removeOldLog takes a log away, unless it may still be written.
func removeOldLog(path string, e fs.DirEntry) {
	info, err := e.Info()
	if err == nil && time.Since(info.ModTime()) > 24*time.Hour {
		_ = os.RemoveAll(path)
	}
}
