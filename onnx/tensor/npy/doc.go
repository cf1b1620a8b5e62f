// Package npy reads and writes the array files of numpy: .npy, one array, and
// .npz, a zip archive of them. They are how npuctl takes inputs and gives results.
//
// The format is described in numpy.lib.format. Read are versions 1 to 3, both
// byte orders, row-major and Fortran order, every numeric dtype that has an ONNX
// type, bool, and text ('U' as UTF-8 strings, 'S' as bytes). Python objects are
// refused, for reading them means running a program. Written are version 1,
// little-endian, row-major files, the same bytes for the same array.
//
// # Types that numpy lacks
//
// numpy has no bfloat16 and no floats or integers of 8 bits and less beyond int8
// and uint8. Such an array is written as a structured dtype with one field, named
// as TensorProto.DataType spells the type, over the unsigned integer of its width
// (the signed one for INT4 and INT2), one element a byte if it has fewer bits:
//
//	[('BFLOAT16', '<u2')]    [('FLOAT8E4M3FN', '|u1')]    [('INT4', '|i1')]
//
// In Python, numpy.load(file).view(ml_dtypes.bfloat16) is the array. A plain
// unsigned dtype would load, too, but as numbers that nobody meant.
//
// The Python package ml_dtypes saves its arrays as raw bytes without a name
// ('<V2', '|V1'). Which type they have the caller must say: [ReadNPYAs].
//
// # Why not a library
//
// github.com/sbinet/npyio, looked at in version 0.6.0, panics on a header that is
// not as it expects, allocates what a header claims before it has the data, does
// not read version 3, float16 and structured dtypes, leaves Fortran order to its
// caller, and brings gonum along. This package is about as long as the guard
// around it would be.
package npy
