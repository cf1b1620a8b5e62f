package onnxruntime

import "embed"

// Sources are api.h and api.c, by which C code calls ONNX Runtime without its headers.
// The emulated AscendCL library is compiled with them.
//
//go:embed api.h api.c
var Sources embed.FS
