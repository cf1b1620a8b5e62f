package compilation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// Job says what to compile, for which chips, how, and where the results go.
type Job struct {
	Models []string
	// SoCs are chips as people write them; see [soc.Lookup].
	SoCs []string
	// Output is the result's path, with or without .om, or a folder for several; ""
	// puts each result beside its model.
	Output string

	// Sizes fixes open dims.
	Sizes onnxpass.Specialization
	// Static demands that every shape is known; Dynamic allows open inputs; Gears
	// lists sizes to compile for beside each other, as package gears reads them.
	Static, Dynamic bool
	Gears           string

	// NoOptimize gives ATC the model as it is.
	NoOptimize bool
	Passes     onnxpass.Options
	Options    Options

	// CANN is where ATC is: a folder or the program; "" looks for it and takes the
	// emulator where there is none, "local" looks and takes nothing else, "emulator"
	// takes the emulator.
	CANN string
	// Emulator gives the folder of the emulator, and makes it if need be.
	Emulator func(ctx context.Context) (root string, err error)

	Force   bool          // build even if nothing has changed
	DryRun  bool          // say what would be run, and run nothing
	Jobs    int           // builds at a time; 0 is half the processors, at least 1
	Timeout time.Duration // of each run of ATC; 0 is none
	// Cache is the folder for compiled operators, logs and times; "" is the user's.
	Cache string
	// Version and Command say who asked: npuctl's version and command line.
	Version string
	Command []string
	// Progress is told, when set, what the job is at. It may be called from several goroutines.
	Progress func(text string)

	wishes wishes     // of the project file
	finder atc.Finder // for tests
}

// Options are the user's wishes for ATC beyond shapes; "" leaves a thing to ATC.
type Options struct {
	// Precision is a value of --precision_mode_v2 or --precision_mode.
	Precision string
	// KeepDType, Mixlist and FusionSwitch are files.
	KeepDType, Mixlist, FusionSwitch string
	// AICoreNum is cores, as 12|10 or 8.
	AICoreNum   string
	InputFormat string
	OutputType  string
	// FP16Inputs are inputs that the compiled model takes in float16.
	FP16Inputs []string
	// Extra are further options of ATC's, as --name=value or name=value.
	Extra []string
}

