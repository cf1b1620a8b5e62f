// Package onnxpass is the optimiser: passes over a graph that leave what it
// computes as it is.
//
// A pass is a function on a [State]: the model, what inference knows of it, and
// the limits it must keep. passes.go holds the whole list as a table, with the
// order and the reasons for it beside it. [Optimize] runs the table in rounds
// until nothing changes. Each pass lives in a file of its own, whose comment
// shows a graph before and after.
//
// # What every pass keeps
//
// Graph inputs and outputs: names, order and types. What has effects (random
// operators, training mode) is never merged and never computed ahead.
// Operators of domains and versions nobody here knows are opaque: their inputs
// and outputs are kept, nothing is assumed of them. A node whose attribute
// refers to a function's attribute is left alone. What cannot be shown equal
// for every input is not done; where the specification leaves a result open,
// the node stays.
package onnxpass
