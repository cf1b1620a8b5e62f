//go:build unix && !linux

package atc

import "syscall"

// endWithParent does nothing where the kernel knows no such thing.
func endWithParent(*syscall.SysProcAttr) {}
