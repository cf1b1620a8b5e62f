// Command npuctl takes a model from the ONNX file a training framework exported
// to a tuned, checked and measured deployment on a Huawei Ascend NPU.
//
// This package is the command line alone: one file a command, which turns flags into
// a job of some package under internal, and prints what comes back.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
