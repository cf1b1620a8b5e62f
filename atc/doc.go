// Package atc drives ATC, the compiler that makes an .om of an ONNX model, and
// knows its command line better than the compiler itself says it.
//
// A compile takes minutes, a wrong flag should cost a millisecond. So the command
// line is checked before anything runs, with the answers that ATC would give:
//
//	args ─ Parse ─▶ CommandLine ─ rules, in ATC's order ─▶ Verdict
//	                     ▲                                    │
//	      Options ───────┘ (Arguments, FromCommandLine)       └─ []Diagnosis
//
// Where each part stands:
//
//   - [Flags] is the table of every flag: kind, default, the values it takes, the
//     code when it is given another (flags.go).
//   - [Parse] reads words as getopt_long does: unique prefixes, single dashes,
//     dashes inside names (parse.go).
//   - [Check] walks one table of rules (rules.go). With [AsATC] it stops where ATC
//     stops, with ATC's code; the emulator answers so. With [Strict] it goes on to
//     what else is wrong, adds what the user guide forbids and ATC lets pass, and
//     says what was probably meant; `npuctl atc --check` answers so.
//   - The grammars stand in files of their own: shape.go, gears.go, aicore.go,
//     rawoptions.go, aipp.go.
//   - What compiles and is worth a look all the same is a note (notes.go), values that
//     only the operator engines read among it (notes_late.go).
//   - The tables of chips and operators are of one time. Told which toolkit will
//     compile ([Environment]), a check leaves to a real one what they do not have.
//   - [Options] is the typed form of the flags that matter for ONNX.
//
// The other half of the package finds ATC ([Finder]), runs it ([Run]) and reads what it
// printed ([ReadLog], [Diagnose]).
package atc
