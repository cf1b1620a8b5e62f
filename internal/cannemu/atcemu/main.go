package atcemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/npuctl/npuctl/atc"
	"github.com/npuctl/npuctl/onnx"
)

// Exit codes of the program.
const (
	exitDone   = 0
	exitFailed = 255 // FAILED, 0xFFFFFFFF, as the shell sees it
	// exitStopped is what a shell says of a program that an interrupt ended.
	exitStopped = 130
)

// HostCodeVariable, when it is set and not 0, makes dynamic models carry code for the
// host, whose file names then end in system and processor.
const HostCodeVariable = "NPUCTL_EMULATOR_HOST_CODE"

// RootVariable names the emulator's folder; bin/atc sets it.
const RootVariable = "NPUCTL_EMULATOR_ROOT"

// Process is what a run sees of the world. The zero value of a field is this process's.
type Process struct {
	Getenv func(string) string
	Now    func() time.Time
	PID    int
	// Version is that of npuctl.
	Version string
	// Die ends the process by a signal, when a fault asks for it.
	Die func()
}

// Main runs the program: args are those behind its name. It gives the exit code.
func Main(ctx context.Context, args []string, p Process, stdout, stderr io.Writer) int {
	if p.Getenv == nil {
		p.Getenv = os.Getenv
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.PID == 0 {
		p.PID = os.Getpid()
	}
	if p.Die == nil {
		p.Die = die
	}
	for _, word := range unknownFaults(p.Getenv(FaultVariable)) {
		fmt.Fprintf(stderr, "[WARNING] the emulator knows no fault %q of %s; it knows %s\n", word, FaultVariable, strings.Join(faultWords, ", "))
	}
	r := &run{Process: p, args: args, out: stdout, errOut: stderr, faults: readFaults(p.Getenv(FaultVariable))}
	return r.main(ctx)
}

// run is one run of the program.
type run struct {
	Process
	args        []string
	line        *atc.CommandLine
	out, errOut io.Writer
	faults      faults
}

// stderrFailure is a command line that does not parse: ATC tells it on standard error.
type stderrFailure struct{ text string }

func (f *stderrFailure) Error() string { return f.text }

func (r *run) main(ctx context.Context) int {
	line, _ := atc.Parse(r.args)
	r.line = line
	verdict, err := atc.Check(ctx, r.args, atc.Environment{Lookup: r.lookup}, atc.AsATC)
	if err != nil {
		return exitStopped
	}
	if verdict.Help {
		r.help()
		return exitDone
	}
	fmt.Fprintln(r.out, "ATC start working now, please wait for a moment.")
	err = refusal(verdict)
	if err == nil || r.isAboutModel(verdict) {
		// The parser looks at the model before anybody holds names and shapes against it.
		if parseErr := r.parse(); parseErr != nil {
			err = parseErr
		}
	}
	if err == nil {
		r.warnings()
		err = r.task(ctx)
	}
	return r.finish(ctx, err)
}

func (r *run) lookup(name string) (string, bool) {
	value := r.Getenv(name)
	return value, value != ""
}

// refusal turns what the check found first into a failure.
func refusal(v atc.Verdict) error {
	if v.Accept {
		return nil
	}
	d := v.Diagnoses[0]
	if v.Stderr {
		return &stderrFailure{d.Message}
	}
	f := &failure{code: d.Code, message: d.Message, remedy: d.Remedy}
	if d.Code == "E19999" {
		f.message += "[FUNC:ParseGraph][FILE:omg.cc][LINE:1]"
		f.trace = []string{"ATC model parse ret fail.[FUNC:ParseGraph][FILE:omg.cc][LINE:1]"}
	}
	return f
}

// modelCodes are those that ATC gives only when it has parsed the model.
var modelCodes = map[string]bool{
	"E10016": true, "E10017": true, "E10049": true, "E10050": true, "E10035": true, "E10037": true, "E10039": true, "E19999": true,
	"E13009": true, "E13010": true, "E16001": true, "E16002": true, "EZ9999": true, "EZ3003": true,
}

// isAboutModel says whether a refusal comes from holding the options against the model.
func (r *run) isAboutModel(v atc.Verdict) bool {
	d := v.Diagnoses[0]
	if v.Stderr || len(d.Names) == 0 {
		return false
	}
	hasShape := r.line.Value("input_shape")+r.line.Value("input_shape_range") != ""
	return modelCodes[d.Code] || d.Code == "E10001" && d.Names[0] == "--input_shape" && !hasShape
}

// finish prints the verdict and gives the exit code.
func (r *run) finish(ctx context.Context, err error) int {
	var parse *stderrFailure
	var noise *noisy
	switch {
	case err == nil:
		fmt.Fprintln(r.out, "...")
		fmt.Fprintln(r.out, "ATC run success, welcome to the next use.")
		r.log("INFO", "ATC run success")
		return exitDone
	case errors.As(err, &noise):
		return exitDone // as broken as can be: noise, half a file and success
	case ctx.Err() != nil:
		return exitStopped
	case errors.As(err, &parse):
		fmt.Fprintf(r.errOut, "ERROR: %s\n", parse.text)
		fmt.Fprintln(r.out, failedLine)
		fmt.Fprintln(r.out)
		return exitFailed
	}
	fmt.Fprintln(r.out, "...")
	fmt.Fprintln(r.out, failedLine)
	f := asFailure(err)
	f.print(r.out, r.PID, r.Now())
	fmt.Fprintln(r.out)
	r.log("ERROR", f.message)
	return exitFailed
}

const failedLine = "ATC run failed, Please check the detail log, Try 'atc --help' for more information"

// asFailure gives every error the form of ATC's: what the emulator itself could not do
// is internal.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return internalFailure(err.Error(), "Emulate", "npuctl_emulator.cc")
}

