package compilation

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
)

// workFolder makes the folder of the build: beside the target, so that results come
// into their places by renaming; where ATC does not take the path, in the cache; and
// where it does not take that either, as in some home folders, among the system's
// temporary files.
func (b *build) workFolder(parent string) (string, error) {
	if b.isBeside = isFit(parent); !b.isBeside {
		parent = filepath.Join(b.job.cacheFolder(), "work")
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return "", fault.New(fault.Missing, "make a folder for the build: %w", err).With(cacheRemedy)
		}
		if !isFit(parent) {
			parent = os.TempDir()
		}
	}
	removeAbandoned(parent)
	folder, err := os.MkdirTemp(parent, buildPattern)
	if err != nil {
		return "", fault.New(fault.Missing, "make a folder for the build: %w", err).With("name a place that can be written with -o")
	}
	return folder, nil
}

// isFit says whether ATC takes the real path of a folder that is there.
func isFit(folder string) bool {
	real, err := filepath.Abs(folder)
	if err != nil {
		return true // it will be told when it is used
	}
	if resolved, err := filepath.EvalSymlinks(real); err == nil {
		real = resolved
	}
	return atc.IsPlainPath(real)
}

// buildPattern is how the folders of builds are called.
const buildPattern = ".npuctl-build-*"

// abandonedAfter is the age from which a build's folder is nobody's any more: npuctl
// itself was killed, or the machine went down.
const abandonedAfter = 7 * 24 * time.Hour

// removeAbandoned takes away what killed builds have left. It is no matter when it
// cannot.
func removeAbandoned(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	prefix := strings.TrimSuffix(buildPattern, "*")
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.IsDir() && strings.HasPrefix(e.Name(), prefix) && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
}

// atcName is the name of the result without .om, as ATC gets it.
func (b *build) atcName() string {
	if name := filepath.Base(b.target); atc.IsPlainPath(name) {
		return name
	}
	return plainName(filepath.Base(b.target))
}

// removeAll takes a folder away. A process that is just ending may still write into it.
func removeAll(folder string) (err error) {
	for range 50 {
		if err = os.RemoveAll(folder); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fault.New(fault.Missing, "take away the folder of the build: %w", err)
}
