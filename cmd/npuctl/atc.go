package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

func newATCCommand(a *app) *cobra.Command {
	isCheck := false
	cmd := &cobra.Command{
		Use:   "atc [--check] -- ARGS...",
		Short: "Run an ATC command line, checked before it runs",
		Long: "Takes an atc command line as it stands in scripts, behind --, and says what is wrong\n" +
			"with it before anything runs: flags, files, names, shapes and gears, with the codes\n" +
			"that ATC would answer with. With --check that is all; the exit code is 0 when it is\n" +
			"accepted and 2 when it is not.\n\n" +
			"Beyond ATC's own codes there are `stderr` (ATC tells it on standard error, without a\n" +
			"code), `limit` and `rule` (the user guide forbids it, ATC lets it pass).",
		Example:           "  npuctl atc --check -- --model=net.onnx --framework=5 --output=net --soc_version=Ascend910B3",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if before := cmd.ArgsLenAtDash(); before != 0 {
				return fault.New(fault.Usage, "the arguments of atc stand behind --").With("write npuctl atc --check -- --model=…")
			}
			if len(args) > 0 && filepath.Base(args[0]) == "atc" {
				return fault.New(fault.Usage, "%s stands behind --: only its arguments belong there", args[0]).With("leave it out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if isCheck {
				return a.checkATC(cmd, args)
			}
			return a.runATC(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&isCheck, "check", false, "say what is wrong, and run nothing")
	addATCRunFlags(cmd)
	return cmd
}

// isATCFlag says whether atc has a flag of this name.
func isATCFlag(name string) bool {
	return slices.ContainsFunc(atc.Flags(), func(f atc.FlagSpec) bool { return f.Name == name })
}

// atcVerdict is how the verdict of `atc --check` looks in --json.
type atcVerdict struct {
	Verdict   string          `json:"verdict"` // accept or refuse
	Diagnoses []atc.Diagnosis `json:"diagnoses"`
}

func (a *app) checkATC(cmd *cobra.Command, args []string) error {
	v, err := atc.Check(cmd.Context(), args, atc.Environment{}, atc.Strict)
	if err != nil {
		return err
	}
	switch {
	case a.json:
		if err := a.printJSON(verdictObject(v)); err != nil {
			return err
		}
	case !a.quiet:
		a.printVerdict(v)
	}
	if v.Accept {
		return nil
	}
	return &told{fault.New(fault.Usage, "ATC refuses the command line")}
}

func verdictObject(v atc.Verdict) atcVerdict {
	o := atcVerdict{Verdict: "accept", Diagnoses: v.Diagnoses}
	if !v.Accept {
		o.Verdict = "refuse"
	}
	if o.Diagnoses == nil {
		o.Diagnoses = []atc.Diagnosis{}
	}
	return o
}

func (a *app) printVerdict(v atc.Verdict) {
	p := a.palette()
	w := labelled{a.out, p}
	for _, d := range v.Diagnoses {
		w.diagnosis(d)
	}
	for _, d := range v.Notes {
		w.diagnosis(d)
	}
	switch {
	case v.Help:
		w.line("accepted", "it asks for help; nothing is compiled")
	case v.Accept:
		w.line("accepted", "flags, files, names, shapes and gears are in order")
	case len(v.Diagnoses) == 1:
		w.line("refused", "for that")
	default:
		w.line("refused", "for %d reasons; ATC would tell of the first only", len(v.Diagnoses))
	}
}

// diagnosis writes what is wrong, its code as the label, and what to do below it.
func (w labelled) diagnosis(d atc.Diagnosis) {
	w.line(d.Code, "%s", terminal.Clean(d.Message))
	if d.Remedy != "" {
		w.line("", "%s", w.p.Faint(terminal.Clean(strings.TrimSpace(d.Remedy))))
	}
}
