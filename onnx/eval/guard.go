package eval

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
)

// ErrFault marks failures of the interpreter itself: a kernel that panicked. Such
// an error is worth a report.
var ErrFault = errors.New("a fault of the built-in interpreter")

// errFileChanged says that the processor could not read a page of a mapped weight.
var errFileChanged = errors.New("the model's file, or one it refers to, was cut short while it was in use")

// panicked is what a panic left behind.
type panicked struct {
	value any
	stack []byte
}

// asError says what the panic means to the caller.
func (p *panicked) asError() error {
	if _, ok := p.value.(interface{ Addr() uintptr }); ok {
		return errFileChanged
	}
	return fmt.Errorf("%w: %v (%s)", ErrFault, p.value, p.place())
}

// place is the line of this module that the panic came from.
func (p *panicked) place() string {
	for _, line := range strings.Split(string(p.stack), "\n") {
		at := strings.Index(line, "/onnx/")
		if strings.HasPrefix(line, "\t") && at >= 0 && !strings.Contains(line, "/onnx/eval/guard.go") {
			line, _, _ = strings.Cut(line[at+1:], " ")
			return line
		}
	}
	return "place unknown"
}

// guarded runs a kernel. Whatever goes wrong in it, and with the mapped files that
// it reads, comes back as an error: a strange model must not end the process.
func guarded(kernel Kernel, c *Call) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			p, ok := r.(*panicked)
			if !ok {
				p = &panicked{r, debug.Stack()}
			}
			err = c.Errorf("%w", p.asError())
		}
	}()
	return kernel(c)
}

// workers run pieces of a kernel's loop side by side. A panic in one of them goes
// on in the kernel's own goroutine.
type workers struct {
	group sync.WaitGroup
	mutex sync.Mutex
	first *panicked
}

func (w *workers) start(f func()) {
	w.group.Go(func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				w.mutex.Lock()
				defer w.mutex.Unlock()
				w.first = &panicked{r, debug.Stack()}
			}
		}()
		f()
	})
}

func (w *workers) wait() {
	w.group.Wait()
	if w.first != nil {
		panic(w.first)
	}
}
