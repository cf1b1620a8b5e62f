// Package conformance reads the test cases that the ONNX project makes for
// implementations: folders with a model, inputs and the outputs they must give.
//
// .ci/fetch-testdata brings them: 1,072 of an older release with Debian, and those
// that the onnx Python package generates. Tests of the interpreter run them as they
// are, tests of the optimiser after optimising. The package also knows which cases
// nobody can be held to, and which results carry the rounding of the code that made
// them.
package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
)

// Case is one test case.
type Case struct {
	// Name is suite and case, as in onnx-1.23.2/test_softmax_axis_0.
	Name string
	// Skip says why no implementation can be held to the case; "" for most.
	Skip string

	folder    string
	tolerance tolerance
}

// Set is one set of inputs with the outputs they must give, by name.
type Set struct {
	Inputs, Outputs map[string]eval.Value
}

// suites are the folders below the test data.
var suites = []string{"debian", "onnx-1.23.2"}

// Cases lists all test cases; every sixteenth with -short, which is meant for slow
// machines. Without the test data the calling test is skipped, loudly.
func Cases(t *testing.T) []Case {
	t.Helper()
	root, err := folder()
	if err == nil {
		_, err = os.Stat(root)
	}
	if err != nil {
		t.Skipf("NOT RUN: no ONNX test data; .ci/fetch-testdata brings it: %v", err)
	}
	var out []Case
	for _, suite := range suites {
		cases, err := readIndex(root, suite)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if !testing.Short() || i%16 == 0 {
				out = append(out, c)
			}
		}
	}
	return out
}

// folder is where .ci/fetch-testdata puts the test data.
func folder() (string, error) {
	if root := os.Getenv("NPUCTL_TESTDATA"); root != "" {
		return root, nil
	}
	if cache := os.Getenv("NPUCTL_CACHE"); cache != "" {
		return filepath.Join(cache, "testdata"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "npuctl", "testdata"), err
}

func readIndex(root, suite string) ([]Case, error) {
	path := filepath.Join(root, suite, "index.tsv")
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cases []Case
	lines := bufio.NewScanner(f)
	lines.Scan() // the header
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) < 4 {
			return nil, fmt.Errorf("%s: line %q has no four fields", path, lines.Text())
		}
		c := Case{Name: suite + "/" + fields[0], folder: filepath.Join(root, suite, fields[0])}
		c.Skip = skipReason(c.Name)
		c.tolerance.rtol, _ = strconv.ParseFloat(fields[2], 64)
		c.tolerance.atol, _ = strconv.ParseFloat(fields[3], 64)
		for _, l := range looseTests {
			if strings.HasPrefix(filepath.Base(c.Name), l.prefix) {
				c.tolerance.atol, c.tolerance.steps = max(c.tolerance.atol, l.loose.atol), l.loose.steps
			}
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s lists no tests", path)
	}
	return cases, nil
}

// Open opens the case's model.
func (c Case) Open() (*onnx.Model, error) { return onnx.Open(filepath.Join(c.folder, "model.onnx")) }

// Sets reads the case's data, for the inputs and outputs of its model.
func (c Case) Sets(g *onnx.Graph) ([]Set, error) {
	folders, err := filepath.Glob(filepath.Join(c.folder, "test_data_set_*"))
	if err != nil || len(folders) == 0 {
		return nil, fmt.Errorf("no data sets in %s: %v", c.folder, err)
	}
	sets := make([]Set, len(folders))
	for i, folder := range folders {
		if sets[i], err = readSet(folder, g); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

func readSet(folder string, g *onnx.Graph) (Set, error) {
	s := Set{map[string]eval.Value{}, map[string]eval.Value{}}
	required := slices.DeleteFunc(slices.Clone(g.Inputs()), func(v *onnx.Value) bool {
		return v.Initializer() != nil && g.Model().IRVersion < 4
	})
	for i, v := range required {
		value, err := readValue(filepath.Join(folder, fmt.Sprintf("input_%d.pb", i)), v.Type)
		if errors.Is(err, os.ErrNotExist) && v.Initializer() != nil {
			continue
		}
		if err != nil {
			return s, err
		}
		s.Inputs[v.Name()] = value
	}
	for i, v := range g.Outputs() {
		value, err := readValue(filepath.Join(folder, fmt.Sprintf("output_%d.pb", i)), v.Type)
		if err != nil {
			return s, err
		}
		s.Outputs[v.Name()] = value
	}
	return s, nil
}

// Compare says what is wrong with results, by output name; nil when nothing is.
func (c Case) Compare(s Set, got map[string]eval.Value) error {
	for name, want := range s.Outputs {
		if err := compareValues(got[name], want, c.tolerance); err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
	}
	return nil
}

func skipReason(path string) string {
	base := filepath.Base(path)
	for _, keep := range notSkipped {
		if strings.HasPrefix(base, keep) {
			return ""
		}
	}
	for _, skip := range skippedTests {
		if strings.HasPrefix(base, skip.prefix) || strings.HasPrefix(path, skip.prefix) {
			return skip.reason
		}
	}
	return ""
}
