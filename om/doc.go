// Package om reads offline models: the files that the Ascend Tensor Compiler makes
// of a network and that the runtime loads.
//
// [Open] looks at the first bytes and says what a file is. An .om begins with a
// header of 256 bytes, then come one or more models, each a table of partitions and
// their bytes: the description of inputs and outputs, the graph, the weights, the
// kernels, the tasks. Only the header and the tables are read at once. Everything
// else is read when somebody asks, through a window of a few hundred bytes, so that
// a file of a gigabyte opens in no time and takes no memory.
//
// [File.Signature] is what most callers want: inputs, outputs and gears. Current
// files carry it as a small partition of its own; for older ones it is gathered from
// the graph. [File.Provenance] and [File.Needs] say who made the model for which
// chip and what it takes to load it. [File.Summary] is everything at once, as the
// documented JSON of `npuctl inspect`.
//
// Three generations of the format are read: that of 2020, whose header lacks the
// number of models; that of CANN 5, with 32-bit sizes; and today's. Models for
// phones, dataflow files and nano models are recognised and said to be what they are
// ([Kind]); of an OM2 package, inputs and outputs are read from the description of its
// first model. What is no model at all is an error that says what it looks like.
//
// Attribute names and values inside the graph may be replaced by numbers of a
// dictionary; [File.Operators] gives them back in clear.
//
// # Hostile files
//
// Every size is held against what the file has before anything is allocated, lists
// have a limit far above what the compiler writes, and nesting is as deep as the
// format needs and no deeper. Reading writes nothing and runs nothing.
package om
