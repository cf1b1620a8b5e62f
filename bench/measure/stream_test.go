package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/npuctl/npuctl/bench/load"
)

// kept measures a level, and gives it with the stream of its records.
func kept(t *testing.T, target func() load.Target, s Settings, schedule func() load.Schedule) (*Level, string) {
	t.Helper()
	var stream bytes.Buffer
	var level *Level
	synctest.Test(t, func(t *testing.T) {
		w, err := NewStreamWriter(&stream, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRecorder(s)
		if err != nil {
			t.Fatal(err)
		}
		if level, err = r.Run(t.Context(), target(), schedule(), load.NewPlainClock(), w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return level, stream.String()
}

func closed() load.Schedule { return nil }

// A stream makes the same level again, to the last field.
func TestReplay(t *testing.T) {
	random := func() load.Target {
		return load.TargetFunc(func(_ context.Context, r load.Request) (load.Result, error) {
			wait := time.Duration(rand.New(rand.NewPCG(1, uint64(r.Number))).IntN(30)) * 100 * time.Microsecond
			time.Sleep(wait)
			if r.Number%97 == 0 {
				return load.Result{}, errors.New("line one\nand \"two\", with a comma")
			}
			got := load.Result{Items: int32(1 + r.Number%3), Kind: int32(r.Number % 2), Batch: load.Batch{Items: 4, Gear: int32(r.Number % 3), Elements: 10, Padding: r.Number % 5, Lead: r.Number%2 == 0}}
			got.Stages[load.H2D] = wait / 2
			return got, nil
		})
	}
	poisson := func() load.Schedule {
		s, err := load.Poisson(400, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name     string
		target   func() load.Target
		s        Settings
		schedule func() load.Schedule
	}{
		{"closed", random, batchingSettings, closed},
		{"open", random, Settings{Mode: Open, Workers: 3, Rate: 400, Arrivals: "poisson", WarmTime: time.Second, MaxTime: 5 * time.Second}, poisson},
		{"more than is kept", random, Settings{Mode: Closed, Workers: 200, WarmCount: 777, MaxCount: mostExact + 5000}, closed},
		{"nothing", random, Settings{Mode: Open, Workers: 1, Rate: 1, Arrivals: "constant", WarmTime: time.Minute, MaxTime: time.Second}, poisson},
	} {
		level, stream := kept(t, c.target, c.s, c.schedule)
		again, err := Replay(strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(level, again); diff != "" {
			t.Errorf("%s: made again it differs (-measured +again):\n%s", c.name, diff)
		}
		if _, err := json.Marshal(level); err != nil {
			t.Error(err)
		}
	}
}

// A stream that was cut anywhere gives what is there, and says so; or it says that there
// is nothing to read.
func TestReplayOfAPart(t *testing.T) {
	s := batchingSettings
	s.MaxCount, s.MinCount = 200, 0
	_, stream := kept(t, batching, s, closed)
	whole := strings.Count(stream, "\n")
	for at := 0; at < len(stream)-1; at += 37 {
		level, err := Replay(strings.NewReader(stream[:at]))
		lines := strings.Count(stream[:at], "\n")
		if lines < 2 {
			if err == nil {
				t.Fatalf("%d bytes: taken", at)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes, %d of %d lines: %v", at, lines, whole, err)
		}
		isShort := !strings.Contains(stream[:at], streamEnded) || !strings.HasSuffix(stream[:at][:strings.LastIndex(stream[:at], "\n")+1], "\n")
		if said := len(level.Notes) > 0 && strings.Contains(level.Notes[len(level.Notes)-1], "break off"); isShort && strings.Index(stream, streamEnded) > at && !said {
			t.Fatalf("%d bytes: nothing is said of it: %q", at, level.Notes)
		}
	}
}

func TestRefusedStreams(t *testing.T) {
	settings, err := json.Marshal(Settings{Mode: Closed, Workers: 1, MaxCount: 1})
	if err != nil {
		t.Fatal(err)
	}
	head := streamTitle + string(settings) + "\n" + streamColumns + "\n"
	row := "0,0,0,ok,0,0,0,5,0,0,0,0,0,1,0,0,0,0,0,0,\n"
	if _, err := Replay(strings.NewReader(head + row)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"another file", "time_ms,size\n1,2\n", "no file of requests"},
		{"no settings", streamTitle + "{\n", "settings"},
		{"settings that are none", streamTitle + "{}\n" + streamColumns + "\n", "mode"},
		{"other columns", streamTitle + string(settings) + "\nnumber\n", "columns"},
		{"a short row", head + "0,0,0,ok\n", "line 3: 4 fields"},
		{"a word", head + strings.Replace(row, "5", "five", 1), `done_ns: "five"`},
		{"a negative time", head + strings.Replace(row, "5", "-5", 1), "done_ns"},
		{"an endless time", head + strings.Replace(row, "5", "9000000000000000000", 1), "done_ns"},
		{"an outcome", head + strings.Replace(row, "ok", "fine", 1), `outcome "fine"`},
		{"times out of order", head + strings.Replace(row, "0,0,0,5", "9,9,9,5", 1), "not in the order"},
		{"an observation", head + "# observed 1\n", "no two times"},
		{"an end", head + "# ended 7\n", "how the run ended"},
		{"an end before the beginning", head + "# ended {\"At\": -1}\n", "out of range"},
		{"an endless line", head + strings.Repeat("1", mostLine+1<<17), "longer than"},
	} {
		if _, err := Replay(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// full is a disk without room.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestStreamToAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Settings{Mode: Closed, Workers: 4, MaxTime: time.Minute}
		w, err := NewStreamWriter(&full{left: 1 << 18}, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewRecorder(s)
		if err != nil {
			t.Fatal(err)
		}
		level, err := r.Run(t.Context(), batching(), nil, load.NewPlainClock(), w)
		if err == nil || !strings.Contains(err.Error(), "keep the records: no space left") {
			t.Error(err)
		}
		if level.Requests == 0 || level.Duration > 50 {
			t.Errorf("%d requests in %v s", level.Requests, level.Duration)
		}
	})
}

// Whatever a file holds: an error or a level that can be printed.
func FuzzReplay(f *testing.F) {
	settings := `{"mode":"open","workers":2,"rate":3,"arrivals":"constant","gears":["a"],"kinds":["x","y"]}`
	head := streamTitle + settings + "\n" + streamColumns + "\n"
	f.Add(head)
	f.Add(head + "0,0,0,ok,0,0,0,5,1,1,1,1,1,1,0,4,1,1,100,20,\n# observed 9 7\n1,0,0,rejected,5,6,7,100000000000000000,0,0,0,0,0,1,1,0,0,0,0,0,\"full\"\n# ended {\"Ending\":\"enough\",\"At\":10,\"Last\":100}\n# observed 100 9223372036854775807\n")
	f.Add(head + "1048577,-1,1,unsent,99999999999999999,99999999999999999,99999999999999999,99999999999999999,0,0,0,0,0,2147483647,9,2147483647,1,1048576,1125899906842624,1125899906842624,\n")
	f.Fuzz(func(t *testing.T, text string) {
		begin := time.Now()
		level, err := Replay(strings.NewReader(text))
		if lasted := time.Since(begin); lasted > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(text), lasted)
		}
		if err != nil {
			return
		}
		if _, err := json.Marshal(level); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	w, err := NewStreamWriter(&full{left: 1 << 62}, Settings{})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]load.Record, 1000)
	for i := range records {
		at := time.Duration(i) * time.Millisecond
		records[i] = load.Record{Number: int64(i), Intended: at, Ready: at, Sent: at, Done: at + 5e6}
	}
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(records) {
		if _, err := w.Observe(0, 0, records); err != nil {
			b.Fatal(err)
		}
	}
}
