// Package terminal is how npuctl talks to people: tables, colours, sizes and
// progress, the same in every command.
//
// What is printed depends on where it goes. A terminal gets colours, unless the
// user has asked for none; a pipe or a file gets plain text, the same bytes on
// every machine, so that it can be compared. Progress goes to a terminal or nowhere.
package terminal
