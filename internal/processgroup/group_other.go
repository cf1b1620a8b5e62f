//go:build !unix

package processgroup

import (
	"os/exec"
	"time"
)

// Group is a program; what it starts is not known here.
type Group struct{ cmd *exec.Cmd }

// New does nothing to cmd.
func New(cmd *exec.Cmd, _ time.Duration) *Group { return &Group{cmd} }

// Interrupt ends the program.
func (g *Group) Interrupt() error { return g.cmd.Process.Kill() }

// End ends the program if it still runs.
func (g *Group) End(time.Duration) {
	if g.cmd.Process != nil {
		_ = g.cmd.Process.Kill() // it may just have ended
	}
}
