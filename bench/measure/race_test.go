//go:build race

package measure

// raceDetector says that tests run ten times as slowly.
const raceDetector = true
