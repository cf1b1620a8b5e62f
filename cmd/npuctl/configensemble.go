package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/internal/terminal"
)

// pipelineFlags are the flags of `npuctl config ensemble`, and some of `config python`.
type pipelineFlags struct {
	pipeline.Options
}

func newConfigEnsembleCommand(a *app) *cobra.Command {
	f := &pipelineFlags{}
	cmd := &cobra.Command{
		Use:   "ensemble PIPELINE.yaml [-o REPOSITORY]",
		Short: "Make a pipeline around a model: pictures in, answers out",
		Long: "Reads a short file and writes the models of a pipeline: one that makes tensors of\n" +
			"pictures (PNG, JPEG), the model, one that makes a feature vector, the best classes or\n" +
			"boxes of what it gives, and the ensemble that joins them. Clients then send files and\n" +
			"get answers of a few hundred bytes. The models before and behind are Python as it\n" +
			"stands; what differs is set in their config.pbtxt.\n\n" +
			"Types, shapes and batches are checked before anything is written, and all of it\n" +
			"passes npuctl validate. What is there and says something else is replaced only with\n" +
			"--force.",
		Example: "  npuctl config ensemble clip.yaml -o models\n" +
			"  npuctl config ensemble detector.yaml -o models --environment /opt/vision\n" +
			"  npuctl config ensemble clip.yaml -o models --diff",
		Args:              takes("PIPELINE.yaml"),
		ValidArgsFunction: completePipeline,
		RunE: func(cmd *cobra.Command, args []string) error {
			say, stop := a.progress()
			say("reading " + filepath.Base(args[0]))
			r, err := pipeline.EnsembleJob{Pipeline: args[0], Options: f.Options}.Run(cmd.Context())
			stop()
			return a.pipelineMade(r, err, f.Preview)
		},
	}
	f.add(cmd)
	return cmd
}

func completePipeline(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func (f *pipelineFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.Repository, "output", "o", "repository", "`folder` of the repository")
	flags.StringVar(&f.Environment, "environment", "", "virtual environment, or archive of conda-pack, with the packages of the Python models: a `path` on the server (default the server's Python)")
	flags.BoolVar(&f.Preview, "diff", false, "print how files would change, and write nothing")
	flags.BoolVar(&f.Force, "force", false, "replace files that differ")
}

// pipelineMade tells what was made, in the form that was asked for.
func (a *app) pipelineMade(r *pipeline.Result, err error, preview bool) error {
	switch {
	case err != nil && r != nil:
		return &detailed{err, r}
	case err != nil:
		return err
	case a.json:
		return a.printJSON(r)
	case preview:
		a.printDiff(r.Diff)
		return nil
	case a.quiet:
		return nil
	}
	return a.printPipeline(r)
}

func (a *app) printPipeline(r *pipeline.Result) error {
	w := labelled{a.out, a.palette()}
	fmt.Fprintf(a.out, "%s: max_batch_size %d\n", w.p.Bold(terminal.Clean(r.Name)), r.MaxBatchSize)
	if err := a.printTensors(r.Inputs, r.Outputs); err != nil {
		return err
	}
	for _, m := range r.Models {
		w.line(m.Role, "%s (%s)", terminal.Clean(filepath.Dir(m.Config)), m.Backend)
	}
	if len(r.Packages) > 0 {
		w.line("python", "needs numpy, %s", strings.Join(r.Packages, ", "))
	}
	w.list("note", cleaned(r.Notes))
	w.found(r.Findings)
	if !r.Written {
		w.line("unchanged", "all of it was there already")
	}
	return nil
}
