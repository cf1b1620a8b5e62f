package compilation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
)

// CommandLine is an ATC command line of the user's, to be run as it stands: in the
// working directory, with the paths it names, under our progress, diagnosis and record.
type CommandLine struct {
	Args []string
	// The rest is as in [Job].
	CANN     string
	Emulator func(ctx context.Context) (root string, err error)
	Timeout  time.Duration
	Cache    string
	Version  string
	Command  []string
	Progress func(text string)
	// Found is told, when set, which ATC will run, before it does.
	Found func(atc.Toolkit)
	// Echo gets what ATC prints, as it comes.
	Echo io.Writer
}

// CommandLineResult says how it went. Its JSON form is the contract of `npuctl atc
// --json`.
type CommandLineResult struct {
	Emulated    bool         `json:"emulated"`
	Toolkit     *atc.Toolkit `json:"toolkit"`
	CommandLine string       `json:"command_line"`
	// Output is the .om, Record the build record beside it; "" for command lines that
	// make none.
	Output    string          `json:"output"`
	Record    string          `json:"record"`
	ExitCode  int             `json:"exit_code"` // ATC's; -1 when it did not run to its end
	Diagnoses []atc.Diagnosis `json:"diagnoses"`
	Notes     []string        `json:"notes"`
	LogLines  []string        `json:"log_lines"`
	LogFolder string          `json:"log_folder"`
	Seconds   float64         `json:"seconds"`
}

// Run checks the command line and runs it. What ATC would refuse does not run.
func (c CommandLine) Run(ctx context.Context) (*CommandLineResult, error) {
	start := time.Now()
	r := &CommandLineResult{ExitCode: -1, Diagnoses: []atc.Diagnosis{}, Notes: []string{}, LogLines: []string{}}
	where := atc.Environment{Toolkit: c.job().installed()}
	verdict, err := atc.Check(ctx, c.Args, where, atc.AsATC)
	if err != nil {
		return nil, err
	}
	if !verdict.Accept {
		r.Diagnoses = verdict.Diagnoses
		return r, fault.New(fault.Usage, "atc would refuse this (%s): %s", verdict.Diagnoses[0].Code, verdict.Diagnoses[0].Message).
			With("npuctl atc --check tells all that is wrong")
	}
	if err := c.advise(ctx, where, r); err != nil {
		return nil, err
	}
	b, err := c.build(ctx)
	if err != nil {
		return r, err
	}
	r.Toolkit, r.Emulated, r.CommandLine = &b.toolkit, b.toolkit.Emulated, atc.ShellCommand(b.toolkit.Program, c.Args)
	if c.Found != nil {
		c.Found(b.toolkit)
	}
	err = c.run(ctx, b, r)
	r.LogFolder, r.Seconds = b.result.LogFolder, time.Since(start).Seconds()
	return r, err
}

// advise notes what the user guide forbids and ATC lets pass.
func (c CommandLine) advise(ctx context.Context, where atc.Environment, r *CommandLineResult) error {
	strict, err := atc.Check(ctx, c.Args, where, atc.Strict)
	if err != nil {
		return err
	}
	for _, d := range strict.Diagnoses {
		r.Notes = append(r.Notes, d.String())
	}
	for _, d := range strict.Notes {
		r.Notes = append(r.Notes, d.Text())
	}
	return nil
}

// job is what a command line has in common with a job of ours.
func (c CommandLine) job() Job {
	return Job{CANN: c.CANN, Emulator: c.Emulator, Timeout: c.Timeout, Cache: c.Cache, Version: c.Version, Command: c.Command, Progress: c.Progress}
}

// build makes what the steps of a build need, of a command line that is not ours.
func (c CommandLine) build(ctx context.Context) (*build, error) {
	j := c.job()
	if err := j.findCache(); err != nil {
		return nil, err
	}
	kit, err := j.toolkit(ctx)
	if err != nil {
		return nil, err
	}
	line := atc.Effective(c.Args, atc.Environment{})
	b := &build{job: j, toolkit: kit, model: line.Value("model"), target: line.Value("output")}
	b.chip.Name = line.Value("soc_version")
	for _, s := range line.Settings {
		b.list = append(b.list, argument{s.Flag.Name, s.Value})
	}
	b.result.Arguments, b.result.Emulated = c.Args, kit.Emulated
	return b, nil
}

