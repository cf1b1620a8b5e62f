package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

func newInitCommand(a *app) *cobra.Command {
	chip := ""
	cmd := &cobra.Command{
		Use:   "init [MODEL.onnx]",
		Short: "Write a first npuctl.yaml for a model",
		Long: "Writes npuctl.yaml into this folder: the model, its inputs and open dims, and everything\n" +
			"else that the file can say, as comments. A file that is there stays as it is.",
		Example:           "  npuctl init model.onnx --soc Ascend910B3",
		ValidArgsFunction: completeModel,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fault.New(fault.Usage, "npuctl init takes one model, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			model := ""
			if len(args) > 0 {
				model = args[0]
			}
			path, err := compilation.WriteProject(".", model, chip)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(map[string]string{"file": path})
			case a.quiet:
				return nil
			}
			then := "npuctl compile reads it"
			if chip == "" {
				then = "set soc in it (or give --soc), and npuctl compile reads it"
			}
			_, err = fmt.Fprintf(a.out, "%s is written; %s\n", terminal.Clean(path), then)
			return err
		},
	}
	cmd.Flags().StringVar(&chip, "soc", "", "`chip` to compile for")
	return cmd
}
