// Package atcemu is the emulator's atc: a program that answers a command line as ATC
// does, and leaves an .om that the emulator's libascendcl.so runs.
//
// # The way of a compile
//
//	arguments ─ atc.Check ─▶ request ─ gate ─▶ carried model ─ analyse ─▶ signature, engines ─▶ omwriter
//
// [atc.Check] answers for the options, by the table of rules that `npuctl atc --check`
// has. The gate is the ONNX parser: operators nobody registered, what plugins refuse.
// The carried model is the user's, with the sizes, types and outputs that the options
// ask for. The analysis folds a copy of it to find every shape, as GE does. What comes
// out is a real container whose own partition holds the carried model.
//
// # What it is faithful in
//
// Exit codes (0, or 255), what stands on standard output and on standard error, error
// blocks in the form of the newest releases, the codes, the name and mode of the
// result, what is left in working, log and cache folders. A line says on every compile
// that it is emulated; it has the form of ATC's own warnings.
//
// It knows operators from tables (package soc) and compiles nothing: that a model goes
// through here does not show that kernels exist for it.
package atcemu
