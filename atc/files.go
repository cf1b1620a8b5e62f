package atc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// longestPath is the length, in bytes, from which ATC refuses an output path.
const longestPath = 4096

// inputFile holds the file of a flag against what ATC asks of files it reads: it
// exists, its real path has no strange letters, it can be read.
func (c *checker) inputFile(flag string) *Diagnosis {
	given := c.value(flag)
	if given == "" {
		return nil
	}
	var d Diagnosis
	real, err := filepath.EvalSymlinks(c.path(given))
	if err == nil {
		real, err = filepath.Abs(real)
	}
	switch {
	case err != nil:
		d = wrongValue("E10001", flag, given, "%s", reasonOf(err)).about(given).with("%s", c.fileRemedy(given))
	case !IsPlainPath(real):
		d = wrongValue("E10001", flag, given, "its real path %q has letters that ATC does not take", real).about(given).
			with("keep paths to letters, digits, - . _ and Chinese characters")
	case !isReadable(real):
		d = wrongValue("E10001", flag, given, "it may not be read").about(given)
	default:
		return nil
	}
	return &d
}

// path gives where a path of the command line leads.
func (c *checker) path(given string) string {
	if filepath.IsAbs(given) || c.env.Dir == "" {
		return given
	}
	return filepath.Join(c.env.Dir, given)
}

func reasonOf(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// fileRemedy names the file beside the missing one that was probably meant.
func (c *checker) fileRemedy(given string) string {
	folder, name := filepath.Split(given)
	entries, err := os.ReadDir(c.path(filepath.Clean(folder)))
	if err != nil {
		return "the folder " + filepath.Clean(folder) + " is not there either"
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if near := nearest(name, names); near != "" {
		return "did you mean " + folder + near + "?"
	}
	return "paths count from the folder where atc runs"
}

// regular says what a path is when it is no file: opening it might wait for ever.
func regular(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s", reasonOf(err))
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return errors.New("it is no file")
	}
	return nil
}

// isReadable says whether a file can be opened; what is no file passes, as it does
// with ATC.
func isReadable(path string) bool {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// outputFile holds a path that ATC will write against what ATC asks of it. ATC
// makes the folders at once; the check only looks whether they can be.
func (c *checker) outputFile(flag, path string) *Diagnosis {
	var d Diagnosis
	blocked := c.blockedBy(path)
	switch {
	case path == "":
		d = problem("E10004", flag, "--%s is empty", flag)
	case len(path) >= longestPath:
		d = wrongValue("E10001", flag, path[:40]+"…", "the path has %d bytes, it has to stay below %d", len(path), longestPath)
	case !IsPlainPath(path):
		d = wrongValue("E10001", flag, path, "the path has letters that ATC does not take").
			with("keep it to letters, digits, - . _ and Chinese characters")
	case blocked != "":
		d = wrongValue("E10001", flag, path, "it cannot be written: %s", blocked)
	default:
		return nil
	}
	return &d
}

// blockedBy says what keeps a file from being written; "" is nothing.
func (c *checker) blockedBy(path string) string {
	full := c.path(path)
	if info, err := os.Stat(full); err == nil {
		if info.Mode().IsRegular() && !isWritable(full) {
			return path + " may not be written"
		}
		return ""
	}
	for folder := filepath.Dir(full); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return folder + " is no folder"
		case err == nil || folder == filepath.Dir(folder):
			return ""
		}
	}
}

func isWritable(path string) bool {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// IsPlainPath says whether a path, or a name, is made of what ATC takes: letters, digits, the
// signs . / _ - and Chinese characters from U+4E00 to U+9FA5.
func IsPlainPath(path string) bool {
	path = filepath.ToSlash(strings.TrimPrefix(path, filepath.VolumeName(path)))
	for _, r := range path {
		isWord := r < utf8.RuneSelf && (isLetter(byte(r)) || r >= '0' && r <= '9' || strings.ContainsRune("./_-", r))
		if !isWord && (r < 0x4E00 || r > 0x9FA5) {
			return false
		}
	}
	return true
}
