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
	"github.com/npuctl/npuctl/internal/suggest"
)

// Arrival is a request that comes.
type Arrival struct {
	At      time.Duration
	Row     int // which one it is, from 0
	Size    int
	Kind    int // index of [Traffic.Kinds]
	Level   int
	Timeout time.Duration
}

// Kind is what requests of equal inputs have in common.
type Kind struct {
	Shape string // as it was given; "" is the default
	Class executor.Class
	Err   error // why such requests do not fit the model
	// Assumed are the open dims, as x[1], that nobody gave a size: they have that of
	// [DefaultDim].
	Assumed []string
}

// Traffic is where requests come from.
type Traffic struct {
	Kinds []Kind
	// Rows are the requests of a file, in the order of their times.
	Rows []Arrival
	// Rate is requests a second; Poisson has them come at random, else at equal intervals.
	Rate    float64
	Poisson bool
	// Clients send a request each, and the next one Think after its answer.
	Clients int
	Think   time.Duration
	// Duration is for how long requests are sent, and Requests how many at most; 0 is no
	// limit. Neither holds for a file.
	Duration time.Duration
	Requests int
	// Sizes and KindWeights are drawn from for each request that no file gives.
	Sizes       Weighted
	KindWeights Weighted
}

// expected is about how many requests there will be, as far as that is known: so much
// space is made at once.
func (t *Traffic) expected() int {
	const most = 1 << 23
	switch {
	case len(t.Rows) > 0:
		return len(t.Rows)
	case t.Requests > 0:
		return min(t.Requests, most)
	}
	return int(min(1.01*t.Rate*t.Duration.Seconds(), most))
}

// Weighted are values to draw from.
type Weighted struct {
	values []int
	sums   []float64
}

// add appends a value with its weight.
func (w *Weighted) add(value int, weight float64) {
	last := 0.0
	if len(w.sums) > 0 {
		last = w.sums[len(w.sums)-1]
	}
	w.values, w.sums = append(w.values, value), append(w.sums, last+weight)
}

// Largest is the largest of the values.
func (w *Weighted) Largest() (most int) {
	for _, value := range w.values {
		most = max(most, value)
	}
	return most
}

// draw gives one of the values; what holds none gives the default.
func (w *Weighted) draw(r *rand.Rand, without int) int {
	switch len(w.values) {
	case 0:
		return without
	case 1:
		return w.values[0]
	}
	i, _ := slices.BinarySearch(w.sums, r.Float64()*w.sums[len(w.sums)-1])
	return w.values[min(i, len(w.values)-1)]
}

// ParseSizes reads sizes: 4, 1-8 (each as often), 1:3,4:1 (with weights).
func ParseSizes(text string) (w Weighted, err error) {
	for word := range strings.SplitSeq(text, ",") {
		value, weight, err := cutWeight(word)
		if err != nil {
			return w, err
		}
		low, high, isRange := strings.Cut(value, "-")
		if !isRange {
			high = low
		}
		from, errFrom := strconv.Atoi(low)
		to, errTo := strconv.Atoi(high)
		switch {
		case errFrom != nil || errTo != nil || from < 1 || to < from || to > math.MaxInt32:
			return w, fmt.Errorf("%q is no size: give 4, 1-8 or 1:3,4:1, up to %d", word, math.MaxInt32)
		case to-from > mostRange:
			return w, fmt.Errorf("%q: a range holds %d sizes at most", word, mostRange+1)
		}
		for size := from; size <= to; size++ {
			w.add(size, weight/float64(to-from+1))
		}
	}
	return w, nil
}

// mostRange bounds the sizes of a range, each of which costs memory.
const mostRange = 1 << 16

// mostWeight keeps sums of weights finite.
const mostWeight = 1e12

