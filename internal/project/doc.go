// Package project reads npuctl.yaml, the file that gives a folder's commands their
// defaults, and writes a first one for a model.
//
// The file is read strictly: what it does not know, of the wrong type, or given
// twice is an error with file, line and column, and with the name that was
// probably meant. Flags of a command win over what stands in it.
//
// [Project] is the whole format: its fields, their yaml names and their comments.
// [Template] writes them all, most of them commented out.
package project
