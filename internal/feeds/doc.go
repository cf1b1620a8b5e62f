// Package feeds makes inputs for a model that nobody has data for: random ones
// that it is likely to accept, and edge values that show where two ways of
// computing part.
//
// A [Maker] looks at the model once. It gives every symbolic dim one size wherever
// it occurs, and proposes several: 1, 2 and others that suit an axis's place.
// Integers that end up as indices into a stored table stay inside it; values that
// become sizes (the target of a Reshape, the trip count of a Loop) stay small, so
// that a random input does not ask for terabytes. What the model computes from the
// rest is not looked at: it may refuse a [Set], and then the caller tries another.
//
// The same set of the same model has the same values on every machine.
package feeds
