package onnxpass_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/npuctl/npuctl/internal/conformance"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// TestConformance optimises ONNX's own test models and holds their results to what
// they must be: as they are, and with the inputs that the test gives made
// constants, so that everything folds that may.
func TestConformance(t *testing.T) {
	cases := conformance.Cases(t)
	for _, bound := range []bool{false, true} {
		t.Run(map[bool]string{false: "as they are", true: "inputs bound"}[bound], func(t *testing.T) {
			var mutex sync.Mutex
			var equal, skipped, unsupported int
			t.Run("all", func(t *testing.T) {
				for _, c := range cases {
					t.Run(c.Name, func(t *testing.T) {
						t.Parallel()
						err := errors.New(c.Skip)
						if c.Skip == "" {
							err = optimiseAndRun(t, c, bound)
						}
						mutex.Lock()
						defer mutex.Unlock()
						switch {
						case c.Skip != "":
							skipped++
							t.Skip(c.Skip)
						case errors.Is(err, eval.ErrUnsupported):
							unsupported++
							t.Skip(err)
						case err != nil:
							t.Error(err)
						default:
							equal++
						}
					})
				}
			})
			t.Logf("%d of %d equal; %d not in the interpreter, %d random, training or faulty", equal, len(cases), unsupported, skipped)
			if equal < len(cases)*98/100 && !testing.Short() {
				t.Errorf("only %d of %d were compared", equal, len(cases))
			}
		})
	}
}

func optimiseAndRun(t *testing.T, c conformance.Case, bound bool) error {
	m, err := c.Open()
	if err != nil {
		return err
	}
	defer m.Close()
	sets, err := c.Sets(m.Graph)
	if err != nil {
		return err
	}
	if bound {
		bindInputs(m, sets[0].Inputs)
		sets = sets[:1]
	}
	report, err := onnxpass.Optimize(t.Context(), m, onnxpass.Options{Verify: true})
	if err != nil {
		return err
	}
	for _, found := range report.Conflicts {
		if !found.Warning {
			return fmt.Errorf("it runs, and is told to contradict itself: %s", found.Message)
		}
	}
	program, err := eval.Prepare(m, eval.Options{Threads: 1, MaxBytes: 1 << 30})
	if err != nil {
		return err
	}
	for _, s := range sets {
		inputs := map[string]eval.Value{}
		for _, v := range m.Graph.Inputs() {
			if given, ok := s.Inputs[v.Name()]; ok {
				inputs[v.Name()] = given
			}
		}
		got, err := program.Run(t.Context(), inputs, nil)
		if err != nil {
			return fmt.Errorf("run the optimised model: %w", err)
		}
		if err := c.Compare(s, got); err != nil {
			return err
		}
	}
	return nil
}

// bindInputs makes constants of those inputs that are tensors.
func bindInputs(m *onnx.Model, inputs map[string]eval.Value) {
	for name, value := range inputs {
		if d, ok := value.(*tensor.Dense); ok {
			m.Graph.StoreAs(m.Graph.Find(name), onnx.NewTensor(d))
		}
	}
}
