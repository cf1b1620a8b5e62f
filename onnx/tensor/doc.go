// Package tensor holds the element types of ONNX and the arrays made of them. It
// is the bottom of the house: everything that touches a weight, a constant or an
// intermediate result imports it, and it imports only the standard library.
//
// A [Type] is one of the numbers of TensorProto.DataType. Each type has one Go
// type ([Element]), with one Go value an element: the 2- and 4-bit types take a
// byte each in memory and are packed only in their raw form. Floats that Go does
// not have are named bit patterns ([F16], [BF16], [E4M3FN], …) that convert from
// and to Go's floats with one rounding.
//
// A [Dense] is a row-major array of one type. It is made from Go values ([Of],
// [Make], [Scalar]), from zeros ([New]) or from the bytes of a file ([FromRaw]),
// which it stands on without copying wherever the host allows. [Data] gives its
// elements back as Go values, [Words] as plain storage words, for the many
// kernels that move elements without looking at them. [NewMovers] and [Numbers]
// pick the instance of a generic kernel by element type, so that no caller
// writes that switch.
//
// Shapes are []int, outermost dim first. Rank 0, dims of 0 and strings are legal
// everywhere. [BroadcastShapes], [Walk] and [Dense.Strided] are the index
// arithmetic that operators share.
package tensor
