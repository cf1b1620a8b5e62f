package findings_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/npuctl/npuctl/internal/findings"
)

var report = findings.Report{
	Findings: []findings.Finding{
		{Rule: "io-dim", Severity: findings.Error, File: "repo/a b/config.pbtxt", Line: 3, Column: 7, Message: "dim 0", Effect: "it does not load", Fix: "use 1", Server: "dimension must be >= 1", Refuses: true},
		{Rule: "stray", Severity: findings.Warning, File: "repo/notes", Message: "100%: odd,\nname ]]> \x01"},
		{Rule: "cache", Severity: findings.Note, File: "repo/c/config.pbtxt", Line: 1, Column: 1, Message: "needs a flag", Fix: "set it"},
	},
	Rules: []findings.Rule{
		{ID: "io-dim", Title: "a dim", Effect: "it does not load", Fix: "use 1", Severity: findings.Error},
		{ID: "stray", Title: "a folder", Severity: findings.Warning},
		{ID: "cache", Title: "a cache", Severity: findings.Note},
	},
	Checked: []string{"repo/a b", "repo/clean", "repo/c/config.pbtxt"},
}

func TestSeverities(t *testing.T) {
	for _, word := range []string{"note", "warning", "error", "none"} {
		s, err := findings.ParseSeverity(word)
		if err != nil || s.String() != word {
			t.Errorf("%s: %v, %v", word, s, err)
		}
	}
	if _, err := findings.ParseSeverity("fatal"); err == nil {
		t.Error("fatal is taken")
	}
	none, _ := findings.ParseSeverity("none")
	if !report.Reaches(findings.Error) || report.Reaches(none) || !report.Refused() || report.Count(findings.Warning) != 1 {
		t.Error("the report has one error, one warning, and is refused")
	}
}

// Refused findings stay in the server's order and come first; others go by place.
func TestSort(t *testing.T) {
	all := []findings.Finding{
		{File: "b", Rule: "late", Line: 9, Severity: findings.Note}, {File: "b", Rule: "first", Line: 7, Refuses: true},
		{File: "a", Rule: "other", Line: 1}, {File: "b", Rule: "second", Line: 2, Refuses: true}, {File: "b", Rule: "early", Line: 1},
	}
	findings.Sort(all)
	var got []string
	for _, f := range all {
		got = append(got, f.Rule)
	}
	if strings.Join(got, " ") != "other first second early late" {
		t.Errorf("%v", got)
	}
}

// SARIF validates against the published schema, which the library carries.
func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := findings.WriteSARIF(&b, report, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	log, err := sarif.FromBytes(b.Bytes(), sarif.WithStrictValidation())
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Validate(); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
	results := log.Runs[0].Results
	if len(results) != 3 || len(log.Runs[0].Tool.Driver.Rules) != 3 {
		t.Fatalf("%d results", len(results))
	}
	place := results[0].Locations[0].PhysicalLocation
	if *place.ArtifactLocation.URI != "repo/a%20b/config.pbtxt" || *place.Region.StartLine != 3 || results[0].Level != "error" {
		t.Errorf("%+v", place)
	}
	if results[1].Locations[0].PhysicalLocation.Region != nil {
		t.Error("a finding about a whole file has no region")
	}
}

// JUnit XML keeps to what its schema names: suites, suite, cases, one failure or output
// each, and text that XML can hold.
func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := findings.WriteJUnit(&b, report, findings.Warning); err != nil {
		t.Fatal(err)
	}
	var suites junit.Testsuites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	suite := suites.Suites[0]
	if suites.Tests != 4 || suites.Failures != 2 || len(suite.Testcases) != 4 {
		t.Errorf("%d tests, %d failures, %d cases", suites.Tests, suites.Failures, len(suite.Testcases))
	}
	if suite.Testcases[0].Failure == nil || suite.Testcases[2].Failure != nil || suite.Testcases[2].SystemOut == nil {
		t.Error("errors and warnings fail, notes do not")
	}
	if clean := suite.Testcases[3]; clean.Name != "repo/clean" || clean.Failure != nil {
		t.Errorf("what is clean is a passing case: %+v", clean)
	}
	decoder := xml.NewDecoder(&b)
	allowed := map[string]bool{"testsuites": true, "testsuite": true, "testcase": true, "failure": true, "system-out": true}
	for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
		if start, ok := token.(xml.StartElement); ok && !allowed[start.Name.Local] {
			t.Errorf("element %s", start.Name.Local)
		}
	}
}

