// Package devicememory estimates what a graph takes on an NPU before anything is
// compiled or deployed: the weights, and the most that intermediate results need at one
// time.
//
// [OfGraph] goes over the nodes in the order of the graph. A result takes memory from
// the node that makes it to the last one that reads it; the peak is the most that is
// alive at one time, the inputs and outputs of the graph apart, for these lie in buffers
// of the request. Nodes that only look at the same numbers in another shape (Reshape,
// Squeeze and the like) take none of their own. What a branch or the body of a loop
// needs is added while its node runs.
//
// # How far to trust it
//
// It is an estimate from above and from below at once. A compiler fuses nodes and lets
// results share memory, which takes less; its kernels need room to work in, which takes
// more, and nobody but the compiler knows how much. [OfCompiled] reads what a compiler
// planned, and is to be preferred where there is an .om. Neither counts what the driver,
// the runtime and kernels in the cache take.
package devicememory
