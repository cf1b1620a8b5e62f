package part

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Kind is one of the Python models that npuctl writes.
type Kind string

// The kinds; their names are those of the folders that they come from.
const (
	Unknown     Kind = ""
	Image       Kind = "image"
	Features    Kind = "features"
	TopK        Kind = "topk"
	Boxes       Kind = "boxes"
	ONNXRuntime Kind = "onnxruntime"
	Compiled    Kind = "compiled"
	Speech      Kind = "speech"
)

// known are the SHA-256 of each model.py of configgen/pipeline/python. Who changes one
// sees to it that this package computes the same, and adds a row; rows of files that
// repositories may still hold stay as long as they, too, compute the same.
var known = map[string]Kind{
	"d578876e20be571a57f9e453334d1b95046ce5a9f88a10c834426d814d43c6c8": Image,
	"d4d0e0caa815a84bcc6d78f79b2bdc7aeb6e025d720b2e4956c529375a2e14a1": Features,
	"199c869a796879efcc873ca47a754349fcb3476ae4e7099bcfa099660b8475a2": TopK,
	"4e8f1cb7b8c9c6dbcb5e7ec99ed51edacb31c26ded6d18b35fcc234453c4f33e": Boxes,
	"2335587d93791d935f152fe6453627d4dabe2ba895368650164164792952f71d": ONNXRuntime,
	"10b1e51a52a2de7c9c34b7ea0cef462f9b162fe91c1096275e31a3cb5af1b50b": Compiled,
	"7fb311622fcb91bda3a7e5683fb44eb97c44f22026ea826f6bcba5d88ea3fd62": Speech,
}

// KindOf says which kind a model.py is. Files that were changed are Unknown: nothing here
// says what they compute.
func KindOf(model []byte) Kind {
	sum := sha256.Sum256(bytes.ReplaceAll(model, []byte("\r\n"), []byte("\n")))
	return known[hex.EncodeToString(sum[:])]
}
