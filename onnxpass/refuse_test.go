package onnxpass_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/npuctl/npuctl/onnx/text"
	"github.com/npuctl/npuctl/onnxpass"
)

// A function that calls itself is an error; one that calls another twice, which
// calls another twice, and so on, is looked at once.
func TestCallsOfCalls(t *testing.T) {
	recursive := `<ir_version: 8, opset_import: ["": 17, "d": 1]> g (float[2] x) => (y) { y = d.f (x) }
		<domain: "d", opset_import: ["": 17, "d": 1]> f (x) => (y) { y = d.f (x) }`
	if _, err := onnxpass.Optimize(t.Context(), text.MustParse(t, recursive), onnxpass.Options{}); err == nil {
		t.Error("a recursive function is accepted")
	}
	chain := strings.Builder{}
	chain.WriteString(`<ir_version: 8, opset_import: ["": 17, "d": 1]> g (float[2] x) => (y) { y = d.f40 (x) }
		<domain: "d", opset_import: ["": 17, "d": 1]> f0 (x) => (y) { y = Neg (x) }`)
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&chain, ` <domain: "d", opset_import: ["": 17, "d": 1]> f%d (x) => (y) { a = d.f%d (x)  y = d.f%d (a) }`, i, i-1, i-1)
	}
	done := make(chan error, 1)
	m := text.MustParse(t, chain.String())
	go func() {
		_, err := onnxpass.Optimize(t.Context(), m, onnxpass.Options{})
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a chain of 40 functions that call each other twice takes longer than a minute")
	}
}
