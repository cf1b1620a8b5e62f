//go:build unix

package onnx_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx"
)

// Opening a pipe must not wait for a writer, nor a device be read for ever.
func TestOpenOfPipesAndDevices(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		done := make(chan error, 1)
		go func() {
			_, err := onnx.Open(path)
			done <- err
		}()
		select {
		case err := <-done:
			oneLine(t, err, "not a regular file")
		case <-time.After(10 * time.Second):
			t.Errorf("opening %s does not end", path)
		}
	}
}
