package compilation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/om"
)

// Record is the build record: what an .om was made of, how, and by whom. Paths are
// relative to its folder.
type Record struct {
	Format   int    `json:"format"`
	Key      string `json:"key"`      // hash of all that decides the result
	Emulated bool   `json:"emulated"` // npuctl's emulator made it, and no device can run it
	Kind     Kind   `json:"kind"`
	SoC      string `json:"soc"`

	Input   []FileFacts `json:"input"`   // the model, then its external data
	Graph   *FileFacts  `json:"graph"`   // what ATC compiled; null when it was the model itself
	Outputs []FileFacts `json:"outputs"` // the .om, then weights beside it

	Arguments []string    `json:"arguments"` // of ATC
	Gears     *gears.Plan `json:"gears"`
	Signature struct {
		Inputs  []om.Tensor `json:"inputs"`
		Outputs []om.Tensor `json:"outputs"`
	} `json:"signature"`

	Toolkit     ToolkitFacts `json:"toolkit"`
	NPUCTL      string       `json:"npuctl"`
	RequestedBy Requester    `json:"requested_by"`
	Started     time.Time    `json:"started"`
	ATCSeconds  float64      `json:"atc_seconds"`
	Nodes       *NodesChange `json:"nodes"`
	Notes       []string     `json:"notes"`
}

// ToolkitFacts is the CANN that compiled.
type ToolkitFacts struct {
	Version string `json:"version"`
	Root    string `json:"root"`
}

// Requester is who asked for a build.
type Requester struct {
	User    string   `json:"user"`
	Host    string   `json:"host"`
	Command []string `json:"command"` // npuctl's command line
	Folder  string   `json:"folder"`  // where it was given
}

const recordFormat = 1

// maxRecord bounds the size of a record that is read.
const maxRecord = 4 << 20

// ReadRecord reads the record of an .om.
func ReadRecord(path string) (*Record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil, fault.New(fault.Input, "%s is no build record", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fault.New(fault.Input, "%s is no build record: %w", path, err)
	}
	if r.Format != recordFormat || r.Key == "" || len(r.Outputs) == 0 {
		return nil, fault.New(fault.Input, "%s is no build record of this npuctl", path)
	}
	return r, nil
}

// writeRecord writes the record into the build's folder, before anything is placed.
func (b *build) writeRecord(path string, moves []move) error {
	data, err := b.recordText(moves)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		return fault.New(fault.Missing, "write the build record: %w", err)
	}
	return nil
}

