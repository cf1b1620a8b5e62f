// Package validation is what `npuctl validate` does: hold paths against the rules, and
// go further where it is asked to.
//
// configgen/rules reads repositories, configurations and models. What needs more than
// reading is here, a file each:
//
//	om.go        an .om against its build record: is it stale, is it what was built?
//	project.go   an npuctl.yaml, and everything that it names
//	load.go      what a real Triton server says to the same paths
//	numerics.go  a model against the one it was made from, on the same inputs
//
// All of it ends in findings, which print and count like those of the rules.
package validation
