//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package compilation

import (
	"errors"
	"os"
	"syscall"
)

// lock is a lock on a folder.
type lock struct{ folder *os.File }

func openLock(folder string) (lock, error) {
	f, err := os.Open(folder)
	return lock{f}, err
}

// try takes the lock, and says whether nobody else has it. A disk that knows no locks has
// nobody.
func (l lock) try() bool {
	err := syscall.Flock(int(l.folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR)
}

// isOf says whether the folder is still the one of its path.
func (l lock) isOf(folder string) bool {
	have, err := l.folder.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(folder)
	return err == nil && os.SameFile(have, there)
}

// close gives the lock back.
func (l lock) close() { _ = l.folder.Close() }
