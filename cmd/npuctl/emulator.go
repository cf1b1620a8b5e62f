package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/cannemu/atcemu"
	"github.com/npuctl/npuctl/internal/cannemu/interpreter"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

// exitCode is the end of a command that stands in for another program, whose code it
// gives; nothing is reported of it.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func newEmulatorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Compile and run on a machine without CANN: an emulator of it",
		Long: "The CANN emulator is a folder with an atc and a libascendcl.so. It takes the command\n" +
			"lines and calls of the real ones and answers as they do, computing on the CPU. What\n" +
			"comes out of it says that it is emulated, and runs on no NPU.",
		Example: "  eval \"$(npuctl emulator env)\"\n" +
			"  atc --model=model.onnx --framework=5 --output=model --soc_version=Ascend910B3",
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEmulatorBuildCommand(a), newEmulatorEnvCommand(a), newEmulatorATCCommand(a), newEmulatorInterpreterCommand())
	return cmd
}

// builtEmulator is what build and env print with --json.
type builtEmulator struct {
	Folder string `json:"folder"`
	// Built says that it was made by this call, not found.
	Built       bool              `json:"built"`
	Environment map[string]string `json:"environment"` // what the folder adds: PATH and LD_LIBRARY_PATH in front
	*cannemu.Marker
}

func newBuiltEmulator(folder string, m *cannemu.Marker, built bool) builtEmulator {
	return builtEmulator{Folder: folder, Built: built, Environment: cannemu.Variables(folder), Marker: m}
}

func newEmulatorBuildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "build DIR",
		Short: "Build the emulator in a folder",
		Long: "Compiles the emulator's libraries with $CC and $CXX, or gcc and g++, and puts everything\n" +
			"into the folder. With a cross compiler (CC=aarch64-linux-gnu-gcc) the libraries are for\n" +
			"its target.",
		Example: "  npuctl emulator build /opt/cann-emulator",
		Args:    takes("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			say, stop := a.progress()
			say("building the emulator (about 10 s)")
			m, err := cannemu.Build(cmd.Context(), args[0], cannemu.Options{Version: versionText()})
			stop()
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(newBuiltEmulator(args[0], m, true))
			case a.quiet:
				return nil
			}
			w := labelled{a.out, a.palette()}
			w.line("emulator", "%s", terminal.Clean(args[0]))
			w.line("libraries", "%s", strings.Join(m.Libraries, " "))
			if len(m.LeftOut) > 0 {
				w.line("left out", "%s: no C++ compiler; install g++ or set CXX", strings.Join(m.LeftOut, " "))
			}
			w.line("use it", "eval \"$(npuctl emulator env %s)\"", terminal.Clean(cannemu.Quote(args[0])))
			return nil
		},
	}
}

func newEmulatorEnvCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "env [DIR]",
		Short: "Print what a shell needs to use the emulator, and build it first if need be",
		Long: "Prints the lines that put the emulator on the path for programs and libraries, for a\n" +
			"POSIX shell to evaluate. Without DIR the emulator stands in npuctl's cache, and is built\n" +
			"when it is not there; DIR is one that npuctl emulator build has made.",
		Example: "  eval \"$(npuctl emulator env)\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return takes("[DIR]")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			say, stop := a.progress()
			say("looking for the emulator")
			folder := strings.Join(args, "")
			if folder != "" {
				if _, err := cannemu.ReadMarker(folder); err != nil {
					stop()
					return fault.New(fault.Usage, "%s is no emulator of npuctl", folder).With("npuctl emulator build %s makes one", cannemu.Quote(folder))
				}
			}
			root, m, built, err := cannemu.Find(cmd.Context(), folder, cannemu.Options{
				Version: versionText(), Building: func() { say("building the emulator (once, about 10 s)") },
			})
			stop()
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(newBuiltEmulator(root, m, built))
			}
			_, err = a.out.WriteString(cannemu.Exports(root))
			return err
		},
	}
}

// newEmulatorATCCommand is what the emulator's bin/atc calls. Its flags are ATC's.
func newEmulatorATCCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "atc [ARGUMENT]...",
		Short:              "Answer as CANN's atc does",
		Long:               "What the emulator's bin/atc runs: arguments, output and exit codes are those of CANN's atc.",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Straight to the output: whoever watches must see the first line at once.
			code := atcemu.Main(cmd.Context(), args, atcemu.Process{Version: versionText()}, a.stdout, a.err)
			if code == 0 {
				return nil
			}
			return exitCode(code)
		},
	}
}

// newEmulatorInterpreterCommand is what the emulator's libascendcl.so starts where it
// finds no ONNX Runtime.
func newEmulatorInterpreterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "interpreter",
		Short:  "Compute models for the emulated library, over standard input and output",
		Long:   "What the emulator's libascendcl.so starts where it finds no ONNX Runtime. Not for people.",
		Hidden: true,
		Args:   takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := interpreter.Serve(cmd.Context(), os.Stdin, os.Stdout, interpreter.Options{})
			if err != nil && cmd.Context().Err() == nil {
				return fault.New(fault.Input, "emulator interpreter: %w", err)
			}
			return err
		},
	}
}
