// Package modelfile opens the model that a command line names.
package modelfile

import (
	"errors"
	"io/fs"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
)

// Open opens a model; whatever is wrong with the file is a fault of the input,
// which begins with the file's name.
func Open(path string) (*onnx.Model, error) {
	m, err := onnx.Open(path)
	if err == nil {
		return m, nil
	}
	var system *fs.PathError
	if errors.As(err, &system) && system.Path == path {
		return nil, fault.New(fault.Input, "%s: %w", path, system.Err)
	}
	return nil, fault.New(fault.Input, "%w", err)
}
