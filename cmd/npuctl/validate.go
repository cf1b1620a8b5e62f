package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/internal/validation"
	"github.com/npuctl/npuctl/soc"
)

// validateFlags are what the command line says.
type validateFlags struct {
	failOn, format, output string
	baseline               string
	updateBaseline, fix    bool
	lang, soc              string
	listRules              bool

	load        bool
	server      string
	loadTimeout time.Duration

	numerics   bool
	original   string
	inputs     []string
	samples    int
	seed       uint64
	tolerances []string
	engine     string
	library    string
	sizes      sizeFlags
}

// validateFormats are the forms of output.
var validateFormats = []string{"table", "json", "sarif", "junit", "github"}

func newValidateCommand(a *app) *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Check a Triton model repository before it is deployed",
		Long: "Says what a Triton server with the Ascend GE backend would refuse, and what it would\n" +
			"take and then suffer from: each finding with its place, what happens at run time and\n" +
			"how to repair it. PATH is a repository, a model's folder, a config.pbtxt, an .onnx, an\n" +
			".om or an npuctl.yaml, of which everything it names is checked; without PATH, the\n" +
			"npuctl.yaml here. A config file that stands alone is judged in a repository made up\n" +
			"around it.\n\n" +
			"--load asks a real Triton server, too: one on the PATH, of the package nvidia-pytriton,\n" +
			"or in an image that docker or podman has. It runs on the loopback address alone, and\n" +
			"nothing of it stays. Where it has no npu_ge, a stand-in takes any model.\n\n" +
			"--check-numerics runs the model and the one it was made from on the same inputs.\n\n" +
			"A comment lets a rule pass: # npuctl:ignore RULE reason. It covers its own line and\n" +
			"the next; above everything else in a file, it covers the file.",
		Example: "  npuctl validate models\n  npuctl validate models --fix\n  npuctl validate models --load\n" +
			"  npuctl validate models --format sarif --output findings.sarif\n" +
			"  npuctl validate model.opt.onnx --check-numerics --tolerance float16=1e-2",
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.failOn, "fail-on", "error", "exit with 4 from this `severity` on: error, warning, note, none")
	flags.StringVar(&f.format, "format", "table", "`form` of the output: table, json, sarif, junit, github")
	flags.StringVarP(&f.output, "output", "o", "", "write the output to a `file`")
	flags.BoolVar(&f.fix, "fix", false, "repair what takes no decision, in place")
	flags.StringVar(&f.soc, "soc", "", "hold models against this `chip`: Ascend910B3")
	flags.StringVar(&f.baseline, "baseline", "", "leave out the findings that this `file` knows")
	flags.BoolVar(&f.updateBaseline, "update-baseline", false, "write the findings to the baseline")
	flags.StringVar(&f.lang, "lang", "", "`language` of the texts: en, zh (default: that of LANG)")
	flags.BoolVar(&f.listRules, "list-rules", false, "list all rules, and check nothing")
	flags.BoolVar(&f.load, "load", false, "load the models into a real Triton server, too")
	flags.StringVar(&f.server, "server", "", "the `server` of --load: path of a tritonserver or of a python with nvidia-pytriton, docker:IMAGE, podman:IMAGE")
	flags.DurationVar(&f.loadTimeout, "load-timeout", 0, "how long one model may load: a `time` such as 5m (default 1m)")
	flags.BoolVar(&f.numerics, "check-numerics", false, "compare a model with the one it was made from, on the same inputs")
	flags.StringVar(&f.original, "original", "", "`file` that the model was made from (default by its build record or name; else what optimize makes of it is compared)")
	flags.StringArrayVar(&f.inputs, "inputs", nil, "`file` or folder of inputs for --check-numerics; repeatable (default random)")
	flags.IntVar(&f.samples, "samples", 5, "how many random sets of inputs (`N`)")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of random inputs")
	flags.StringArrayVar(&f.tolerances, "tolerance", nil, "how far floats may be off: `1e-3`, or RELATIVE,ABSOLUTE; TYPE= or OUTPUT= before it; repeatable (default by type)")
	f.sizes.add(flags)
	flags.StringVar(&f.engine, "engine", "", "`name` of the engine for --check-numerics: ref, ort (default ort where it is)")
	flags.StringVar(&f.library, "ort-lib", "", "ONNX Runtime `library` for --engine ort")
	completeWords(cmd, "engine", engine.GraphEngines()...)
	completeWords(cmd, "fail-on", "error", "warning", "note", "none")
	completeWords(cmd, "format", validateFormats...)
	completeWords(cmd, "lang", "en", "zh")
	return cmd
}

