// Package text reads and prints ONNX models as text, so that a test writes a
// graph in ten lines and a person sees what a pass has done.
//
//	<ir_version: 10, opset_import: ["": 18]>
//	net (float[N,3] x) => (float[N,2] y)
//	<float[3,2] w = {1, 2, 3, 4, 5, 6}> {
//	  z = MatMul (x, w)
//	  [last] y = LeakyRelu <alpha = 0.5> (z)
//	}
//
// The language is that of the ONNX textual syntax, written anew:
//
//   - A model is an optional header, a graph, and functions. Without a header
//     the IR version is 10 and the default domain has opset 21.
//   - A graph is a name, inputs, => and outputs, then in angle brackets stored
//     tensors and the types of values in between, then nodes in braces. An
//     input with = and elements has a default.
//   - A node is [name] outputs = operator <attributes> (inputs); the attributes
//     may also stand behind the inputs. The operator is domain.name:overload. An
//     input or output left out is "".
//   - An attribute is name = value, with the kind between them where the value
//     does not tell it: axes: ints = [], alpha: float = @alpha, to = 1,
//     value = int64[2] {3, 4}, then_branch = yes () => (y) { … }.
//   - A type is float (a scalar), float[] (unknown rank), float[N,3,?],
//     seq(…), optional(…), map(int64, float), sparse_tensor(float[3]) or
//     opaque(domain, name).
//   - Names that are not made of letters, digits and _ stand in quotes, with the
//     escapes of Go. A # begins a comment.
//
// Beyond the public syntax: the graph's name, and the types of inputs and
// outputs, may be left out; sparse tensors are written as {values, indices};
// documentation and metadata are notes behind what they belong to, as in
// @doc "…" and @meta ["key": "value"]; complex numbers are two floats each.
//
// What text does not tell: unknown fields, denotations, training information,
// quantization annotations, device configurations, the documentation of tensors,
// the payload of NaNs, and in which of its forms a tensor was stored. All else
// survives: what [String] gives, [Parse] reads back, and prints again the same.
package text
