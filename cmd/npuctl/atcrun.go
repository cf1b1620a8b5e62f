package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

// addATCRunFlags adds the flags of `npuctl atc` that concern the run.
func addATCRunFlags(cmd *cobra.Command) {
	cmd.Flags().String("cann", "", "`folder` of the CANN toolkit, local or emulator: as npuctl compile has it")
	cmd.Flags().Duration("timeout", 0, "stop atc after this `time`, such as 30m (default never)")
}

// runATC runs an atc command line of the user's.
func (a *app) runATC(cmd *cobra.Command, args []string) error {
	line := compilation.CommandLine{
		Args: args, CANN: cmd.Flag("cann").Value.String(),
		Version: versionText(), Command: append([]string{"npuctl"}, a.args...),
	}
	var err error
	if line.Timeout, err = cmd.Flags().GetDuration("timeout"); err != nil {
		return fault.New(fault.Internal, "%w", err)
	}
	if err := timeLimit(line.Timeout).check(cmd.Flags()); err != nil {
		return err
	}
	if !a.json && !a.quiet {
		line.Echo = terminal.Cleaned(a.stdout) // as it comes, not when we end
		line.Found = a.announceATC
	}
	say, stop := a.progress()
	line.Progress, line.Emulator = say, emulatorFolder(say)
	result, err := line.Run(cmd.Context())
	stop()
	switch {
	case err != nil && result != nil:
		if !a.json {
			a.printDiagnoses(result.Diagnoses, result.LogLines)
		}
		return &detailed{err, result}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(result)
	case a.quiet:
		return nil
	}
	a.printATCRun(result)
	return nil
}

// announceATC says before a run that it is none of CANN's.
func (a *app) announceATC(kit atc.Toolkit) {
	if kit.Emulated {
		w := labelled{a.out, a.palette()}
		w.line("emulated", "%s", w.p.Warn("npuctl's emulator compiles, not CANN: the result runs on no NPU"))
		_ = a.out.Flush() // before what atc prints; a failure shows when the rest is written
	}
}

func (a *app) printATCRun(r *compilation.CommandLineResult) {
	w := labelled{a.out, a.palette()}
	if r.Output != "" {
		w.line("made", "%s%s", w.p.Bold(terminal.Clean(r.Output)), emulatedMark(r.Emulated))
	}
	w.list("note", r.Notes)
	if r.Record != "" {
		w.line("record", "%s", terminal.Clean(r.Record))
	}
	w.line("time", "%s", fmt.Sprintf("%s%s", seconds(r.Seconds), emulatedMark(r.Emulated)))
}

// emulatedMark stands behind every figure that comes from the emulator.
func emulatedMark(isEmulated bool) string {
	if isEmulated {
		return " (emulated)"
	}
	return ""
}
