package pipeline

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
)

// check lays the models out in a folder apart and holds them against the rules of
// npuctl validate. What the server would refuse is a failure; the rest is told.
func check(o Options, stage string, parts []*part) ([]findings.Finding, error) {
	repository := filepath.Join(stage, "repository")
	for _, p := range parts {
		if err := layOut(o, repository, p); err != nil {
			return nil, fault.New(fault.Missing, "lay the models out to check them: %w", err)
		}
	}
	result, err := rules.Check([]string{repository}, rules.Options{})
	if err != nil {
		return nil, err
	}
	all := []findings.Finding{}
	for _, f := range result.Findings {
		if f.Severity == findings.Error || f.Refuses {
			return nil, fault.New(fault.Input, "what it makes would not do: in %s, %s (%s)", inRepository(o, f.File, repository), f.Message, f.Rule).With("%s", f.Fix)
		}
		f.File = inRepository(o, f.File, repository)
		all = append(all, f)
	}
	return all, nil
}

// inRepository is where a file that is looked at apart will stand.
func inRepository(o Options, file, apart string) string {
	if rest, ok := strings.CutPrefix(file, apart); ok {
		return filepath.Clean(o.Repository + rest)
	}
	return file
}

// layOut writes one model into a repository for checking.
func layOut(o Options, repository string, p *part) error {
	folder := filepath.Join(repository, p.config.Name)
	if p.text == nil { // it is there: look at it where it is
		if err := os.MkdirAll(repository, 0o755); err != nil {
			return err
		}
		return os.Symlink(absolute(filepath.Join(o.Repository, p.config.Name)), folder)
	}
	for _, f := range append(p.files, file{path: configFile, data: p.text}) {
		path := filepath.Join(folder, filepath.FromSlash(f.path))
		if strings.HasSuffix(f.path, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := f.layOut(path); err != nil {
			return err
		}
	}
	return nil
}

// layOut writes a file of bytes; a copy is a link here.
func (f file) layOut(path string) error {
	if f.from == "" {
		return os.WriteFile(path, f.data, 0o644)
	}
	if err := os.Link(f.from, path); err == nil {
		return nil
	}
	return os.Symlink(absolute(f.from), path)
}