func (c CommandLine) run(ctx context.Context, b *build, r *CommandLineResult) (err error) {
	logs, err := b.logFolder()
	if err != nil {
		return err
	}
	if b.sharesWeights() {
		folders := missingFolders([]*build{b}) // the lock needs them
		unlock, err := b.lockWeights(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		defer removeEmpty(folders)
	}
	before, err := b.setAside()
	if err != nil {
		return err
	}
	isDone := false
	defer func() { // also of a panic
		if !isDone {
			err = errors.Join(err, before.restore())
		}
	}()
	b.result.LogFolder = logs
	outcome, err := atc.Run{
		Toolkit: b.toolkit, Args: c.Args, LogFolder: logs, Timeout: c.Timeout, Echo: c.Echo,
		Progress: func(elapsed time.Duration) { b.job.say("%s", progressText(b.toolkit, elapsed, 0)) },
	}.Do(ctx)
	b.result.ATCSeconds = outcome.Elapsed.Seconds()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, atc.ErrTimeout):
		return fault.New(fault.Program, "atc ran for more than %s and was stopped", c.Timeout).With("its log lies in %s", logs)
	case err != nil:
		return fault.New(fault.Missing, "%w", err)
	}
	r.ExitCode = outcome.ExitCode
	log := atc.ReadLog(outcome.Stdout + "\n" + outcome.Stderr)
	if outcome.ExitCode != 0 || log.Failed || b.makesModel() && !log.Succeeded {
		return c.explain(b, r, outcome, log)
	}
	if b.makesModel() {
		made, err := b.verifyCommandLine(before)
		if err != nil {
			b.keepOutput(outcome)
			r.Diagnoses = append(r.Diagnoses, b.result.Diagnoses...)
			return err
		}
		b.result.Output = made
	}
	isDone = true
	before.drop()
	return c.record(b, r)
}

// explain diagnoses a run that failed.
func (c CommandLine) explain(b *build, r *CommandLineResult, outcome atc.Outcome, log atc.Log) error {
	process := atc.ReadProcessLogs(b.result.LogFolder)
	facts := atc.Facts{Gears: gearsOf(b.list), SoC: b.chip.Name, Signal: outcome.Signal, ExitCode: outcome.ExitCode, Ended: true}
	if m, err := modelfile.Open(b.model); err == nil {
		facts.Opset = int64(m.Opset(""))
		m.Close()
	}
	r.Diagnoses, r.LogLines = atc.Diagnose(log, process, facts), append([]string{}, linesThatMatter(process)...)
	b.keepOutput(outcome)
	first := r.Diagnoses[0]
	return fault.New(fault.Program, "atc failed: %s", first.Message).With("%s; the whole log lies in %s", first.Remedy, b.result.LogFolder)
}

// gearsOf lists the gears of a command line.
func gearsOf(list arguments) []string {
	for _, a := range list {
		switch a.name {
		case atc.BatchGears.Flag():
			return strings.Split(a.value, ",")
		case atc.ImageGears.Flag(), atc.DimsGears.Flag():
			return strings.Split(a.value, ";")
		}
	}
	return nil
}

// record writes the build record of an .om that the command line made.
func (c CommandLine) record(b *build, r *CommandLineResult) error {
	made := b.result.Output
	if made == "" {
		return nil // modes that make no .om
	}
	r.Output, r.Record, r.Emulated = made, made+".json", b.result.Emulated
	var err error
	if b.input, err = allFacts([]string{b.model}); err != nil {
		return fault.New(fault.Input, "%w", err)
	}
	sum := sha256.Sum256([]byte(strings.Join(c.Args, "\x00")))
	b.key = "atc:" + hex.EncodeToString(sum[:]) // of no build of `npuctl compile`
	r.Notes = append(r.Notes, b.result.Notes...)
	return atomicfile.Write(r.Record, func(f *os.File) error {
		data, err := b.recordText([]move{{made, made}})
		if err == nil {
			_, err = f.Write(data)
		}
		return err
	})
}
