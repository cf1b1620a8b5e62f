// Package compare says whether two results of a model are the same, and if not,
// how far and where they are apart.
//
// Engines and rewritten graphs round differently, so floats are equal within a
// tolerance that follows from their element type; integers, truth values, strings
// and floats of at most 8 bits are equal or not. Two NaNs are equal, and so are 0
// and -0; an infinity is equal to itself alone. Sequences, optionals and maps are
// equal when what they hold is; maps in any order of their keys.
//
// # The tolerance
//
// A float may be off by
//
//	Relative·|want| + Absolute·scale
//
// where scale is how large the wanted array's elements are: the largest finite
// magnitude in it, but at most a hundred times the typical one, so that a single
// huge element (a mask of -1e38) does not excuse everything beside it.
package compare
