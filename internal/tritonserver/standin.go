package tritonserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/compiler"
	"github.com/npuctl/npuctl/internal/fault"
)

//go:embed standin/backend.c
var standInSource []byte

// compilerVariable names the C compiler, as for the emulator.
const compilerVariable = "CC"

// addStandIns puts stand-ins into a folder of backends for those of the names that
// isThere does not know, and gives their names. The compiler is only asked for when one
// is needed.
func addStandIns(ctx context.Context, folder string, names []string, isThere func(string) bool) (added []string, err error) {
	var library string
	for _, name := range names {
		if isThere(name) {
			continue
		}
		if strings.ContainsAny(name, `/\`) || name == "" || name == "." || name == ".." {
			return nil, fmt.Errorf("%q is no name of a backend", name)
		}
		if library == "" {
			if library, err = compileStandIn(ctx, folder); err != nil {
				return nil, err
			}
		}
		target := filepath.Join(folder, name)
		if err := os.Mkdir(target, 0o755); err != nil {
			return nil, err
		}
		if err := os.Link(library, filepath.Join(target, "libtriton_"+name+".so")); err != nil {
			return nil, err
		}
		added = append(added, name)
	}
	return added, nil
}

// compileStandIn gives the path of the stand-in's library.
func compileStandIn(ctx context.Context, folder string) (string, error) {
	command, err := findCompiler()
	if err != nil {
		return "", err
	}
	source, library := filepath.Join(folder, "backend.c"), filepath.Join(folder, "libtriton_standin.so")
	if err := os.WriteFile(source, standInSource, 0o644); err != nil {
		return "", err
	}
	arguments := append(command[1:], "-std=gnu11", "-O1", "-fPIC", "-shared", "-o", library, source)
	if out, err := exec.CommandContext(ctx, command[0], arguments...).CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fault.New(fault.Program, "compile the stand-in backend: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return library, nil
}

func findCompiler() ([]string, error) {
	command, err := compiler.Find(os.Getenv(compilerVariable), compilerVariable, "gcc", "cc")
	if err != nil {
		return nil, fmt.Errorf("the server lacks a backend, and a stand-in for it cannot be compiled: %w", err)
	}
	return command, nil
}

// isMissingCompiler says whether stand-ins failed for want of a compiler: a run goes on
// without them.
func isMissingCompiler(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Family == fault.Missing
}
