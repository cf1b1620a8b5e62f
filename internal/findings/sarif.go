package findings

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// rulesPage is where rules are explained.
const rulesPage = "https://github.com/npuctl/npuctl/blob/main/docs/rules.md"

// WriteSARIF writes a log of SARIF 2.1.0, as code scanning takes it.
func WriteSARIF(w io.Writer, r Report, version string) error {
	log := sarif.NewReport()
	run := sarif.NewRunWithInformationURI("npuctl", "https://github.com/npuctl/npuctl")
	run.Tool.Driver.WithSemanticVersion(version)
	for _, rule := range r.Rules {
		run.AddRule(rule.ID).
			WithName(rule.ID).
			WithShortDescription(text(rule.Title)).
			WithFullDescription(text(sentence(rule.Title, rule.Effect))).
			WithHelp(text(rule.Fix)).
			WithHelpURI(rulesPage + "#" + rule.ID).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(rule.Severity.String()))
	}
	for _, f := range r.Findings {
		run.AddResult(sarifResult(f, slices.IndexFunc(r.Rules, func(rule Rule) bool { return rule.ID == f.Rule })))
	}
	log.AddRun(run)
	return log.PrettyWrite(w)
}

func text(s string) *sarif.MultiformatMessageString {
	if s == "" {
		s = "-"
	}
	return sarif.NewMultiformatMessageString().WithText(s)
}

func sentence(title, effect string) string {
	if effect == "" {
		return title
	}
	return title + ": " + effect
}

func sarifResult(f Finding, rule int) *sarif.Result {
	place := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewArtifactLocation().WithURI(fileURI(f.File)))
	if f.Line > 0 {
		place.WithRegion(sarif.NewRegion().WithStartLine(f.Line).WithStartColumn(f.Column))
	}
	result := sarif.NewRuleResult(f.Rule).
		WithLevel(f.Severity.String()).
		WithMessage(sarif.NewTextMessage(f.text())).
		AddLocation(sarif.NewLocation().WithPhysicalLocation(place))
	if rule >= 0 {
		result.WithRuleIndex(rule)
	}
	return result
}

// fileURI writes a path as SARIF wants it: relative where it is, with escapes.
func fileURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	return (&url.URL{Path: slashed}).String() // which puts ./ before a first name with a colon
}
