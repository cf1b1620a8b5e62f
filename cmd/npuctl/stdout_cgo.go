//go:build cgo && unix

package main

// The Go runtime opens the null device in the place of a standard output that is
// closed (as `npuctl … >&-` starts it), and then everything written is lost without
// an error. Only what runs before the runtime can see that.

/*
#include <fcntl.h>

static int npuctl_stdout_closed;

__attribute__((constructor)) static void npuctl_look_at_stdout(void) {
	npuctl_stdout_closed = fcntl(1, F_GETFD) == -1;
}

static int npuctl_was_stdout_closed(void) { return npuctl_stdout_closed; }
*/
import "C"

// seesClosedStdout says whether this build can tell.
const seesClosedStdout = true

// stdoutWasClosed says whether the process began without a standard output.
func stdoutWasClosed() bool { return C.npuctl_was_stdout_closed() != 0 }
