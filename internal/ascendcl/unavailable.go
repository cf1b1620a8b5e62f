//go:build !cgo || !linux

package ascendcl

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// Runtime is AscendCL, started. In this build there is none.
type Runtime struct{}

// Device is a device with a context. In this build there is none.
type Device struct{}

// Model is a loaded .om. In this build there is none.
type Model struct{}

// Shared is a model on a device. In this build there is none.
type Shared struct{}

// Session is a loaded model. In this build there is none.
type Session struct{}

// unavailable says why this build cannot use AscendCL. The constraint of this file
// leaves two reasons.
func unavailable() error {
	if runtime.GOOS == "linux" {
		return errors.New("this npuctl was built without cgo; AscendCL needs a build with CGO_ENABLED=1 and a C compiler")
	}
	return fmt.Errorf("this npuctl was built for %s; AscendCL can be used on Linux only", runtime.GOOS)
}

// Open fails: it says what this build lacks.
func Open([]string) (*Runtime, error) { return nil, fmt.Errorf("open AscendCL: %w", unavailable()) }

// Path returns "": Open makes no runtime in this build.
func (r *Runtime) Path() string { return "" }

// Version returns "": Open makes no runtime in this build.
func (r *Runtime) Version() string { return "" }

// Emulated returns false: Open makes no runtime in this build.
func (r *Runtime) Emulated() bool { return false }

// Devices fails: it says what this build lacks.
func (r *Runtime) Devices() (int, error) { return 0, unavailable() }

// Close returns nil.
func (r *Runtime) Close() error { return nil }

// Device fails: it says what this build lacks.
func (r *Runtime) Device(int) (*Device, error) { return nil, unavailable() }

// Chip returns "": there is no device in this build.
func (d *Device) Chip() string { return "" }

// Close returns nil.
func (d *Device) Close() error { return nil }

// Cores fails: it says what this build lacks.
func (d *Device) Cores() (cube, vector int, err error) { return 0, 0, unavailable() }

// Share fails: it says what this build lacks.
func (d *Device) Share(string) (*Shared, error) { return nil, unavailable() }

// ShareNothing fails: it says what this build lacks.
func (d *Device) ShareNothing(string) (*Shared, error) { return nil, unavailable() }

// Session fails: it says what this build lacks.
func (s *Shared) Session() (*Session, error) { return nil, unavailable() }

// Close returns nil.
func (s *Shared) Close() error { return nil }

// Inputs returns nil: there is no session in this build.
func (s *Session) Inputs() []Port { return nil }

// Outputs returns nil: there is no session in this build.
func (s *Session) Outputs() []Port { return nil }

// Limit fails: it says what this build lacks.
func (s *Session) Limit(cube, vector int) error { return unavailable() }

// Input fails: it says what this build lacks.
func (s *Session) Input(int, []int64) ([]byte, error) { return nil, unavailable() }

// Run fails: it says what this build lacks.
func (s *Session) Run(context.Context, Gear) (Times, error) { return Times{}, unavailable() }

// Stuck returns false.
func (s *Session) Stuck() bool { return false }

// Output returns nothing: there is no session in this build.
func (s *Session) Output(_ int, shape []int64) ([]int64, []byte) { return shape, nil }

// Close returns nil.
func (s *Session) Close() error { return nil }

// Load fails: it says what this build lacks.
func (d *Device) Load(string) (*Model, error) { return nil, unavailable() }

// Inputs returns nil: there is no model in this build.
func (m *Model) Inputs() []Port { return nil }

// Outputs returns nil: there is no model in this build.
func (m *Model) Outputs() []Port { return nil }

// Close returns nil.
func (m *Model) Close() error { return nil }

// Run fails: it says what this build lacks.
func (m *Model) Run(context.Context, []*tensor.Dense, Gear) ([]*tensor.Dense, error) {
	return nil, unavailable()
}
