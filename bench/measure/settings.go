package measure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/internal/suggest"
)

// Settings say what a level is, when it ends and how it is judged. They are plain data, and
// kept with the records. Times are nanoseconds in JSON.
type Settings struct {
	// Mode is closed or open.
	Mode string `json:"mode"`
	// Workers are the clients of a closed loop, or the most requests in flight of an open one.
	Workers int `json:"workers"`
	// Rate is that of an open loop, in requests a second; 0 where it has no single one.
	Rate float64 `json:"rate,omitempty"`
	// Arrivals is the kind of schedule: constant, poisson, ramp or trace.
	Arrivals string `json:"arrivals,omitempty"`

	WarmTime  time.Duration `json:"warm_time_ns"`
	WarmCount int64         `json:"warm_count"`
	// The level goes on until MinTime and MinCount are reached and, with WaitStable, it is
	// stable, but not beyond MaxTime or MaxCount; 0 is no limit.
	MinTime    time.Duration `json:"min_time_ns"`
	MinCount   int64         `json:"min_count"`
	MaxTime    time.Duration `json:"max_time_ns"`
	MaxCount   int64         `json:"max_count"`
	WaitStable bool          `json:"wait_stable"`
	Stability  Stability     `json:"stability"`
	Limits     Limits        `json:"limits"`
	// Deadline is the latency up to which an answer counts for the goodput; 0 is any.
	Deadline time.Duration `json:"deadline_ns"`
	// Gears are the names of the gears that records give by number, from 1.
	Gears []string `json:"gears,omitempty"`
	// Kinds are the names of the kinds of request that records give by number, from 0.
	Kinds []string `json:"kinds,omitempty"`
}

// The modes.
const (
	Closed = "closed"
	Open   = "open"
)

// Stability says when a level is stable: the last Windows windows differ by no more than
// Tolerance, the largest over the smallest, in the throughput (of an open loop: in the
// share of what was due that was answered) and in one figure of the latency.
type Stability struct {
	// Window is how long a window is at least, and Requests how many answers it has at
	// least: one with fewer is put together with the next.
	Window    time.Duration `json:"window_ns"`
	Requests  int64         `json:"requests"`
	Windows   int           `json:"windows"`
	Tolerance float64       `json:"tolerance"`
	// Figure is mean or a percentile, such as p99.
	Figure string `json:"figure"`
}

// DefaultStability is three windows of a second and 50 answers, throughput and mean latency
// within 10 %. The mean, as a median does not see a server that stalls now and then.
func DefaultStability() Stability {
	return Stability{Window: time.Second, Requests: 50, Windows: 3, Tolerance: 0.1, Figure: "mean"}
}

// Limits are those beyond which a level is not valid, as it measured the generator.
type Limits struct {
	// Lateness is how late the generator may be at the 99th percentile. It may also be
	// LatenessShare of the median latency, if that is more.
	Lateness      time.Duration `json:"lateness_ns"`
	LatenessShare float64       `json:"lateness_share"`
	// CPU is the share of the machine's processors that the process may use; 0 is all. It
	// is for targets that are not in this process.
	CPU float64 `json:"cpu"`
}

// DefaultLimits are a millisecond, or a twentieth of the median latency.
func DefaultLimits() Limits { return Limits{Lateness: time.Millisecond, LatenessShare: 0.05} }

// mostWindows is how many windows must agree at most.
const mostWindows = 1000

// Check says what is wrong with settings.
func (s *Settings) Check() error {
	if s.Mode != Closed && s.Mode != Open {
		return fmt.Errorf("mode %q: it is %s or %s", s.Mode, Closed, Open)
	}
	if kinds := []string{"", "constant", "poisson", "ramp", "trace"}; !slices.Contains(kinds, s.Arrivals) {
		return fmt.Errorf("there are no arrivals %q; %s", s.Arrivals, suggest.Text(s.Arrivals, kinds[1:]))
	}
	if s.MinTime < 0 || s.MaxTime < 0 || s.MinCount < 0 || s.MaxCount < 0 || s.WarmTime < 0 || s.WarmCount < 0 || s.Deadline < 0 {
		return errors.New("a time or a count of the level is negative")
	}
	if s.MaxTime == 0 && s.MaxCount == 0 && s.Mode == Closed {
		return errors.New("a closed loop without an end: give it a longest time or a count")
	}
	if s.MaxTime > 0 && s.MinTime > s.MaxTime {
		return fmt.Errorf("the shortest time %v is above the longest, %v", s.MinTime, s.MaxTime)
	}
	if s.MaxCount > 0 && s.MinCount > s.MaxCount {
		return fmt.Errorf("at least %d requests, and at most %d", s.MinCount, s.MaxCount)
	}
	return s.Stability.check()
}

func (s *Stability) check() error {
	names := append(PercentileNames(), "mean")
	switch {
	case s.Window < time.Millisecond:
		return fmt.Errorf("windows of %v: give 1ms at least", s.Window)
	case s.Windows < 2 || s.Windows > mostWindows:
		return fmt.Errorf("stable over %d windows: give 2 to %d", s.Windows, mostWindows)
	case !(s.Tolerance > 0):
		return fmt.Errorf("stable within %v: give a share above 0, such as 0.1", s.Tolerance)
	case !slices.Contains(names, s.Figure):
		return fmt.Errorf("there is no figure %q; %s", s.Figure, suggest.Text(s.Figure, names))
	}
	return nil
}

// options gives the settings that package load acts on.
func (s *Settings) options(schedule load.Schedule, clock load.Clock) load.Options {
	o := load.Options{Schedule: schedule, Workers: s.Workers, WarmTime: s.WarmTime, WarmCount: s.WarmCount, Count: s.MaxCount, Clock: clock}
	if s.Stability.Window < 80*time.Millisecond {
		o.Poll = max(time.Millisecond, s.Stability.Window/4)
	}
	return o
}

// Longer gives the settings of a further attempt, from 1: each takes twice as long as the
// one before it, and twice as many requests.
func (s Settings) Longer(attempt int) Settings {
	for range min(attempt, 10) {
		s.MinTime, s.MaxTime, s.MinCount, s.MaxCount = 2*s.MinTime, 2*s.MaxTime, 2*s.MinCount, 2*s.MaxCount
	}
	return s
}

// Name is how a level with these settings is called: 8 clients, or poisson 200/s.
func (s *Settings) Name() string {
	switch {
	case s.Mode == Closed && s.Workers == 1:
		return "1 client"
	case s.Mode == Closed:
		return fmt.Sprintf("%d clients", s.Workers)
	case s.Rate > 0:
		return fmt.Sprintf("%s %.6g/s", s.Arrivals, s.Rate)
	}
	return s.Arrivals
}
