//go:build !unix

package tritonserver

import "os"

// Servers run on Linux; elsewhere one runs in a container, whose engine's client this
// serves.

func askToEnd(p *os.Process) error { return p.Kill() }

func howItEnded(state *os.ProcessState) string { return state.String() }

func limitMemory(int, uint64) error { return nil }

func removeShared(string) {}