// cutWeight takes VALUE:WEIGHT apart.
func cutWeight(word string) (value string, weight float64, err error) {
	value, text, has := strings.Cut(strings.TrimSpace(word), ":")
	if !has {
		return value, 1, nil
	}
	weight, err = strconv.ParseFloat(text, 64)
	if err != nil || !(weight > 0 && weight <= mostWeight) {
		return "", 0, fmt.Errorf("%q: the weight %q is no number above 0, up to %.0g", word, text, mostWeight)
	}
	return value, weight, nil
}

// DefaultDim is the size of an open dim where nobody says one.
const DefaultDim = 4

// kinds makes kinds of request, each once.
type kinds struct {
	signature *executor.Signature
	list      []Kind
	known     map[[2]string]int
}

// find gives the number of the kind with a shape, for all inputs, and inputs, with + between.
func (k *kinds) find(shape, inputs string) (int, error) {
	key := [2]string{shape, inputs}
	if i, found := k.known[key]; found {
		return i, nil
	}
	kind := Kind{Shape: strings.Clone(shape)}
	given, err := k.given(shape, inputs, &kind.Assumed)
	if err != nil {
		return 0, err
	}
	kind.Class, kind.Err = k.signature.Admit(1, given)
	if k.known == nil {
		k.known = map[[2]string]int{}
	}
	k.known[[2]string{kind.Shape, strings.Clone(inputs)}] = len(k.list)
	k.list = append(k.list, kind)
	return len(k.list) - 1, nil
}

// given makes the inputs of a request. It adds the dims to assumed that nobody gave a size.
func (k *kinds) given(shape, inputs string, assumed *[]string) (out []executor.Given, err error) {
	isThere := make([]bool, len(k.signature.Inputs))
	for word := range strings.SplitSeq(inputs, "+") {
		if inputs == "" {
			break
		}
		i, err := k.signature.Find(word)
		if err != nil {
			return nil, err
		}
		isThere[i] = true
	}
	shapes, err := k.shapes(shape)
	if err != nil {
		return nil, err
	}
	for i, in := range k.signature.Inputs {
		if inputs != "" && !isThere[i] {
			continue
		}
		g := executor.Given{Input: i, Shape: shapes[i]}
		if g.Shape == nil {
			g.Shape = slices.Clone(in.Dims)
			for axis, d := range g.Shape {
				if d < 0 {
					g.Shape[axis] = DefaultDim
					*assumed = append(*assumed, fmt.Sprintf("%s[%d]", in.Name, axis+batchAxes(k.signature)))
				}
			}
		}
		out = append(out, g)
	}
	return out, nil
}

// batchAxes is how many axes of the model stand before those of an item.
func batchAxes(s *executor.Signature) int { return min(1, s.MaxBatch) }

