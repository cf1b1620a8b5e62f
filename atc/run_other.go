//go:build !unix

package atc

import (
	"os"
	"os/exec"
	"time"
)

// processGroup is a program. ATC runs on Linux; elsewhere this serves a stand-in.
type processGroup struct{ cmd *exec.Cmd }

func newProcessGroup(cmd *exec.Cmd, _ time.Duration) *processGroup { return &processGroup{cmd} }

func (g *processGroup) interrupt() error { return g.cmd.Process.Kill() }

func (g *processGroup) end(time.Duration) {}

func signalOf(*os.ProcessState) string { return "" }
