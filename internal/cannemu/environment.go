package cannemu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// CacheVariable names the folder that npuctl keeps things in that it can make again.
const CacheVariable = "NPUCTL_CACHE"

// Find gives an emulator that is up to date, and builds it where there is none: in dir,
// or, when that is "", in the user's cache, under a name made of everything the build
// depends on. wasBuilt says whether it had to.
func Find(ctx context.Context, dir string, o Options) (root string, marker *Marker, wasBuilt bool, err error) {
	if err := o.settle(); err != nil {
		return "", nil, false, err
	}
	if dir == "" {
		if dir, err = cacheFolder(o); err != nil {
			return "", nil, false, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, false, fault.New(fault.Usage, "%w", err)
	}
	hash, err := hashOf(o.tree)
	if err != nil {
		return "", nil, false, err
	}
	if m, err := ReadMarker(dir); err == nil && m.Sources == hash && isWhole(dir, m) && m.Interpreter[0] == o.Program {
		return dir, m, false, nil
	}
	if o.Building != nil {
		o.Building()
	}
	marker, err = Build(ctx, dir, o)
	return dir, marker, true, err
}

// isWhole says whether everything that the marker tells of is there.
func isWhole(dir string, m *Marker) bool {
	if len(m.Interpreter) == 0 {
		return false
	}
	files := []string{"bin/atc", "set_env.sh"}
	for _, l := range m.Libraries {
		files = append(files, filepath.Join("lib64", filepath.Base(l)))
	}
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			return false
		}
	}
	return true
}

// cacheFolder is where the emulator of this npuctl and these compilers is kept.
func cacheFolder(o Options) (string, error) {
	root := o.Getenv(CacheVariable)
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fault.New(fault.Missing, "there is no folder for npuctl's cache: neither HOME nor XDG_CACHE_HOME is set").
				With("set %s to a folder, or HOME or XDG_CACHE_HOME, or name one: npuctl emulator env DIR", CacheVariable)
		}
		root = filepath.Join(cache, "npuctl")
	}
	hash, err := hashOf(o.tree)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{hash, o.Program, o.CC, o.CXX, o.Getenv("CC"), o.Getenv("CXX")}, "\x00")))
	return filepath.Join(root, "emulator", hex.EncodeToString(sum[:8])), nil
}

// variable is one that an emulator sets, or puts itself in front of.
type variable struct {
	name, value string
	isList      bool // of folders, like PATH
}

func variables(root string) []variable {
	return []variable{
		{"ASCEND_HOME_PATH", root, false},
		{"ASCEND_TOOLKIT_HOME", root, false},
		{"ASCEND_OPP_PATH", filepath.Join(root, "opp"), false},
		{"PATH", filepath.Join(root, "bin"), true},
		{"LD_LIBRARY_PATH", filepath.Join(root, "lib64"), true},
	}
}

// Variables are the environment variables of an emulator; the values of PATH and
// LD_LIBRARY_PATH belong in front of those that are there.
func Variables(root string) map[string]string {
	m := map[string]string{}
	for _, v := range variables(root) {
		m[v.name] = v.value
	}
	return m
}

// Exports are the lines by which a shell of the POSIX kind takes an emulator into its
// environment: eval "$(npuctl emulator env)".
func Exports(root string) string {
	var b strings.Builder
	for _, v := range variables(root) {
		rest := ""
		if v.isList {
			rest = "${" + v.name + `:+":$` + v.name + `"}`
		}
		b.WriteString("export " + v.name + "=" + Quote(v.value) + rest + "\n")
	}
	return b.String()
}

// Quote writes a text as one word of a POSIX shell.
func Quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
