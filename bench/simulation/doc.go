// Package simulation runs the executor in virtual time: arrivals, a policy and service
// times in, batches and waiting times out.
//
// A [Run] has no goroutines and no sleeps. It is one loop over three kinds of events, of
// which the earliest is next: a request arrives, a time comes for which the scheduler
// asked, a batch is done. At one moment they come in this order, as they would on a
// machine, where a run always ends a little later than its time. What a run needs of
// chance (arrivals, sizes, service times) comes from streams of one seed, so that a run
// is the same every time, and other policies meet the same requests.
//
// The policy is that of package executor, not a model of it.
package simulation
