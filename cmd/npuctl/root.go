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
	"strconv"
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
	a := &app{out: bufio.NewWriter(sorted{out}), stdout: out, err: errOut, args: joinOptional(args)}
	return a.execute(ctx, newRootCommand(a))
}

// sorted gives failures of standard output their family, whichever command meets them.
type sorted struct{ io.Writer }

func (w sorted) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		err = fault.New(fault.Missing, "write standard output: %w", err)
	}
	return n, err
}

func (a *app) execute(ctx context.Context, root *cobra.Command) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = a.finish(crash(r))
		}
	}()
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	if ended := exitCode(0); errors.As(err, &ended) {
		return int(ended)
	}
	if err != nil && ctx.Err() != nil {
		stopped := fault.New(fault.Interrupted, "stopped; nothing was left half-written")
		var found *detailed
		if errors.As(err, &found) {
			err = &detailed{stopped, found.details}
		} else {
			err = stopped
		}
	}
	return a.finish(err)
}

// finish reports a failure, brings out what was printed, and gives the exit code.
func (a *app) finish(err error) int {
	var f *fault.Error
	if err != nil && !a.isRunning && !errors.As(err, &f) {
		err = fault.New(fault.Usage, "%w", err)
	}
	if err != nil {
		a.report(err)
	}
	if flushErr := a.out.Flush(); flushErr != nil && err == nil {
		err = flushErr
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
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.isRunning = true
			if slices.Contains(cmd.Flags().Args(), "") && cmd.Name() != "atc" {
				return fault.New(fault.Usage, "an argument of %s is empty", cmd.CommandPath()).With("give a name, or leave it out; see %s --help", cmd.CommandPath())
			}
			return noEmptyFlags(cmd)
		},
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
	root.SetHelpFunc(a.help)
	root.SetHelpCommand(newHelpCommand(a))
	root.Flags().BoolVar(&wantsVersion, "version", false, "print the version")
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one JSON object on standard output, and only that")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print nothing but errors")
	flags.BoolVar(&a.noColor, "no-color", false, "no colour, even on a terminal")
	root.AddCommand(newOptimizeCommand(a), newInspectCommand(a), newInferCommand(a), newCompileCommand(a), newATCCommand(a), newInitCommand(a), newConfigCommand(a), newValidateCommand(a), newSimulateCommand(a), newGearsCommand(a), newBenchCommand(a), newReportCommand(a), newDoctorCommand(a), newEmulatorCommand(a), newManCommand(a))
	root.AddCommand(newVersionCommand(a))
	nameShells(root)
	return root
}

// nameShells adds the completion command, which would take any word for a shell and say
// nothing.
func nameShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		var shells []string
		for _, shell := range c.Commands() {
			shells = append(shells, shell.Name())
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fault.New(fault.Usage, "there is no completion for %q", args[0]).With("%s", suggest.Text(args[0], shells))
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
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
	help := fmt.Sprintf("see %s --help", cmd.CommandPath())
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		broken  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown, help)
	case errors.As(err, &missing):
		return fault.New(fault.Usage, "--%s: %s is missing", missing.GetFlag().Name, wanted(missing.GetFlag())).With("%s", help)
	case errors.As(err, &invalid):
		return fault.New(fault.Usage, "--%s %s: give %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid.GetFlag())).With("%s", help)
	case errors.As(err, &broken):
		return fault.New(fault.Usage, "%s: there is no flag before the =", broken.GetSpecifiedFlag()).With("%s", help)
	}
	return fault.New(fault.Usage, "%w", err).With("%s", help)
}

// unknownFlag is the failure of a flag that the command does not have.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError, help string) error {
	if e.GetSpecifiedShortnames() != "" {
		return fault.New(fault.Usage, "there is no flag -%s", e.GetSpecifiedName()).With("%s", help)
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	near := suggest.Nearest(e.GetSpecifiedName(), names)
	switch {
	case cmd.Name() == "atc" && isATCFlag(e.GetSpecifiedName()):
		help = fmt.Sprintf("the arguments of atc stand behind --: npuctl atc -- --%s=…", e.GetSpecifiedName())
	case near != "":
		help = fmt.Sprintf("did you mean --%s?", near)
	}
	return fault.New(fault.Usage, "there is no flag --%s", e.GetSpecifiedName()).With("%s", help)
}

// wants says what a flag of each of pflag's types takes.
var wants = map[string]string{
	"bool": "true or false, or nothing", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative",
	"duration": "a time with its unit, such as 30m or 90s", "float64": "a number", "string": "a value", "stringArray": "a value", "stringSlice": "a list of names between commas",
}

// wanted says what a flag takes.
func wanted(f *pflag.Flag) string {
	what := wants[f.Value.Type()]
	if what == "" {
		what = "another value"
	}
	return what
}

// noEmptyFlags refuses flags that are given with nothing in them: mostly a variable
// of a script that is not set. None means anything.
func noEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && isEmpty(f.Value) {
			err = fault.New(fault.Usage, "--%s: its value is empty", f.Name).With("give one, or leave the flag out")
		}
	})
	return err
}

func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		given := list.GetSlice()
		return len(given) == 0 || slices.Contains(given, "")
	}
	return v.Type() == "string" && v.String() == ""
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

// help prints what a command is for; with --json as one object.
func (a *app) help(cmd *cobra.Command, _ []string) {
	text := strings.TrimSpace(cmd.Long)
	if text == "" {
		text = strings.TrimSpace(cmd.Short)
	}
	text += "\n\n" + cmd.UsageString()
	if a.json || wantsJSON(a.args) {
		if err := a.printJSON(map[string]string{"help": text}); err != nil {
			fmt.Fprintf(a.err, "npuctl: %v\n", err)
		}
		return
	}
	fmt.Fprint(a.out, text)
}

func newHelpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Say what a command is for, and what its flags are",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return a.unknownCommand(strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if found, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range found.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name())
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version",
		Long:              "Prints the version of this build, as --version does.",
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.printVersion() },
	}
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
			what = "no arguments"
		}
		return fault.New(fault.Usage, "%s takes %s, and was given %s", cmd.CommandPath(), what, given(args)).With("see %s --help", cmd.CommandPath())
	}
}

// given tells the arguments of a command line, as far as a line has room for them.
func given(args []string) string {
	const most = 3
	if len(args) == 0 {
		return "nothing"
	}
	words := make([]string, 0, most)
	for _, arg := range args[:min(len(args), most)] {
		words = append(words, strconv.Quote(arg))
	}
	if len(args) > most {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// completeModel completes the argument of a command that takes one model.
func completeModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"onnx"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeAnyModel completes the argument of a command that takes compiled models as well.
func completeAnyModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"onnx", "om", "om2", "exeom"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeWords completes a flag that takes one of a few words. The flag is there:
// a failure would be a fault of ours, which the tests of completion show.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
