// Package benchmark is what `npuctl bench` does: it serves a model inside this process,
// sends requests to it, and says what a client would see.
//
//	engines.go    which engine runs the model, and what to do when there is none
//	serve.go      the model behind the executor: its policy, instances and devices
//	raw.go        the engine alone, without queue and batches
//	requests.go   what the requests hold: random values, files, several shapes
//	shapes.go     a file of shapes and how often each comes
//	levels.go     the loads, one after the other: clients, rates, a search for the highest
//	verify.go     every answer under load held against the one of a request that runs alone
//	complete.go   what npuctl.yaml, or the folder, says and the command line does not
//	job.go        all of it, from the files to a report
//
// The load comes from package load, the figures from package measure, the report from
// package report; here they are put together.
package benchmark
