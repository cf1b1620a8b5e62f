package atc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/npuctl/npuctl/internal/processgroup"
)

// Run is one run of an atc program.
type Run struct {
	Toolkit Toolkit
	Args    []string
	Folder  string // working directory; "" is this process's
	// Environment is what the child gets, as os.Environ has it; nil is what
	// [Toolkit.Environment] makes of this process's.
	Environment []string
	// LogFolder is where the process logs (plog) of this run go, and no others'. It
	// is made when it is not there, and kept.
	LogFolder string
	// WorkFolder takes what ATC leaves about (kernel_meta, fusion_result.json and
	// the like); "" leaves that to the environment.
	WorkFolder string
	// Timeout ends the run; 0 never does.
	Timeout time.Duration
	// Grace is how long the processes have to end by themselves when the run is
	// stopped, before they are killed; 0 is 5 seconds.
	Grace time.Duration
	// Progress is called about once a second while it runs.
	Progress func(elapsed time.Duration)
	// Echo gets what the program prints, as it comes.
	Echo io.Writer
}

// Outcome is how a run ended.
type Outcome struct {
	ExitCode int // -1 when a signal ended it
	Signal   string
	Stdout   string
	Stderr   string
	Elapsed  time.Duration
	TimedOut bool
}

// ErrTimeout is wrapped by the error of a run that took too long.
var ErrTimeout = errors.New("it took longer than it may")

// defaultGrace is long enough for ATC to take back its temporary files.
const defaultGrace = 5 * time.Second

// Do runs the program, in a process group of its own and without a shell. An
// error says that it could not be started, was stopped because ctx ended, or took
// too long ([ErrTimeout]). None of its processes lives on, whatever happened, also when
// this process is killed meanwhile. A program that ends by itself is no error, whatever
// it says: see [ReadLog].
func (r Run) Do(ctx context.Context) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	env, err := r.childEnvironment()
	if err != nil {
		return Outcome{}, err
	}
	limited, stop := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 {
		limited, stop = context.WithTimeoutCause(ctx, r.Timeout, ErrTimeout)
	}
	defer stop()
	grace := r.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	var stdout, stderr capture
	cmd := exec.CommandContext(limited, r.Toolkit.Program, r.Args...)
	cmd.Dir, cmd.Env = r.Folder, env
	cmd.Stdout, cmd.Stderr = r.tee(&stdout), r.tee(&stderr)
	group := processgroup.New(cmd, grace)
	cmd.Cancel = group.Interrupt
	cmd.WaitDelay = grace
	start := time.Now()
	if err := cmd.Start(); err != nil {
		group.End(0)
		if limited.Err() != nil && ctx.Err() == nil {
			return Outcome{ExitCode: -1, TimedOut: true}, fmt.Errorf("%s ran for %s: %w", r.Toolkit.Program, r.Timeout, ErrTimeout)
		}
		return Outcome{}, fmt.Errorf("start %s: %w", r.Toolkit.Program, err)
	}
	finished := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(start, finished) })
	err = cmd.Wait()
	// Whatever it left behind in its group goes too: compiler workers outlive an
	// ATC that was stopped or has crashed.
	group.End(grace)
	close(finished)
	watching.Wait()
	out := Outcome{Stdout: stdout.String(), Stderr: stderr.String(), Elapsed: time.Since(start)}
	if cmd.ProcessState != nil {
		out.ExitCode, out.Signal = cmd.ProcessState.ExitCode(), signalOf(cmd.ProcessState)
	}
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case limited.Err() != nil:
		out.TimedOut = true
		return out, fmt.Errorf("%s ran for %s: %w", r.Toolkit.Program, r.Timeout, ErrTimeout)
	}
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) {
		return out, fmt.Errorf("run %s: %w", r.Toolkit.Program, err)
	}
	return out, nil
}

func (r Run) childEnvironment() ([]string, error) {
	base := r.Environment
	if base == nil {
		base = r.Toolkit.Environment(os.Environ())
	}
	env := newEnvironment(base)
	for _, f := range []struct{ name, path string }{
		{"ASCEND_PROCESS_LOG_PATH", r.LogFolder}, {"ASCEND_WORK_PATH", r.WorkFolder},
	} {
		if f.path == "" {
			continue
		}
		if err := os.MkdirAll(f.path, 0o777); err != nil {
			return nil, fmt.Errorf("make a folder for what atc leaves: %w", err)
		}
		env.set(f.name, f.path)
	}
	// Its place in what is printed is where the logs go: nowhere else can they be told from ours.
	for _, name := range []string{"ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_LOG_PRINT_TO_STDOUT"} {
		if i, _ := env.find(name); i >= 0 && r.LogFolder != "" {
			env.set(name, "0")
		}
	}
	return env.list, nil
}

func (r Run) tee(c *capture) io.Writer {
	if r.Echo == nil {
		return c
	}
	return io.MultiWriter(c, r.Echo)
}

// watch tells of the time that passes.
func (r Run) watch(start time.Time, finished <-chan struct{}) {
	if r.Progress == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	r.Progress(0)
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
			r.Progress(time.Since(start))
		}
	}
}

// captured bounds, in bytes, what is kept of the beginning and of the end of what
// a program prints.
const captured = 1 << 20

// capture keeps what a program prints: all of it, or of much its beginning and its end.
type capture struct {
	head, tail []byte
	lost       int64
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if room := captured - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	c.tail = append(c.tail, p...)
	if extra := len(c.tail) - captured; extra > captured {
		c.lost += int64(extra)
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return n, nil
}

func (c *capture) String() string {
	if c.lost == 0 {
		return string(c.head) + string(c.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", c.head, c.lost, c.tail)
}

// ShellCommand writes a command as a line for a shell: what is not plain is quoted.
func ShellCommand(program string, args []string) string {
	words := []string{quoteWord(program)}
	for _, a := range args {
		words = append(words, quoteWord(a))
	}
	return strings.Join(words, " ")
}

// plainLetters are what a shell takes as it stands.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%"

func quoteWord(word string) string {
	if word != "" && strings.Trim(word, plainLetters) == "" {
		return word
	}
	// An option keeps its name readable: --input_shape='x:1,3;y:2'.
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "-") && strings.Trim(name, plainLetters) == "" {
		return name + "=" + quote(value)
	}
	return quote(word)
}

func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
