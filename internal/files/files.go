// Package files has what commands share that fill a folder with files and must be able to
// undo it: compare what is there with what is to be, make folders and know which, copy
// until somebody says stop. And it reads files that may be something else, such as pipes.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Same says whether two readers give the same bytes.
func Same(a, b io.Reader) (bool, error) {
	x, y := make([]byte, 1<<18), make([]byte, 1<<18)
	for {
		n, err := io.ReadFull(a, x)
		m, err2 := io.ReadFull(b, y)
		switch {
		case !bytes.Equal(x[:n], y[:m]):
			return false, nil
		case err == nil && err2 == nil:
			continue
		}
		for _, e := range []error{err, err2} {
			if e != nil && e != io.EOF && e != io.ErrUnexpectedEOF {
				return false, e
			}
		}
		return true, nil
	}
}

// MakeFolder makes a folder and those above it that are missing. It gives the ones that
// it made, the outermost first, also when it fails half-way: to undo it they go in
// reverse.
func MakeFolder(path string) (made []string, err error) {
	var missing []string
	for at := path; ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, at)
	}
	for _, folder := range slices.Backward(missing) {
		if err := os.Mkdir(folder, 0o777); err != nil {
			return made, err
		}
		made = append(made, folder)
	}
	return made, nil
}

// piece is how much is copied before the context is looked at.
const piece = 64 << 20

// Copy copies all that from gives. When the context ends it stops soon, with the
// context's error.
func Copy(ctx context.Context, into io.Writer, from io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch _, err := io.CopyN(into, from, piece); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// Read reads a file whole, of at most limit bytes. What is no regular file is refused
// before it is opened: a pipe that nobody writes would never end.
func Read(path string, limit int64) ([]byte, error) {
	if err := Regular(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// Regular refuses a path that is there and, its links followed, is no regular file. What
// is not there passes: opening it says so.
func Regular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	return nil
}
