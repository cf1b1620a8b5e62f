// Package null is an engine that computes nothing: it answers at once or after a
// programmed time, so that everything around an engine can be measured and tested.
//
// Its outputs are not noise. Each is a copy of an input as far as their sizes allow, row by
// row, so that a row that was lost, or came to another request, shows. And it can be told
// to fail: every so many runs, for ever, or to hang.
package null
