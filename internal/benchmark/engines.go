package benchmark

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/engine/ascend"
	"github.com/npuctl/npuctl/bench/engine/null"
	"github.com/npuctl/npuctl/bench/engine/ort"
	"github.com/npuctl/npuctl/bench/engine/ref"
	"github.com/npuctl/npuctl/internal/cannemu"
	"github.com/npuctl/npuctl/internal/compiledmodel"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/onnxruntime"
	"github.com/npuctl/npuctl/internal/suggest"
)

// The engines.
const (
	Ascend      = "ascend"
	ONNXRuntime = "ort"
	Reference   = "ref"
	Null        = "null"
)

// EngineNames lists the engines.
func EngineNames() []string { return []string{Ascend, ONNXRuntime, Reference, Null} }

// Engine says which engine runs the models, and how.
type Engine struct {
	// Name is one of [EngineNames]; "" is ascend for compiled models, and for graphs ONNX
	// Runtime or, where the machine has none, the built-in interpreter.
	Name string
	// Library is that of ONNX Runtime, AscendLibrary that of AscendCL, or their folders.
	Library, AscendLibrary string
	// Threads and InterThreads are those of an instance on the CPU; 0 is all cores, and 1.
	Threads, InterThreads int
	// Level is how far ONNX Runtime may rewrite the graph; see [ort.Levels].
	Level string
	// SessionPerInstance gives each instance of ONNX Runtime threads and weights of its own.
	SessionPerInstance bool
	// CubeCores and VectorCores limit each instance on an NPU; 0 is no limit.
	CubeCores, VectorCores int
	// Fixed and Item are the time of a run of the null engine, and of each item in it.
	Fixed, Item time.Duration
	// Version is npuctl's own.
	Version string
	// Emulator gives the folder of npuctl's emulator, and makes it if need be: models that
	// it compiled run there. nil leaves them to what the machine has.
	Emulator func(ctx context.Context) (root string, err error)
}

// open opens the engine for these models.
// The devices are the numbers of those that models are loaded on, where an engine has any.
func (o Engine) open(ctx context.Context, models []string, devices []int, note func(format string, args ...any)) (engine.Engine, error) {
	name := o.Name
	compiled := slices.ContainsFunc(models, compiledmodel.Is)
	switch {
	case name == "" && compiled:
		name = Ascend
	case name == "":
		name = ONNXRuntime
		if _, _, err := onnxruntime.Find(o.Library); err != nil && o.Library == "" {
			name = Reference
			note("this machine has no ONNX Runtime: the built-in interpreter runs the model (npuctl doctor says how to get it)")
		}
	}
	if compiled && name != Ascend && name != Null {
		return nil, fault.New(fault.Usage, "--engine %s: a compiled model runs on an NPU only", name).With("leave --engine out, or give the .onnx")
	}
	if err := o.unused(name); err != nil {
		return nil, err
	}
	switch name {
	case Ascend:
		return o.openAscend(ctx, models, devices, note)
	case ONNXRuntime:
		return ort.New(ort.Options{Library: o.Library, Threads: o.Threads, InterOpThreads: o.InterThreads, Level: o.Level, SessionPerInstance: o.SessionPerInstance})
	case Reference:
		return ref.New(ref.Options{Threads: o.Threads, Version: o.Version}), nil
	case Null:
		return null.New(null.Options{Fixed: o.Fixed, Item: o.Item, Devices: slices.Max(devices) + 1}), nil
	}
	return nil, fault.New(fault.Usage, "--engine %s: there is no such engine", name).With("%s", suggest.Text(name, EngineNames()))
}

// unused refuses options of other engines, which would be ignored.
func (o Engine) unused(name string) error {
	for _, f := range []struct {
		flag  string
		given bool
		of    []string
	}{
		{"--threads", o.Threads > 0, []string{ONNXRuntime, Reference}},
		{"--ort-level", o.Level != "" && o.Level != ort.Levels()[len(ort.Levels())-1], []string{ONNXRuntime}},
		{"--ort-sessions", o.SessionPerInstance, []string{ONNXRuntime}},
		{"--ort-lib", o.Library != "", []string{ONNXRuntime}},
		{"--ascend-lib", o.AscendLibrary != "", []string{Ascend}},
		{"--aicore-num", o.CubeCores > 0 || o.VectorCores > 0, []string{Ascend}},
	} {
		if f.given && !slices.Contains(f.of, name) && slices.Contains(EngineNames(), name) {
			return fault.New(fault.Usage, "%s would be ignored: the engine is %s", f.flag, name).With("leave it out, or say --engine %s", f.of[0])
		}
	}
	return nil
}

// openAscend opens AscendCL. What the emulator compiled runs on it: there is nowhere else.
func (o Engine) openAscend(ctx context.Context, models []string, devices []int, note func(format string, args ...any)) (engine.Engine, error) {
	library := o.AscendLibrary
	for _, path := range models {
		if library != "" || o.Emulator == nil || !compiledmodel.Is(path) || cannemu.IsAtHand() {
			continue
		}
		file, err := compiledmodel.Open(path)
		if err != nil {
			return nil, err
		}
		if !file.Emulated {
			continue
		}
		root, err := o.Emulator(ctx)
		if err != nil {
			return nil, err
		}
		library = filepath.Join(root, "lib64")
		note("%s was compiled by npuctl's emulator, so that it runs on it", path)
	}
	return ascend.New(ascend.Options{Library: library, Devices: devices})
}
