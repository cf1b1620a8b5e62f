// Package measure makes figures of the records of package load, and says how far they may
// be believed.
//
// [Recorder] watches a run: it decides when there is enough, and sums up a [Level]. It
// sees each record once and keeps little: percentiles are exact up to 131,072 values and
// to three digits beyond (an HDR histogram), the timeline has a fixed number of bins, and
// of the records themselves it keeps a sample. A Level depends on the records alone and
// not on how they came, so that a kept stream of them gives the same one later.
//
// What makes a figure doubtful stands beside it:
//
//   - each percentile has the interval that order statistics give, and those for which
//     there are too few values are named;
//   - stable: the last windows differ by no more than a tolerance ([Stability]);
//   - overloaded: more becomes due than is answered, so that figures depend on how long
//     the run was and on nothing else ([backlog]);
//   - valid: the generator itself was in time ([Limits]).
//
// [Search] finds the highest rate at which a limit holds, [Compare] measures two targets
// in turns and tests whether they differ, and [Gate] holds a result to an earlier one.
package measure
