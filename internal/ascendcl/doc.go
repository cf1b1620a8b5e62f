// Package ascendcl runs .om models on a device through AscendCL, CANN's C interface.
//
// CANN is optional: npuctl neither links it nor needs its headers. [Find] says where
// its libraries lie on this machine, [Open] maps them and starts the runtime, and
// from there everything is an object with a Close: a [Runtime] opens a [Device], and
// a device loads a [Model], which runs any number of times.
//
//	places, _, err := ascendcl.Find("")
//	runtime, err := ascendcl.Open(places)
//	defer runtime.Close()
//	device, err := runtime.Device(0)
//	defer device.Close()
//	model, err := device.Load("model.om")
//	defer model.Close()
//	outputs, err := model.Run(ctx, inputs, ascendcl.Gear{})
//
// AscendCL binds its context, and the text of its last error, to the thread that
// called. Go moves goroutines between threads; so every call into C here does a whole
// job: it makes the context current, does the work, and fetches the text of what went
// wrong before it returns.
//
// Names, orders of calls and numbers are those of AscendCL's public headers. Only
// functions that every release since CANN 8.0 has are called. Whether the library is
// npuctl's own emulator is in [Runtime.Emulated].
package ascendcl