// Run does the job. When builds fail the others still go on; the error is that of
// the first in order, and the result tells of all.
func (j Job) Run(ctx context.Context) (*Result, error) {
	start := time.Now()
	builds, err := j.plan()
	if err != nil {
		return nil, err
	}
	folders := missingFolders(builds)
	r := &Result{Builds: make([]Build, len(builds))}
	// Looked for when the first build needs it: the emulator may have to be compiled,
	// and most mistakes are found before.
	find := sync.OnceValues(func() (atc.Toolkit, error) {
		kit, err := j.toolkit(ctx)
		if err == nil && kit.Root != "" {
			r.Toolkit = &kit
		}
		return kit, err
	})
	errs := make([]error, len(builds))
	slots := make(chan struct{}, j.parallel())
	var running sync.WaitGroup
	for i, b := range builds {
		b.find = find
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = b.run(ctx)
			r.Builds[i] = b.result
		})
	}
	running.Wait()
	for _, b := range r.Builds {
		r.Emulated = r.Emulated || b.Emulated
	}
	r.Seconds = time.Since(start).Seconds()
	if errors.Join(errs...) != nil {
		removeEmpty(folders)
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	for _, err := range errs {
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (j Job) parallel() int {
	if j.Jobs > 0 {
		return j.Jobs
	}
	return max(runtime.NumCPU()/2, 1) // ATC itself uses several processes
}

func (j Job) say(format string, args ...any) {
	if j.Progress != nil {
		j.Progress(fmt.Sprintf(format, args...))
	}
}

// plan lists the builds, before anything is opened.
func (j Job) plan() ([]*build, error) {
	if len(j.Models) == 0 {
		return nil, fault.New(fault.Usage, "there is no model to compile")
	}
	chips, err := j.chips()
	if err != nil {
		return nil, err
	}
	if err := j.checkShapeFlags(); err != nil {
		return nil, err
	}
	if err := j.checkPrecision(); err != nil {
		return nil, err
	}
	if _, err := j.extraOptions(); err != nil {
		return nil, err
	}
	if err := j.findCache(); err != nil {
		return nil, err
	}
	if err := j.checkOutput(); err != nil {
		return nil, err
	}
	data, err := j.openSeveral()
	if err != nil {
		return nil, err
	}
	var builds []*build
	for _, model := range j.Models {
		for _, chip := range chips {
			b := &build{job: j, chip: chip, model: model, target: j.target(model, chip, len(chips))}
			b.result = Build{Model: model, SoC: chip.Name, Output: b.target + ".om"}
			builds = append(builds, b)
		}
	}
	return builds, checkOutputs(builds, append(j.protected(), data...))
}

// openSeveral refuses files that are no models before the first of several is compiled:
// the last would be told an hour later. It lists their external data, which no build may
// write. One model alone is opened in a moment.
func (j Job) openSeveral() (data []string, err error) {
	if len(j.Models) < 2 {
		return nil, nil
	}
	for _, model := range j.Models {
		m, err := modelfile.Open(model)
		if err != nil {
			return nil, err
		}
		data = append(data, sideFiles(m)...)
		m.Close()
	}
	return data, nil
}

// checkOutput refuses an -o that cannot be meant.
func (j Job) checkOutput() error {
	if strings.TrimSuffix(filepath.Base(j.Output), ".om") == "" {
		return fault.New(fault.Usage, "-o %s: there is no name before .om", j.Output).With("name the result, such as -o model.om")
	}
	info, err := os.Stat(j.Output)
	isFile := err == nil && !info.IsDir() || err != nil && strings.HasSuffix(j.Output, ".om")
	if len(j.Models) > 1 && j.Output != "" && isFile {
		return fault.New(fault.Usage, "-o %s is one file, and there are %d models", j.Output, len(j.Models)).
			With("give a folder: -o %s/", strings.TrimSuffix(j.Output, ".om"))
	}
	return nil
}

// chips finds the chips that were named.
func (j Job) chips() (chips []soc.Chip, err error) {
	if len(j.SoCs) == 0 {
		return nil, fault.New(fault.Usage, "for which chip? --soc is missing").
			With("give Ascend and the Name column of npu-smi info, such as --soc Ascend910B3, or set soc in npuctl.yaml")
	}
	for _, name := range j.SoCs {
		chip, err := j.lookupChip(name)
		if err != nil {
			return nil, fault.New(j.wishes.family("soc"), "%s %s: %w", j.wishes.name("soc"), name, err)
		}
		if !slices.Contains(chips, chip) {
			chips = append(chips, chip)
		}
	}
	return chips, nil
}

// lookupChip finds a chip. A name that the table does not have, but that has the form
// of one, is for an installed CANN to judge: it may be newer.
func (j Job) lookupChip(name string) (soc.Chip, error) {
	chip, err := soc.Lookup(name)
	var unknown *soc.NameError
	if errors.As(err, &unknown) && unknown.Family == "" && atc.IsChipName(name) && j.installed().Program != "" {
		return soc.Chip{Name: name}, nil
	}
	return chip, err
}

// checkShapeFlags refuses what excludes each other.
func (j Job) checkShapeFlags() error {
	var given []string
	for _, f := range []struct {
		on   bool
		name string
	}{{j.Static, "--static"}, {j.Gears != "", "--gears"}, {j.Dynamic, "--dynamic"}} {
		if f.on {
			given = append(given, f.name)
		}
	}
	if len(given) > 1 {
		return fault.New(fault.Usage, "%s exclude each other", strings.Join(given, " and ")).With("keep one of them")
	}
	if j.NoOptimize && len(j.Sizes.Bind) > 0 {
		return fault.New(fault.Usage, "--bind makes an input a constant, which --no-optimize does not let us write").With("leave out one of the two")
	}
	return nil
}

// target is the path of a build's result without .om.
func (j Job) target(model string, chip soc.Chip, chips int) string {
	name := plainModelName(model)
	if chips > 1 {
		name += "." + chip.Name
	}
	isFolder := strings.HasSuffix(j.Output, "/") || strings.HasSuffix(j.Output, string(filepath.Separator))
	if info, err := os.Stat(j.Output); err == nil && info.IsDir() {
		isFolder = true
	}
	switch {
	case j.Output == "":
		return filepath.Join(filepath.Dir(model), name)
	case isFolder:
		return filepath.Join(j.Output, name)
	case len(j.Models) > 1:
		return filepath.Join(j.Output, name) // several results need a folder, which is made
	case chips > 1:
		return strings.TrimSuffix(j.Output, ".om") + "." + chip.Name
	}
	return strings.TrimSuffix(j.Output, ".om")
}

// The words of Job.CANN that are no paths.
const (
	CANNLocal    = "local"
	CANNEmulator = "emulator"
)

// find looks for an ATC where the job may take one, the emulator's that has still to be
// built aside.
func (j Job) find() (atc.Toolkit, error) {
	finder := j.finder
	if finder.NoEmulator = j.CANN == CANNLocal; !finder.NoEmulator {
		finder.Given = j.CANN
	}
	return finder.Find()
}

// installed is the real CANN that would compile; the zero Toolkit where the emulator
// would, or none.
func (j Job) installed() atc.Toolkit {
	if j.CANN == CANNEmulator {
		return atc.Toolkit{}
	}
	if kit, err := j.find(); err == nil && !kit.Emulated {
		return kit
	}
	return atc.Toolkit{}
}

// toolkit finds the ATC to run.
func (j Job) toolkit(ctx context.Context) (atc.Toolkit, error) {
	var absent error // why it is not CANN's
	if j.CANN != CANNEmulator {
		kit, err := j.find()
		if err == nil {
			return kit, nil
		}
		if j.CANN != "" || j.Emulator == nil && !j.DryRun {
			return kit, j.notFound(err)
		}
		absent = err
	}
	if j.DryRun {
		return atc.Toolkit{Program: "atc", Emulated: true}, nil
	}
	if j.Emulator == nil {
		return atc.Toolkit{}, fault.New(fault.Missing, "this build of npuctl has no emulator")
	}
	root, err := j.Emulator(ctx)
	if err != nil {
		return atc.Toolkit{}, neither(absent, err)
	}
	kit, err := atc.Finder{Given: root}.Find()
	if err != nil {
		return kit, fault.New(fault.Missing, "the emulator: %w", err)
	}
	kit.FoundBy = "there is no CANN here"
	if j.CANN == CANNEmulator {
		kit.FoundBy = "--cann emulator"
	}
	return kit, nil
}

// neither is the failure of a machine that has no CANN, absent says why, and cannot
// have the emulator either.
func neither(absent, err error) error {
	if absent == nil || fault.FamilyOf(err) != fault.Missing {
		return err
	}
	var f *fault.Error
	errors.As(err, &f)
	return fault.New(fault.Missing, "compiling needs CANN's atc, and %w; npuctl's emulator, which would stand in for it, cannot be built: %w", absent, f.Err).
		With("install the CANN toolkit and source its set_env.sh, or, for the emulator: %s", f.Remedy)
}

func (j Job) notFound(err error) error {
	const remedy = "install the CANN toolkit and source its set_env.sh, name its folder with --cann, or take --cann emulator"
	var missing *atc.NotFoundError
	switch {
	case !errors.As(err, &missing):
		return err
	case j.wishes.flags["cann"]:
		return fault.New(fault.Missing, "%s %s: %w", j.wishes.name("cann"), j.CANN, err).With("%s", remedy)
	}
	return fault.New(fault.Missing, "%w", err).With("%s", remedy)
}
