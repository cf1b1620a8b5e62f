// Package processgroup runs a program in a process group of its own, so that all that it
// starts can be ended with it: by whoever started it, and, where that is killed, by a
// guard in the group.
//
// The programs are ATC, which starts compilers, and Triton servers, which start a process
// for each Python model. On systems without process groups the program alone is ended.
package processgroup
