// Package onnxpb holds the protobuf messages of an ONNX file: ModelProto,
// GraphProto, NodeProto, TensorProto and the rest, generated from the schema of
// ONNX 1.23 (IR version 14: IR 13 with its function overloads, metadata_props on
// every level, device configurations, 2- and 4-bit and 8-bit float types, plus
// two 6-bit float types that IR 14 adds).
//
// Two choices matter to those who use it. The messages are proto2, as upstream's
// are: fields know whether they were present, names need not be valid UTF-8, and
// a message as upstream writes it is marshalled to the bytes it was read from;
// proto3 bindings lose all three. And the proto package is npuctl.onnx, because
// protobuf's registry panics at start-up when two bindings in one process both
// call themselves onnx; the name is not part of the wire format.
//
// Package onnx is the only intended user; everything above it works on its graph.
//
// The schema is the ONNX project's, under Apache-2.0; onnx.textproto is the
// descriptor that onnx.pb.go was generated from.
package onnxpb

//go:generate ./generate.sh
