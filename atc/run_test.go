//go:build unix

package atc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeVariable makes this test program act as an atc of a kind.
const fakeVariable = "NPUCTL_TEST_ATC"

// parentVariable makes it run such an atc and wait for it, as npuctl does.
const parentVariable = "NPUCTL_TEST_PARENT"

func TestMain(m *testing.M) {
	if kind := os.Getenv(fakeVariable); kind != "" {
		fakeATC(kind)
		os.Exit(0)
	}
	if kind := os.Getenv(parentVariable); kind != "" {
		_ = os.Unsetenv(parentVariable)
		r := Run{Toolkit: Toolkit{Program: os.Args[0]}, Environment: append(os.Environ(), fakeVariable+"="+kind), Grace: time.Second, Echo: os.Stdout}
		_, _ = r.Do(context.Background())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeATC acts as an atc that does well, or one that does not.
func fakeATC(kind string) {
	fmt.Println("ATC start working now, please wait for a moment.")
	switch kind {
	case "good":
		fmt.Printf("log %s\nargs %q\n", os.Getenv("ASCEND_PROCESS_LOG_PATH"), os.Args[1:])
		fmt.Println("ATC run success, welcome to the next use.")
	case "bad":
		fmt.Println("ATC run failed, Please check the detail log")
		fmt.Fprintln(os.Stderr, "ERROR: unknown command line flag 'x'")
		os.Exit(255)
	case "noise":
		line := bytes.Repeat([]byte("noise "), 1<<10)
		for range 1 << 11 {
			os.Stdout.Write(line)
		}
		fmt.Println("the end")
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hang", "stubborn": // with a worker, which holds the output open
		if kind == "stubborn" {
			signal.Ignore(syscall.SIGTERM)
		}
		if len(os.Args) < 2 || os.Args[1] != "worker" {
			worker := exec.Command(os.Args[0], "worker")
			worker.Stdout = os.Stdout
			if err := worker.Start(); err != nil {
				panic(err)
			}
			fmt.Println("program", os.Getpid(), "worker", worker.Process.Pid)
		}
		time.Sleep(time.Minute)
	case "orphan": // ends, and leaves a worker behind
		worker := exec.Command(os.Args[0], "worker")
		worker.Env = append(os.Environ(), fakeVariable+"=stubborn")
		if err := worker.Start(); err != nil {
			panic(err)
		}
		fmt.Println("worker", worker.Process.Pid)
		fmt.Println("ATC run success, welcome to the next use.")
	}
}

func fakeRun(t *testing.T, kind string) Run {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Run{
		Toolkit: Toolkit{Program: self}, Environment: append(os.Environ(), fakeVariable+"="+kind), Grace: 100 * time.Millisecond,
		LogFolder: filepath.Join(t.TempDir(), "logs"),
	}
}

func TestRun(t *testing.T) {
	r := fakeRun(t, "good")
	r.Args = []string{"--input_shape=x:1;y:2", "$HOME", "a b"}
	var echo bytes.Buffer
	r.Echo = &echo
	told := 0
	r.Progress = func(time.Duration) { told++ }
	out, err := r.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !ReadLog(out.Stdout).Succeeded || out.ExitCode != 0 || out.Signal != "" {
		t.Errorf("%+v", out)
	}
	for _, want := range []string{"log " + r.LogFolder, `args ["--input_shape=x:1;y:2" "$HOME" "a b"]`} {
		if !strings.Contains(out.Stdout, want) {
			t.Errorf("%q is not in\n%s", want, out.Stdout)
		}
	}
	if echo.String() != out.Stdout || told == 0 {
		t.Errorf("echoed %q, told %d times", echo.String(), told)
	}
	if info, err := os.Stat(r.LogFolder); err != nil || !info.IsDir() {
		t.Errorf("the folder of logs: %v", err)
	}
}

func TestRunThatFails(t *testing.T) {
	out, err := fakeRun(t, "bad").Do(context.Background())
	if err != nil || out.ExitCode != 255 || !ReadLog(out.Stdout).Failed || !strings.Contains(out.Stderr, "'x'") {
		t.Errorf("%+v, %v", out, err)
	}
	out, err = fakeRun(t, "killed").Do(context.Background())
	if err != nil || out.Signal != "killed" || out.ExitCode != -1 {
		t.Errorf("%+v, %v", out, err)
	}
	r := fakeRun(t, "good")
	r.Toolkit.Program = filepath.Join(t.TempDir(), "none")
	if _, err := r.Do(context.Background()); err == nil || !strings.Contains(err.Error(), "start "+r.Toolkit.Program) {
		t.Errorf("error %v", err)
	}
}

// Of a program that prints without end the beginning and the end are kept.
func TestRunBoundsOutput(t *testing.T) {
	out, err := fakeRun(t, "noise").Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Stdout) > 3*captured+100 || !strings.HasPrefix(out.Stdout, "ATC start") || !strings.HasSuffix(out.Stdout, "the end\n") || !strings.Contains(out.Stdout, "bytes left out]") {
		t.Errorf("%d bytes kept", len(out.Stdout))
	}
}

// workerOf reads the number of the process that a fake started.
func workerOf(t *testing.T, stdout string) int {
	t.Helper()
	_, after, found := strings.Cut(stdout, "worker ")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
	if !found || err != nil {
		t.Fatalf("no worker in %q", stdout)
	}
	return pid
}

// isRunning says whether a process lives; one that has ended and only waits to be
// asked about does not.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.HasPrefix(string(data[bytes.LastIndexByte(data, ')')+1:]), " Z")
}