// validationPlan is what the flags mean.
type validationPlan struct {
	job    validation.Job
	failOn findings.Severity
	format string
}

func (a *app) validationPlan(f *validateFlags, paths []string) (v validationPlan, err error) {
	if v.failOn, err = findings.ParseSeverity(f.failOn); err != nil {
		return v, fault.New(fault.Usage, "--fail-on: %w", err)
	}
	v.format = f.format
	if a.json {
		v.format = "json"
	}
	if !slices.Contains(validateFormats, v.format) {
		return v, fault.New(fault.Usage, "--format %s: there are %s", f.format, strings.Join(validateFormats, ", "))
	}
	v.job = validation.Job{Paths: paths, Load: f.load, Server: f.server, LoadTimeout: f.loadTimeout}
	if v.job.Language, err = languageOf(f.lang); err != nil {
		return v, err
	}
	if f.soc != "" {
		chip, err := soc.Lookup(f.soc)
		if err != nil {
			return v, fault.New(fault.Usage, "--soc: %w", err)
		}
		v.job.Chip = &chip
	}
	if v.job.Numerics, err = f.checkNumerics(); err != nil {
		return v, err
	}
	return v, f.contradiction()
}

// contradiction refuses flags that make no sense by themselves.
func (f *validateFlags) contradiction() error {
	isNumeric := f.original != "" || len(f.inputs) > 0 || len(f.tolerances) > 0 || f.engine != "" || f.library != "" || f.sizes.isSet()
	switch {
	case f.updateBaseline && f.baseline == "":
		return fault.New(fault.Usage, "--update-baseline needs --baseline FILE")
	case f.server != "" && !f.load:
		return fault.New(fault.Usage, "--server %s does nothing without --load", f.server)
	case f.loadTimeout < 0:
		return fault.New(fault.Usage, "--load-timeout %s: a time is not negative", f.loadTimeout)
	case isNumeric && !f.numerics:
		return fault.New(fault.Usage, "--original, --inputs, --tolerance, --engine, --ort-lib and sizes are for --check-numerics")
	case f.samples < 1:
		return fault.New(fault.Usage, "--samples %d: give a number from 1 up", f.samples)
	}
	return nil
}

// checkNumerics gives what to compare; nil when nothing.
func (f *validateFlags) checkNumerics() (*validation.Numerics, error) {
	if !f.numerics {
		return nil, nil
	}
	n := &validation.Numerics{Original: f.original, Inputs: f.inputs, Samples: f.samples, Seed: f.seed, Engine: f.engine, Library: f.library}
	var err error
	if n.Tolerances, err = validation.ParseTolerances(f.tolerances); err != nil {
		return nil, err
	}
	n.Sizes, err = f.sizes.specialization()
	return n, err
}

// languageOf gives the language that a flag or the environment asks for.
func languageOf(flag string) (rules.Language, error) {
	switch flag {
	case "en":
		return rules.English, nil
	case "zh":
		return rules.Chinese, nil
	case "":
		return rules.LanguageOf(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))), nil
	}
	return 0, fault.New(fault.Usage, "--lang %s: there are en and zh", flag)
}

