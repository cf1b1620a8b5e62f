package findings

import (
	"fmt"
	"io"
	"strings"
)

// WriteGitHub writes the lines that GitHub's runner makes annotations of.
func WriteGitHub(w io.Writer, all []Finding) error {
	for _, f := range all {
		command := map[Severity]string{Note: "notice", Warning: "warning", Error: "error"}[f.Severity]
		properties := "file=" + githubProperty(f.File)
		if f.Line > 0 {
			properties += fmt.Sprintf(",line=%d,col=%d", f.Line, f.Column)
		}
		properties += ",title=" + githubProperty(f.Rule)
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", command, properties, githubData(f.text())); err != nil {
			return err
		}
	}
	return nil
}

// text is a finding in one line: what, what then, what to do.
func (f Finding) text() string {
	parts := []string{f.Message}
	for _, part := range []string{f.Effect, f.Fix} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if f.Server != "" {
		parts = append(parts, fmt.Sprintf("Triton: %q", f.Server))
	}
	return strings.Join(parts, "; ")
}

// githubData escapes the text of a workflow command.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty escapes a property of a workflow command.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
