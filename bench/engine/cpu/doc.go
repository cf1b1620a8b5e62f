// Package cpu is what the engines that compute on the CPU have in common: the signature of
// an ONNX file, the memory of inputs, and runs that can be left behind.
package cpu
