package planner

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Reading says how observations are read.
type Reading struct {
	// Axes are the names of the axes, in the order that gears shall have. In a CSV file or
	// in objects of JSON they are the columns or fields to take; without names these are
	// all but the weights. Lines and lists of numbers have them in this order.
	Axes []string
	// Weight is the column or the field with weights; "" is [WeightColumn].
	Weight string
}

// WeightColumn is the column that says how often a size came.
const WeightColumn = "weight"

// MaxBytes bounds a file of observations.
const MaxBytes = 1 << 28

// Read reads observed sizes:
//
//   - lines with a number for each axis, apart by commas, blanks or x: 262, or 224,336;
//   - CSV with a header, as `npuctl bench --shapes` takes it: a column for each axis and,
//     if wanted, one with weights;
//   - JSON: a list of numbers, of lists of numbers with one for each axis, or of objects
//     with the axes as fields; objects may stand one after the other without a list.
//
// What begins with # is a comment in the first two. Errors name the line and the value.
func Read(r io.Reader, how Reading) (*Sizes, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	if how.Weight == "" {
		how.Weight = WeightColumn
	}
	for i, name := range how.Axes {
		if name == "" || name == how.Weight || slices.Contains(how.Axes[:i], name) {
			return nil, fmt.Errorf("the axes need names of their own, other than %s", how.Weight)
		}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var s *Sizes
	switch first := firstLine(data); {
	case first == "":
		return nil, errors.New("there is not one size in it")
	case first[0] == '[' || first[0] == '{':
		s, err = readJSON(data, how)
	case longLine(data) > 0:
		return nil, place(longLine(data), fmt.Errorf("it is longer than %d bytes", maxLine))
	case isHeader(first):
		s, err = readCSV(data, how)
	default:
		s, err = readLines(data, how)
	}
	if err == nil && s.Len() == 0 {
		err = errors.New("there is not one size in it that counts")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// maxLine bounds a line, or a value of a list in JSON: with few sizes in each, a file cannot
// make more of itself in memory than it is.
const maxLine = 1 << 16

// longLine is the first line that is longer than [maxLine]; 0 when none is.
func longLine(data []byte) int {
	line := 0
	for text := range bytes.Lines(data) {
		if line++; len(text) > maxLine {
			return line
		}
	}
	return 0
}

// firstLine is the first line that holds more than a comment.
func firstLine(data []byte) string {
	for line := range bytes.Lines(data) {
		if text := strings.TrimSpace(string(line)); text != "" && text[0] != '#' {
			return text
		}
	}
	return ""
}

// isHeader says whether a line names columns: not one of its words begins as a number does.
func isHeader(line string) bool {
	for word := range strings.SplitSeq(line, ",") {
		word = strings.Trim(word, " \t\"")
		if word == "" || strings.ContainsAny(word[:1], "0123456789+-.") {
			return false
		}
	}
	return true
}

// place is an error with its line.
func place(line int, err error) error { return fmt.Errorf("line %d: %w", line, err) }

func readLines(data []byte, how Reading) (s *Sizes, err error) {
	var size []int64
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		if size, err = numbersOf(size[:0], text); err != nil {
			return nil, place(line, err)
		}
		if s == nil {
			if s, err = ofAxes(how, len(size)); err != nil {
				return nil, place(line, err)
			}
		}
		if err := s.Add(size, 1); err != nil {
			return nil, place(line, err)
		}
	}
	return s, nil
}

// ofAxes makes a list for sizes of so many numbers, where nothing but the caller names axes.
func ofAxes(how Reading, n int) (*Sizes, error) {
	switch {
	case n > MaxAxes:
		return nil, fmt.Errorf("%d numbers: a size has at most %d", n, MaxAxes)
	case how.Axes == nil:
		return NewSizes(make([]string, n)...), nil
	case n == len(how.Axes)+1:
		return nil, fmt.Errorf("%d numbers for the axes %s: a column of weights needs a header that names all columns", n, strings.Join(how.Axes, ", "))
	case n != len(how.Axes):
		return nil, fmt.Errorf("%d numbers for the axes %s", n, strings.Join(how.Axes, ", "))
	}
	return NewSizes(how.Axes...), nil
}

// numbersOf reads the numbers of a line, and appends them. It reads a million lines, and so
// makes no text of them.
func numbersOf(size []int64, line []byte) ([]int64, error) {
	n, digits := int64(0), 0
	for i := 0; i <= len(line); i++ {
		c := byte(' ')
		if i < len(line) {
			c = line[i]
		}
		switch {
		case c >= '0' && c <= '9':
			if n = n*10 + int64(c-'0'); n > math.MaxInt32 {
				return nil, fmt.Errorf("%s is too large for a size: at most %d", shown(wordAt(line, i)), math.MaxInt32)
			}
			digits++
		case !isBetween(c):
			return nil, fmt.Errorf("%s is no size: give whole numbers from 1 to %d", shown(wordAt(line, i)), math.MaxInt32)
		case digits > 0:
			if n == 0 {
				return nil, fmt.Errorf("0 is no size: give whole numbers from 1 to %d", math.MaxInt32)
			}
			if len(size) > MaxAxes {
				return nil, fmt.Errorf("more than %d numbers", MaxAxes)
			}
			size = append(size, n)
			n, digits = 0, 0
		}
	}
	return size, nil
}

// isBetween says whether a byte keeps numbers apart.
func isBetween(c byte) bool {
	return c == ' ' || c == '\t' || c == ',' || c == ';' || c == 'x' || c == '\r'
}

// wordAt is the word of a line that the byte at i is of.
func wordAt(line []byte, i int) string {
	from, to := i, i
	for from > 0 && !isBetween(line[from-1]) {
		from--
	}
	for to < len(line) && !isBetween(line[to]) {
		to++
	}
	return string(line[from:to])
}

// shown quotes what a file holds, as far as a message has room.
func shown(word string) string {
	const most = 40
	if len(word) > most {
		word = strings.ToValidUTF8(word[:most], "") + "…"
	}
	return strconv.Quote(word)
}

// columns are where axes and weights stand in a row.
type columns struct {
	axes   []int
	weight int // -1 without
}

// columnsOf finds the columns that count, and the names of the axes.
func columnsOf(names []string, how Reading) (columns, []string, error) {
	c := columns{weight: slices.Index(names, how.Weight)}
	if c.weight < 0 && how.Weight != WeightColumn {
		return c, nil, fmt.Errorf("there is no column %s; %s", shown(how.Weight), suggest.Text(how.Weight, names))
	}
	axes := how.Axes
	if axes == nil {
		for i, name := range names {
			if i != c.weight {
				axes = append(axes, name)
			}
		}
	}
	if len(axes) == 0 || len(axes) > MaxAxes {
		return c, nil, fmt.Errorf("%d axes: a size has 1 to %d; choose them with --axes", len(axes), MaxAxes)
	}
	for _, name := range axes {
		at := slices.Index(names, name)
		if at < 0 {
			return c, nil, fmt.Errorf("there is no column %s; %s", shown(name), suggest.Text(name, names))
		}
		c.axes = append(c.axes, at)
	}
	return c, axes, nil
}

func readCSV(data []byte, how Reading) (*Sizes, error) {
	table := csv.NewReader(bytes.NewReader(data))
	table.Comment = '#'
	table.TrimLeadingSpace = true
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" || slices.Contains(names[:i], names[i]) {
			return nil, place(1, fmt.Errorf("column %d needs a name of its own", i+1))
		}
	}
	at, axes, err := columnsOf(names, how)
	if err != nil {
		return nil, err
	}
	s := NewSizes(axes...)
	size := make([]int64, len(axes))
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err // it names the line
		}
		line, _ := table.FieldPos(0)
		for i, column := range at.axes {
			if size[i], err = sizeOf(cells[column]); err != nil {
				return nil, place(line, fmt.Errorf("%s %w", axes[i], err))
			}
		}
		weight := 1.0
		if at.weight >= 0 {
			if weight, err = weightOf(cells[at.weight]); err != nil {
				return nil, place(line, fmt.Errorf("%s %w", how.Weight, err))
			}
		}
		if err := s.Add(size, weight); err != nil {
			return nil, place(line, err)
		}
	}
}

