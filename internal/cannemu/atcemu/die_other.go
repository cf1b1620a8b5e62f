//go:build !unix

package atcemu

import "os"

// die ends the process with the code by which shells tell of a segmentation fault.
func die() { os.Exit(139) }
