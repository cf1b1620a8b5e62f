package doctor

import "golang.org/x/sys/unix"

// memoryBytes is the size of main memory.
func memoryBytes() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
