// Package infer says what each ONNX operator makes of types, shapes and, where a
// tensor holds shape arithmetic, values.
//
// # The story
//
// A [Dim] is an integer expression over symbols: a number, "batch", "2*batch+1",
// "floor((height+1)/2)". The names that the graph's inputs declare are symbols;
// so is, without a name, everything else that is not known. Expressions are kept
// in a canonical form: two that are equal by the rules of arithmetic compare
// equal however they were computed, so "the same unknown" stays the same through
// a whole model.
//
// An [Info] is what is known of a value: its element type, its dims, and for
// small integer tensors the elements themselves, each an expression again. That
// carries a size from Shape through Gather, Mul, Concat and the rest into the
// Reshape that it was computed for.
//
// An [Inference] holds the infos of a model's values in a side table. It runs
// over a whole model ([Inference.Run]) or node by node in the order of the graph
// ([Inference.Node]), so that a pass can fold constants in the same sweep and
// later nodes see what earlier ones became. Each operator is a row in a table,
// with a plain function as its rule; one file holds one family.
//
// # What is trusted
//
// Graph inputs as declared, stored tensors, and the rules. Types that the file
// states for values in between are not read: files keep those of shapes they had
// in an earlier life. Only an operator nobody has a rule for, of a custom domain,
// is taken at the word of its own outputs' declaration. What a graph declares of
// its outputs is compared with what inference finds; where the two cannot both
// hold, inference stands and a [Conflict] says so, with both places. Equal names
// of dims on graph inputs mean equal sizes, which is the exporter's claim; that
// two sizes meet in an operator that wants them equal never makes them one symbol.
//
// # What is assumed
//
// Statements hold for runs that succeed: where an operator would refuse its
// inputs, nothing is promised. A dim may be zero everywhere but in the images of a
// Conv. A size that takes part in arithmetic is below 2^31 where it passes through
// int32 and below 2^24 where it passes through floats, which is when those
// conversions are exact. A 0 that was computed for the target of a Reshape copies
// the input's dim, as one that is written there does.
package infer
