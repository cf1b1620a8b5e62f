package report

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/bench/simulation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files")

// provenance is that of every report here.
var provenance = Provenance{Version: "1.0", Engine: "null", EngineVersion: "1", Device: "cpu", Emulated: true, Model: "nets/<model>.onnx", ModelSum: "abc",
	Host: Host{Name: "host", System: "linux/amd64", CPU: "A processor", Processors: 2, Go: "go1.26"}, Commit: "0123456", Options: []string{"bench", "--concurrency", "1:4:x2"},
	Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Clock: "virtual"}

// served is a target with gears, batches of two and a failure now and then. What it does
// depends on the request alone.
func served() load.Target {
	return load.TargetFunc(func(_ context.Context, r load.Request) (load.Result, error) {
		random := rand.New(rand.NewPCG(uint64(r.Number), 1))
		queue, compute := time.Duration(random.ExpFloat64()*2e6), time.Duration(5e6+random.Float64()*1e6)
		time.Sleep(queue + compute + 100*time.Microsecond)
		got := load.Result{Items: 1, Kind: int32(r.Number % 2), Batch: load.Batch{Items: int32(1 + r.Number%3), Gear: int32(1 + r.Number%2), Elements: 100, Padding: 10 * (r.Number % 3), Lead: r.Number%2 == 0}}
		got.Stages[load.Queue], got.Stages[load.Compute] = queue, compute
		if r.Number%211 == 210 {
			return got, errors.New("the device said <no> & went away")
		}
		return got, nil
	})
}

// level measures served at a level, in virtual time.
func level(t *testing.T, s measure.Settings, rate float64, more ...load.Observer) *measure.Level {
	t.Helper()
	var schedule load.Schedule
	if s.Mode == measure.Open {
		var err error
		if schedule, err = load.Constant(rate); err != nil {
			t.Fatal(err)
		}
		s.Rate, s.Arrivals = rate, "constant"
	}
	r, err := measure.NewRecorder(s)
	if err != nil {
		t.Fatal(err)
	}
	var l *measure.Level
	synctest.Test(t, func(t *testing.T) {
		if l, err = r.Run(t.Context(), served(), schedule, load.NewPlainClock(), more...); err != nil {
			t.Fatal(err)
		}
	})
	l.Generator.CPU = 0 // that of the machine
	return l
}

var settings = []measure.Settings{
	{Mode: measure.Closed, Workers: 1, MaxCount: 1000, Gears: []string{"1", "<2>"}, Kinds: []string{"a", "b"}},
	{Mode: measure.Closed, Workers: 4, MaxCount: 2000, WarmCount: 50, Gears: []string{"1", "<2>"}, Deadline: 8 * time.Millisecond},
	{Mode: measure.Open, Workers: 2, MaxTime: 5 * time.Second, Gears: []string{"1", "<2>"}},
}

// rates of the levels of settings, where they are open loops.
const openRate = 400

