package validation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/tritonserver"
)

// ascendBackend is what a server on any other machine lacks.
const ascendBackend = "npu_ge"

// target is a repository to load, with the models in it that are meant.
type target struct {
	repository string
	models     []string
	// config gives the file that a model's findings are about.
	config func(model string) string
}

// load asks a real server what it says to the paths, and adds that as findings.
func (j Job) load(ctx context.Context, r *Result) error {
	temporary, err := os.MkdirTemp("", "npuctl-validate-")
	if err != nil {
		return fault.New(fault.Missing, "make a folder for the server: %w", err)
	}
	defer os.RemoveAll(temporary)
	targets, err := j.targets(temporary)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fault.New(fault.Usage, "--load: no PATH is a repository, a model's folder or a config.pbtxt")
	}
	server, err := j.server(ctx)
	if err != nil {
		return err
	}
	r.Server = server.String()
	options := tritonserver.Options{StandIns: []string{ascendBackend}, LoadPatience: j.LoadTimeout}
	for _, t := range targets {
		outcomes, err := server.LoadEach(ctx, t.repository, t.models, options, func(o tritonserver.Outcome) {
			j.progress("load " + o.Model + ": " + string(o.State))
		})
		if err != nil {
			return err
		}
		r.Outcomes = append(r.Outcomes, outcomes...)
		for _, o := range outcomes {
			r.Findings = append(r.Findings, j.heard(o, t.config(o.Model), r.Findings)...)
		}
		r.Findings = append(r.Findings, j.standIns(t, outcomes)...)
	}
	return nil
}

func (j Job) server(ctx context.Context) (tritonserver.Installation, error) {
	if j.Server != "" {
		return tritonserver.Named(ctx, j.Server)
	}
	return tritonserver.Find(ctx)
}

// targets finds what to load. A config that stands alone gets a repository made up
// around it, the one that the rules judge it in.
func (j Job) targets(temporary string) (out []target, err error) {
	for i, path := range j.Paths {
		if isProject(path) {
			continue
		}
		repository, models, isAlone, err := rules.Models(path)
		if err != nil {
			return nil, fault.New(fault.Input, "%w", err)
		}
		if isAlone {
			folder := filepath.Join(temporary, fmt.Sprintf("%d-%s", i, filepath.Base(path))) // two may have one name
			model, err := rules.LayOut(path, folder)
			if err != nil {
				return nil, fault.New(fault.Input, "%w", err)
			}
			out = append(out, target{folder, []string{model}, func(string) string { return path }})
			continue
		}
		if len(models) > 0 {
			out = append(out, target{repository, models, configIn(path, models)})
		}
	}
	return out, nil
}

// configIn names a model's config as the rules do for the same path.
func configIn(path string, models []string) func(string) string {
	const name = "config.pbtxt"
	return func(model string) string {
		switch {
		case filepath.Base(path) == name && len(models) == 1:
			return path
		case exists(filepath.Join(path, name)):
			return filepath.Join(path, name)
		}
		return filepath.Join(path, model, name)
	}
}

// heard makes findings of what the server did with a model.
func (j Job) heard(o tritonserver.Outcome, config string, known []findings.Finding) []findings.Finding {
	var f findings.Finding
	switch {
	case o.State == tritonserver.Ready:
		return j.disagrees(o, config, known)
	case o.MissingBackend != "":
		f = rules.Find("load-backend", j.Language, config, o.Model, o.MissingBackend)
	case o.State == tritonserver.Refused:
		f = rules.Find("load-refused", j.Language, config, o.Model)
	case o.State == tritonserver.Killed:
		f = rules.Find("load-killed", j.Language, config, o.Model)
	default:
		f = rules.Find("load-hung", j.Language, config, o.Model, o.Took.Round(1e8))
	}
	f.Server, f.Line, f.Column = o.Cause, o.Line, o.Column
	if f.Line == 0 {
		f.Line, f.Column = placeOf(config, o.Cause, known)
	}
	return []findings.Finding{f}
}

// placeOf is where a rule found what the server says.
func placeOf(config, cause string, known []findings.Finding) (line, column int) {
	for _, f := range known {
		isSame := f.Server != "" && cause != "" && (strings.Contains(cause, f.Server) || strings.Contains(f.Server, cause))
		if f.File == config && isSame {
			return f.Line, f.Column
		}
	}
	return 0, 0
}

// disagrees tells of a model that loads and that a rule refuses.
func (j Job) disagrees(o tritonserver.Outcome, config string, known []findings.Finding) []findings.Finding {
	i := slices.IndexFunc(known, func(f findings.Finding) bool { return f.Refuses && f.File == config })
	if i < 0 {
		return nil
	}
	f := rules.Find("load-accepted", j.Language, config, o.Model, known[i].Rule)
	f.Line, f.Column = known[i].Line, known[i].Column
	return []findings.Finding{f}
}

// standIns tells once for each repository which backends were replaced.
func (j Job) standIns(t target, outcomes []tritonserver.Outcome) (out []findings.Finding) {
	var told []string
	for _, o := range outcomes {
		for _, backend := range o.StandIns {
			config := t.config(o.Model)
			if slices.Contains(told, backend) || !names(config, backend) {
				continue
			}
			told = append(told, backend)
			out = append(out, rules.Find("load-stand-in", j.Language, config, backend))
		}
	}
	return out
}

// names says whether a config names a backend.
func names(config, backend string) bool {
	data, err := os.ReadFile(config)
	if err != nil {
		return false
	}
	doc, err := configgen.ParseLenient(config, data)
	return err == nil && doc.Config().Backend == backend
}
