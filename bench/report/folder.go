package report

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
)

// Folder is where a run keeps its records and reports:
//
//	run.json            what was measured on; a search, a comparison, a gate
//	requests-001.csv    the records of the first level, as package measure streams them
//	report.json, report.csv, report.txt, report.html
type Folder struct {
	path   string
	levels int
}

// The files of a folder.
const (
	runFile     = "run.json"
	recordsFile = "requests-%03d.csv"
)

// unknownMain stands in run.json while it is not known which level is the main one.
const unknownMain = -1

// CreateFolder makes a folder, or takes one that holds no run.
func CreateFolder(path string, p Provenance) (*Folder, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fault.New(fault.Input, "make the folder of the run: %w", err)
	}
	switch _, err := os.Lstat(filepath.Join(path, runFile)); {
	case err == nil:
		return nil, fault.New(fault.Usage, "%s holds another run", path).With("give another folder")
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Input, "look into the folder of the run: %w", err)
	}
	f := &Folder{path: path}
	return f, f.writeRun(&Report{Provenance: p, Main: unknownMain})
}

// writeRun keeps what is in no stream of records.
func (f *Folder) writeRun(r *Report) error {
	short := *r
	short.Level, short.Levels = nil, []*measure.Level{}
	return atomicfile.Write(filepath.Join(f.path, runFile), func(file *os.File) error { return short.WriteJSON(file) })
}

// Records is the file of the records of a level, on its way. It is a [load.Observer].
type Records struct {
	*measure.StreamWriter
	file *os.File
}

var _ load.Observer = (*Records)(nil)

// Level begins the file of the next level.
func (f *Folder) Level(s measure.Settings) (*Records, error) {
	f.levels++
	file, err := os.Create(filepath.Join(f.path, fmt.Sprintf(recordsFile, f.levels)))
	if err != nil {
		return nil, fault.New(fault.Input, "keep the records: %w", err)
	}
	stream, err := measure.NewStreamWriter(file, s)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Records{stream, file}, nil
}

// Close ends the file.
func (r *Records) Close() error { return errors.Join(r.StreamWriter.Close(), r.file.Close()) }

// Finish writes the reports beside the records.
func (f *Folder) Finish(r *Report) error {
	if err := f.writeRun(r); err != nil {
		return err
	}
	return WriteFiles(f.path, r)
}

// WriteFiles writes all reports into a folder.
func WriteFiles(path string, r *Report) error {
	for _, file := range []struct {
		name  string
		write func(*bufio.Writer) error
	}{
		{"report.json", func(w *bufio.Writer) error { return r.WriteJSON(w) }},
		{"report.csv", func(w *bufio.Writer) error { return r.WriteCSV(w) }},
		{"report.txt", func(w *bufio.Writer) error { return r.WriteText(w, terminal.Palette{}) }},
		{"report.html", func(w *bufio.Writer) error { return r.WriteHTML(w) }},
	} {
		err := atomicfile.Write(filepath.Join(path, file.name), func(out *os.File) error {
			w := bufio.NewWriter(out)
			return errors.Join(file.write(w), w.Flush())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Remake makes the report of a folder from its records again.
func Remake(path string) (*Report, error) {
	kept := &Report{}
	if err := readJSON(filepath.Join(path, runFile), kept); err != nil {
		return nil, err
	}
	if kept.Engine == "" {
		return nil, fault.New(fault.Input, "%s does not say what was measured on: it is no folder of npuctl bench --out", filepath.Join(path, runFile))
	}
	files, err := recordFiles(path)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 && kept.Comparison == nil {
		return nil, fault.New(fault.Input, "%s holds no records, such as %s", path, fmt.Sprintf(recordsFile, 1))
	}
	levels := []*measure.Level{}
	for _, file := range files {
		level, err := replayFile(filepath.Join(path, file))
		if err != nil {
			return nil, err
		}
		levels = append(levels, level)
	}
	r := New(kept.Provenance, levels)
	if kept.Main > unknownMain && kept.Main < len(levels) {
		r.SetMain(kept.Main)
	}
	r.Search, r.Comparison, r.Gate = kept.Search, kept.Comparison, kept.Gate
	return r, nil
}

// recordFiles are the files of records in a folder, in the order of the levels.
func recordFiles(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.New(fault.Input, "look for the records: %w", err)
	}
	files := []string{}
	for _, e := range entries {
		if match, _ := filepath.Match("requests-*.csv", e.Name()); match {
			files = append(files, e.Name())
		}
	}
	slices.SortFunc(files, func(a, b string) int { // requests-999 before requests-1000
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return files, nil
}

func replayFile(path string) (*measure.Level, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Input, "%s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the records: %w", err)
	}
	defer file.Close()
	level, err := measure.Replay(file)
	if err != nil {
		return nil, fault.New(fault.Input, "%s: %w", path, err)
	}
	return level, nil
}
