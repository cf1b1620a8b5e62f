//go:build unix && !linux

package tritonserver

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}

func limitMemory(int, uint64) error { return nil }

func removeShared(string) {}
