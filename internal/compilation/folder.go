package compilation

import (
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/npuctl/npuctl/internal/fault"
)

// workFolder makes the folder of the build: beside the target, so that results come
// into their places by renaming, or in the cache.
func (b *build) workFolder(parent string) (string, error) {
	b.isBeside = true
	if real, err := filepath.Abs(parent); err == nil {
		if resolved, err := filepath.EvalSymlinks(real); err == nil {
			real = resolved
		}
		b.isBeside = isPlain(real)
	}
	if !b.isBeside {
		parent = filepath.Join(b.job.cacheFolder(), "work")
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return "", fault.New(fault.Missing, "make a folder for the build: %w", err).With(cacheRemedy)
		}
	}
	removeAbandoned(parent)
	folder, err := os.MkdirTemp(parent, buildPattern)
	if err != nil {
		return "", fault.New(fault.Missing, "make a folder for the build: %w", err).With("name a place that can be written with -o")
	}
	return folder, nil
}

// buildPattern is how the folders of builds are called.
const buildPattern = ".npuctl-build-*"

// abandonedAfter is the age from which a build's folder is nobody's any more: npuctl
// itself was killed, or the machine went down.
const abandonedAfter = 7 * 24 * time.Hour

// removeAbandoned takes away what killed builds have left. It is no matter when it
// cannot.
func removeAbandoned(parent string) {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(parent), buildPattern))
	if err != nil {
		return
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.RemoveAll(path)
		}
	}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// isPlain says whether ATC takes a path as it is: Latin letters, digits, Chinese
// characters and a few signs.
func isPlain(path string) bool {
	return !strings.ContainsFunc(filepath.ToSlash(path), func(r rune) bool {
		isLatin := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !isLatin && !strings.ContainsRune("/._-", r) && !unicode.Is(unicode.Han, r)
	})
}

// atcName is the name of the result without .om, as ATC gets it.
func (b *build) atcName() string {
	if name := filepath.Base(b.target); isPlain(name) {
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
