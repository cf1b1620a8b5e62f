//go:build unix

package onnx

import "golang.org/x/sys/unix"

// mapFile maps a file read-only. The pages come from the system's file cache,
// so that weights nobody reads cost no memory.
func mapFile(path string) (*mapping, error) {
	f, size, err := regular(path)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return &mapping{file: f}, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err == nil {
		return &mapping{data: data, file: f, release: func() error { return unix.Munmap(data) }}, nil
	}
	// Some file systems cannot map; reading works everywhere.
	if data, err = readFile(f, size); err != nil {
		f.Close()
		return nil, err
	}
	return &mapping{data: data, file: f}, nil
}
