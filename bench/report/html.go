package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
)

//go:embed page.html
var pageText string

// page is what the template fills in.
type page struct {
	*Report
	Title  string
	Curve  *chart
	Search *chart
	Parts  []part
}

// part is one level on the page.
type part struct {
	*measure.Level
	IsMain   bool
	Verdicts []string
	Doubts   []string
	Charts   []*chart
}

// WriteHTML writes one file that holds all it needs.
func (r *Report) WriteHTML(w io.Writer) error {
	functions := template.FuncMap{"number": number, "percent": percent, "stages": func() []string { return load.StageNames[:] }, "figures": figureNames,
		"value": func(f measure.Figures, name string) string { v, _ := f.Value(name); return number(v) },
		"interval": func(f measure.Figures, name string) string {
			if i, known := f.Intervals[name]; known {
				return fmt.Sprintf("95 %% between %s and %s ms", number(i[0]), number(i[1]))
			}
			return ""
		},
		"few":  func(f measure.Figures, name string) bool { return slices.Contains(f.TooFew, name) },
		"join": strings.Join, "add": func(a, b float64) float64 { return a + b }, "half": func(a, b float64) float64 { return round((a + b) / 2) }}
	parsed, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	if err := parsed.Execute(w, r.page()); err != nil {
		return fmt.Errorf("print the report as a page: %w", err)
	}
	return nil
}

func figureNames() []string {
	return append(append([]string{"mean"}, measure.PercentileNames()...), "max")
}

func (r *Report) page() *page {
	p := &page{Report: r, Title: "npuctl bench"}
	if r.Model != "" {
		p.Title = r.Model + " – npuctl bench"
	}
	if len(r.Levels) > 1 {
		p.Curve = curve(r.Levels)
	}
	if r.Search != nil && len(r.Search.Trials) > 0 {
		p.Search = trials(r.Search)
	}
	for i, l := range r.Levels {
		p.Parts = append(p.Parts, partOf(l, i == r.Main))
	}
	return p
}

func partOf(l *measure.Level, isMain bool) part {
	p := part{Level: l, IsMain: isMain, Verdicts: Verdicts(l)}
	for _, why := range append([]string{l.Invalid, l.OverloadReason, l.Instability}, l.Notes...) {
		if why != "" {
			p.Doubts = append(p.Doubts, why)
		}
	}
	for _, reason := range sortedReasons(l) {
		p.Doubts = append(p.Doubts, fmt.Sprintf("%d failed: %s", l.Reasons[reason], reason))
	}
	if l.OK > 0 {
		p.Charts = append(p.Charts, distribution(l), stages(l))
	}
	p.Charts = append(p.Charts, timelines(l)...)
	if len(l.Batches) > 0 {
		p.Charts = append(p.Charts, batches(l))
	}
	if len(l.Gears) > 0 {
		p.Charts = append(p.Charts, gearUse(l))
	}
	return p
}
