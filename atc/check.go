package atc

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/soc"
)

// Strictness says whose answers a check gives.
type Strictness int

// The two ways to check.
const (
	// AsATC answers as ATC does: the first problem only, with its code, and nothing
	// against what the user guide forbids and ATC lets pass.
	AsATC Strictness = iota
	// Strict goes on to what else is wrong, holds the command line against the user
	// guide too, and says what was probably meant.
	Strict
)

// Environment is what a check knows of the place where ATC would run. Its zero
// value is this process.
type Environment struct {
	// Dir is the folder relative paths count from; "" is the current one.
	Dir string
	// Lookup gives environment variables; nil is os.LookupEnv.
	Lookup func(name string) (value string, ok bool)
	// HostOS and HostCPU are the machine of the toolkit, as ATC names them: linux,
	// x86_64, aarch64. "" is this machine, linux where there is no CANN for it.
	HostOS, HostCPU string
	// Toolkit is the one that will compile; the zero Toolkit is not known. The tables
	// here are of one release of CANN: what a real toolkit knows beyond them, chips and
	// operators, is for its atc to decide, and becomes a note of [Strict]. With no
	// toolkit, and with the emulator, the tables decide.
	Toolkit Toolkit
	// Chip gives what is known of a chip by the exact name --soc_version takes; nil
	// is the toolkit's file of it, else the table of package soc. A failure says what
	// was probably meant.
	Chip func(name string) (soc.Chip, error)
}

// Check says what ATC would say of a command line, given without the program's
// name, before it compiles anything. It reads the model and the files that are
// named, and writes nothing. An error is never about the command line: ctx ended.
func Check(ctx context.Context, args []string, e Environment, s Strictness) (Verdict, error) {
	line, problems := Parse(args)
	c := newChecker(line, e)
	defer c.close()
	if e.decidesItself() && len(line.Unknown) > 0 {
		return c.checkNewer(ctx, problems, s)
	}
	return c.run(ctx, problems, s)
}

// checkNewer checks a command line with flags that the table does not have, for a
// toolkit that may have them: when nothing else is wrong they are its to judge. Where
// there is more, those that look like another one written wrong are told with it, as
// that one is then missing.
func (c *checker) checkNewer(ctx context.Context, problems []Diagnosis, s Strictness) (Verdict, error) {
	v, err := c.run(ctx, c.line.Known(problems), s)
	if err != nil {
		return v, err
	}
	if !v.Accept {
		again := newChecker(c.line, c.env)
		defer again.close()
		return again.run(ctx, c.line.without(problems, func(u UnknownFlag) bool { return u.suggestion() == "" }), s)
	}
	if s == Strict {
		v.Notes = slices.Concat(flagsUnknown(c), v.Notes)
	}
	return v, nil
}

// run goes through the rules, after what was wrong with the form of the command line.
func (c *checker) run(ctx context.Context, problems []Diagnosis, s Strictness) (Verdict, error) {
	if len(problems) > 0 && s == AsATC {
		return verdict(problems[:1]), nil
	}
	if c.line.Help && len(problems) == 0 {
		return Verdict{Accept: true, Help: true}, nil
	}
	c.spoil(problems)
	for _, r := range rules {
		if err := ctx.Err(); err != nil {
			return Verdict{}, err
		}
		if s == AsATC && r.isGuide() || !c.concerns(r) {
			continue
		}
		found := r.check(c)
		if len(found) > 0 && s == AsATC {
			return verdict(found[:1]), nil
		}
		c.spoil(found)
		problems = append(problems, found...)
	}
	v := verdict(problems)
	if s == Strict {
		v.Notes = c.notes()
	}
	return v, nil
}

// Effective reads a command line as ATC goes on with it: what --raw_ge_options adds
// stands in front of the flags, which win. Whatever is wrong is left out; [Check]
// tells of it.
func Effective(args []string, e Environment) *CommandLine {
	line, _ := Parse(args)
	c := newChecker(line, e)
	var added []Setting
	for _, flag := range slices.Sorted(maps.Keys(c.raw)) {
		added = append(added, Setting{findFlag(flag), c.raw[flag]})
	}
	return &CommandLine{Settings: append(added, line.Settings...), Stray: line.Stray, Help: line.Help}
}

// decidesItself says whether a real CANN will compile, which may know what the tables
// here do not.
func (e Environment) decidesItself() bool { return e.Toolkit.Program != "" && !e.Toolkit.Emulated }

func verdict(problems []Diagnosis) Verdict {
	return Verdict{
		Accept: len(problems) == 0, Diagnoses: problems,
		Stderr: len(problems) > 0 && problems[0].Code == CodeStderr,
	}
}

// checker is one command line being checked, with what was found out on the way.
type checker struct {
	line   *CommandLine
	env    Environment
	raw    map[string]string // flags that --raw_ge_options sets
	spoilt map[string]bool   // flags that something is wrong with, without dashes
	kind   task
	shapes *shapes
	opened *graphFacts
}

func newChecker(line *CommandLine, e Environment) *checker {
	if e.Lookup == nil {
		e.Lookup = os.LookupEnv
	}
	if e.HostOS == "" {
		e.HostOS = "linux"
	}
	if e.HostCPU == "" {
		e.HostCPU = cpuName(runtime.GOARCH)
	}
	if e.Chip == nil {
		e.Chip = e.lookupChip
	}
	c := &checker{line: line, env: e, raw: map[string]string{}, spoilt: map[string]bool{}}
	c.applyRawOptions()
	c.kind = c.task()
	return c
}

func (c *checker) close() {
	if c.opened != nil && c.opened.model != nil {
		_ = c.opened.model.Close()
	}
}

// value gives what counts of a flag: the command line's, else --raw_ge_options',
// else its default.
func (c *checker) value(flag string) string {
	if value, ok := c.raw[flag]; ok {
		return value
	}
	return c.line.Value(flag)
}

// isSet says whether the command line or --raw_ge_options gives the flag.
func (c *checker) isSet(flag string) bool {
	_, ok := c.raw[flag]
	return ok || c.line.IsSet(flag)
}

// spoil remembers which flags something is wrong with: what depends on them is
// not told as well.
func (c *checker) spoil(found []Diagnosis) {
	for _, d := range found {
		for _, name := range d.Names {
			if flag, ok := strings.CutPrefix(name, "--"); ok {
				c.spoilt[flag] = true
			}
		}
	}
}

// concerns says whether a rule has to be looked at: the task is one of its own,
// and the flags it reads are sound so far.
func (c *checker) concerns(r rule) bool {
	return r.tasks&c.kind != 0 && !slices.ContainsFunc(r.reads, func(flag string) bool { return c.spoilt[flag] })
}

// task is what a command line asks ATC to do, as a bit set.
type task uint

const (
	build     task = 1 << iota // modes 0 and 30: a model
	buildOM2                   // mode 7
	preCheck                   // mode 3
	toJSON                     // mode 1
	textJSON                   // mode 5
	modelInfo                  // mode 6
	singleOp                   // --singleop

	builds  = build | buildOM2
	checks  = builds | preCheck
	byMode  = checks | toJSON | textJSON | modelInfo
	anyTask = byMode | singleOp
)

func (c *checker) task() task {
	if c.value("singleop") != "" {
		return singleOp
	}
	return map[string]task{
		"0": build, "30": build, "7": buildOM2, "3": preCheck, "1": toJSON, "5": textJSON, "6": modelInfo,
	}[c.value("mode")]
}

// isONNX says whether the model is an ONNX file, the only kind looked into.
func (c *checker) isONNX() bool { return c.value("framework") == "5" }