// warn prints a line as ATC's warnings are.
func (r *run) warn(format string, args ...any) {
	fmt.Fprintf(r.out, "[%s]%d WARNING: %s\n", stamp(r.Now()), r.PID, fmt.Sprintf(format, args...))
}

// warnings are told as soon as the options are read.
func (r *run) warnings() {
	r.warn("this atc is emulated by npuctl: what it makes runs on the emulator alone, on no NPU")
	if r.line.Value("insert_op_conf") != "" {
		r.warn("insert_op_conf is not emulated: the model keeps the inputs it has, without image preprocessing")
	}
	if r.line.IsSet("input_shape_range") {
		r.warn("Option input_shape_range is deprecated and will be removed in a later release, use input_shape instead")
	}
}

func (r *run) help() {
	fmt.Fprintln(r.out, "usage: atc <args>")
	fmt.Fprintln(r.out, "This atc is emulated by npuctl. It takes these arguments of the real one:")
	for _, f := range atc.Flags() {
		fmt.Fprintf(r.out, "  --%s\n", f.Name)
	}
}

// parse is the parser's look at the model; nil also when there is no ONNX model to
// look into, which the check has told or the compile will.
func (r *run) parse() error {
	if r.line.Value("framework") != "5" || r.line.Value("model") == "" {
		return nil
	}
	m, err := onnx.Open(r.line.Value("model"))
	if err != nil {
		return nil
	}
	defer m.Close()
	g := gate{model: m}
	if f := g.preCheck(); f != nil {
		return errors.Join(f, r.writeReport(g.report))
	}
	if f := g.parse(); f != nil {
		return f
	}
	return nil
}

// task does what --mode asks for.
func (r *run) task(ctx context.Context) error {
	tasks := map[string]func(context.Context) error{"0": r.build, "1": r.toJSON, "3": r.check, "5": r.textToJSON, "6": r.showInfo, "7": r.build}
	mode := r.line.Value("mode")
	do := tasks[mode]
	if do == nil || r.line.Value("singleop") != "" {
		return &failure{code: "E10055", message: fmt.Sprintf("The operation is not supported. Reason: npuctl's emulator has no mode %s and no single operators", mode)}
	}
	return do(ctx)
}

// build compiles a model.
func (r *run) build(ctx context.Context) error {
	if r.line.Value("framework") != "5" {
		return &failure{code: "E10055", message: "The operation is not supported. Reason: npuctl's emulator compiles ONNX models (--framework=5) alone"}
	}
	request, err := newRequest(r)
	if err != nil {
		return err
	}
	m, err := onnx.Open(request.model)
	if err != nil {
		return &failure{code: "E13005", message: fmt.Sprintf("Failed to parse file %s: %v", request.model, err)}
	}
	defer m.Close()
	if err := r.faults.disturb(ctx, r.Die); err != nil {
		return err
	}
	c := compiler{request: request, version: r.Version, hasHostCode: isOn(r.Getenv(HostCodeVariable))}
	p, err := c.compile(ctx, m)
	if err != nil {
		return err
	}
	r.warnOf(request, p)
	return r.save(request, p)
}

func isOn(value string) bool { return value != "" && value != "0" }

func (r *run) warnOf(request *request, p *product) {
	for _, w := range p.warnings {
		fmt.Fprintf(r.out, "[PID: %d] %s Warning(W11001): %s\n", r.PID, stamp(r.Now()), w)
	}
	if request.hostGiven && p.isStatic {
		fmt.Fprintln(r.out, "This model is irrelevant to the host platform, parameters about host os and host cpu are ignored.")
	}
}

// commandLine is what atc_cmdline keeps: the program's full path and the arguments,
// joined by blanks.
func (r *run) commandLine() string {
	program := "atc.bin"
	if root := r.Getenv(RootVariable); root != "" {
		program = filepath.Join(root, "bin", program)
	}
	return strings.Join(append([]string{program}, r.args...), " ")
}
