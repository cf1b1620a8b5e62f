package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/doctor"
	"github.com/npuctl/npuctl/internal/terminal"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine has: engines, CANN, devices",
		Long: "Looks for everything that npuctl can use, and says what each is needed for and how\n" +
			"to get what is missing. All of it is optional, so the exit code is 0 whatever there is.",
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			r := doctor.Examine(versionText())
			switch {
			case a.json:
				return a.printJSON(r)
			case a.quiet:
				return nil
			}
			a.printMachine(r)
			return nil
		},
	}
}

func (a *app) printMachine(r doctor.Report) {
	p := a.palette()
	cgo := "with cgo"
	if !r.CGo {
		cgo = "without cgo"
	}
	fmt.Fprintf(a.out, "npuctl %s (%s, %s/%s, %s)\n", r.Version, r.Go, r.OS, r.Arch, cgo)
	w := labelled{a.out, p}
	model := ""
	if r.CPU.Model != "" {
		model = ", " + terminal.Clean(r.CPU.Model)
	}
	w.line("processor", "%d cores%s", r.CPU.Cores, model)
	w.line("", "%s", strings.Join(r.CPU.Features, " "))
	if r.MemoryBytes > 0 {
		w.line("memory", "%s", terminal.Bytes(r.MemoryBytes))
	}
	looked := map[string]string{} // which component told of these places first
	for _, c := range r.Components {
		fmt.Fprintln(a.out)
		places := strings.Join(c.Looked, "\n")
		if first := looked[places]; first != "" {
			c.Looked = []string{"the places of " + first}
		} else if len(c.Looked) > 1 {
			looked[places] = c.Name
		}
		printComponent(a, p, c)
	}
}

func printComponent(a *app, p terminal.Palette, c doctor.Component) {
	state := p.Warn("not here")
	switch {
	case c.Found && c.Version != "":
		state = p.Good(terminal.Clean(c.Version))
	case c.Found:
		state = p.Good("here")
	case c.Path != "":
		state = p.Warn("cannot be used")
	}
	fmt.Fprintf(a.out, "%s: %s\n", p.Bold(c.Name), state)
	w := labelled{a.out, p}
	for _, line := range []struct{ label, text string }{
		{"  path", c.Path}, {"  detail", c.Detail}, {"  for", c.NeededFor}, {"  remedy", c.Remedy},
	} {
		if line.text != "" {
			w.line(line.label, "%s", terminal.Clean(line.text))
		}
	}
	w.list("  looked at", c.Looked)
}
