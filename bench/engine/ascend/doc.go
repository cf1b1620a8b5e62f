// Package ascend is the engine of NPUs: it runs .om models through AscendCL, which is
// found on the machine as it runs. It is the same on npuctl's emulator of CANN, and says
// so then.
//
// # What lies where
//
//	engine      AscendCL, and the devices that were asked for
//	model       on each device the weights, once, and a first session: what is wrong with
//	            the file or the device shows when it is opened, not under load
//	instance    a session: the model loaded again onto the same weights, with a context, a
//	            stream, events, memory to work in and memory of inputs and outputs of its own
//
// Every instance loads the model for itself, because AscendCL forbids to run one loaded
// model on two streams at once: its memory to work in is part of it. The weights are only
// read, so they may be shared. Of a model of open shape they are not: AscendCL cannot say
// before how much memory it will take, and so does not lend any.
//
// Memory on the device and pinned memory of the host is made once, for the largest gear,
// and grows for open shapes alone. Where a model of open shape does not bound its outputs,
// AscendCL makes their memory in each run.
//
// # A run
//
// A run is one call into C: copies to the device, the model and copies back are put into
// the stream, with events between them that say how long each took, and the stream is
// waited for. It allocates nothing. Only what the shapes of the inputs take is copied, and
// the gear is set when it is another than in the run before.
//
// Every 50 ms that the device takes, Go looks whether the context has ended. If it has, the
// instance is left as it is: the device may still write into its memory, so that nothing
// of it can be given back before the process ends. The same holds for the engine and the
// model then. A model of open shape has no call that could be left; it runs on a goroutine
// of its own.
//
// # Limits on cores
//
// Limits are those of the instance's stream. They act on operators whose tiling is decided
// as they are launched; a model of fixed shapes has had that decided by ATC (its option
// --aicore_num).
package ascend
