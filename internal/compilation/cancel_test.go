//go:build unix

package compilation

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A build that is stopped, at whatever moment, leaves nothing: no process, no
// temporary file, no half of a result; and what was there before is still there.
func TestCancelAtAnyMoment(t *testing.T) {
	moments := 200
	if testing.Short() {
		moments = 20
	}
	w := newWorkshop(t, imageModel, "slow", "workers")
	mark := "NPUCTL_TEST_MARK=" + w.folder
	t.Setenv("NPUCTL_TEST_MARK", w.folder)
	w.job.Sizes, w.job.Force = sizes(pictures), true
	results := []string{"net.om", "net.om.json", "net.om.onnx"}

	whole := time.Hour
	for range 4 { // the first has to read everything from disk, and others run here
		start := time.Now()
		if _, err := w.job.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		whole = min(whole, time.Since(start))
	}
	saved := map[string][]byte{}
	for _, name := range results {
		data, err := os.ReadFile(filepath.Join(w.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		saved[name] = data
	}
	random := rand.New(rand.NewPCG(1, 2))
	stopped := 0
	for i := range moments {
		for name, data := range saved { // every other time there was nothing before
			path := filepath.Join(w.folder, name)
			os.Remove(path)
			if i%2 == 0 {
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := contents(t, w, results)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Float64()*1.3*float64(whole)))
		_, err := w.job.Run(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err != nil {
			stopped++
		}
		after := contents(t, w, results)
		isSame, isWhole := after == before, isComplete(w)
		if !isSame && !isWhole || err == nil && !isWhole {
			t.Fatalf("moment %d: the result is neither what it was nor a whole one (%v)", i, err)
		}
		present := results
		if !isWhole {
			present = nil
		}
		if left := w.leftovers(t, present...); len(left) > 0 {
			t.Fatalf("moment %d: the folder has %v", i, left)
		}
		if pids := processesWith(t, mark); len(pids) > 0 {
			t.Fatalf("moment %d: the processes %v live", i, pids)
		}
	}
	if stopped < moments/10 {
		t.Errorf("only %d of %d runs were stopped: the moments are badly chosen", stopped, moments)
	}
	if temporary, _ := filepath.Glob(filepath.Join(w.job.Cache, "*.tmp")); len(temporary) > 0 {
		t.Errorf("the cache has %v", temporary)
	}
	t.Logf("%d of %d runs were stopped; a whole one takes %v", stopped, moments, whole)
}

func contents(t *testing.T, w workshop, names []string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(w.folder, name))
		if err == nil {
			all.WriteString(name)
			all.Write(data)
		}
	}
	return all.String()
}

// isComplete says whether the record and all it speaks of are there.
func isComplete(w workshop) bool {
	r, err := ReadRecord(filepath.Join(w.folder, "net.om.json"))
	if err != nil {
		return false
	}
	for _, f := range append(r.Outputs, *r.Graph) {
		got, err := factsOf(filepath.Join(w.folder, f.Path))
		if err != nil || got.SHA256 != f.SHA256 {
			return false
		}
	}
	return true
}

// processesWith lists the living processes, but this one, that have an entry in
// their environment.
func processesWith(t *testing.T, entry string) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		t.Skip("there is no /proc here")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(entry)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A command line of the user's that is stopped, at whatever moment, leaves what was there
// before, weights included, and no process.
func TestCommandLineStoppedAtAnyMoment(t *testing.T) {
	moments := 60
	if testing.Short() {
		moments = 15
	}
	w := newWorkshop(t, fixedModel, "slow", "workers", "weights")
	mark := "NPUCTL_TEST_MARK=" + w.folder
	t.Setenv("NPUCTL_TEST_MARK", w.folder)
	line := w.commandLine("--external_weight=1")
	start := time.Now()
	if _, err := line.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(start)
	random := rand.New(rand.NewPCG(3, 4))
	stopped := 0
	for i := range moments {
		hadOld := i%2 == 0
		for _, path := range []string{"net.om", "net.om.json", "weight"} {
			if err := os.RemoveAll(filepath.Join(w.folder, path)); err != nil {
				t.Fatal(err)
			}
		}
		before := []string{}
		if hadOld {
			writeFile(t, filepath.Join(w.folder, "net.om"), "the old one")
			writeFile(t, filepath.Join(w.folder, "weight", "weight_0"), "another model's")
			before = append(before, "net.om", "weight")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Float64()*1.3*float64(whole)))
		_, err := line.Run(ctx)
		cancel()
		if err == nil {
			before = []string{"net.om", "net.om.json", "weight"}
		} else {
			stopped++
		}
		if left := w.leftovers(t, before...); len(left) > 0 {
			t.Fatalf("moment %d: the folder has %v (%v)", i, left, err)
		}
		_, statErr := os.Stat(filepath.Join(w.folder, "weight", "weight_1"))
		if isThere := statErr == nil; isThere != (err == nil) {
			t.Fatalf("moment %d: the run's weights are there: %v (%v)", i, isThere, err)
		}
		if hadOld && err != nil && readAll(t, []string{filepath.Join(w.folder, "net.om"), filepath.Join(w.folder, "weight", "weight_0")}) != "the old one\x00another model's\x00" {
			t.Fatalf("moment %d: what was there has changed", i)
		}
		if pids := processesWith(t, mark); len(pids) > 0 {
			t.Fatalf("moment %d: the processes %v live", i, pids)
		}
	}
	if stopped < moments/10 {
		t.Errorf("only %d of %d runs were stopped: the moments are badly chosen", stopped, moments)
	}
}
