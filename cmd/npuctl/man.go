package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

func newManCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages, one a command",
		Long:    "Writes npuctl.1, npuctl-optimize.1 and so on into a folder, which is made.",
		Example: "  npuctl man /usr/local/share/man/man1",
		Args:    takes("DIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.manual(cmd.Root(), args[0]) },
	}
}

// manual writes the pages and says where they are.
func (a *app) manual(root *cobra.Command, folder string) error {
	if err := writeManual(root, folder); err != nil {
		return err
	}
	pages := pagesOf(root)
	if a.json {
		return a.printJSON(map[string]any{"folder": folder, "pages": pages})
	}
	if !a.quiet {
		fmt.Fprintf(a.out, "%s in %s\n", terminal.Counted(len(pages), "page"), terminal.Clean(folder))
	}
	return nil
}

// pagesOf names the pages of a command and of those below it.
func pagesOf(c *cobra.Command) []string {
	pages := []string{strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			pages = append(pages, pagesOf(below)...)
		}
	}
	return pages
}

func writeManual(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fault.New(fault.Missing, "make the folder of the manual: %w", err)
	}
	header := &doc.GenManHeader{Title: "NPUCTL", Section: "1", Source: "npuctl " + versionText(), Manual: "npuctl manual", Date: buildDate()}
	options := doc.GenManTreeOptions{Header: header, Path: folder, CommandSeparator: "-"}
	if err := doc.GenManTreeFromOpts(root, options); err != nil {
		return fault.New(fault.Missing, "write the manual: %w", err)
	}
	return nil
}

// buildDate is the day of the commit that npuctl was built from, so that the pages
// of one build are always the same; nil, today, when the Go tool did not record it.
func buildDate() *time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key != "vcs.time" {
			continue
		}
		if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
			return &t
		}
	}
	return nil
}
