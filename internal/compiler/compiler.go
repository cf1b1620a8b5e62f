// Package compiler finds the C and C++ compilers of the machine, for what is compiled
// where it runs: the emulator of CANN, and stand-ins for backends of a Triton server.
package compiler

import (
	"os/exec"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// Find gives a compiler as a command, which may carry arguments. Given is what the user
// names, by an option or the environment variable; where that is empty the first of names
// that is on the path is taken. An error is Missing, and says what to install.
func Find(given, variable string, names ...string) ([]string, error) {
	if strings.TrimSpace(given) != "" {
		names = []string{given}
	}
	for _, name := range names {
		words := strings.Fields(name)
		if len(words) == 0 {
			continue
		}
		if _, err := exec.LookPath(words[0]); err == nil {
			return words, nil
		}
	}
	return nil, fault.New(fault.Missing, "no compiler on this machine: looked for %s", strings.Join(names, ", ")).
		With("install one (apt install gcc g++, dnf install gcc gcc-c++), or name it with %s", variable)
}
