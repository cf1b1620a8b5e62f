// Package gears says at which sizes a model with open dims is compiled.
//
// An NPU runs programs of fixed shapes best. A model whose batch, length or image
// size varies is therefore compiled for a few of them, the gears, beside each
// other in one file, and a request is padded to the next gear. This package
// holds such a choice as a [Plan], plain data that can be printed, stored and
// replayed, and makes one from a list that the user wrote ([Fit]).
//
// A gear has one number for each open axis of the model, where axes of one
// symbolic name are one axis: input_ids[1,length] and attention_mask[1,length]
// want one number, not two.
package gears
