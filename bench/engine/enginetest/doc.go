// Package enginetest is what every engine must pass: one table of checks of what package
// engine promises, run on small models by the tests of each engine.
//
//	func TestEngine(t *testing.T) {
//		e := ort.New(…)
//		enginetest.Run(t, enginetest.Suite{Engine: e})
//	}
//
// Models are ONNX as text. An engine that runs something else makes it of that:
// [Suite.File]. What an engine cannot do at all is listed, with the reason, in
// [Suite.Without]; those checks are skipped and say so.
package enginetest
