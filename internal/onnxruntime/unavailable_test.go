//go:build !cgo || !(linux || darwin)

package onnxruntime

import (
	"strings"
	"testing"
)

func TestOpenSaysWhatThisBuildLacks(t *testing.T) {
	_, err := Open("libonnxruntime.so")
	if err == nil || !strings.Contains(err.Error(), "open ONNX Runtime library libonnxruntime.so: this npuctl was built ") {
		t.Errorf("error %v", err)
	}
}
