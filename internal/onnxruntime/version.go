package onnxruntime

import (
	"fmt"
	"strconv"
	"strings"
)

// oldestMinor is the oldest ONNX Runtime that works, 1.oldestMinor: the first whose
// function table has everything that api.h lists.
const oldestMinor = 17

// apiVersion returns the newest version of the C API that ONNX Runtime of the given
// version has: its minor number, as long as the major one is 1. It fails when that
// is too old or the version cannot be read.
func apiVersion(version string) (int, error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, fmt.Errorf("its version %q is not one of ONNX Runtime", version)
	}
	major, errMajor := strconv.ParseUint(parts[0], 10, 16)
	minor, errMinor := strconv.ParseUint(parts[1], 10, 16)
	switch {
	case errMajor != nil || errMinor != nil:
		return 0, fmt.Errorf("its version %q is not one of ONNX Runtime", version)
	case major != 1:
		return 0, fmt.Errorf("it is version %s; only versions 1.%d and later of ONNX Runtime 1 are supported", version, oldestMinor)
	case minor < oldestMinor:
		return 0, fmt.Errorf("it is version %s, which is too old: 1.%d or newer is needed", version, oldestMinor)
	}
	return int(minor), nil
}
