package validation

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/internal/tritonserver"
	"github.com/npuctl/npuctl/soc"
)

// Job says what to validate, and how far.
type Job struct {
	// Paths are repositories, models' folders, config files, .onnx, .om and project files.
	Paths    []string
	Language rules.Language
	// Chip is what models are held against; nil takes the one of the project file.
	Chip *soc.Chip
	// Project is the project file of the working directory, or nil: its chip is taken
	// when none is named.
	Project *project.Project

	// Load asks a real server, too. Server names it as [tritonserver.Named] takes it; ""
	// looks for one. LoadTimeout bounds the load of one model; 0 is the package's own.
	Load        bool
	Server      string
	LoadTimeout time.Duration

	// Numerics compares a model with its original; nil does not.
	Numerics *Numerics

	// Progress is told, when set, what the job is at.
	Progress func(text string)
}

// Result is what was found. Findings are in the order of files.
type Result struct {
	rules.Result
	// Server is the server that was asked, when one was.
	Server   string
	Outcomes []tritonserver.Outcome
	Numerics *Comparison
}

// Run does the job. An error says what could not be done; what is wrong with what was
// looked at are findings.
func (j Job) Run(ctx context.Context) (*Result, error) {
	r, err := j.check()
	if err != nil {
		return nil, err
	}
	out := &Result{Result: r}
	if j.Load {
		if err := j.load(ctx, out); err != nil {
			return nil, err
		}
	}
	if j.Numerics != nil {
		if err := j.compare(ctx, out); err != nil {
			return nil, err
		}
	}
	out.settle()
	return out, ctx.Err()
}

// check holds the paths against the rules, without running anything.
func (j Job) check() (rules.Result, error) {
	out := rules.Result{Verdict: rules.Accept}
	chips, err := j.chips()
	if err != nil {
		return out, err
	}
	var plain []string
	for _, path := range j.Paths {
		switch {
		case isProject(path):
			named, err := j.checkProject(path)
			if err != nil {
				return out, err
			}
			out.Findings, out.Checked = append(out.Findings, named.Findings...), append(out.Checked, named.Checked...)
			out.Judged, out.NoChip = out.Judged || named.Judged, out.NoChip || named.NoChip
			continue
		case strings.EqualFold(filepath.Ext(path), ".om"):
			out.Findings = append(out.Findings, j.checkBuild(path)...)
		}
		plain = append(plain, path)
	}
	for _, chip := range chips {
		if len(plain) == 0 {
			break
		}
		r, err := rules.Check(plain, rules.Options{Language: j.Language, Chip: chip})
		if err != nil {
			return out, err
		}
		out.Findings = append(out.Findings, r.Findings...)
		out.Checked = append(out.Checked, r.Checked...)
		out.Judged, out.NoChip = out.Judged || r.Judged, out.NoChip || r.NoChip
	}
	for _, path := range plain {
		for _, folder := range modelFolders(path) {
			out.Findings = append(out.Findings, j.checkVersions(folder)...)
		}
	}
	settled := Result{Result: out}
	settled.settle()
	return settled.Result, nil
}

// chips are those that models are held against; one nil for none in particular.
func (j Job) chips() ([]*soc.Chip, error) {
	switch {
	case j.Chip != nil:
		return []*soc.Chip{j.Chip}, nil
	case j.Project != nil && len(j.Project.SoC) > 0:
		return chipsOf(j.Project)
	}
	return []*soc.Chip{nil}, nil
}

func chipsOf(p *project.Project) (chips []*soc.Chip, err error) {
	for _, name := range p.SoC {
		chip, err := soc.Lookup(name)
		if err != nil {
			return nil, fault.New(fault.Input, "%s: soc: %w", p.Path, err)
		}
		chips = append(chips, &chip)
	}
	if chips == nil {
		chips = []*soc.Chip{nil}
	}
	return chips, nil
}

// isProject says whether a path is a project file: a YAML file that is there.
func isProject(path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	if extension != ".yaml" && extension != ".yml" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// settle brings the findings into order, once each, and says what the server would.
func (r *Result) settle() {
	findings.Sort(r.Findings)
	seen := map[[3]any]bool{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f findings.Finding) bool {
		key := [3]any{f.Rule, f.Place(), f.Message}
		isTwice := seen[key]
		seen[key] = true
		return isTwice
	})
	slices.Sort(r.Checked)
	r.Checked = slices.Compact(r.Checked)
	r.Verdict = rules.Accept
	if slices.ContainsFunc(r.Findings, func(f findings.Finding) bool { return f.Refuses }) {
		r.Verdict = rules.Refuse
	}
}

func (j Job) progress(text string) {
	if j.Progress != nil {
		j.Progress(text)
	}
}
