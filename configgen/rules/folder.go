package rules

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entryKind is what a name in a folder is.
type entryKind int

const (
	nothing entryKind = iota
	regularFile
	directory
	danglingLink
)

// folder is a model's folder, on disk or made up. Names are relative to it, with
// slashes, and may lead out of it.
type folder interface {
	// stat says what a name is and how large a file is. Devices and pipes are nothing.
	stat(name string) (kind entryKind, size int64)
	// read gives the beginning of a file, at most limit bytes.
	read(name string, limit int64) ([]byte, error)
	// list names what stands in a folder, sorted.
	list(name string) []string
	// display is the path of a name, for messages.
	display(name string) string
}

// diskFolder is a folder on disk.
type diskFolder string

func (d diskFolder) display(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// path gives the path of a name as the server makes it: joined even when the name is
// absolute.
func (d diskFolder) path(name string) string {
	return string(d) + string(filepath.Separator) + filepath.FromSlash(name)
}

func (d diskFolder) stat(name string) (entryKind, int64) {
	info, err := os.Stat(d.path(name))
	switch {
	case err == nil && info.IsDir():
		return directory, 0
	case err == nil && info.Mode().IsRegular():
		return regularFile, info.Size()
	}
	if _, linkErr := os.Lstat(d.path(name)); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return danglingLink, 0
	}
	return nothing, 0
}

func (d diskFolder) read(name string, limit int64) ([]byte, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func (d diskFolder) list(name string) []string {
	entries, err := os.ReadDir(d.path(name))
	if err != nil {
		return nil
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

// imaginedFolder is a made-up folder: the files that it holds, by clean path.
type imaginedFolder map[string]imaginedFile

// imaginedFile is a file of a made-up folder. Where the text is not given only the
// size is known.
type imaginedFile struct {
	text string
	size int64
}

func (d imaginedFolder) display(name string) string { return name }

func (d imaginedFolder) stat(name string) (entryKind, int64) {
	clean, ok := inside(name)
	if !ok {
		return nothing, 0
	}
	if f, ok := d[clean]; ok {
		return regularFile, max(f.size, int64(len(f.text)))
	}
	for file := range d {
		if strings.HasPrefix(file, clean+"/") {
			return directory, 0
		}
	}
	return nothing, 0
}

func (d imaginedFolder) read(name string, limit int64) ([]byte, error) {
	clean, ok := inside(name)
	f, there := d[clean]
	if !ok || !there {
		return nil, fs.ErrNotExist
	}
	return []byte(f.text[:min(int64(len(f.text)), limit)]), nil
}

func (d imaginedFolder) list(name string) []string {
	clean, ok := inside(name)
	if !ok {
		return nil
	}
	var out []string
	for file := range d {
		rest, below := strings.CutPrefix(file, clean+"/")
		if clean == "." {
			rest, below = file, true
		}
		if first, _, _ := strings.Cut(rest, "/"); below && !slices.Contains(out, first) {
			out = append(out, first)
		}
	}
	slices.Sort(out)
	return out
}

// inside cleans a name and says whether it stays in the folder. As the server joins
// paths, a leading slash does not lead out.
func inside(name string) (clean string, ok bool) {
	clean = path.Clean("./" + strings.TrimLeft(name, "/"))
	return clean, clean != ".." && !strings.HasPrefix(clean, "../")
}

// subfolders names the folders in a folder.
func subfolders(d folder, name string) []string {
	var out []string
	for _, entry := range d.list(name) {
		if kind, _ := d.stat(path.Join(name, entry)); kind == directory {
			out = append(out, entry)
		}
	}
	return out
}