// shapes reads 4x3, for every input, or NAME=4x3+NAME=7.
func (k *kinds) shapes(text string) ([][]int64, error) {
	out := make([][]int64, len(k.signature.Inputs))
	if text == "" {
		return out, nil
	}
	if !strings.Contains(text, "=") {
		dims, err := parseShape(text)
		for i := range out {
			out[i] = dims
		}
		return out, err
	}
	for part := range strings.SplitSeq(text, "+") {
		name, dims, _ := strings.Cut(part, "=")
		i, err := k.signature.Find(name)
		if err != nil {
			return nil, err
		}
		if out[i], err = parseShape(dims); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseShape reads 4x3.
func parseShape(text string) ([]int64, error) {
	dims := []int64{}
	for word := range strings.SplitSeq(text, "x") {
		d, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("the shape %q: give sizes from 0 to %d with x between, as in 4x3", text, math.MaxInt32)
		}
		dims = append(dims, d)
	}
	return dims, nil
}

// ParseShapes reads shapes to draw from, 4x3 or 4:3,8:1 with weights, and gives their kinds.
func ParseShapes(text string, s *executor.Signature) (list []Kind, w Weighted, err error) {
	k := kinds{signature: s}
	for word := range strings.SplitSeq(text, ",") {
		shape, weight, err := cutWeight(word)
		if err != nil {
			return nil, w, err
		}
		i, err := k.find(shape, "")
		if err != nil {
			return nil, w, err
		}
		w.add(i, weight)
	}
	return k.list, w, nil
}

// columns are those of an arrivals file, in their order where it has no header.
var columns = []string{"time_ms", "size", "shape", "level", "timeout_ms", "inputs"}

// MostRequests bounds a simulation: each request takes memory.
const MostRequests = 100_000_000

// ReadArrivals reads an arrivals file.
func ReadArrivals(r io.Reader, s *executor.Signature) (*Traffic, error) {
	in := csv.NewReader(r)
	in.ReuseRecord, in.FieldsPerRecord, in.Comment, in.TrimLeadingSpace = true, -1, '#', true
	k := kinds{signature: s}
	t := &Traffic{}
	at := columnNumbers(columns) // of each field
	for isFirst := true; ; isFirst = false {
		record, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read arrivals: %w", err)
		}
		line, _ := in.FieldPos(0)
		if isFirst && !startsWithNumber(record[0]) {
			if at, err = header(record); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			continue
		}
		a, err := readArrival(record, at, &k)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if a.Row = len(t.Rows); a.Row >= MostRequests {
			return nil, fmt.Errorf("more than %d requests", MostRequests)
		}
		t.Rows = append(t.Rows, a)
	}
	if len(t.Rows) == 0 {
		return nil, errors.New("no requests")
	}
	slices.SortStableFunc(t.Rows, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	t.Kinds = k.list
	return t, nil
}

func startsWithNumber(field string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	return err == nil
}

func columnNumbers(names []string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.Index(columns, name)
	}
	return at
}

// header reads the line of names.
func header(record []string) ([]int, error) {
	names := make([]string, len(record))
	for i, field := range record {
		names[i] = strings.TrimPrefix(strings.TrimSpace(field), "\ufeff")
		if !slices.Contains(columns, names[i]) {
			return nil, fmt.Errorf("there is no column %q; %s", names[i], suggest.Text(names[i], columns))
		}
		if slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("column %q is there twice", names[i])
		}
	}
	if !slices.Contains(names, "time_ms") {
		return nil, errors.New("there is no column time_ms")
	}
	return columnNumbers(names), nil
}

// readArrival reads one line.
func readArrival(record []string, at []int, k *kinds) (Arrival, error) {
	if len(record) > len(at) {
		return Arrival{}, fmt.Errorf("%d fields, and there are %d columns", len(record), len(at))
	}
	var fields [6]string
	for i, field := range record {
		fields[at[i]] = strings.TrimSpace(field)
	}
	a := Arrival{Size: 1}
	var err error
	if a.At, err = parseMilliseconds(fields[0]); err != nil {
		return a, fmt.Errorf("time_ms: %w", err)
	}
	if a.Size, err = parseNumber(fields[1], 1); err != nil {
		return a, fmt.Errorf("size: %w", err)
	}
	if a.Level, err = parseNumber(fields[3], 0); err != nil {
		return a, fmt.Errorf("level: %w", err)
	}
	if fields[4] != "" {
		if a.Timeout, err = parseMilliseconds(fields[4]); err != nil {
			return a, fmt.Errorf("timeout_ms: %w", err)
		}
	}
	a.Kind, err = k.find(fields[2], fields[5])
	return a, err
}

// mostMilliseconds is some 30 years.
const mostMilliseconds = 1e12

func parseMilliseconds(text string) (time.Duration, error) {
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ms >= 0 && ms <= mostMilliseconds) {
		return 0, fmt.Errorf("%q is no time in milliseconds, from 0 to %.0g", text, mostMilliseconds)
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}

func parseNumber(text string, without int) (int, error) {
	if text == "" {
		return without, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number from 0 to %d", text, math.MaxInt32)
	}
	return int(n), nil
}
