package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
)

// Limits of what a file may cost.
const (
	MaxBytes = 1 << 20
	maxNodes = 100_000
)

// Read reads a file of at most [MaxBytes]. Nothing but a plain file, or a link to one, is
// opened: a pipe would wait for ever. An error does not name the file's purpose.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxBytes {
		return nil, fmt.Errorf("it is no file of at most %d bytes", MaxBytes)
	}
	return os.ReadFile(path)
}

// Place is where something stands in a file, counted from 1; without a line it is the file.
type Place struct {
	File         string
	Line, Column int
}

// PlaceOf is where a node stands.
func PlaceOf(file string, n *yaml.Node) Place { return Place{file, n.Line, n.Column} }

func (p Place) String() string {
	if p.Line <= 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Refuse is a fault of the input at this place.
func (p Place) Refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.Input, "%s: %s", p, fmt.Sprintf(format, args...))
}

// Parse reads the only document of a file, whose name is for messages; nil when there is
// none in it.
func Parse(file string, data []byte) (*yaml.Node, error) {
	first, second, err := documents(data)
	switch {
	case err != nil:
		return nil, placeOfError(file, data, err).Refuse("%s", withoutLine(err))
	case second != nil:
		return nil, PlaceOf(file, second).Refuse("a second document begins here, and one is all that is read").With("take away the line of dashes before it")
	case first == nil || len(first.Content) == 0:
		return nil, nil
	}
	return first.Content[0], nil
}

// documents reads up to two documents; nil is one that is not there.
func documents(data []byte) (first, second *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for _, document := range []**yaml.Node{&first, &second} {
		var n yaml.Node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return first, second, nil
		case err != nil:
			return nil, nil, err
		}
		*document = &n
	}
	return first, second, nil
}

// searchTime bounds how long the place of an error is looked for from the end of a file:
// one of a few hundred lines takes milliseconds.
const searchTime = 300 * time.Millisecond

// placeOfError finds where a file stops being YAML. The reader tells a line at best, and
// often that of what surrounds the place, or the file's end. But it goes through a file
// once, from the front: so the place is where all longer beginnings of the file fail in the
// same words. What never ends, a bracket or a quote, is placed where it begins.
func placeOfError(file string, data []byte, err error) Place {
	words := withoutLine(err)
	isSame := func(end int) bool {
		_, _, other := documents(data[:end])
		return other != nil && withoutLine(other) == words
	}
	// Lines from the last one back: what ends well further up may fail like this, too, when
	// it is cut. Where there are too many the whole is searched, and that is ruled out no more.
	high, low := len(data), 0
	for start := time.Now(); ; high = low {
		if time.Since(start) > searchTime {
			low = 0
			break
		}
		low = bytes.LastIndexByte(data[:high-1], '\n') + 1
		if low == 0 || !isSame(low) {
			break
		}
	}
	at := low + sort.Search(high-low-1, func(i int) bool { return isSame(low + i + 1) })
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	return Place{file, 1 + bytes.Count(data[:at], []byte("\n")), 1 + utf8.RuneCount(data[start:at])}
}

// linePrefix is what the reader puts before its words.
var linePrefix = regexp.MustCompile(`^yaml: (?:line \d+: )?`)

func withoutLine(err error) string { return linePrefix.ReplaceAllString(err.Error(), "") }
