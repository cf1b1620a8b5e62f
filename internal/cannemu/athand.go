package cannemu

import (
	"path/filepath"

	"github.com/npuctl/npuctl/internal/ascendcl"
)

// IsAtHand says whether the AscendCL library that would be taken on this machine is an
// emulator's.
func IsAtHand() bool {
	paths, _, err := ascendcl.Find("")
	if err != nil {
		return false
	}
	_, err = ReadMarker(filepath.Dir(filepath.Dir(paths[0])))
	return err == nil
}
