// Package cannemutest lets tests compile for, and run on, the CANN emulator.
//
// The emulator calls npuctl: as its atc, and to compute models where there is no ONNX
// Runtime. In a test the test's own binary stands in for it, so TestMain must be
//
//	func TestMain(m *testing.M) { os.Exit(cannemutest.Main(m)) }
package cannemutest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/cannemu/atcemu"
	"github.com/npuctl/npuctl/internal/cannemu/interpreter"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// Main runs the tests, or, when the emulator calls the binary, does what npuctl would.
func Main(m *testing.M) int {
	defer func() { os.RemoveAll(shared.folder) }()
	if len(os.Args) > 2 && os.Args[1] == "emulator" {
		switch os.Args[2] {
		case "atc":
			return atcemu.Main(context.Background(), os.Args[3:], atcemu.Process{Version: "test"}, os.Stdout, os.Stderr)
		case "interpreter":
			if err := interpreter.Serve(context.Background(), os.Stdin, os.Stdout, interpreter.Options{}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return 0
		}
	}
	return m.Run()
}

// Emulator is a built emulator.
type Emulator struct{ Root string }

// shared is the emulator of this process: it takes seconds to compile.
var shared struct {
	once   sync.Once
	folder string
	err    error
}

// Build gives the emulator, built on first use. Where there is no compiler, or no Linux,
// the test is skipped and says so.
func Build(t testing.TB) Emulator {
	t.Helper()
	shared.once.Do(func() {
		if shared.folder, shared.err = os.MkdirTemp("", "npuctl-emulator-"); shared.err == nil {
			_, shared.err = cannemu.Build(context.Background(), filepath.Join(shared.folder, "emulator"), cannemu.Options{Version: "test"})
		}
	})
	if fault.FamilyOf(shared.err) == fault.Missing {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return Emulator{filepath.Join(shared.folder, "emulator")}
}

// Library is the emulated libascendcl.so.
func (e Emulator) Library() string { return filepath.Join(e.Root, "lib64", "libascendcl.so") }

// Compile writes a model, given as text, and compiles it to an .om, whose path it gives.
func (e Emulator) Compile(t testing.TB, source string, arguments ...string) string {
	t.Helper()
	// The names of folders for tests hold letters that ATC does not take.
	folder, err := os.MkdirTemp("", "npuctl-model-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	model := filepath.Join(folder, "model.onnx")
	if err := text.MustParse(t, source).Save(model, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"--framework=5", "--model=" + model, "--output=" + filepath.Join(folder, "model"), "--soc_version=Ascend910B3"}, arguments...)
	command := exec.Command(filepath.Join(e.Root, "bin", "atc"), arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "ASCEND_PROCESS_LOG_PATH="+folder)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("atc %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return filepath.Join(folder, "model.om")
}

// CheckReport fails the test for everything that the emulator tells in a report, the
// file that NPUCTL_EMULATOR_REPORT named: what was not given back, and what was misused.
func CheckReport(t testing.TB, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatalf("the emulator's report: %v", err)
	}
	defer file.Close()
	ended := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct {
			Kind   string `json:"kind"`
			Misuse int    `json:"misuse"`
			Leaks  int    `json:"leaks_before_the_end"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Kind != "end" || line.Misuse+line.Leaks > 0 {
			t.Errorf("the emulator's report: %s", lines.Text())
		}
		ended = true
	}
	if !ended {
		t.Error("the emulator's report is empty: AscendCL was never ended")
	}
}