// full is a report with everything in it.
func full(t *testing.T) *Report {
	levels := []*measure.Level{}
	for _, s := range settings {
		levels = append(levels, level(t, s, openRate))
	}
	r := New(provenance, levels)
	r.Search = &measure.SearchResult{Goal: "p99=50ms", Rate: 120, Misses: 122, Sure: true, Reason: "held at 120/s, missed at 122/s", Trials: []measure.Trial{
		{Rate: 100, Verdict: measure.Holds, Sure: true, Reason: "p99 is 20 ms", Value: 20, Range: [2]float64{18, 22}, Throughput: 100},
		{Rate: 200, Verdict: measure.Misses, Reason: "p99 is 90 ms", Value: 90}, {Rate: 300, Verdict: measure.Void, Value: 95, Reason: "the generator was late"}}}
	d := measure.Difference{MedianA: 5, MedianB: 5.5, Ratio: 1.1, Interval: [2]float64{1.05, 1.15}, P: 0.001, Larger: 0.7}
	r.Comparison = &measure.Comparison{Rounds: 500, Requests: 2, Clients: 1, ErrorsB: 1, A: levels[0].Latency, B: levels[1].Latency, Latency: d, Throughput: &d, Alpha: 0.05, Verdict: measure.Slower}
	gate, err := measure.Against(levels, levels, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	gate.Passed = false
	gate.Checks[0].Verdict, gate.Checks[0].Worse = measure.Regressed, 0.2
	gate.Checks[1].Verdict, gate.Checks[1].Reason = measure.Unsure, "the intervals overlap"
	r.Gate = gate
	return r
}

// Text and CSV, as they are printed. -update writes the files anew.
func TestGolden(t *testing.T) {
	r := full(t)
	for name, write := range map[string]func(io.Writer) error{
		"report.txt": func(w io.Writer) error { return r.WriteText(w, terminal.Palette{}) },
		"report.csv": r.WriteCSV,
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func toJSON(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is printed is what the schema says, and the schema says all that is printed.
func TestSchema(t *testing.T) {
	schema, err := gojsonschema.NewSchema(gojsonschema.NewBytesLoader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	nothing := New(provenance, nil)
	nothing.Comparison = full(t).Comparison
	for name, r := range map[string]*Report{"full": full(t), "a comparison": nothing, "empty": New(Provenance{}, nil), "nothing was answered": New(provenance, []*measure.Level{failed(t)})} {
		data := toJSON(t, r)
		result, err := schema.Validate(gojsonschema.NewBytesLoader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range result.Errors() {
			t.Errorf("%s: %s", name, e)
		}
		var printed, published any
		if err := errors.Join(json.Unmarshal(data, &printed), json.Unmarshal(Schema, &published)); err != nil {
			t.Fatal(err)
		}
		root := published.(map[string]any)
		for _, missing := range undescribed("", printed, root, root["definitions"].(map[string]any)) {
			t.Errorf("%s: the schema does not know %s", name, missing)
		}
	}
	// A field that is missing or of another type is found.
	for _, change := range [][2]string{{`"engine":`, `"motor":`}, {`"overloaded": false`, `"overloaded": "no"`}, {`"p99":`, `"p98":`}, {`"throughput":`, `"speed":`}, {`"rounds": 500`, `"rounds": -1`}} {
		data := bytes.ReplaceAll(toJSON(t, full(t)), []byte(change[0]), []byte(change[1]))
		if result, err := schema.Validate(gojsonschema.NewBytesLoader(data)); err != nil || result.Valid() {
			t.Errorf("with %s it is valid (%v)", change[1], err)
		}
	}
}

// failed is a level without an answer.
func failed(t *testing.T) *measure.Level {
	r, err := measure.NewRecorder(measure.Settings{Mode: measure.Closed, Workers: 1, MaxCount: 3})
	if err != nil {
		t.Fatal(err)
	}
	var l *measure.Level
	synctest.Test(t, func(t *testing.T) {
		l, err = r.Run(t.Context(), load.TargetFunc(func(context.Context, load.Request) (load.Result, error) { return load.Result{}, errors.New("no") }), nil, load.NewPlainClock())
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// undescribed lists the fields of a value for which a schema has no word.
func undescribed(path string, value any, schema, definitions map[string]any) (missing []string) {
	for _, name := range references(schema) {
		schema = definitions[name].(map[string]any)
	}
	switch v := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		others, isMap := schema["additionalProperties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			of, known := properties[key].(map[string]any)
			switch {
			case known:
				missing = append(missing, undescribed(path+"/"+key, v[key], of, definitions)...)
			case isMap:
				missing = append(missing, undescribed(path+"/*", v[key], others, definitions)...)
			default:
				missing = append(missing, path+"/"+key)
			}
		}
	case []any:
		items, known := schema["items"].(map[string]any)
		if !known {
			return []string{path + "[]"}
		}
		for _, each := range v {
			missing = append(missing, undescribed(path+"[]", each, items, definitions)...)
		}
	}
	return slices.Compact(missing)
}

// references are the definitions that a schema refers to.
func references(schema map[string]any) (names []string) {
	all, _ := schema["allOf"].([]any)
	for _, each := range append(all, schema) {
		if ref, ok := each.(map[string]any)["$ref"].(string); ok {
			names = append(names, strings.TrimPrefix(ref, "#/definitions/"))
		}
	}
	return names
}

// The fields that everybody relies on stand at the top, for the main level.
func TestTopLevel(t *testing.T) {
	r := full(t)
	var top map[string]any
	if err := json.Unmarshal(toJSON(t, r), &top); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"engine", "device", "emulated", "requests", "errors", "duration_s", "throughput", "goodput", "latency_ms", "send_latency_ms", "stages_ms", "batches", "gears", "stable", "overloaded", "generator"} {
		if _, there := top[name]; !there {
			t.Errorf("there is no %s", name)
		}
	}
	// The level with two senders is overloaded. Of the others that with four clients has the
	// higher goodput, though its deadline costs it some.
	if r.Main != 1 || !r.Levels[2].Overloaded || r.Levels[r.Main].Overloaded || r.Level != r.Levels[r.Main] {
		t.Errorf("main is %d", r.Main)
	}
}

func html(t *testing.T, r *Report) string {
	t.Helper()
	var out strings.Builder
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The page needs no network and no script, its drawings are well-formed, and names from
// files are text in it.
func TestHTML(t *testing.T) {
	page := html(t, full(t))
	for _, forbidden := range []string{"http:", "https:", "<script", "src=", "@import", "url(", "NaN", "Inf", "<model>", "<no>", "<2>", "ZgotmplZ", "%!"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	for _, wanted := range []string{"Latency distribution", "Throughput and latency", "Where the time goes", "Queue", "Batches", "Gears and their padding", "Search for p99=50ms", "Emulated", "nets/&lt;model&gt;.onnx",
		"overloaded", "1 client", "constant 400/s", "b is slower", "failed", "0123456", "95 % between"} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page has no %q", wanted)
		}
	}
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(drawings) != 2+3*8 {
		t.Errorf("%d drawings", len(drawings))
	}
	for _, drawing := range drawings {
		if err := wellFormed(drawing); err != nil {
			t.Errorf("%v in %.200s", err, drawing)
		}
	}
	if len(page) > 1<<20 {
		t.Errorf("%d bytes", len(page))
	}
	for name, r := range map[string]*Report{"empty": New(Provenance{}, nil), "nothing was answered": New(provenance, []*measure.Level{failed(t)})} {
		if page := html(t, r); strings.Contains(page, "NaN") || !strings.Contains(page, "</html>") {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// wellFormed reads a drawing as XML, and its numbers as numbers.
func wellFormed(drawing string) error {
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if start, is := token.(xml.StartElement); is {
			for _, a := range start.Attr {
				var value float64
				if slices.Contains([]string{"x", "y", "width", "height", "cx", "cy", "x1", "x2", "y1", "y2"}, a.Name.Local) {
					if n, err := fmt.Sscan(a.Value, &value); n != 1 || err != nil || value < -1 || value > 800 {
						return fmt.Errorf("%s=%q of %s", a.Name.Local, a.Value, start.Name.Local)
					}
				}
			}
		}
	}
}

// A folder keeps the records; the report that is made of them again is the same to the
// byte, in all its forms.
func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run [1]")
	f, err := CreateFolder(path, provenance)
	if err != nil {
		t.Fatal(err)
	}
	levels := []*measure.Level{}
	for _, s := range settings {
		if s.Mode == measure.Open {
			s.Rate, s.Arrivals = openRate, "constant"
		}
		records, err := f.Level(s)
		if err != nil {
			t.Fatal(err)
		}
		levels = append(levels, level(t, s, openRate, withoutCPU{records}))
		if err := records.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := New(provenance, levels)
	r.SetMain(0) // not the one that New chooses
	r.Search = full(t).Search
	if err := f.Finish(r); err != nil {
		t.Fatal(err)
	}
	again, err := Remake(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("made again it differs (-measured +again):\n%s", diff)
	}
	for _, name := range []string{"report.json", "report.csv", "report.txt", "report.html"} {
		first, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteFiles(path, again); err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(path, name))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs (%v)", name, err)
		}
	}
	base, err := Read(filepath.Join(path, "report.json"))
	if err != nil || cmp.Diff(r, base) != "" {
		t.Errorf("read as a baseline it differs: %v", err)
	}
	if _, err := CreateFolder(path, provenance); fault.FamilyOf(err) != fault.Usage {
		t.Errorf("a second run in one folder: %v", err)
	}
}

// withoutCPU takes away what is the machine's.
type withoutCPU struct{ *Records }

func (w withoutCPU) Ended(e load.End) {
	e.CPU, e.Processors = 0, 0
	w.Records.Ended(e)
}

// Of a run that was killed the folder gives what there is.
func TestFolderOfAKilledRun(t *testing.T) {
	path := t.TempDir()
	f, err := CreateFolder(path, provenance)
	if err != nil {
		t.Fatal(err)
	}
	records, err := f.Level(settings[0])
	if err != nil {
		t.Fatal(err)
	}
	level(t, settings[0], 0, records)
	if err := records.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "requests-001.csv")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data[:len(data)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Remake(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests < 400 || r.Requests > 600 || r.Ending != "interrupted" || r.Engine != "null" {
		t.Errorf("%d requests, ended by %s", r.Requests, r.Ending)
	}
}

func TestRefusedReports(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"empty.json": "", "list.json": "[]", "none.json": "{}", "null.json": `{"levels":[null]}`} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); fault.FamilyOf(err) != fault.Input || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Remake(folder); fault.FamilyOf(err) != fault.Input {
		t.Errorf("a folder without a run: %v", err)
	}
}

func TestComparable(t *testing.T) {
	r := New(provenance, nil)
	if why := r.Comparable(r); why != "" {
		t.Error(why)
	}
	other := New(provenance, nil)
	other.Emulated = false
	if why := r.Comparable(other); !strings.Contains(why, "emulated") {
		t.Error(why)
	}
}

// What was measured is what simulate takes for the times of an engine.
func TestServiceTimes(t *testing.T) {
	for name, s := range map[string]measure.Settings{
		"gear":  {Mode: measure.Closed, Workers: 2, MaxCount: 500, Gears: []string{"1", "4,224"}},
		"batch": {Mode: measure.Closed, Workers: 2, MaxCount: 500},
	} {
		l := level(t, s, 0)
		if name == "batch" {
			l.Gears = nil
		}
		var out bytes.Buffer
		if err := WriteServiceTimes(&out, l); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), name+",time_ms\n") {
			t.Errorf("%s: %s", name, out.String())
		}
		if _, err := simulation.ReadService(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := WriteServiceTimes(io.Discard, failed(t)); err == nil {
		t.Error("times of nothing")
	}
}

func TestLine(t *testing.T) {
	l := &measure.Level{Settings: measure.Settings{Mode: measure.Closed, Workers: 8}, Throughput: 1234.56}
	l.Latency.Mean = 6.4804
	if got, want := Line(l), "Concurrency: 8, throughput: 1234.56 infer/sec, latency 6480 usec"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.0035123: "0.00351", 0.5: "0.5", 1.23456: "1.235", 12.3456: "12.35", 123.456: "123.5", 123456.7: "123457", -0.25: "-0.25"} {
		if got := number(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

// Axes have round numbers, within their ends, for any values.
func TestTicks(t *testing.T) {
	for _, most := range []float64{0, 1e-9, 0.3, 1, 7, 99, 1e6, 1e300} {
		s := upTo(most, 0, 100)
		ticks := s.ticks()
		if s.to < most || len(ticks) < 2 || len(ticks) > 12 {
			t.Errorf("up to %v: to %v, %v", most, s.to, ticks)
		}
	}
	for _, ends := range [][2]float64{{0.001, 1000}, {3, 4}, {1e-6, 1e9}, {5, 5}} {
		ticks := scale{from: ends[0], to: ends[1], begin: 0, end: 100, log: true}.ticks()
		if len(ticks) > 2*mostTicks {
			t.Errorf("%v: %d ticks", ends, len(ticks))
		}
		for _, tick := range ticks {
			if tick.At < 0 || tick.At > 100 {
				t.Errorf("%v: %+v", ends, tick)
			}
		}
	}
}
