package doctor

import "golang.org/x/sys/unix"

// memoryBytes is the size of main memory.
func memoryBytes() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
