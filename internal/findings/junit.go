package findings

import (
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"
)

// WriteJUnit writes a test report: a case for each finding, which fails when the
// finding is at or above failOn, and a case for each thing that was checked and is
// clean.
func WriteJUnit(w io.Writer, r Report, failOn Severity) error {
	suite := junit.Testsuite{Name: "npuctl validate", Time: "0.000"}
	withFindings := map[string]bool{}
	for _, f := range r.Findings {
		withFindings[f.File] = true
		suite.AddTestcase(junitCase(f, failOn))
	}
	for _, path := range r.Checked {
		isClean := true
		for file := range withFindings {
			isClean = isClean && file != path && !strings.HasPrefix(file, strings.TrimRight(path, "/")+"/")
		}
		if isClean {
			suite.AddTestcase(junit.Testcase{Name: xmlText(path), Classname: "npuctl.validate", Time: "0.000"})
		}
	}
	var suites junit.Testsuites
	suites.AddSuite(suite)
	if _, err := io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"); err != nil {
		return err
	}
	return suites.WriteXML(w)
}

func junitCase(f Finding, failOn Severity) junit.Testcase {
	c := junit.Testcase{Name: xmlText(f.Rule + " " + f.Place()), Classname: "npuctl.validate." + f.Rule, Time: "0.000"}
	text := xmlText(fmt.Sprintf("%s: %s: %s", f.Place(), f.Severity, f.text()))
	if f.Severity >= failOn {
		c.Failure = &junit.Result{Message: xmlText(f.Message), Type: f.Severity.String(), Data: text}
		return c
	}
	c.SystemOut = &junit.Output{Data: text}
	return c
}

// xmlText leaves out what XML cannot hold: control characters, and the end of CDATA.
func xmlText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "]]>", "]] >")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '�'
		}
		return r
	}, s)
}
