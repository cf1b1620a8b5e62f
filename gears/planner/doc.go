// Package planner finds the gears that pad real requests least.
//
// A request runs in the cheapest gear that is not smaller than it in any axis, filled up
// to that gear's size. The work of a gear is the product of its sizes, each to a power
// that the caller may choose ([Options.Exponents]); padding is the work of the gears that
// requests run in, less the work of the requests themselves. [Make] looks, for every
// number of gears up to the most, for those with the least padding:
//
//	sizes.go   what was observed: sizes, and how often each came
//	read.go    reads that from lines of numbers, CSV and JSON
//	chain.go   exact, where of two sizes one always covers the other: one axis, squares
//	state.go   a choice of gears for several axes: who runs where; the best place of a gear
//	cover.go   the search for several axes
//	choice.go  what is found, and how many gears are worth having
//
// Along one axis the gears of a best choice are observed sizes, and each serves those
// between the last gear and itself. Dynamic programming over the number of gears finds the
// exact optimum; where the last gear's part begins best is the lowest of a set of lines,
// which makes it K·n steps for n distinct sizes.
//
// For several axes the problem is a k-median with covering, which nobody solves exactly in
// general. There the search is a heuristic: it trades one gear for the best other one, all
// pairs tried, until no trade helps; shakes the choice, and tries again, as long as a fixed
// amount of work lasts; and ends with moves over all observed sizes. It also starts from
// the best square gears, which are exact, and so is never worse than those. The same
// observations give the same gears on every machine.
package planner
