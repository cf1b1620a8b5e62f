// Package eval is the reference interpreter: what each ONNX operator computes.
//
// It folds constants for the optimiser, judges results, and is the embedded CPU
// engine on machines without a shared library. [Prepare] makes a [Program] of a
// model, whose Run computes outputs from inputs; [Fold] computes one node.
//
// # How it is built
//
// Every operator is a row in a table: domain, name, the version from which the
// row holds, and a kernel. Families of operators live in one file each, with
// their rows on top; registry.go lists the families. A kernel is a plain
// function on a [Call]: it reads inputs and attributes, asks for output arrays
// and fills them. Kernels see attributes through the call, never through the
// node, so that references inside function bodies are resolved.
//
// Preparing a program makes a plan of every graph that can be reached: where each
// node finds its inputs, which kernel it calls, and which values nothing reads
// after it. A run then walks the plan; branches, bodies and functions are graphs
// with plans of their own. Stored tensors are decoded once, and kernels may keep
// what they make of them ([Call.Once]).
//
// # What it promises
//
// The same bits on every run and with any number of cores: work is split by
// output element, or in blocks whose size does not depend on the machine's
// cores. Small floats compute in float32 and round once per operator. Integers
// wrap; int64 never travels through a float. Intermediate results are let go
// after their last use, and all arrays are charged to a budget, so that a small
// file cannot claim a large memory. Whatever a file says, a run ends with a result
// or an error; a kernel that panics is an error that is [ErrFault].
//
// Where the specification leaves a result open (float to integer overflow,
// integer division by zero, ties that the text does not decide), kernels say so
// with [Call.Undefined]: folding then leaves the node alone, and evaluation goes
// on with a result that the kernel's comment documents.
package eval
