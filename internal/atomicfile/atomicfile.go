// Package atomicfile writes files that appear whole or not at all.
//
// The contents go to a new file beside the target and take the target's place by
// one rename. Whoever looks sees the old file or the new one; after a failure or a
// signal the old one is still there.
//
// A file that replaces another is brought to disk before: a power cut must not
// cost what was there. One that replaces nothing is left to the system to bring to
// disk, as cp does it. Waiting would cost more than all the writing, several times
// over for a large model, and save nothing that was anybody's. On Windows the
// rename replaces as well, though the system promises less about power cuts.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file that is being written and is not yet in its place.
type File struct {
	*os.File
	target   string
	replaces bool // there is a file at target
	overLink bool // it is a symbolic link, which goes
	placed   bool
}

// Write makes the file at path from what write puts into the file it is given.
// See [Create].
func Write(path string, write func(*os.File) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f.File); err != nil {
		return f.Told(err)
	}
	return Commit(f)
}

// Told is a failure of writing to the file without the temporary name, which nobody
// asked for and which is gone when somebody reads of it.
func (f *File) Told(err error) error {
	text := strings.ReplaceAll(err.Error(), "write "+f.Name()+": ", "")
	text = strings.ReplaceAll(text, f.Name(), f.target)
	if text == err.Error() {
		return err
	}
	return &told{err, text}
}

// told is a failure in other words.
type told struct {
	error
	text string
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.error }

// Create begins a file that [Commit] puts at path. An existing target keeps its
// permissions; a symbolic link keeps pointing where it did and the file it points
// to is replaced, or made. Abort must be called when Commit was not, and may be after it.
func Create(path string) (*File, error) { return create(Resolve(path)) }

// Replace is [Create] for folders whose links lead to what belongs to others: a
// symbolic link at path gives way to the file, and what it points to stays as it is.
func Replace(path string) (*File, error) { return create(path) }

func create(path string) (*File, error) {
	mode := fs.FileMode(0o666)
	old, err := os.Lstat(path)
	replaces := err == nil
	isLink := replaces && old.Mode()&fs.ModeSymlink != 0
	if replaces && !isLink {
		if !old.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", path)
		}
		mode = old.Mode().Perm()
	}
	f, err := beside(path, mode)
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	w := &File{File: f, target: path, replaces: replaces, overLink: isLink}
	if replaces && !isLink {
		// The umask has narrowed the mode that creating the file asked for.
		if err := f.Chmod(mode); err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w, nil
}

// maxLinks is how many links in a row are followed.
const maxLinks = 40

// Resolve follows symbolic links to the file that writing to path means. Unlike
// [filepath.EvalSymlinks] it follows one that points to nothing yet; what it cannot
// follow it gives back as it is.
func Resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	at := path
	for range maxLinks {
		to, err := os.Readlink(at)
		if err != nil {
			return at
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return path // links in a circle
}

// cannotWrite says why no file can be made at path: nobody asked for the temporary
// one that the system's error names.
func cannotWrite(path string, err error) error {
	folder := filepath.Dir(path)
	switch info, statErr := os.Stat(folder); {
	case errors.Is(statErr, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s", folder)
	case statErr == nil && !info.IsDir():
		return fmt.Errorf("%s is a file, not a folder", folder)
	}
	var system *fs.PathError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}

// beside opens a new file next to path, with a mode that the umask still narrows
// (os.CreateTemp would make it private for good).
func beside(path string, mode fs.FileMode) (*os.File, error) {
	for i := 0; ; i++ {
		f, err := os.OpenFile(temporary(path, i), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !os.IsExist(err) || i == 100 {
			return f, err
		}
	}
}

func temporary(path string, i int) string {
	return fmt.Sprintf("%s.%d-%d.tmp", path, os.Getpid(), i)
}

// Abort throws away a file that has not taken its place.
func (f *File) Abort() {
	if !f.placed {
		f.Close()
		os.Remove(f.Name())
	}
}

// Commit puts files in their places, in this order; all are brought to disk first
// if one of them replaces another file. When one of them cannot be placed, those
// before it are taken back.
func Commit(files ...*File) error {
	sync := slices.ContainsFunc(files, func(f *File) bool { return f.replaces })
	for _, f := range files {
		if err := f.finish(sync); err != nil {
			return err
		}
	}
	var undo []func() error
	for i, f := range files {
		back := f.keepOld(i == len(files)-1)
		if err := os.Rename(f.Name(), f.target); err != nil {
			for _, u := range undo {
				err = errors.Join(err, u())
			}
			return err
		}
		f.placed = true
		undo = append(undo, back)
	}
	for _, f := range files {
		os.Remove(f.old())
		if sync {
			syncFolder(filepath.Dir(f.target))
		}
	}
	return nil
}

func (f *File) finish(sync bool) error {
	if sync {
		if err := f.Sync(); err != nil {
			return f.Told(err)
		}
	}
	if err := f.Close(); err != nil {
		return f.Told(err)
	}
	return nil
}

// old is the name under which the replaced file lives on until all are placed.
func (f *File) old() string { return f.Name() + ".old" }

// keepOld gives the file that f replaces a second name, so that it can come back.
// The last file to be placed needs none.
func (f *File) keepOld(last bool) (back func() error) {
	if last {
		return nil
	}
	err := errors.ErrUnsupported // some systems link to what a symbolic link points to
	if !f.overLink {
		err = os.Link(f.target, f.old())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return func() error { return os.Remove(f.target) }
	case err != nil: // no links on this file system, or none of links
		err = os.Rename(f.target, f.old())
		if err != nil {
			return func() error { return err }
		}
	}
	return func() error { return os.Rename(f.old(), f.target) }
}

// syncFolder brings renames to disk, where the system can: it is no loss of
// anybody's data when it cannot.
func syncFolder(path string) {
	if d, err := os.Open(path); err == nil {
		_ = d.Sync()
		d.Close()
	}
}
