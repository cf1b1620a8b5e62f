package ascend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/internal/ascendcl"
	"github.com/npuctl/npuctl/internal/fault"
)

// Options says which library and which devices to use.
type Options struct {
	// Library is that of AscendCL, or the folder it lies in; "" looks for it, as
	// [ascendcl.Find] says.
	Library string
	// Devices are the numbers of the devices to use; none is all that there are.
	Devices []int
}

type npus struct {
	runtime *ascendcl.Runtime
	devices []*device
}

// device is a device that is open.
type device struct {
	number       int
	device       *ascendcl.Device
	cube, vector int // cores; 0 when the device does not say
}

// New opens the devices. What is missing is a fault.Missing that says what to do.
func New(o Options) (engine.Engine, error) {
	paths, _, err := ascendcl.Find(o.Library)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	runtime, err := ascendcl.Open(paths)
	if err != nil {
		return nil, fault.New(fault.Missing, "%w", err)
	}
	e := &npus{runtime: runtime}
	if err := e.openDevices(o.Devices); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *npus) openDevices(numbers []int) error {
	count, err := e.runtime.Devices()
	if err != nil {
		return fault.New(fault.Missing, "count the devices: %w", err)
	}
	if count == 0 {
		return fault.New(fault.Missing, "AscendCL is there, and no device").With("see what there is with `npu-smi info` and `npuctl doctor`")
	}
	if len(numbers) == 0 {
		for n := range count {
			numbers = append(numbers, n)
		}
	}
	for _, n := range numbers {
		if n < 0 || n >= count {
			return fault.New(fault.Missing, "there is no device %d: %s", n, thereAre(count)).With("see them with `npuctl doctor`")
		}
		if slices.ContainsFunc(e.devices, func(d *device) bool { return d.number == n }) {
			return fault.New(fault.Usage, "device %d is named twice", n)
		}
		opened, err := e.runtime.Device(n)
		if err != nil {
			return fault.New(fault.Missing, "%w", err).With("see what there is with `npuctl doctor`")
		}
		d := &device{number: n, device: opened}
		d.cube, d.vector, _ = opened.Cores() // only limits need them, and check
		e.devices = append(e.devices, d)
	}
	return nil
}

func thereAre(count int) string {
	if count == 1 {
		return "there is one, number 0"
	}
	return fmt.Sprintf("there are %d, numbers 0 to %d", count, count-1)
}

// About names the interface and the chip of the first device.
func (e *npus) About() engine.About {
	a := engine.About{Name: "ascend", Version: "AscendCL", Device: "an NPU that does not say its name", Devices: len(e.devices), Emulated: e.runtime.Emulated()}
	if v := e.runtime.Version(); v != "" {
		a.Version += " " + v
	}
	if chip := e.devices[0].device.Chip(); chip != "" {
		a.Device = chip
	}
	return a
}

// Close gives the devices back, once the models are closed.
func (e *npus) Close() error {
	for _, d := range e.devices {
		d.device.Close()
	}
	return e.runtime.Close()
}

// find gives a device by its number.
func (e *npus) find(number int) (*device, error) {
	var numbers []int
	for _, d := range e.devices {
		if d.number == number {
			return d, nil
		}
		numbers = append(numbers, d.number)
	}
	return nil, fault.New(fault.Missing, "there is no device %d among those in use: %v", number, numbers).With("see what there is with `npuctl doctor`")
}

// checkLimits holds limits on cores against what the device has.
func (d *device) checkLimits(p engine.Placement) error {
	for _, limit := range []struct {
		what        string
		asked, have int
	}{{"cube", p.CubeCores, d.cube}, {"vector", p.VectorCores, d.vector}} {
		if limit.asked < 0 || limit.asked > limit.have && limit.have > 0 {
			return fault.New(fault.Usage, "a limit of %d %s cores: device %d has %d", limit.asked, limit.what, d.number, limit.have).
				With("give a number from 1 to %d, or 0 for no limit", limit.have)
		}
	}
	return nil
}

// unfit says whom it concerns that a model cannot be made ready on a device.
func (d *device) unfit(err error) error {
	var sorted *fault.Error
	if errors.As(err, &sorted) || errors.Is(err, ascendcl.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var acl *ascendcl.Error
	switch isAcl := errors.As(err, &acl); {
	case isAcl && acl.Code == otherChip:
		return d.fault(fault.Input, err).With("compile the model for this one, %s: npuctl compile --soc %[1]s", d.device.Chip())
	case isAcl && acl.Shortage():
		return d.short(err)
	case isAcl && acl.Device() && acl.Code/1000 != geFaults:
		return d.gone(err)
	}
	return d.fault(fault.Input, err).With("look at the file with `npuctl om info`, or compile it again")
}

// refused says the same of one run, which did not suit the model, or for which something
// was short; the device works.
func (d *device) refused(err error) error {
	var acl *ascendcl.Error
	if errors.As(err, &acl) && acl.Shortage() {
		return d.short(err)
	}
	return d.fault(fault.Input, err)
}

func (d *device) fault(family fault.Family, err error) *fault.Error {
	return fault.New(family, "device %d: %w", d.number, err)
}

func (d *device) short(err error) error {
	return d.fault(fault.Missing, err).With("free the device of other programs, use fewer instances, or choose another device")
}

// gone is the fault of a device that failed, or its driver.
func (d *device) gone(err error) error {
	return d.fault(fault.Program, err).With("look at the device with `npu-smi info` and at its logs")
}

// Codes of AscendCL.
const (
	otherChip = 507008
	// geFaults are 545xxx: what GE, which reads model files, says of those it cannot read.
	geFaults = 545
)

// over gives the error of a context that has ended.
func over(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
