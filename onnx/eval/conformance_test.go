package eval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/conformance"
	"github.com/npuctl/npuctl/onnx/eval"
)

// conformanceFloor is the share of the tests, those skipped apart, that must pass.
const conformanceFloor = 0.98

// TestConformance runs the ONNX backend tests. One of them alone:
//
//	go test ./onnx/eval -run Conformance/all/onnx-1.23.2/test_softmax_axis_0
func TestConformance(t *testing.T) {
	summary := &conformanceSummary{}
	cases := conformance.Cases(t)
	t.Run("all", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				summary.run(t, c)
			})
		}
	})
	summary.report(t, len(cases))
}

// conformanceSummary counts outcomes of tests that run at the same time.
type conformanceSummary struct {
	mutex       sync.Mutex
	passed      int
	skipped     map[string]int // by reason
	wrong       []string
	unsupported []string
	slow        []string
}

func (s *conformanceSummary) run(t *testing.T, c conformance.Case) {
	path := c.Name
	if reason := c.Skip; reason != "" {
		s.note(func() {
			if s.skipped == nil {
				s.skipped = map[string]int{}
			}
			s.skipped[reason]++
		})
		t.Skip(reason)
	}
	start := time.Now()
	err := runConformance(t.Context(), c)
	if took := time.Since(start); took > 2*time.Second {
		s.note(func() { s.slow = append(s.slow, fmt.Sprintf("%s (%v)", path, took.Round(time.Millisecond))) })
	}
	switch {
	case errors.Is(err, eval.ErrUnsupported):
		s.note(func() { s.unsupported = append(s.unsupported, path+": "+err.Error()) })
		t.Skip(err)
	case err != nil:
		s.note(func() { s.wrong = append(s.wrong, path) })
		t.Error(err)
	default:
		s.note(func() { s.passed++ })
	}
}

func (s *conformanceSummary) note(f func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f()
}

// report prints the counts, and holds them against the floor when all tests ran.
func (s *conformanceSummary) report(t *testing.T, total int) {
	judged := s.passed + len(s.wrong) + len(s.unsupported)
	ran := judged
	for _, n := range s.skipped {
		ran += n
	}
	slices.Sort(s.unsupported)
	for _, line := range s.unsupported {
		t.Logf("unsupported: %s", line)
	}
	for _, line := range s.slow {
		t.Logf("slow: %s", line)
	}
	t.Logf("%d of %d passed, %d wrong, %d unsupported; skipped: %v", s.passed, judged, len(s.wrong), len(s.unsupported), s.skipped)
	if ran == total && float64(s.passed) < conformanceFloor*float64(judged) {
		t.Errorf("%.2f %% passed, below the floor of %.0f %%", 100*float64(s.passed)/float64(judged), 100*conformanceFloor)
	}
}

// runConformance says what is wrong with our results for one test case.
func runConformance(ctx context.Context, c conformance.Case) error {
	m, err := c.Open()
	if err != nil {
		return err
	}
	defer m.Close()
	sets, err := c.Sets(m.Graph)
	if err != nil {
		return err
	}
	program, err := eval.Prepare(m, eval.Options{Threads: 2, MaxBytes: 1 << 30})
	if err != nil {
		return err
	}
	for i, s := range sets {
		got, err := program.Run(ctx, s.Inputs, nil)
		if err == nil {
			err = c.Compare(s, got)
		}
		if err != nil {
			return fmt.Errorf("data set %d: %w", i, err)
		}
	}
	return nil
}

// TestMutantsSurvive changes every test case a little, several times.
func TestMutantsSurvive(t *testing.T) {
	rounds := uint64(2)
	if testing.Short() {
		rounds = 1
	}
	for i, c := range conformance.Cases(t) {
		for round := range rounds {
			m, err := c.Open()
			if err != nil {
				t.Fatal(err)
			}
			if sets, err := c.Sets(m.Graph); err == nil {
				eval.TryMutant(t, c.Name, m, sets[0].Inputs, uint64(i)*1000+round)
			}
			m.Close()
		}
	}
}
