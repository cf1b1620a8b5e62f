package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// The times after which progress appears, and how often it is written anew.
const (
	patience = time.Second
	interval = 200 * time.Millisecond
)

// Progress tells a person on a terminal what long work is at, in one line that is
// written over and over and goes away at the end. Short work shows nothing. It may be
// used by several goroutines. The nil Progress tells nobody.
type Progress struct {
	out   io.Writer
	start time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	text  string
	shown bool
}

// StartProgress begins to tell w, when it is a terminal, of work that begins now.
func StartProgress(w io.Writer) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	return startProgress(w, patience)
}

func startProgress(w io.Writer, patience time.Duration) *Progress {
	p := &Progress{out: w, start: time.Now(), stop: make(chan struct{})}
	p.ended.Go(func() { p.tell(patience) })
	return p
}

func (p *Progress) tell(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
			p.show()
			timer.Reset(interval)
		}
	}
}

// Say says what the work is at from now on.
func (p *Progress) Say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// eraseLine moves the cursor to the first column and clears what stands there.
const eraseLine = "\r\x1b[K"

// maxLine is the length of a line that is sure not to wrap.
const maxLine = 70

func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == "" {
		return
	}
	p.shown = true
	fmt.Fprintf(p.out, "%s%s (%s)", eraseLine, Shorten(Clean(p.text), maxLine-12), Duration(time.Since(p.start).Truncate(100*time.Millisecond)))
}

// Stop ends the telling and takes the line away. It may be called twice.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.shown = false
		io.WriteString(p.out, eraseLine)
	}
}
