// Package generate makes a model repository for Triton of an ONNX file: the model in
// its version folder, and a config.pbtxt that says why it is as it is.
//
// A Job goes through these steps, a file each:
//
//	signature.go  what the model takes and gives: dims fixed as asked, output dims
//	              computed, and whether the first axis is a batch
//	plan.go       what follows from it for the server: max_batch_size, merging
//	gears.go      the sizes that the NPU's graph is compiled for
//	queue.go      what happens to requests that wait for a batch
//	warmup.go     what each instance runs first: every size that there is
//	config.go     the config of the plan, each choice with its reason as a comment
//	check.go      the config against the rules of npuctl validate, before it is written
//	memory.go     what that takes on an NPU, held against the chip
//	place.go      the files into their places
//
// Where a config stands already, it is read before the plan, which takes over what
// nobody asks for otherwise (standing.go), and changed afterwards where the plan demands
// or a flag asks for something else (merge.go). All else of it stays, byte for byte.
// What can neither stay nor be changed is refused with its place; Force makes a new one.
//
// # What npu_ge makes of a config
//
// The Ascend GE backend takes tensors by position, so they are listed in the model's
// order. It merges the requests of a batch only when max_batch_size and preferred
// sizes are set and no dim but the batch is open; else it runs them one by one. Open
// output dims it computes from their names in the model, as expressions over the
// names of input dims. With max_batch_size above 0 it takes these names from the wrong
// axis, and so a model with such outputs is written with max_batch_size 0 and its
// batch as an open dim. A gear that is missing is an error for the request, as nothing
// is padded: gears are filled up to every batch that can come.
//
// A model whose output dims have names that are no expressions gets better ones, where
// its operators tell: the copy in the repository then differs from the file in the
// names of these dims, and in nothing else.
package generate
