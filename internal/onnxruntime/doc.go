// Package onnxruntime runs ONNX models on ONNX Runtime, the engine by which npuctl
// judges its own work.
//
// ONNX Runtime is optional: npuctl neither links it nor needs its headers. [Find]
// says where its shared library lies on this machine, [Open] maps it, and from
// there everything is an object with a Close: a [Library] makes a [Session] of a
// model, and a session runs any number of times, from any number of goroutines.
//
//	path, _, err := onnxruntime.Find("")
//	library, err := onnxruntime.Open(path)
//	defer library.Close()
//	session, err := library.NewSession("model.onnx", onnxruntime.Options{})
//	defer session.Close()
//	outputs, err := session.Run(ctx, map[string]onnxruntime.Value{"x": x}, nil)
//
// Only the CPU is used: no execution provider is ever added (adding one that the
// machine cannot serve makes some published builds hang when they are closed).
// ONNX Runtime is kept quiet; all it has to say comes back in an [Error].
//
// The library is reached through its C API, a table of functions whose order is
// fixed for ever (api.h). Releases from 1.17 on work. A build without cgo, or for
// Windows, has the same functions; its Open says what is missing.
package onnxruntime
