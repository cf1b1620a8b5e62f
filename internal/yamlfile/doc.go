// Package yamlfile reads the YAML files that people write for npuctl: its project file and
// its pipelines. What is wrong in one, down to a bracket that nobody closes, is told with
// file, line and column, and with what was probably meant.
//
// [Parse] gives the tree of a file, a [Decoder] reads it into structs whose fields carry
// yaml names. It knows few types on purpose: texts, numbers, truth, times, and lists, maps
// and structs of these, so that every message can say what is wanted. A file is a stranger's:
// its size is bounded, and so is what its aliases multiply to.
package yamlfile
