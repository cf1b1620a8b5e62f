package atcemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"

	"github.com/npuctl/npuctl/onnx"
)

// weightAlignment is that of a constant in WEIGHTS_DATA and in a combined file.
const weightAlignment = 32

// weights are the constants that are left after folding, and where they go.
type weights struct {
	inside [][]byte
	size   int64 // of those inside
	files  []constantFile
}

// storeWeights lays the constants out as --external_weight asks for: inside the .om, a
// file for each beside it, or one for all.
func storeWeights(m *onnx.Model, r *request) weights {
	w := weights{inside: [][]byte{}}
	var all [][]byte
	for _, v := range m.Graph.Initializers() {
		raw, err := v.Initializer().Raw()
		if err != nil || len(raw) == 0 {
			continue // strings have no bytes
		}
		if r.externalWeight == 1 {
			hash := sha256.Sum256(raw)
			w.add(constantFile{path.Join("weight", "weight_"+hex.EncodeToString(hash[:16])), raw})
			continue
		}
		all = append(all, raw, make([]byte, (weightAlignment-len(raw)%weightAlignment)%weightAlignment))
	}
	switch {
	case r.externalWeight == 2 && len(all) > 0:
		w.add(constantFile{modelNameOf(r.output) + "_weight_combined", bytes.Join(all, nil)})
	case r.externalWeight == 0 && len(all) > 0:
		w.inside = all
	}
	for _, piece := range w.inside {
		w.size += int64(len(piece))
	}
	return w
}

// add takes a file once: equal constants have one name.
func (w *weights) add(f constantFile) {
	for _, known := range w.files {
		if known.path == f.path {
			return
		}
	}
	w.files = append(w.files, f)
}
