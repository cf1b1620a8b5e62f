package onnx

import (
	"bytes"
	"unicode/utf8"
)

// foreignFormats tells files that people take for ONNX models by a few bytes at
// a fixed place, and says what to do with each.
var foreignFormats = [...]struct {
	at    int
	magic string
	what  string
}{
	{0, "PK\x03\x04", "it is a zip archive, as PyTorch checkpoints (.pt, .pth) and Keras files are; export it with torch.onnx.export or tf2onnx"},
	{0, "\x80\x02", "it is a Python pickle, as old PyTorch checkpoints are; export it with torch.onnx.export"},
	{0, "\x89HDF", "it is an HDF5 file, as Keras models (.h5) are; convert it with tf2onnx"},
	{4, "TFL3", "it is a TensorFlow Lite model; convert it with tf2onnx --tflite"},
	{4, "ORTM", "it is in ONNX Runtime's own format (.ort), which cannot be converted back; take the .onnx it was made from"},
	{0, "IMOD", "it is an offline model (.om), compiled already; take the .onnx it was made from"},
	{0, "GGUF", "it is a GGUF file of llama.cpp; export the original checkpoint to ONNX"},
	{0, "version https://git-lfs", "it is a pointer of Git LFS to a file that was not fetched; run git lfs pull"},
	{0, "\x1f\x8b", "it is compressed with gzip; unpack it first"},
	{0, "\xfd7zXZ", "it is compressed with xz; unpack it first"},
	{0, "BZh", "it is compressed with bzip2; unpack it first"},
	{0, "\x28\xb5\x2f\xfd", "it is compressed with zstd; unpack it first"},
	{0, "\x93NUMPY", "it is a NumPy array (.npy)"},
	{0, "<!DOCTYPE", "it is a web page; the download went wrong"},
	{0, "<html", "it is a web page; the download went wrong"},
	{8, "{\"", "it is a safetensors file, weights without a graph; export the model to ONNX"},
}

// foreignFormat says what a file that does not read as ONNX is instead; "" when
// that cannot be told.
func foreignFormat(data []byte) string {
	if len(data) == 0 {
		return "the file is empty"
	}
	for _, f := range foreignFormats {
		if len(data) >= f.at && bytes.HasPrefix(data[f.at:], []byte(f.magic)) {
			return f.what
		}
	}
	if isText(data[:min(len(data), 512)]) {
		return "it is a text file"
	}
	return ""
}

// isText says whether b reads as text: valid UTF-8 but for a last character cut
// in two, and no control characters besides white space.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return len(b) < utf8.UTFMax && !utf8.FullRune(b)
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
