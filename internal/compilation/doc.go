// Package compilation is what `npuctl compile` does, from the ONNX file to a checked
// .om: choose sizes, optimise, hold the options against ATC's rules, run ATC, read
// the result back, and put everything in its place with a record of where it came
// from.
//
// A [Job] names models and chips; each pair of them is one build, and builds run
// side by side. A build goes through these steps, a file each:
//
//	outputs.go   what may be written: nothing that is read, no folder, each file once
//	shapes.go    which dims are fixed, which gears there are: static, gears, dynamic
//	arguments.go what that and the user's options are on ATC's command line
//	identity.go  the hash of all that decides the result; nothing changed, nothing done
//	graph.go     the optimised graph, whose nodes lead back to the original's
//	gearcheck.go each gear through the graph, before ATC compiles it
//	build.go     the steps, in a folder of their own beside the result (folder.go)
//	run.go       the run of ATC: progress, verdict, diagnosis, logs
//	verify.go    the .om against what was asked
//	place.go     results into their places, all or none
//	record.go    the build record, and what earlier builds took
//
// What the command line leaves out comes from npuctl.yaml (defaults.go), and a mistake
// in it is told with its line (wishes.go).
//
// A command line of the user's (commandline.go) runs where it stands; the old results wait
// aside (aside.go) until the new one has been read back.
//
// Nothing appears under its final name before the .om has been read back and agrees
// with what was asked. Whatever stops a build takes its folder with it.
package compilation