func (a *app) validate(cmd *cobra.Command, f *validateFlags, paths []string) error {
	v, err := a.validationPlan(f, paths)
	if err != nil {
		return err
	}
	if f.listRules {
		return a.listRules(v)
	}
	if err := v.settlePaths(cmd); err != nil {
		return err
	}
	if f.fix {
		if err := a.fixFindings(cmd, v.job); err != nil {
			return err
		}
	}
	var stop func()
	v.job.Progress, stop = a.progress()
	result, err := v.job.Run(cmd.Context())
	stop()
	if err != nil {
		return err
	}
	found, err := applyBaseline(f, result.Findings)
	if err != nil {
		return err
	}
	r := validationReport{
		Report: findings.Report{Findings: found, Rules: describeRules(v.job.Language), Checked: result.Checked},
		result: result, plan: v,
	}
	if err := a.printValidation(f, r); err != nil {
		return err
	}
	if !r.Reaches(v.failOn) {
		return nil
	}
	failure := fault.New(fault.Goal, "%s", countText(r.Report, rules.English))
	if v.format == "json" && f.output == "" {
		return &detailed{failure, r.document()}
	}
	return failure
}

// settlePaths takes the project file of the working directory where no path is given,
// and its chip where no chip is.
func (v *validationPlan) settlePaths(cmd *cobra.Command) error {
	if len(v.job.Paths) > 0 {
		// One that does not read is no matter of other paths: naming it tells what is wrong.
		v.job.Project, _ = project.Find(".")
		return nil
	}
	if _, err := os.Stat(project.FileName); err != nil {
		return fault.New(fault.Usage, "%s takes PATH..., and there is no %s here", cmd.CommandPath(), project.FileName).With("see %s --help", cmd.CommandPath())
	}
	v.job.Paths = []string{project.FileName}
	return nil
}

// rounds bounds how often files are fixed and checked again.
const rounds = 5

// fixFindings repairs until nothing more can be repaired.
func (a *app) fixFindings(cmd *cobra.Command, job validation.Job) error {
	job.Load, job.Numerics = false, nil
	fixed := map[string]bool{}
	for range rounds {
		result, err := job.Run(cmd.Context())
		if err != nil {
			return err
		}
		changed, err := findings.Fix(result.Findings)
		if err != nil {
			return fault.New(fault.Input, "fix: %w", err)
		}
		for _, path := range changed {
			fixed[path] = true
		}
		if len(changed) == 0 {
			break
		}
	}
	if !a.quiet {
		for _, path := range slices.Sorted(maps.Keys(fixed)) {
			fmt.Fprintf(a.err, "npuctl: fixed %s\n", terminal.Clean(path))
		}
	}
	return nil
}

// applyBaseline leaves out what the baseline knows, or writes it anew.
func applyBaseline(f *validateFlags, all []findings.Finding) ([]findings.Finding, error) {
	switch {
	case f.baseline == "":
		return all, nil
	case f.updateBaseline:
		if err := findings.WriteBaseline(f.baseline, all); err != nil {
			return nil, fault.New(fault.Missing, "write the baseline: %w", err)
		}
		return nil, nil
	}
	b, err := findings.ReadBaseline(f.baseline)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err).With("--update-baseline makes one")
	}
	return b.Apply(all, f.baseline), nil
}

// describeRules gives the table for outputs that list rules.
func describeRules(l rules.Language) []findings.Rule {
	var out []findings.Rule
	for _, r := range rules.Rules() {
		out = append(out, findings.Rule{ID: r.ID, Title: r.Title.In(l), Effect: r.Effect.In(l), Fix: r.Fix.In(l), Severity: r.Severity})
	}
	return out
}

// listRules prints the table of rules.
func (a *app) listRules(v validationPlan) error {
	list := describeRules(v.job.Language)
	if v.format == "json" {
		return a.printJSON(map[string]any{"rules": ruleRows(list)})
	}
	t := terminal.Table{Header: []string{"rule", "", "about"}}
	for _, r := range list {
		t.Rows = append(t.Rows, []string{r.ID, r.Severity.String(), r.Title})
	}
	return t.Write(a.out)
}

// ruleRow is a rule as --list-rules --json prints it.
type ruleRow struct {
	ID       string            `json:"id"`
	Severity findings.Severity `json:"severity"`
	Title    string            `json:"title"`
	Effect   string            `json:"effect"`
	Fix      string            `json:"fix"`
}

func ruleRows(list []findings.Rule) []ruleRow {
	out := make([]ruleRow, len(list))
	for i, r := range list {
		out[i] = ruleRow{r.ID, r.Severity, r.Title, r.Effect, r.Fix}
	}
	return out
}
