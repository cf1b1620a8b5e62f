//go:build !cgo || !unix

package main

// seesClosedStdout says whether this build can tell.
const seesClosedStdout = false

// stdoutWasClosed cannot be told here: see the other file.
func stdoutWasClosed() bool { return false }
