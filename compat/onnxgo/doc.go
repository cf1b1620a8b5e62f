// Package onnxgo holds npuctl's reading of ONNX files against an independent
// reader's, onnx-go with its simple backend: on the test models of the ONNX
// project both must see the same nodes and wires.
//
// It is a module of its own because onnx-go needs some fifty modules that have no
// business in npuctl. It computes nothing for us: see docs/architecture.md.
package onnxgo
