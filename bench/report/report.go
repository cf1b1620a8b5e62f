package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/internal/fault"
)

// Report is what `npuctl bench --json` prints. The fields of the main level stand beside
// the others, so that a run of one level is read without a list.
type Report struct {
	Provenance
	*measure.Level
	// Main is which of the levels that is.
	Main       int                   `json:"main"`
	Levels     []*measure.Level      `json:"levels"`
	Search     *measure.SearchResult `json:"search,omitempty"`
	Comparison *measure.Comparison   `json:"comparison,omitempty"`
	Gate       *measure.Gate         `json:"gate,omitempty"`
}

// Provenance says what was measured on, and how.
type Provenance struct {
	Version string `json:"npuctl"`
	// Engine that ran the model, its version or that of CANN, and on which device.
	Engine        string `json:"engine"`
	EngineVersion string `json:"engine_version"`
	Device        string `json:"device"`
	// Emulated is true when no real device was there: the times say nothing of one.
	Emulated bool   `json:"emulated"`
	Model    string `json:"model"`
	ModelSum string `json:"model_sha256"`
	Host     Host   `json:"host"`
	// Commit is that of the program.
	Commit string `json:"commit"`
	// Options are the command line.
	Options []string  `json:"options"`
	Started time.Time `json:"started"`
	// Remarks are what was chosen or assumed, and what is otherwise than a configuration
	// says. Verified is how many answers under load were held against those of requests
	// alone, and equal; 0 when nobody asked.
	Remarks  []string `json:"remarks"`
	Verified int64    `json:"verified"`
	// Clock says where times are from.
	Clock string `json:"clock"`
}

// Host is the machine.
type Host struct {
	Name       string `json:"name"`
	System     string `json:"system"`
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	Go         string `json:"go"`
}

// RealClock is the clock of a run that is not simulated.
const RealClock = "monotonic, of the machine; latency from the intended sending"

// ThisHost describes the machine on which it is called.
func ThisHost() Host {
	name, _ := os.Hostname() // a machine without a name has none in the report
	return Host{Name: name, System: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuName(), Processors: runtime.GOMAXPROCS(0), Go: runtime.Version()}
}

// New makes a report of levels. The main one is that with the highest goodput among those
// that are valid and not overloaded, if there are any.
func New(p Provenance, levels []*measure.Level) *Report {
	r := &Report{Provenance: p, Levels: levels}
	if r.Options == nil {
		r.Options = []string{}
	}
	if r.Remarks == nil {
		r.Remarks = []string{}
	}
	if r.Levels == nil {
		r.Levels = []*measure.Level{}
	}
	best := -1.0
	for i, l := range levels {
		if l.Valid && !l.Overloaded && l.Goodput > best {
			best, r.Main = l.Goodput, i
		}
	}
	if len(levels) > 0 {
		r.SetMain(r.Main)
	}
	return r
}

// SetMain makes a level the main one: of a search, that at the rate which was found.
func (r *Report) SetMain(i int) { r.Main, r.Level = i, r.Levels[i] }

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("print the report as JSON: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// mostReport is the largest file that is read as a report.
const mostReport = 1 << 28

// Read reads a report: a baseline.
func Read(path string) (*Report, error) {
	r := &Report{}
	if err := readJSON(path, r); err != nil {
		return nil, err
	}
	for i, l := range r.Levels {
		if l == nil {
			return nil, fault.New(fault.Input, "%s: level %d is null", path, i)
		}
	}
	if len(r.Levels) == 0 {
		return nil, fault.New(fault.Input, "%s holds no levels", path).With("give a report of npuctl bench --json")
	}
	return r, nil
}

func readJSON(path string, into any) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fault.New(fault.Input, "%s is no report, but a folder or a pipe", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return fault.New(fault.Input, "read the report: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostReport+1))
	if err != nil {
		return fault.New(fault.Input, "read the report: %w", err)
	}
	if len(data) > mostReport {
		return fault.New(fault.Input, "%s is no report: it is larger than %d bytes", path, mostReport)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fault.New(fault.Input, "%s is no report of npuctl bench: %w", path, err)
	}
	return nil
}

// Comparable says why a report is no baseline for another: it was measured with another
// engine, on another device or of another model. It gives "" when it is one.
func (r *Report) Comparable(base *Report) string {
	for _, c := range []struct{ what, now, base string }{
		{"engine", r.Engine, base.Engine},
		{"device", r.Device, base.Device},
		{"emulated", fmt.Sprint(r.Emulated), fmt.Sprint(base.Emulated)},
	} {
		if c.now != c.base {
			return fmt.Sprintf("%s: the baseline has %q, this run %q", c.what, c.base, c.now)
		}
	}
	return ""
}