// A time-out and a cancellation end the program and its workers, also those that
// do not want to.
func TestRunIsStopped(t *testing.T) {
	for _, kind := range []string{"hang", "stubborn"} {
		t.Run(kind+"/time-out", func(t *testing.T) {
			r := fakeRun(t, kind)
			r.Timeout = 500 * time.Millisecond
			out, err := r.Do(context.Background())
			if !errors.Is(err, ErrTimeout) || !out.TimedOut {
				t.Fatalf("%+v, %v", out, err)
			}
			if pid := workerOf(t, out.Stdout); isRunning(pid) {
				t.Errorf("the worker %d lives", pid)
			}
			if out.Elapsed > 5*time.Second {
				t.Errorf("it took %v", out.Elapsed)
			}
		})
		t.Run(kind+"/cancelled", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			r := fakeRun(t, kind)
			r.Echo = writerFunc(func(p []byte) (int, error) {
				if bytes.Contains(p, []byte("worker")) {
					cancel()
				}
				return len(p), nil
			})
			out, err := r.Do(ctx)
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if pid := workerOf(t, out.Stdout); isRunning(pid) {
				t.Errorf("the worker %d lives", pid)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What a program leaves behind when it ends by itself goes, too.
func TestRunLeavesNobodyBehind(t *testing.T) {
	out, err := fakeRun(t, "orphan").Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if pid := workerOf(t, out.Stdout); isRunning(pid) {
		t.Errorf("the worker %d lives", pid)
	}
}

// A program ends with npuctl, even with one that is killed, and so do its workers and
// those that do not want to.
func TestRunEndsWithParent(t *testing.T) {
	for _, kind := range []string{"hang", "stubborn"} {
		t.Run(kind, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentVariable+"="+kind)
			stdout, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			var program, worker int
			for lines := bufio.NewScanner(stdout); worker == 0 && lines.Scan(); {
				_, _ = fmt.Sscanf(lines.Text(), "program %d worker %d", &program, &worker) // other lines are not it
			}
			if worker == 0 || !isRunning(program) || !isRunning(worker) {
				t.Errorf("the program %d and its worker %d do not run", program, worker)
			}
			group, err := syscall.Getpgid(worker)
			if err != nil {
				t.Error(err)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // it was killed
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if !isRunning(program) && !isRunning(worker) && !isRunning(group) {
					return
				}
			}
			t.Errorf("of the program %d, the worker %d and the guard %d some live", program, worker, group)
		})
	}
}

// A program that cannot be started leaves no guard either.
func TestRunLeavesNoGuard(t *testing.T) {
	before := guards(t)
	for _, program := range []string{filepath.Join(t.TempDir(), "none"), os.Args[0]} {
		r := fakeRun(t, "good")
		r.Toolkit.Program = program
		_, _ = r.Do(context.Background()) // one of them fails, as it should
	}
	if after := guards(t); after != before {
		t.Errorf("%d guards, before there were %d", after, before)
	}
}

// guards counts the living guards that this process has started.
func guards(t *testing.T) (n int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(paths) == 0 {
		t.Skip("there is no /proc here")
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path) // it may have gone
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if bytes.Contains(line, []byte("npuctl-guard")) && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

func TestReadProcessLogs(t *testing.T) {
	folder := t.TempDir()
	place(t, folder, map[string]string{
		"debug/plog/plog-2_2.log": "[ERROR] GE(2,atc.bin):2025-03-18-14:35:49.000.001 [b.cc:2]2 second\nnot a line\n[INFO] GE(2,atc.bin):2025-03-18-14:35:49.000.001 [b.cc:2]2 fine\n",
		"debug/plog/plog-1_1.log": "[ERROR] FE(1,atc.bin):2025-03-18-14:35:48.000.001 [a.cc:1]1 first\n[ERROR] RUNTIME(1,x):2025-03-18-14:35:48.000.001 [pool.cc:1]1 M:Pcie Host Register failed, x\n",
		"debug/plog/other.txt":    "[ERROR] FE(1,atc.bin):2025-03-18-14:35:48.000.001 [a.cc:1]1 no log\n",
	})
	var texts []string
	for _, l := range ReadProcessLogs(folder) {
		texts = append(texts, l.Module+" "+l.Text)
	}
	if got := strings.Join(texts, ", "); got != "FE first, GE second" {
		t.Errorf("got %s", got)
	}
	if lines := ReadProcessLogs(filepath.Join(folder, "none")); len(lines) != 0 {
		t.Errorf("a folder that is not there has %v", lines)
	}
}
