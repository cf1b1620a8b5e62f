package findings_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/findings"
)

// junitElement is what the schema that Jenkins publishes for JUnit reports (junit-10.xsd)
// says of an element, as far as it is in use here: which attributes it must and may have,
// and which elements may stand in it. The schema itself is not kept here.
type junitElement struct {
	must, may, children []string
	isText              bool
}

var junitSchema = map[string]junitElement{
	"testsuites": {nil, []string{"name", "time", "tests", "failures", "disabled", "errors"}, []string{"testsuite"}, false},
	"testsuite": {[]string{"name"}, []string{"tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
		[]string{"testsuite", "properties", "testcase", "system-out", "system-err"}, false},
	"testcase": {[]string{"name"}, []string{"time", "classname", "group", "assertions", "file", "line", "status", "class"},
		[]string{"skipped", "error", "failure", "system-out", "system-err", "properties"}, false},
	"failure":    {nil, []string{"type", "message"}, nil, true},
	"system-out": {nil, nil, nil, true},
}

// junitNumbers are attributes that are numbers; the schema calls time a decimal.
var junitNumbers = []string{"tests", "failures", "errors", "disabled", "skipped", "time"}

// A report keeps to the schema: elements and attributes it knows, numbers that are
// numbers, text only where it may stand.
func TestJUnitSchema(t *testing.T) {
	for _, failOn := range []findings.Severity{findings.Note, findings.Warning, findings.Error, findings.Error + 1} {
		var b bytes.Buffer
		if err := findings.WriteJUnit(&b, report, failOn); err != nil {
			t.Fatal(err)
		}
		if err := checkJUnit(b.Bytes()); err != nil {
			t.Errorf("fail on %s: %v\n%s", failOn, err, b.String())
		}
	}
	for _, wrong := range []string{
		`<testsuite name="x"></testsuite>`, `<testsuites><testcase name="x"></testcase></testsuites>`,
		`<testsuites><testsuite></testsuite></testsuites>`, `<testsuites colour="red"></testsuites>`,
		`<testsuites tests="many"></testsuites>`, `<testsuites>text</testsuites>`,
	} {
		if checkJUnit([]byte(wrong)) == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func checkJUnit(data []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	var open []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if err := checkElement(open, token); err != nil {
				return err
			}
			open = append(open, token.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && !junitSchema[open[len(open)-1]].isText && strings.TrimSpace(string(token)) != "" {
				return fmt.Errorf("text in %s", open[len(open)-1])
			}
		}
	}
}

func checkElement(open []string, e xml.StartElement) error {
	name := e.Name.Local
	rule, isKnown := junitSchema[name]
	switch {
	case !isKnown:
		return fmt.Errorf("no element %s", name)
	case len(open) == 0 && name != "testsuites":
		return fmt.Errorf("%s is the root", name)
	case len(open) > 0 && !slices.Contains(junitSchema[open[len(open)-1]].children, name):
		return fmt.Errorf("%s in %s", name, open[len(open)-1])
	}
	var given []string
	for _, a := range e.Attr {
		given = append(given, a.Name.Local)
		if !slices.Contains(slices.Concat(rule.must, rule.may), a.Name.Local) {
			return fmt.Errorf("%s has %s", name, a.Name.Local)
		}
		if _, err := strconv.ParseFloat(a.Value, 64); err != nil && slices.Contains(junitNumbers, a.Name.Local) {
			return fmt.Errorf("%s of %s is %q", a.Name.Local, name, a.Value)
		}
	}
	for _, must := range rule.must {
		if !slices.Contains(given, must) {
			return fmt.Errorf("%s has no %s", name, must)
		}
	}
	return nil
}
