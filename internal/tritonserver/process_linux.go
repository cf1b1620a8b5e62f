package tritonserver

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent has the kernel end the server when the thread that started it goes: a
// killed npuctl leaves no server behind. The thread is held meanwhile.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

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
