package benchmark

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/internal/fault"
)

// shapeRow is one line of a file of shapes.
type shapeRow struct {
	name   string // for messages
	line   int
	dims   map[string]int64
	weight float64
}

// weightColumn says how often a row comes, relative to the others; 1 without it.
const weightColumn = "weight"

// mostShapes bounds the rows of a file.
const mostShapes = 4096

// readShapes reads a CSV file with a column for each open dim, named as --dim names it, and
// a column weight where some shapes come more often than others:
//
//	batch,length,weight
//	1,262,10
//	1,326,3
func readShapes(path string) ([]shapeRow, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Input, "--shapes: %w", err)
	}
	defer file.Close()
	rows, err := parseShapes(file)
	if err != nil {
		return nil, fault.New(fault.Input, "--shapes %s: %w", path, err)
	}
	return rows, nil
}

func parseShapes(r io.Reader) (rows []shapeRow, err error) {
	table := csv.NewReader(r)
	table.Comment = '#'
	table.TrimLeadingSpace = true
	names, err := table.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty; its first line names the dims")
	}
	if err != nil {
		return nil, err
	}
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" || slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("line 1: column %d needs a name of its own", i+1)
		}
	}
	for {
		cells, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := table.FieldPos(0)
		row, err := shapeRowOf(names, cells)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if row.line = line; len(rows) == mostShapes {
			return nil, fmt.Errorf("line %d: there are more than %d rows", line, mostShapes)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, errors.New("it has no rows; its first line names the dims")
	}
	return rows, nil
}

func shapeRowOf(names, cells []string) (row shapeRow, err error) {
	row = shapeRow{dims: map[string]int64{}, weight: 1}
	var words []string
	for i, name := range names {
		cell := strings.TrimSpace(cells[i])
		if name == weightColumn {
			row.weight, err = strconv.ParseFloat(cell, 64)
			if err != nil || !(row.weight > 0) || math.IsInf(row.weight, 0) {
				return row, fmt.Errorf("weight %q: give a number above 0", cell)
			}
			continue
		}
		size, err := strconv.ParseInt(cell, 10, 32)
		if err != nil || size < 0 {
			return row, fmt.Errorf("%s %q: give a size", name, cell)
		}
		row.dims[name] = size
		words = append(words, fmt.Sprintf("%s=%d", name, size))
	}
	row.name = strings.Join(words, " ")
	return row, nil
}