// recordText is the record of a build whose results go where moves say.
func (b *build) recordText(moves []move) ([]byte, error) {
	parent := filepath.Dir(b.target)
	r := Record{
		Format: recordFormat, Key: b.key, Emulated: b.result.Emulated, Kind: b.result.Kind, SoC: b.chip.Name,
		Arguments: b.result.Arguments, Gears: b.result.Gears, Toolkit: ToolkitFacts{b.toolkit.Version, b.toolkit.Root}, NPUCTL: b.job.Version,
		RequestedBy: requester(b.job.Command), Started: time.Now().UTC().Truncate(time.Second),
		ATCSeconds: b.result.ATCSeconds, Nodes: b.result.Nodes, Notes: append([]string{}, b.result.Notes...),
	}
	r.Signature.Inputs, r.Signature.Outputs = b.result.Inputs, b.result.Outputs
	for _, f := range b.input {
		f.Path = relative(parent, f.Path)
		r.Input = append(r.Input, f)
	}
	for _, m := range moves {
		f, err := factsOf(m.from)
		if err != nil {
			return nil, fault.New(fault.Missing, "hash the result: %w", err)
		}
		f.Path = relative(parent, m.to)
		switch m.to {
		case b.result.Graph:
			r.Graph = &f
		case b.result.Output:
			r.Outputs = slices.Insert(r.Outputs, 0, f)
		default:
			r.Outputs = append(r.Outputs, f)
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fault.New(fault.Internal, "write the build record: %w", err)
	}
	return append(data, '\n'), nil
}

// relative gives a path as seen from a folder, with slashes; the path itself where
// there is no way.
func relative(folder, path string) string {
	a, err := filepath.Abs(folder)
	if err != nil {
		return path
	}
	p, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if r, err := filepath.Rel(a, p); err == nil {
		return filepath.ToSlash(r)
	}
	return filepath.ToSlash(p)
}

func requester(command []string) Requester {
	r := Requester{Command: append([]string{}, command...)}
	if u, err := user.Current(); err == nil {
		r.User = u.Username
	}
	r.Host, _ = os.Hostname() // a record without a host is as good
	r.Folder, _ = os.Getwd()
	return r
}

// isUnchanged says whether the result is there, made of the same, and whole. It
// then tells what the record does.
func (b *build) isUnchanged() bool {
	parent := filepath.Dir(b.target)
	for _, suffix := range omSuffixes {
		path := b.target + suffix + ".json"
		r, err := ReadRecord(path)
		if err != nil || r.Key != b.key {
			continue
		}
		files := slices.Clone(r.Outputs)
		if r.Graph != nil {
			files = append(files, *r.Graph)
		}
		isWhole := !slices.ContainsFunc(files, func(want FileFacts) bool {
			got, err := factsOf(filepath.Join(parent, filepath.FromSlash(want.Path)))
			return err != nil || got.SHA256 != want.SHA256
		})
		if !isWhole {
			continue
		}
		b.result.Output = filepath.Join(parent, filepath.FromSlash(r.Outputs[0].Path))
		b.result.Emulated = r.Emulated
		b.result.Record, b.result.Bytes = path, r.Outputs[0].Bytes
		if r.Graph != nil {
			b.result.Graph = filepath.Join(parent, filepath.FromSlash(r.Graph.Path))
		}
		b.result.Inputs, b.result.Outputs, b.result.Nodes = r.Signature.Inputs, r.Signature.Outputs, r.Nodes
		return true
	}
	return false
}

// past is what an earlier build took; the history has one a line.
type past struct {
	Model    string  `json:"model"` // hash of the model
	SoC      string  `json:"soc"`
	Emulated bool    `json:"emulated"`
	Nodes    int     `json:"nodes"`
	Gears    int     `json:"gears"`
	Seconds  float64 `json:"seconds"`
}

const (
	historyFile = "compile-times.jsonl"
	historyKept = 300
	maxHistory  = 1 << 20
)

func (b *build) now() past {
	p := past{Model: b.input[0].SHA256, SoC: b.chip.Name, Emulated: b.toolkit.Emulated, Gears: 1, Seconds: b.result.ATCSeconds}
	if b.result.Nodes != nil {
		p.Nodes = b.result.Nodes.After
	}
	if b.shapes.plan != nil {
		p.Gears = len(b.shapes.plan.Gears)
	}
	return p
}

// history reads what earlier builds took.
func (b *build) history() (list []past) {
	data, err := os.ReadFile(filepath.Join(b.job.cacheFolder(), historyFile))
	if err != nil || len(data) > maxHistory {
		return nil
	}
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() {
		var p past
		if json.Unmarshal(scan.Bytes(), &p) == nil && p.Seconds > 0 {
			list = append(list, p)
		}
	}
	return list
}

// estimate is how long ATC will take by what earlier builds took: the last one of
// the same model, else the one nearest in nodes and gears, in proportion. What the
// emulator took says nothing of the real one. 0 is not known.
func (b *build) estimate() time.Duration {
	now := b.now()
	best, bestDistance := past{}, math.Inf(1)
	for _, p := range b.history() {
		if p.Emulated != now.Emulated || p.SoC != now.SoC {
			continue
		}
		distance := math.Abs(math.Log(work(p) / work(now)))
		if p.Model == now.Model {
			distance--
		}
		if distance <= bestDistance {
			best, bestDistance = p, distance
		}
	}
	if math.IsInf(bestDistance, 1) {
		return 0
	}
	return time.Duration(best.Seconds * work(now) / work(best) * float64(time.Second))
}

// work grows with how long a compile takes: each gear is compiled.
func work(p past) float64 { return float64(max(p.Nodes, 1)) * float64(max(p.Gears, 1)) }

// remember adds this build to the history. Losing an entry, as when two builds end
// at once, costs nothing.
func (b *build) remember() {
	list := append(b.history(), b.now())
	if len(list) > historyKept {
		list = list[len(list)-historyKept:]
	}
	var text strings.Builder
	for _, p := range list {
		line, err := json.Marshal(p)
		if err != nil {
			return
		}
		fmt.Fprintf(&text, "%s\n", line)
	}
	_ = atomicfile.Write(filepath.Join(b.job.cacheFolder(), historyFile), func(f *os.File) error {
		_, err := f.WriteString(text.String())
		return err
	})
}
