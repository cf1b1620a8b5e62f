//go:build !unix

package onnx

// mapFile reads the file: a mapped or open file could not be replaced on Windows.
func mapFile(path string) (*mapping, error) {
	f, size, err := regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readFile(f, size)
	if err != nil {
		return nil, err
	}
	return &mapping{data: data}, nil
}
