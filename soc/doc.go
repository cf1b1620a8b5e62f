// Package soc knows the Ascend chips and what ONNX operators meet on them. It is data
// with a few questions; nothing is run and no file is read.
//
// [Lookup] takes a chip as people write it, such as "Ascend910B3", "910b3" or "Atlas
// 300I Duo", and gives its cores, memory and limits. A name that fits several chips
// is an error that lists them, because a model is compiled for one chip, not for a
// family: the loader refuses what was compiled for another architecture, and chips of
// one differ in how many cores a model may count on.
//
// [LookupOperator] says of an ONNX operator for which opsets the parser of CANN knows
// it, whether the AI Core, the AI CPU or nothing computes it on a chip family, and
// what to do about it. [Examine] asks that for all nodes of a model.
//
// # How far to trust it
//
// Chips come from the platform files of the open runtime (2026); an installed CANN
// has its own copies, which win where they are there. Development chips are in that
// source only. Memory kinds are those of the hardware; which of them the runtime
// answers to was never tried. Products come from what their owners show of npu-smi.
//
// Operators come from the open operator libraries and the documentation of mid 2026.
// What the parser takes was tried with the vendor's own parser; which engine computes
// an operator was read, not run, so every row says how well it is supported
// ([Confidence]). Unknown means nobody has said, never that it works. For the chips
// of the 310B, 350 and 950 families there are no rows on engines.
package soc
