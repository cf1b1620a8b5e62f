package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/onnx/text"
)

// operatorCase is a model of one node over stored tensors, whose output is y, in
// text form, and what it gives. Running it gives want; folding gives the same, or
// an error that is folds.
type operatorCase struct {
	opset  int
	ml     int // version of ai.onnx.ml to import; 0 for none
	stored string
	node   string
	want   string // an array as it prints, or a part of an error after "error: "
	folds  error
}

func (c operatorCase) source() string {
	imports := fmt.Sprintf("\"\": %d", c.opset)
	if c.ml > 0 {
		imports += fmt.Sprintf(", \"%s\": %d", machineLearning, c.ml)
	}
	return fmt.Sprintf("<ir_version: 10, opset_import: [%s]> g () => (y) <%s> { %s }", imports, c.stored, c.node)
}

func runOperatorCases(t *testing.T, cases []operatorCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s at %d", c.node, c.opset), func(t *testing.T) {
			got, err := runText(t, c.source(), Options{}, nil)
			checkOutcome(t, "running", got, err, c.want)
			got, err = c.fold(t)
			if c.folds == nil {
				checkOutcome(t, "folding", got, err, c.want)
			} else if !errors.Is(err, c.folds) {
				t.Errorf("folding gives %v, %v, want an error that is %v", got, err, c.folds)
			}
		})
	}
}

func (c operatorCase) fold(t *testing.T) (Value, error) {
	n := text.MustParse(t, c.source()).Graph.Nodes()[0]
	inputs := make([]Value, len(n.Inputs()))
	for i, v := range n.Inputs() {
		if v == nil {
			continue
		}
		d, err := v.Constant().Dense()
		if err != nil {
			t.Fatal(err)
		}
		inputs[i] = d
	}
	out, err := Fold(t.Context(), n, inputs, nil, 1<<20)
	if err != nil {
		return nil, err
	}
	for i, v := range n.Outputs() {
		if v != nil && v.Name() == "y" {
			return out[i], nil
		}
	}
	return nil, errors.New("nothing is called y")
}

func checkOutcome(t *testing.T, doing string, got Value, err error, want string) {
	t.Helper()
	if part, isError := strings.CutPrefix(want, "error: "); isError {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s gives %v, %v, want an error that says %q", doing, got, err, part)
		}
		return
	}
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%s gives %v, %v, want %s", doing, got, err, want)
	}
}
