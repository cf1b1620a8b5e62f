package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnxpass"
)

// sizeFlags are the flags that give open dims their sizes, the same in every command.
type sizeFlags struct {
	shapes, dims []string
	batch        int64
	flags        *pflag.FlagSet
}

func (f *sizeFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringArrayVar(&f.shapes, "input-shape", nil, "fix an input's shape: `name:1,3,224,224`; repeatable")
	flags.StringArrayVar(&f.dims, "dim", nil, "fix a symbolic dim wherever an input has it: `batch=1`; repeatable")
	flags.Int64Var(&f.batch, "batch", 0, "fix the first axis of every input that has it open to `N`")
}

// specialization gives what the flags mean.
func (f *sizeFlags) specialization() (sp onnxpass.Specialization, err error) {
	isGiven := f.batch != 0 || f.flags != nil && f.flags.Changed("batch")
	if isGiven && (f.batch < 1 || f.batch > math.MaxInt32) {
		return sp, fault.New(fault.Usage, "--batch %d: a batch has 1 to %d elements", f.batch, math.MaxInt32).
			With("--dim and --input-shape take 0, too")
	}
	sp.Batch = f.batch
	if sp.Shapes, err = parsePairs("--input-shape", f.shapes, ":", onnxpass.ParseShape); err != nil {
		return sp, err
	}
	sp.Dims, err = parsePairs("--dim", f.dims, "=", parseSize)
	return sp, err
}

// isSet says whether any size is given.
func (f *sizeFlags) isSet() bool { return f.batch > 0 || len(f.shapes)+len(f.dims) > 0 }

// parsePairs reads repeatable flags of the form name<separator>value. Names may
// hold the separator: the last one counts.
func parsePairs[T any](flag string, given []string, separator string, parse func(string) (T, error)) (map[string]T, error) {
	out := map[string]T{}
	for _, text := range given {
		i := strings.LastIndex(text, separator)
		if i <= 0 {
			return nil, fault.New(fault.Usage, "%s %s: give it as name%svalue", flag, text, separator)
		}
		name := text[:i]
		if _, twice := out[name]; twice {
			return nil, fault.New(fault.Usage, "%s %s: %s is given twice", flag, text, name)
		}
		v, err := parse(text[i+1:])
		if err != nil {
			return nil, fault.New(fault.Usage, "%s %s: %w", flag, text, err)
		}
		out[name] = v
	}
	return out, nil
}

func parseSize(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size of a dim", s)
	}
	return n, nil
}

// timeLimit is --timeout: how long a job may take; 0 is for ever.
type timeLimit time.Duration

func (l *timeLimit) add(flags *pflag.FlagSet) {
	flags.DurationVar((*time.Duration)(l), "timeout", 0, "give up after this `time`, such as 90s or 5m, and exit with 4 (default never)")
}

// check refuses times in which nothing can be done.
func (l timeLimit) check(flags *pflag.FlagSet) error {
	if l < 0 || l == 0 && flags.Changed("timeout") {
		return fault.New(fault.Usage, "--timeout %s: give a time longer than nothing", time.Duration(l)).With("leave it out to wait as long as it takes")
	}
	return nil
}

// within runs a job that may take as long as the limit says. What it was at then is
// given up as if the user had stopped it.
func within[R any](ctx context.Context, l timeLimit, job func(context.Context) (R, error)) (R, error) {
	if l == 0 {
		return job(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(l))
	defer cancel()
	result, err := job(limited)
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil {
		return result, fault.New(fault.Goal, "--timeout %s: it took longer; nothing was left half-written", time.Duration(l)).With("allow more time")
	}
	return result, err
}

// byteUnits are the units of sizes, in lower case.
var byteUnits = map[string]int64{
	"": 1, "b": 1, "k": 1 << 10, "kb": 1000, "kib": 1 << 10, "m": 1 << 20, "mb": 1000_000, "mib": 1 << 20,
	"g": 1 << 30, "gb": 1000_000_000, "gib": 1 << 30,
}

// parseBytes reads a size such as 64KiB, 1MiB, 2MB or 4096; "" is 0.
func parseBytes(flag, s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	number := strings.TrimRight(s, "BKMGikmgb")
	unit, known := byteUnits[strings.ToLower(s[len(number):])]
	n, err := strconv.ParseInt(number, 10, 33)
	if err != nil || n < 0 || !known {
		return 0, fault.New(fault.Usage, "%s %s: give a size such as 64KiB, 1MiB or 4096", flag, s)
	}
	// 0 means the default to those we pass it to; a byte is as good as none.
	return max(n*unit, 1), nil
}

// need refuses a flag that would be ignored, because of another one that is or is
// not given.
type need struct {
	flag   string
	useful bool
	why    string // what is the matter, and what to do
}

// checkNeeds refuses the first flag that is given and of no use.
func checkNeeds(flags *pflag.FlagSet, needs ...need) error {
	for _, n := range needs {
		if flags.Changed(n.flag) && !n.useful {
			return fault.New(fault.Usage, "--%s would be ignored: %s", n.flag, n.why)
		}
	}
	return nil
}
