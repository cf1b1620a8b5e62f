// Package ensemble runs ensembles of a Triton model repository without a server: a graph
// of models, from a picture's file to boxes, each step with the queue, the batches and the
// instances of its own config.pbtxt.
//
//	plan, err := ensemble.Read("models", "clip")        // the graph, checked; nothing is loaded
//	e, err := plan.Open(ctx, ensemble.Options{Engine: engine})
//	call := e.NewCall()                                 // one request at a time, again and again
//	call.Inputs[0] = engine.Buffer{Shape: []int64{1, 1}, Strings: []string{png}}
//	err = e.Do(ctx, call)                               // call.Outputs, call.Stages, call.Steps
//	err = e.Close(ctx)
//
// [Ensemble.Target] makes a target of package load of it. A plain model of a repository is
// an ensemble of one step, so that whoever runs ensembles runs all there is.
//
//	repository.go  configs, versions and files of a repository
//	plan.go        which tensor goes where
//	check.go       whether it can: circles, types, shapes, batches
//	open.go        an executor for each model
//	parts.go       the Python models of npuctl config ensemble, computed by package part
//	call.go        the way of a request through the graph
//	target.go      for package load
//
// # What it keeps to
//
// A step starts as soon as all its inputs are there; steps that do not need each other run
// at the same time. Requests of different clients share a batch in each step's batcher,
// and nowhere else. Between a model that batches and one that does not, a first dim of 1
// comes and goes. Priority and timeout of a request go with it to every step. When a step
// fails, those that run end, no other starts, and the error names the step, which the
// server's does not.
//
// # Stages
//
// The time of a request is that of its critical path: of the steps from the one that ended
// last back to the input, each by the step whose output it waited for last. Their stages
// add up, with the hand-overs between them, to the latency, and steps beside the path cost
// the client nothing. [Call.Steps] has the times of all.
package ensemble