// sizeOf reads a size.
func sizeOf(word string) (int64, error) {
	word = strings.TrimSpace(word)
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && word[0] != '-' || n > math.MaxInt32:
		return 0, fmt.Errorf("%s is too large for a size: at most %d", shown(word), math.MaxInt32)
	case err != nil || n < 1:
		return 0, fmt.Errorf("%s is no size: give whole numbers from 1 to %d", shown(word), math.MaxInt32)
	}
	return n, nil
}

// weightOf reads a weight.
func weightOf(word string) (float64, error) {
	word = strings.TrimSpace(word)
	w, err := strconv.ParseFloat(word, 64)
	if err != nil || !(w >= 0) || w > maxWeight {
		return 0, fmt.Errorf("%s is no weight: give a number from 0 to %g", shown(word), maxWeight)
	}
	return w, nil
}

// jsonReader reads values one after the other.
type jsonReader struct {
	data  []byte
	how   Reading
	s     *Sizes
	names []string // of the axes of objects
	size  []int64
	line  int // counted up to seen
	seen  int64
}

func readJSON(data []byte, how Reading) (*Sizes, error) {
	r := &jsonReader{data: data, how: how, line: 1}
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		if r.next(d) == '[' { // a list of sizes, or a size: its first value tells
			if err := r.list(d); err != nil {
				return nil, err
			}
			continue
		}
		var value json.RawMessage
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			if r.s == nil {
				r.s = NewSizes(how.Axes...)
			}
			return r.s, nil
		}
		if err != nil {
			return nil, r.at(d.InputOffset(), err)
		}
		if err := r.add(value); err != nil {
			return nil, r.at(d.InputOffset(), err)
		}
	}
}

