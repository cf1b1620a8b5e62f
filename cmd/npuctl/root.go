package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/internal/terminal"
)

// version is set by release builds: -ldflags "-X main.version=…".
var version = ""

// app is what every command shares: where it writes, and the global flags.
type app struct {
	out       *bufio.Writer // to stdout
	stdout    io.Writer
	err       io.Writer
	args      []string
	json      bool
	quiet     bool
	noColor   bool
	isRunning bool // a command has begun, so errors are no longer those of its flags
}

// run executes one command line and gives its exit code, which docs/exit-codes.md documents.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	a := &app{out: bufio.NewWriter(out), stdout: out, err: errOut, args: joinOptional(args)}
	return a.execute(ctx, newRootCommand(a))
}

func (a *app) execute(ctx context.Context, root *cobra.Command) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = a.finish(crash(r))
		}
	}()
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		err = fault.New(fault.Interrupted, "stopped; nothing was left half-written")
	}
	return a.finish(err)
}

// finish reports a failure, brings out what was printed, and gives the exit code.
func (a *app) finish(err error) int {
	var sorted *fault.Error
	if err != nil && !a.isRunning && !errors.As(err, &sorted) {
		err = fault.New(fault.Usage, "%w", err)
	}
	if err != nil {
		a.report(err)
	}
	if flushErr := a.out.Flush(); flushErr != nil && err == nil {
		err = fault.New(fault.Missing, "write standard output: %w", flushErr)
		fmt.Fprintf(a.err, "npuctl: %v\n", err)
	}
	if err == nil {
		return 0
	}
	return int(fault.FamilyOf(err))
}

// newRootCommand builds the command tree.
func newRootCommand(a *app) *cobra.Command {
	wantsVersion := false
	root := &cobra.Command{
		Use:   "npuctl",
		Short: "From an ONNX model to a tuned, checked deployment on an Ascend NPU",
		Long: "npuctl takes a model from the ONNX file a training framework exported to a tuned,\n" +
			"checked and measured deployment on a Huawei Ascend NPU. Every step says what it\n" +
			"did and why.\n\n" +
			"Exit codes: 0 done, 1 fault of npuctl, 2 usage, 3 a file is wrong, 4 a goal was not\n" +
			"reached, 5 something is missing here, 6 a program failed, 130 interrupted.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknownCommand(args[0])
			}
			return nil
		},
		PersistentPreRun: func(*cobra.Command, []string) { a.isRunning = true },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wantsVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(a.flagError)
	root.Flags().BoolVar(&wantsVersion, "version", false, "print the version")
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one JSON object on standard output, and only that")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print nothing but errors")
	flags.BoolVar(&a.noColor, "no-color", false, "no colour, even on a terminal")
	root.AddCommand(newOptimizeCommand(a), newInspectCommand(a), newInferCommand(a), newDoctorCommand(a), newManCommand(a))
	return root
}

// unknownCommand is the failure of a command that there is not.
func (a *app) unknownCommand(name string) error {
	var names []string
	for _, c := range newRootCommand(a).Commands() {
		names = append(names, c.Name())
	}
	return fault.New(fault.Usage, "there is no command %q", name).With("%s", suggest.Text(name, append(names, "help", "completion")))
}

// flagError is the failure of a flag that does not parse. What follows a misspelt
// command is not looked at.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && len(a.args) > 0 && !strings.HasPrefix(a.args[0], "-") {
		return a.unknownCommand(a.args[0])
	}
	f := fault.New(fault.Usage, "%w", err)
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return f.With("see %s --help", cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := suggest.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return f.With("did you mean --%s?", near)
	}
	return f.With("see %s --help", cmd.CommandPath())
}

// optionalNumbers are flags whose number may be left out. Behind a space it would
// be taken for an argument.
var optionalNumbers = []string{"--check"}

// joinOptional writes --check 5 as --check=5.
func joinOptional(args []string) (out []string) {
	for i, arg := range args {
		isNumber := arg != "" && strings.Trim(arg, "0123456789") == ""
		if i > 0 && isNumber && slices.Contains(optionalNumbers, args[i-1]) {
			out[len(out)-1] += "=" + arg
			continue
		}
		out = append(out, arg)
	}
	return out
}

// palette gives the colours for standard output.
func (a *app) palette() terminal.Palette { return a.paletteFor(a.stdout) }

func (a *app) paletteFor(w io.Writer) terminal.Palette {
	if a.noColor {
		return terminal.Palette{}
	}
	return terminal.PaletteFor(w, os.Getenv)
}

// progress begins to tell of long work; stop ends it.
func (a *app) progress() (say func(text string), stop func()) {
	if a.quiet {
		return func(string) {}, func() {}
	}
	p := terminal.StartProgress(a.err)
	return func(text string) { p.Say("%s", text) }, p.Stop
}

// printVersion prints the version of this build.
func (a *app) printVersion() error {
	if a.json {
		return a.printJSON(map[string]string{"version": versionText()})
	}
	_, err := fmt.Fprintf(a.out, "npuctl %s\n", versionText())
	return err
}

// versionText is the version of this build: what the release set, else what the
// Go tool recorded.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return strings.Trim(info.Main.Version, "()")
}

// takes demands as many arguments as there are names for them.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		what := strings.Join(names, " ")
		if what == "" {
			what = "no argument"
		}
		return fault.New(fault.Usage, "%s takes %s, not %d arguments", cmd.CommandPath(), what, len(args)).With("see %s --help", cmd.CommandPath())
	}
}

// completeModel completes the argument of a command that takes one model.
func completeModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"onnx"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeWords completes a flag that takes one of a few words. The flag is there:
// a failure would be a fault of ours, which the tests of completion show.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
