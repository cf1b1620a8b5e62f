// Command npuctl takes a model from the ONNX file a training framework exported
// to a tuned, checked and measured deployment on a Huawei Ascend NPU.
//
// This package is the command line alone: one file a command, which turns flags into
// a job of some package under internal, and prints what comes back.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	var out io.Writer = os.Stdout
	if stdoutWasClosed() {
		out = closed{}
	}
	code := run(ctx, os.Args[1:], out, os.Stderr)
	stop()
	os.Exit(code)
}

// closed is a standard output that is not there.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("it is closed") }
