// Package configgen reads, edits and writes config.pbtxt, the file with which the
// Triton inference server is told about a model.
//
// [Parse] reads a file as strictly as the server does: what protobuf's text format
// accepts is accepted, what it refuses is refused, and the error says file, line and
// column, shows the line and says what was expected. It gives a [Document]: a tree
// that knows where everything stands and keeps comments, and a [Config], the same
// as plain Go structs, which is what most code wants.
//
//	doc, err := configgen.Parse("config.pbtxt", data)
//	cfg := doc.Config()
//	for _, in := range cfg.Input {
//		line, column := doc.Place(in.At("dims"))
//		…
//	}
//
// [ParseLenient] differs in one point: fields that the format does not know become
// part of the tree instead of an error, so that an edit does not lose them.
//
// [NewDocument] goes the other way: it makes a tree of a Config, to which comments
// may be added, and [Document.Print] writes it: fields in a fixed order, lists in
// brackets, comments where they were, the same bytes every time. Printing, parsing
// and printing again changes nothing.
//
// [ApplyEdits] changes single places of a file and leaves every other byte alone. A
// [Patch] makes such edits of fields: it sets, adds and takes away what a file says at
// its top level, and knows comments that npuctl wrote (#:) from those of people.
//
// # The format
//
// modelconfig.proto, beside this file, is the table of messages, fields and
// enumerations. The reader is written by hand rather than generated or left to
// protobuf's own text package, for four reasons: that package knows no comments and
// no positions of values; it drops what it does not know, or refuses it; what it
// prints changes from build to build; and it differs from the C++ reader inside the
// server in what it takes. The tests hold this reader against it nevertheless.
//
// # Hostile files
//
// The parser goes as deep as the format nests and no deeper: what is unknown is read
// over. Work and memory are linear in the size of the file.
package configgen
