// Package pipeline makes the parts of a Triton repository that stand around a model:
// what comes before it (pictures as files to a tensor), what comes behind it (a feature
// vector, the best classes, boxes), and the ensemble that joins them, so that a client
// sends a JPEG and gets an answer of a few hundred bytes. It also makes models that run
// inside Triton's Python backend, for servers that lack a backend or for .om files, which
// npu_ge does not load.
//
// An [EnsembleJob] goes through these steps:
//
//	yaml.go         the pipeline's file, strictly, with places for errors
//	spec.go         what it may say
//	model.go        the model's part: npu_ge and onnxruntime as package generate plans
//	                them, ONNX Runtime in a Python model, or a model that is there
//	preprocess.go   the part before it, from what the model takes
//	postprocess.go  the part behind it, from what the model gives
//	ensemble.go     the maps between them; each checked for type, shape and batch
//	check.go        all of it against the rules of npuctl validate, in a folder apart
//	place.go        the files into their places, all or none
//
// A [PythonJob] makes one Python model: of an .onnx, of an .om (compiled.go), or of
// speech recognition with an encoder and a decoder (speech.go).
//
// # The Python models
//
// They lie in python/ as they are written to the repository: nothing is filled in, so
// that they can be read, run and tested as they are. What differs from model to model
// stands in config.pbtxt under parameters. Each answers every request by itself: a
// broken picture fails its own request and leaves the others of the batch alone.
package pipeline
