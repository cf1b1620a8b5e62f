package tritonserver

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// limitMemory bounds a program's address space. What the program starts inherits it.
func limitMemory(pid int, bytes uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}

// removeShared takes away what a killed Python backend leaves in shared memory.
func removeShared(prefix string) {
	left, _ := filepath.Glob(filepath.Join("/dev/shm", prefix+"*"))
	for _, path := range left {
		_ = os.Remove(path) // somebody else's is not ours to mind
	}
}
