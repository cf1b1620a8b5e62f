//go:build !race

package simulation

// raceDetector says that tests run ten times as slowly.
const raceDetector = false
