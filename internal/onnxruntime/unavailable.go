//go:build !cgo || !(linux || darwin)

package onnxruntime

import (
	"context"
	"fmt"
	"runtime"
)

// Library is an opened ONNX Runtime. In this build there is none.
type Library struct{}

// Session is a loaded model. In this build there is none.
type Session struct{}

// unavailable says why this build cannot use ONNX Runtime. The constraint of this
// file leaves two reasons.
func unavailable() error {
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		return fmt.Errorf("this npuctl was built without cgo; ONNX Runtime needs a build with CGO_ENABLED=1 and a C compiler")
	}
	return fmt.Errorf("this npuctl was built for %s; ONNX Runtime can be used on Linux and macOS only", runtime.GOOS)
}

// Open fails: it says what this build lacks.
func Open(path string) (*Library, error) {
	return nil, fmt.Errorf("open ONNX Runtime library %s: %w", path, unavailable())
}

// Path returns "": Open makes no library in this build.
func (l *Library) Path() string { return "" }

// Version returns "": Open makes no library in this build.
func (l *Library) Version() string { return "" }

// Close returns nil.
func (l *Library) Close() error { return nil }

// NewSession fails: it says what this build lacks.
func (l *Library) NewSession(string, Options) (*Session, error) { return nil, unavailable() }

// NewSessionFromBytes fails: it says what this build lacks.
func (l *Library) NewSessionFromBytes([]byte, Options) (*Session, error) { return nil, unavailable() }

// Inputs returns nil: there is no session in this build.
func (s *Session) Inputs() []Info { return nil }

// Outputs returns nil: there is no session in this build.
func (s *Session) Outputs() []Info { return nil }

// OverridableInitializers returns nil: there is no session in this build.
func (s *Session) OverridableInitializers() []Info { return nil }

// Run fails: it says what this build lacks.
func (s *Session) Run(context.Context, map[string]Value, []string) ([]Value, error) {
	return nil, unavailable()
}

// Close returns nil.
func (s *Session) Close() error { return nil }

// Binding is a run that is done again and again. In this build there is none.
type Binding struct{}

// NewBinding fails: it says what this build lacks.
func (s *Session) NewBinding() (*Binding, error) { return nil, unavailable() }

// SetInput fails: it says what this build lacks.
func (b *Binding) SetInput(int, []int64, []byte) error { return unavailable() }

// SetStrings fails: it says what this build lacks.
func (b *Binding) SetStrings(int, []int64, []string) error { return unavailable() }

// Omit does nothing.
func (b *Binding) Omit(int) {}

// Run fails: it says what this build lacks.
func (b *Binding) Run(context.Context) error { return unavailable() }

// Output returns nothing.
func (b *Binding) Output(int) Tensor { return Tensor{} }

// Close returns nil.
func (b *Binding) Close() error { return nil }
