package simulation

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/npuctl/npuctl/bench/executor"
)

// Service says how long a batch runs: the sum over its chunks.
type Service struct {
	// Fixed and Item are the time of a run and of each item of the gear it runs in.
	Fixed, Item time.Duration
	// Exponential draws each time at random, with that mean.
	Exponential bool
	// batches are times by batch, ascending; gears by the text of a gear. What stands in
	// a table is not computed from Fixed and Item.
	batches []batchTime
	gears   map[string]time.Duration
}

type batchTime struct {
	batch int
	time  time.Duration
}

// ParseService reads fixed=4ms,item=0.5ms,distribution=exponential.
func ParseService(text string) (*Service, error) {
	s := &Service{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch key {
		case "fixed":
			s.Fixed, err = parseTime(value)
		case "item":
			s.Item, err = parseTime(value)
		case "distribution":
			s.Exponential = value == "exponential"
			if value != "exponential" && value != "constant" {
				err = fmt.Errorf("%q: there are constant and exponential", value)
			}
		default:
			return nil, fmt.Errorf("%q: give fixed=4ms,item=0.5ms, a distribution, or a file", part)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return s, nil
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("%q is no time with its unit, such as 4ms or 500us, up to a day", text)
	}
	return d, nil
}

// ReadService reads a table: lines of batch,time_ms or of gear,time_ms under a header that
// says which. Batches between two lines take what lies between, those above the last one
// as much longer as they are larger.
func ReadService(r io.Reader) (*Service, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.Comment, in.TrimLeadingSpace = 2, '#', true
	head, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty: the first line must be batch,time_ms or gear,time_ms")
	}
	if err != nil {
		return nil, fmt.Errorf("read service times: %w", err)
	}
	what := strings.TrimPrefix(head[0], "\ufeff")
	if what != "batch" && what != "gear" || head[1] != "time_ms" {
		return nil, fmt.Errorf("the first line is %q: it must be batch,time_ms or gear,time_ms", strings.Join(head, ","))
	}
	s := &Service{gears: map[string]time.Duration{}}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read service times: %w", err)
		}
		line, _ := in.FieldPos(0)
		if err := s.addRow(what, record); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if len(s.batches)+len(s.gears) == 0 {
		return nil, errors.New("the table is empty")
	}
	slices.SortFunc(s.batches, func(a, b batchTime) int { return cmp.Compare(a.batch, b.batch) })
	for i := 1; i < len(s.batches); i++ {
		if s.batches[i].batch == s.batches[i-1].batch {
			return nil, fmt.Errorf("batch %d is there twice", s.batches[i].batch)
		}
	}
	return s, nil
}

func (s *Service) addRow(what string, record []string) error {
	t, err := parseMilliseconds(record[1])
	if err != nil {
		return fmt.Errorf("time_ms: %w", err)
	}
	if what == "batch" {
		n, err := strconv.ParseUint(record[0], 10, 31)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no batch: give whole numbers from 1 to %d", record[0], math.MaxInt32)
		}
		s.batches = append(s.batches, batchTime{int(n), t})
		return nil
	}
	gear := strings.ReplaceAll(strings.ReplaceAll(record[0], "x", ","), " ", "")
	if _, found := s.gears[gear]; found {
		return fmt.Errorf("gear %s is there twice", record[0])
	}
	s.gears[gear] = t
	return nil
}

// Check says whether a table has a time for every gear.
func (s *Service) Check(g *executor.Gears) error {
	if len(s.gears) == 0 {
		return nil
	}
	if g == nil {
		return errors.New("the service times are by gear, and the model has none")
	}
	for i := range g.Len() {
		if _, found := s.gears[g.Text(i)]; !found {
			return fmt.Errorf("there is no service time of gear %s", g.Text(i))
		}
	}
	return nil
}

// Mean is the mean time of a run of a batch. One that is longer than time itself is for
// ever, as is every time here.
func (s *Service) Mean(g *executor.Gears, c executor.Chunk) time.Duration {
	if len(s.gears) > 0 {
		return s.gears[g.Text(c.Gear)]
	}
	if len(s.batches) > 0 {
		return s.fromTable(c.Batch)
	}
	return duration(float64(s.Fixed) + float64(c.Batch)*float64(s.Item))
}

// fromTable finds the time of a batch between the lines of the table.
func (s *Service) fromTable(batch int) time.Duration {
	i, found := slices.BinarySearchFunc(s.batches, batch, func(t batchTime, n int) int { return cmp.Compare(t.batch, n) })
	switch {
	case found:
		return s.batches[i].time
	case i == 0:
		return s.batches[0].time
	case i == len(s.batches):
		last := s.batches[i-1]
		return duration(float64(last.time) * float64(batch) / float64(last.batch))
	}
	low, high := s.batches[i-1], s.batches[i]
	share := float64(batch-low.batch) / float64(high.batch-low.batch)
	return low.time + time.Duration(math.Round(share*float64(high.time-low.time)))
}

// of gives the time of a batch: that of its longest part.
func (s *Service) of(g *executor.Gears, b *executor.Batch, r *rand.Rand) (longest time.Duration) {
	sum, part := time.Duration(0), 0
	for _, c := range b.Chunks {
		if c.Part != part {
			sum, part = 0, c.Part
		}
		t := s.Mean(g, c)
		if s.Exponential && t < never {
			t = duration(float64(t) * r.ExpFloat64())
		}
		sum = after(sum, t)
		longest = max(longest, sum)
	}
	return longest
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// after adds to a time without running over its end.
func after(t, d time.Duration) time.Duration {
	if d > never-t {
		return never
	}
	return t + d
}

// duration rounds nanoseconds.
func duration(ns float64) time.Duration {
	if ns >= float64(never) {
		return never
	}
	return time.Duration(math.Round(ns))
}
