package atcemu

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// FaultVariable asks for faults, by a list of words between commas: see [faults].
const FaultVariable = "NPUCTL_EMULATOR_FAULT"

// faults are the ways in which the compiler is to fail. The variable also holds words
// for the library, which mean nothing here; "word@N" counts calls there, and one run
// of atc is one call.
type faults struct {
	crash    bool // die of a signal in the middle
	hang     bool // never end
	diskFull bool // fail to write the result
	garbage  bool // print noise, and leave half a file behind
	slow     time.Duration
}

func readFaults(text string) faults {
	var f faults
	for word := range strings.SplitSeq(text, ",") {
		word, _, _ = strings.Cut(strings.TrimSpace(word), "@")
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "crash":
			f.crash = true
		case "hang":
			f.hang = true
		case "disk-full":
			f.diskFull = true
		case "garbage":
			f.garbage = true
		case "slow":
			seconds, err := strconv.ParseFloat(value, 64)
			if err == nil && seconds > 0 && seconds < 1e6 {
				f.slow = time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return f
}

// The words of the variable: those above, and the library's.
var (
	ownFaults     = []string{"crash", "hang", "disk-full", "garbage", "slow"}
	libraryFaults = []string{"oom", "load", "copy", "timeout", "exception", "ecc", "device-lost", "slow-stream"}
	faultWords    = slices.Concat(ownFaults, libraryFaults)
)

// unknownFaults lists the words of the variable that there are not: a test of a caller
// that asks for no fault passes for the wrong reason.
func unknownFaults(text string) (unknown []string) {
	for word := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(word)
		if i := strings.IndexAny(name, "=@ "); i >= 0 {
			name = name[:i]
		}
		isCounted := func(known string) bool { // oomx3 strikes three times; a run of atc happens once
			times, ok := strings.CutPrefix(name, known+"x")
			_, err := strconv.Atoi(times)
			return ok && err == nil
		}
		if slices.ContainsFunc(libraryFaults, isCounted) {
			continue
		}
		if name != "" && !slices.Contains(faultWords, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// disturb waits, hangs or dies in the middle of a compile, as asked for.
func (f faults) disturb(ctx context.Context, die func()) error {
	if f.slow > 0 {
		timer := time.NewTimer(f.slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if f.crash {
		die()
	}
	return nil
}

// errDiskFull is what a write to a full disk gives.
var errDiskFull = fmt.Errorf("write: %w", syscall.ENOSPC)

// writeGarbage leaves half of a file at its place and prints what nobody can read.
func writeGarbage(out io.Writer, path string, whole []byte) error {
	fmt.Fprint(out, "\x00\x01\xfe\xff ATC r\x1b[31m\xc3\x28 un s\n{\"]]><<<\n")
	return os.WriteFile(path, whole[:len(whole)/2], 0o600)
}
