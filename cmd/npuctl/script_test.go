package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/tensor/npy"
	"github.com/npuctl/npuctl/onnx/text"
)

var update = flag.Bool("update", false, "write the golden parts of the scripts anew")

func TestMain(m *testing.M) {
	// The emulator calls the program that built it by its path, which is that of this
	// test, whatever the link was called that led here.
	if len(os.Args) > 1 && os.Args[1] == "emulator" {
		main()
	}
	testscript.Main(m, map[string]func(){"npuctl": main})
}

// Every command, its failures and its exit codes, as a user meets them: see
// testdata/script. What these scripts can do beyond the usual is in scriptCommands.
func TestScripts(t *testing.T) {
	library, _, ortErr := onnxruntime.Find("")
	if ortErr == nil {
		l, err := onnxruntime.Open(library)
		if ortErr = err; err == nil {
			l.Close()
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                scriptCommands,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ORT_LIB", library)
			env.Setenv("NO_COLOR", "")
			return nil
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "ort":
				return ortErr == nil, nil
			case "cgo":
				return seesClosedStdout, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
	})
}

// scriptCommands are the commands that only these scripts know.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// model OUT.onnx FILE [external]: makes a model of its text form.
	"model": func(ts *testscript.TestScript, _ bool, args []string) {
		m, err := text.Parse(ts.ReadFile(args[1]))
		ts.Check(err)
		options := onnx.SaveOptions{}
		if len(args) > 2 {
			options.ExternalData = onnx.SplitExternal
		}
		ts.Check(m.Save(ts.MkAbs(args[0]), options))
	},
	// npy OUT.npy TYPE SHAPE NUMBER...: makes an array; the last number fills up. An
	// OUT.pb or OUT.bin is written in that form.
	"npy": func(ts *testscript.TestScript, _ bool, args []string) {
		d, err := array(args[1], args[2], args[3:])
		ts.Check(err)
		f, err := os.Create(ts.MkAbs(args[0]))
		ts.Check(err)
		defer f.Close()
		switch filepath.Ext(args[0]) {
		case ".pb":
			_, err = f.Write(onnx.EncodeTensor("", d))
		case ".bin":
			_, err = f.Write(d.Raw())
		default:
			err = npy.WriteNPY(f, d)
		}
		ts.Check(err)
	},
	// exits CODE PROGRAM ARG...: runs a program, which must end with that code.
	"exits": func(ts *testscript.TestScript, _ bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		err = ts.Exec(args[1], args[2:]...)
		var ended *exec.ExitError
		if got := 0; errors.As(err, &ended) {
			if got = ended.ExitCode(); got != want {
				ts.Fatalf("exit code %d, want %d", got, want)
			}
		} else if err != nil || want != 0 {
			ts.Fatalf("exit code 0 or none (%v), want %d", err, want)
		}
	},
	// steady FILE: writes the last standard output to a file, without what differs
	// from run to run: times.
	"steady": func(ts *testscript.TestScript, _ bool, args []string) {
		out := times.ReplaceAllString(ts.ReadFile("stdout"), "$1 TIME")
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(out), 0o644))
	},
	// size FILE BYTES: cuts a file, or stretches it.
	"size": func(ts *testscript.TestScript, _ bool, args []string) {
		n, err := strconv.ParseInt(args[1], 10, 64)
		ts.Check(err)
		ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
	},
	// same A B: two files hold the same bytes.
	"same": func(ts *testscript.TestScript, neg bool, args []string) {
		if isSame := ts.ReadFile(args[0]) == ts.ReadFile(args[1]); isSame == neg {
			ts.Fatalf("%s and %s: same %v", args[0], args[1], isSame)
		}
	},
}

var times = regexp.MustCompile(`(?m)^(time  +)[0-9].*$`)

func array(typ, shape string, numbers []string) (*tensor.Dense, error) {
	t, ok := tensor.ParseType(typ)
	if !ok {
		return nil, fmt.Errorf("no type %q", typ)
	}
	var dims []int
	for word := range strings.SplitSeq(shape, ",") {
		if word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		dims = append(dims, n)
	}
	count, err := tensor.Count(dims)
	if err != nil {
		return nil, err
	}
	floats, ints := make([]float32, count), make([]int64, count)
	for i := range count {
		x, err := strconv.ParseFloat(numbers[min(i, len(numbers)-1)], 64)
		if err != nil {
			return nil, err
		}
		floats[i], ints[i] = float32(x), int64(x)
	}
	switch t {
	case tensor.Float32:
		return tensor.Make(floats, dims...)
	case tensor.Int64:
		return tensor.Make(ints, dims...)
	case tensor.Float64:
		wide := make([]float64, count)
		for i, x := range floats {
			wide[i] = float64(x)
		}
		return tensor.Make(wide, dims...)
	}
	return nil, fmt.Errorf("arrays of %s are not made here", t)
}

// runs executes a command line in this process.
func runs(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errOut strings.Builder
	code = run(ctx, args, &out, &errOut)
	return code, out.String(), errOut.String()
}
