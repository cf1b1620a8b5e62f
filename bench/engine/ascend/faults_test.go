package ascend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/cannemu/cannemutest"
	"github.com/npuctl/npuctl/internal/fault"
)

// The emulator reads its faults once, so each takes a process of its own: this test
// program, told by variables what to do.
const (
	childVariable   = "NPUCTL_TEST_CHILD"
	libraryVariable = "NPUCTL_TEST_LIBRARY"
	modelVariable   = "NPUCTL_TEST_MODEL"
)

// children are what such a process does; it says what it came to on its standard output.
var children = map[string]func(engine.Engine, string) error{
	"work":    onModel(work),
	"give up": onInstance(giveUp),
	"break":   onModel(breakDown),
	"limit":   onModel(limit),
	"recover": onInstance(recovers),
	"many":    onModel(many),
}

// onInstance does something with an instance on device 0.
func onInstance(do func(engine.Model, engine.Instance) error) func(engine.Engine, string) error {
	return onModel(func(_ engine.Engine, m engine.Model) error {
		i, err := m.NewInstance(engine.Placement{})
		if err != nil {
			return err
		}
		defer i.Close()
		return do(m, i)
	})
}

// onModel does something with the model.
func onModel(do func(engine.Engine, engine.Model) error) func(engine.Engine, string) error {
	return func(e engine.Engine, path string) error {
		m, err := e.Open(context.Background(), path)
		if err != nil {
			return err
		}
		defer m.Close()
		return do(e, m)
	}
}

func child(what string) int {
	e, err := New(Options{Library: os.Getenv(libraryVariable)})
	if err == nil {
		err = children[what](e, os.Getenv(modelVariable))
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		fmt.Println(err)
		return int(fault.FamilyOf(err))
	}
	return 0
}

// inChild runs a child with a fault, and gives what it said, its exit code, and where the
// emulator's report is.
func inChild(t *testing.T, what, library, path, faults string) (said string, code int, report string) {
	t.Helper()
	report = filepath.Join(t.TempDir(), "report")
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"="+what, libraryVariable+"="+library, modelVariable+"="+path,
		"NPUCTL_EMULATOR_FAULT="+faults, "NPUCTL_EMULATOR_REPORT="+report)
	out, err := command.CombinedOutput()
	if strings.Contains(string(out), "cgo") {
		t.Skipf("%s", out)
	}
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode(), report
}

// shapesOf are shapes for the models of these tests.
func shapesOf(m engine.Model) [][]int64 {
	if m.Gears() == nil && m.Inputs()[0].Dims[0] >= 0 {
		return [][]int64{{2, 3}, {3}}
	}
	return [][]int64{{4, 3}, {5}}
}

