package findings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/files"
)

// Baseline is a file of findings that are known and no longer told. Lines are not
// part of it, so that it holds when a file grows: a finding is known by its rule,
// file and message, as often as it is listed.
type Baseline struct {
	Version  int             `json:"version"`
	Findings []baselineEntry `json:"findings"`
}

type baselineEntry struct {
	Rule    string `json:"rule"`
	File    string `json:"file"`
	Message string `json:"message"`
}

const baselineVersion = 1

// largestBaseline bounds the size of a baseline that is read.
const largestBaseline = 256 << 20

// ReadBaseline reads a baseline.
func ReadBaseline(path string) (Baseline, error) {
	var b Baseline
	data, err := files.Read(path, largestBaseline)
	if err != nil {
		return b, err
	}
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &b); errors.As(err, &wrongType) {
		return b, fmt.Errorf("%s: no baseline: a JSON %s where it has %s", path, wrongType.Value, cmp.Or(wrongType.Field, "an object"))
	} else if err != nil {
		return b, fmt.Errorf("%s: no baseline: %w", path, err)
	}
	if b.Version != baselineVersion {
		return b, fmt.Errorf("%s: a baseline of version %d, this npuctl writes %d; make it anew", path, b.Version, baselineVersion)
	}
	return b, nil
}

// WriteBaseline makes a baseline of what was found.
func WriteBaseline(path string, all []Finding) error {
	b := Baseline{Version: baselineVersion, Findings: []baselineEntry{}}
	for _, f := range all {
		b.Findings = append(b.Findings, entryOf(f, path))
	}
	slices.SortFunc(b.Findings, func(x, y baselineEntry) int {
		return cmp.Or(strings.Compare(x.File, y.File), strings.Compare(x.Rule, y.Rule), strings.Compare(x.Message, y.Message))
	})
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(f *os.File) error {
		_, err := f.Write(append(data, '\n'))
		return err
	})
}

// entryOf names files relative to the baseline's folder, so that it can be checked in.
func entryOf(f Finding, baseline string) baselineEntry {
	file := f.File
	folder, err := filepath.Abs(filepath.Dir(baseline))
	if absolute, absErr := filepath.Abs(file); err == nil && absErr == nil {
		if relative, err := filepath.Rel(folder, absolute); err == nil {
			file = relative
		}
	}
	return baselineEntry{Rule: f.Rule, File: filepath.ToSlash(file), Message: f.Message}
}

// Apply takes out what the baseline knows, read from the file at path.
func (b Baseline) Apply(all []Finding, path string) (kept []Finding) {
	known := map[baselineEntry]int{}
	for _, e := range b.Findings {
		known[e]++
	}
	for _, f := range all {
		e := entryOf(f, path)
		if known[e] > 0 {
			known[e]--
			continue
		}
		kept = append(kept, f)
	}
	return kept
}
