// Package report prints what package measure found: as text for a terminal, as JSON with a
// published schema ([Schema]), as CSV with a row for each level, and as a page that holds
// its charts itself and opens without a network.
//
// [Folder] keeps the records of a run beside its reports, and [Remake] makes the report
// from them again, whatever has become of the program that measured.
//
// Every report says what was measured on: [Provenance].
package report
