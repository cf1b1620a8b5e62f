// Package onnx holds ONNX files as editable graphs.
//
// # The story
//
// [Open] maps a file and walks over its protobuf fields where they lie. What the
// caller gets is a [Model]: a main [Graph], local [Function] bodies, and everything
// else the file said, kept as it was. A graph is a list of [Node]s wired by
// [Value]s. A value knows who produces it and every place that reads it, also from
// inside the subgraphs of If, Loop and Scan; so a rewrite is a matter of pointing
// the readers of one value at another ([Value.ReplaceUses], [Graph.Forward]) and
// letting the dead part go ([Graph.RemoveDead]). [Model.Check] proves that a model
// still stands after edits, and [Model.Validate] holds its nodes against what the
// specification says of their operators. Package text writes graphs for people and
// reads them back.
//
// Weights are [Tensor]s. They stay in the mapped file, or in the external data
// file, until somebody asks for their elements with [Tensor.Dense]. [Model.Save]
// copies the bytes of untouched ones from file to file and replaces the target
// in one step, so that a failure leaves what was there before.
//
// # What is kept
//
// Every part of a model keeps the bytes it was read from. Writing copies them and
// puts anew only the fields that an edit can change, each in the place its number
// gives it. So a model that nobody edits comes back byte for byte, provided its
// fields came in the order of their numbers, as every known writer emits them;
// fields this package has no name for (newer schemas) are kept wherever they are;
// an attribute that says 0 stays, and one that was left out stays out.
//
// The generated bindings of package onnxpb take no part in this: decoding whole
// messages into them and back costs several times the time and memory, and forgets
// the order of fields and the form of lists. The tests hold this package's reading
// and writing against theirs.
//
// # Rules of the format
//
// The schema is onnx.proto of IR version 14; the rules (scopes, single
// assignment, optional inputs as empty names) are those of the ONNX IR
// specification. Names are unique within what a scope can see; a file that
// breaks this by shadowing is read as the inner scope means it, and
// [Model.MakeNamesUnique] repairs it.
package onnx
