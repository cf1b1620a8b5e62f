// Package part computes in Go what the Python models of npuctl config ensemble compute in
// the server: pictures to tensors before a model, and feature vectors, the best classes or
// boxes behind it.
//
//	kind.go      which of them a model.py is
//	settings.go  their parameters, out of the same config.pbtxt
//	image.go     files to tensors, by package picture
//	features.go  vectors of length 1
//	topk.go      classes, scores and names
//	boxes.go     detections in the picture that was sent
//
// # How close it is
//
// The order of every sum and each rounding to float32 is NumPy's, so that features, boxes
// and scores have the same bits; pictures differ as package picture says. The softmax of
// the best classes alone is not bit for bit the same: NumPy's exponential of float32 is off
// by up to 3 units in the last place, the one here by 1.
//
// # Requests
//
// A part answers one request at a time, as the Python models do: its inputs and outputs
// are in the order of config.pbtxt, and a request that it cannot answer is an error with
// the words that the server would have. Goroutines may share a part.
package part
