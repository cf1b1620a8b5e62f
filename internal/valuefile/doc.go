// Package valuefile reads and writes the inputs and outputs of models as files.
//
// Files are .npy (one array), .npz (many, by name), .bin (elements as they lie in
// memory, little-endian; type and shape are the model's) and .pb (a TensorProto,
// SequenceProto, OptionalProto or MapProto, as ONNX test data has them; which one
// follows from the model's type).
//
// A file is for the input it is named after, or in the layout of ONNX's test data
// for the one it numbers: input_0.pb, input_1.pb. Names of inputs may hold any
// characters, so file names spell some of them as %2F ([Escape]); what a model
// calls its outputs never decides in which folder a file lands.
package valuefile