// next is the byte that the next value begins with; 0 at the end.
func (r *jsonReader) next(d *json.Decoder) byte {
	for _, c := range r.data[d.InputOffset():] {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != ',' {
			return c
		}
	}
	return 0
}

// at places an error at an offset.
func (r *jsonReader) at(offset int64, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, min(syntax.Offset, int64(len(r.data))))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		offset, err = int64(len(r.data)), errors.New("it ends in the middle of a value")
	}
	r.line += bytes.Count(r.data[r.seen:offset], []byte("\n"))
	r.seen = offset
	return place(r.line, err)
}

// list reads a list value by value.
func (r *jsonReader) list(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return r.at(d.InputOffset(), err)
	}
	for d.More() {
		var value json.RawMessage
		err := d.Decode(&value)
		if err == nil {
			err = r.add(value)
		}
		if err != nil {
			return r.at(d.InputOffset(), err)
		}
	}
	if _, err := d.Token(); err != nil {
		return r.at(d.InputOffset(), err)
	}
	return nil
}

// add takes one size.
func (r *jsonReader) add(value json.RawMessage) (err error) {
	if len(value) > maxLine {
		return fmt.Errorf("a value of %d bytes is no size", len(value))
	}
	r.size = r.size[:0]
	weight := 1.0
	switch value[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return err
		}
		if len(list) > MaxAxes+1 {
			return fmt.Errorf("a list of %d numbers: a size has at most %d", len(list), MaxAxes)
		}
		for _, n := range list {
			if err := r.number(n); err != nil {
				return err
			}
		}
	case '{':
		if weight, err = r.object(value); err != nil {
			return err
		}
	default:
		if err := r.number(value); err != nil {
			return err
		}
	}
	if r.s == nil {
		how := r.how
		if r.names != nil {
			how.Axes = r.names
		}
		if len(r.size) == 0 {
			return errors.New("a size without a number")
		}
		if r.s, err = ofAxes(how, len(r.size)); err != nil {
			return err
		}
	}
	return r.s.Add(r.size, weight)
}

func (r *jsonReader) number(value json.RawMessage) error {
	n, err := sizeOf(string(value))
	if err == nil {
		r.size = append(r.size, n)
	}
	return err
}

// object takes the fields of an object. Those of the first name the axes, sorted where
// nobody says their order.
func (r *jsonReader) object(value json.RawMessage) (weight float64, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return 0, err
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if r.names == nil {
		how := r.how
		how.Weight = WeightColumn // it may be missing
		if how.Axes == nil {
			names = slices.DeleteFunc(names, func(n string) bool { return n == r.how.Weight })
		}
		if _, r.names, err = columnsOf(names, how); err != nil {
			return 0, err
		}
	}
	for _, name := range r.names {
		n, ok := fields[name]
		if !ok {
			return 0, fmt.Errorf("an object has no %s", shown(name))
		}
		if err := r.number(n); err != nil {
			return 0, fmt.Errorf("%s %w", name, err)
		}
	}
	if w, ok := fields[r.how.Weight]; ok {
		if weight, err = weightOf(string(w)); err != nil {
			return 0, fmt.Errorf("%s %w", r.how.Weight, err)
		}
		return weight, nil
	}
	return 1, nil
}
