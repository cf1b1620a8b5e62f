// Package modelstats says what a model is: its signature, its operators, how much
// it stores and how much it computes.
//
// [Describe] gives everything as plain data, which `npuctl inspect` prints as
// tables or, as it is, as JSON.
//
// # Multiply-accumulates
//
// Counted are the operators that do nearly all the work of a network: matrix
// products, convolutions and recurrent layers, with their quantized forms. One
// multiply with one add is one MAC; work at the borders that meets padding counts as
// if there were none. A node whose shapes are not known before running is not
// counted, and the description says how many these are. The body of a Loop or Scan
// counts as often as it runs, once if that is not known; of an If the branch that
// does more; a local function at every call.
package modelstats