// work makes two instances on each device, and runs each twice.
// Whatever fails ends it; everything is closed.
func work(e engine.Engine, m engine.Model) error {
	for device := range e.About().Devices {
		for range 2 {
			i, err := m.NewInstance(engine.Placement{Device: device})
			if err != nil {
				return err
			}
			defer i.Close()
			for range 2 {
				if err := runAny(m, i, context.Background()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func runAny(m engine.Model, i engine.Instance, ctx context.Context) error {
	for n, shape := range shapesOf(m) {
		if _, err := i.Input(n, shape); err != nil {
			return err
		}
	}
	_, err := i.Run(ctx)
	return err
}

var faultyModels = []struct {
	name, source string
	arguments    []string
}{
	{"static", weights, nil},
	{"gears", batches, []string{"--input_shape=x:-1,3;k:5", "--dynamic_batch_size=1,4"}},
	{"open", text, []string{"--input_shape=x:-1,3;k:-1"}},
}

// Memory that is refused, one allocation after the other, and a device that is lost, at
// one call after the other: the error says so, and everything is given back.
func TestNothingIsLeft(t *testing.T) {
	emulator := cannemutest.Build(t)
	for _, f := range []struct {
		fault  string
		family fault.Family
		says   string
		stride int // between the calls that are struck
	}{
		{"oom@%dx1", fault.Missing, "the device has no memory left", 1},
		{"load@%dx1", fault.Input, "the model cannot be loaded", 1},
		{"device-lost@%d", fault.Program, "the device does not answer any more", 5},
		{"copy@%dx1", fault.Program, "the copy failed", 5},
	} {
		for _, model := range faultyModels {
			t.Run(f.fault+"/"+model.name, func(t *testing.T) {
				path := emulator.Compile(t, model.source, model.arguments...)
				struck, stride := 0, f.stride
				if testing.Short() {
					stride *= 4
				}
				for call := 1; ; call += stride {
					if call > 400 {
						t.Fatal("it has no end")
					}
					injected := fmt.Sprintf(f.fault, call)
					said, code, report := inChild(t, "work", emulator.Library(), path, injected)
					if code == 0 {
						break // the call was never reached
					}
					struck++
					isMissing := code == int(fault.Missing) && strings.Contains(said, f.says) // the device could not even be opened
					if code != int(f.family) && !isMissing || !strings.Contains(said, f.says) {
						t.Errorf("%s: exit %d: %s", injected, code, said)
					}
					checkChild(t, report, said)
				}
				t.Logf("%d calls were struck", struck)
				if struck == 0 {
					t.Error("no call was struck")
				}
			})
		}
	}
}

// checkChild holds that a child left nothing. A device that could not be opened leaves no
// report but that of AscendCL's end.
func checkChild(t *testing.T, report, said string) {
	t.Helper()
	before := t.Failed()
	cannemutest.CheckReport(t, report)
	if t.Failed() && !before {
		t.Logf("the child said: %s", said)
	}
}

// giveUp runs the model on a device that does not answer.
func giveUp(m engine.Model, i engine.Instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := runAny(m, i, ctx)
	if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took > 8*time.Second {
		return fmt.Errorf("after %v: %v", took, err)
	}
	for range 2 {
		if err := runAny(m, i, context.Background()); !errors.Is(err, engine.ErrBroken) || !strings.Contains(err.Error(), "given up") {
			return fmt.Errorf("a later run: %v", err)
		}
	}
	if _, err := i.Run(context.Background()); !errors.Is(err, engine.ErrBroken) {
		return fmt.Errorf("a later run without inputs: %v", err)
	}
	if b := i.Output(0); len(b.Bytes) != 0 {
		return fmt.Errorf("output %v of a run that was given up", b)
	}
	return nil
}

// A device that does not end a run holds up neither who wants to stop nor the end of the
// process.
func TestGivenUp(t *testing.T) {
	emulator := cannemutest.Build(t)
	for _, model := range faultyModels {
		t.Run(model.name, func(t *testing.T) {
			path := emulator.Compile(t, model.source, model.arguments...)
			begin := time.Now()
			said, code, _ := inChild(t, "give up", emulator.Library(), path, "slow-stream=20000")
			if took := time.Since(begin); code != 0 || took > 15*time.Second {
				t.Errorf("exit %d after %v: %s", code, took, said)
			}
		})
	}
}

// breakDown runs a model until the device fails, and looks that this instance can do
// nothing more, and that another can.
func breakDown(_ engine.Engine, m engine.Model) error {
	for _, fails := range []bool{true, false} {
		i, err := m.NewInstance(engine.Placement{Device: 1})
		if err != nil {
			return err
		}
		err = runAny(m, i, context.Background())
		if fails {
			if !errors.Is(err, engine.ErrBroken) || fault.FamilyOf(err) != fault.Program || !strings.Contains(err.Error(), "device 1") || !strings.Contains(err.Error(), "injected by") {
				return fmt.Errorf("a run that fails: %v", err)
			}
			if err := runAny(m, i, context.Background()); !errors.Is(err, engine.ErrBroken) || !strings.Contains(err.Error(), "failed in an earlier run") {
				return fmt.Errorf("the run after it: %v", err)
			}
		} else if err != nil {
			return err
		}
		if err := i.Close(); err != nil {
			return err
		}
	}
	return nil
}

// What the device says in a run ends the instance, and that one alone.
func TestDeviceFails(t *testing.T) {
	emulator := cannemutest.Build(t)
	for _, model := range faultyModels {
		path := emulator.Compile(t, model.source, model.arguments...)
		for _, f := range []string{"exception@1x1", "ecc@1x1", "timeout@1x1", "copy@1x1"} {
			t.Run(model.name+"/"+f, func(t *testing.T) {
				said, code, report := inChild(t, "break", emulator.Library(), path, f)
				if code != 0 {
					t.Errorf("exit %d: %s", code, said)
				}
				checkChild(t, report, said)
			})
		}
	}
}

// recovers runs a model for which there is no memory once.
func recovers(m engine.Model, i engine.Instance) error {
	if err := runAny(m, i, context.Background()); fault.FamilyOf(err) != fault.Missing || errors.Is(err, engine.ErrBroken) {
		return fmt.Errorf("a run without memory: %v", err)
	}
	return runOnce(m, i, 3, shapesOf(m)...)
}

// A shortage is one of that run alone: of memory for an input, the first output, the second.
func TestShortageOfOneRun(t *testing.T) {
	emulator := cannemutest.Build(t)
	open := faultyModels[2]
	path := emulator.Compile(t, open.source, open.arguments...)
	for call := 5; call <= 8; call++ { // the first four are of the loaded models: work and weights on two devices
		said, code, report := inChild(t, "recover", emulator.Library(), path, fmt.Sprintf("oom@%dx1", call))
		if code != 0 {
			t.Errorf("malloc %d: exit %d: %s", call, code, said)
		}
		checkChild(t, report, said)
	}
}

// many makes eight instances on one device.
func many(_ engine.Engine, m engine.Model) error {
	for range 8 {
		i, err := m.NewInstance(engine.Placement{})
		if err != nil {
			return err
		}
		defer i.Close()
		if err := runAny(m, i, context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// Weights lie on the device once: eight instances run where twice the weights do not fit.
func TestWeightsAreShared(t *testing.T) {
	emulator := cannemutest.Build(t)
	large := `<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x, int32[3] k) => (float[2,262144] y, int32[3] z) <float[3,262144] w = {` +
		strings.Repeat("0,", 3*262144-1) + `0}> { y = MatMul (x, w)  z = Add (k, k) }`
	path := emulator.Compile(t, large)
	t.Setenv("NPUCTL_EMULATOR_MEMORY", "36M") // 3 MB of weights, and 4 MB of an output and to work in for each instance
	said, code, report := inChild(t, "many", emulator.Library(), path, "")
	if code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
	checkChild(t, report, said)
}

// limit makes an instance with a limit on cores.
func limit(_ engine.Engine, m engine.Model) error {
	if i, err := m.NewInstance(engine.Placement{}); err != nil {
		return fmt.Errorf("without a limit: %w", err)
	} else if err := errors.Join(runAny(m, i, context.Background()), i.Close()); err != nil {
		return fmt.Errorf("without a limit: %w", err)
	}
	i, err := m.NewInstance(engine.Placement{CubeCores: 4})
	if err == nil {
		i.Close()
	}
	return err
}

// A library that is too old for limits on cores works without them.
func TestOldLibraryHasNoLimits(t *testing.T) {
	emulator := cannemutest.Build(t)
	path := emulator.Compile(t, weights)
	for _, function := range []string{"aclrtSetStreamResLimit", "aclrtUseStreamResInCurrentThread", "aclrtUnuseStreamResInCurrentThread"} {
		said, code, report := inChild(t, "limit", older(t, emulator, function), path, "")
		if code != int(fault.Missing) || !strings.Contains(said, "the library has no function "+function+"; CANN 8.3") || strings.Contains(said, "without a limit") {
			t.Errorf("exit %d: %s", code, said)
		}
		checkChild(t, report, said)
	}
}