// annotation is how GitHub's runner reads a line: command, properties, message.
var annotation = regexp.MustCompile(`^::(\w+) ([^:]*)::(.*)$`)

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	if err := findings.WriteGitHub(&b, report.Findings); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	parts := annotation.FindStringSubmatch(lines[0])
	if parts == nil || parts[1] != "error" || parts[2] != "file=repo/a b/config.pbtxt,line=3,col=7,title=io-dim" {
		t.Errorf("%q", lines[0])
	}
	if want := `::warning file=repo/notes,title=stray::100%25: odd,%0Aname`; !strings.HasPrefix(lines[1], want) {
		t.Errorf("%q", lines[1])
	}
	if !strings.HasPrefix(lines[2], "::notice ") {
		t.Errorf("%q", lines[2])
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := findings.WriteJSON(&b, findings.NewDocument(report.Findings, "refuse")); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Findings []map[string]any
		Verdict  string
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	first := d.Findings[0]
	for _, key := range []string{"rule", "severity", "file", "line", "column", "message", "fix"} {
		if _, ok := first[key]; !ok {
			t.Errorf("no %s", key)
		}
	}
	if first["message"] != "dim 0 (Triton: dimension must be >= 1)" || first["severity"] != "error" || d.Verdict != "refuse" {
		t.Errorf("%v, %s", first, d.Verdict)
	}
	b.Reset()
	if err := findings.WriteJSON(&b, findings.NewDocument(nil, "accept")); err != nil || !strings.Contains(b.String(), `"findings": []`) {
		t.Errorf("%v, %s", err, b.String())
	}
}

// A baseline knows findings by rule, file and message, as often as they were there, and
// wherever it is checked out.
func TestBaseline(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "known.json")
	at := func(line int, message string) findings.Finding {
		return findings.Finding{Rule: "r", File: filepath.Join(folder, "a", "config.pbtxt"), Line: line, Message: message}
	}
	if err := findings.WriteBaseline(path, []findings.Finding{at(1, "x"), at(2, "x"), at(3, "y")}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), filepath.ToSlash(folder)) {
		t.Errorf("%v\n%s", err, data)
	}
	b, err := findings.ReadBaseline(path)
	if err != nil {
		t.Fatal(err)
	}
	left := b.Apply([]findings.Finding{at(10, "x"), at(20, "x"), at(30, "x"), at(3, "z")}, path)
	if len(left) != 2 || left[0].Line != 30 || left[1].Message != "z" {
		t.Errorf("left %+v", left)
	}
	if err := os.WriteFile(path, []byte(`{"version": 7}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := findings.ReadBaseline(path); err == nil {
		t.Error("a baseline of another version is taken")
	}
}

func TestParseSuppression(t *testing.T) {
	for _, test := range []struct {
		comment, rules, reason string
		ok                     bool
	}{
		{" npuctl:ignore io-dim it is so", "io-dim", "it is so", true},
		{"npuctl:ignore a,b  both ", "a b", "both", true},
		{" npuctl:ignore io-dim", "io-dim", "", true},
		{" npuctl:ignore", "", "", true},
		{" npuctl:ignored io-dim x", "", "", false},
		{" see npuctl:ignore io-dim x", "", "", false},
	} {
		s, ok := findings.ParseSuppression(test.comment, 1, false)
		if ok != test.ok || strings.Join(s.Rules, " ") != test.rules || s.Reason != test.reason {
			t.Errorf("%q: %+v, %v", test.comment, s, ok)
		}
	}
}

// Edits that overlap are left for another round.
func TestFix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.pbtxt")
	if err := os.WriteFile(path, []byte("count: 0\nkind: GPU\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	edit := func(start, end int, text string) findings.Finding {
		return findings.Finding{File: path, Edits: []findings.Edit{{Start: start, End: end, Text: text}}}
	}
	changed, err := findings.Fix([]findings.Finding{edit(7, 8, "1"), edit(15, 18, "CPU"), edit(7, 8, "2"), {File: "untouched"}})
	if err != nil || len(changed) != 1 {
		t.Fatalf("%v, %v", changed, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "count: 1\nkind: CPU\n" {
		t.Errorf("%q", data)
	}
}
