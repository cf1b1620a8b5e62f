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
// A model takes tensors and gives tensors. Below it is the [Session], for those who run
// at the same time and often: a device shares the weights of a model between sessions
// ([Shared]), each session has a context, a stream and memory of its own, inputs are
// written straight into memory that the device can reach, and a run is one call.
//
//	shared, err := device.Share("model.om")
//	defer shared.Close()
//	session, err := shared.Session()
//	defer session.Close()
//	x, err := session.Input(0, []int64{8, 3, 224, 224}) // pinned memory, to be filled
//	times, err := session.Run(ctx, ascendcl.Gear{Kind: ascendcl.BatchGear, Values: []int64{8}})
//	shape, y := session.Output(0, nil)
//
// AscendCL binds its context, and the text of its last error, to the thread that
// called. Go moves goroutines between threads; so every call into C here does a whole
// job: it makes the context current, does the work, and fetches the text of what went
// wrong before it returns.
//
// Names, orders of calls and numbers are those of AscendCL's public headers. A library
// must have the functions that every release since CANN 8.0 has; the few that came later
// are listed apart in api.h, and what needs one that is missing says so. Whether the
// library is npuctl's own emulator is in [Runtime.Emulated].
package ascendcl
