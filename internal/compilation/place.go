package compilation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
)

// move is a file of the build's folder and its place.
type move struct{ from, to string }

// finish writes the record and brings everything into its place.
func (b *build) finish(ctx context.Context, made, graph string) error {
	moves, err := b.moves(made, graph)
	if err != nil {
		return err
	}
	b.noteOldGraph()
	record := filepath.Join(b.folder, "record.json")
	if err := b.writeRecord(record, moves); err != nil {
		return err
	}
	if b.hasWeights(moves) {
		unlock, err := b.lockWeights(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	moves = append(moves, move{record, b.result.Record})
	old := filepath.Join(b.folder, "old")
	if !b.isBeside {
		beside, err := bringBeside(ctx, moves, filepath.Dir(b.target))
		defer func() { _ = os.RemoveAll(beside) }()
		if err != nil {
			return err
		}
		old = filepath.Join(beside, "old")
	}
	for _, m := range moves {
		if err := syncFile(m.from); err != nil {
			return fault.New(fault.Missing, "bring the result to disk: %w", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var replaced, read []string
	for _, f := range b.input {
		read = append(read, f.Path)
	}
	for _, m := range moves {
		if err := b.keepsInputs(m.to, read); err != nil { // weights have their names from ATC
			return err
		}
		if _, err := os.Lstat(m.to); err == nil && m.to != b.result.Record {
			replaced = append(replaced, m.to)
		}
	}
	if err := place(moves, old); err != nil {
		if fault.FamilyOf(err) != fault.Internal {
			return err // which says what to do
		}
		return fault.New(fault.Missing, "put the result in its place: %w", err).With("name another place with -o")
	}
	b.result.Status, b.result.Replaced = Built, replaced
	b.remember()
	return nil
}

// noteOldGraph tells of the graph of an earlier compile, which would be taken for that of
// the model as it is.
func (b *build) noteOldGraph() {
	old := b.target + graphSuffix
	if _, err := os.Lstat(old); err == nil && b.job.NoOptimize && !sameFile(old, b.model) {
		b.note(old + " is of an earlier compile: ATC got the model as it is")
	}
}

// moves lists the files of the build's folder that stay, and their places.
func (b *build) moves(made, graph string) (moves []move, err error) {
	suffix := strings.TrimPrefix(filepath.Base(made), b.atcName()) // .om, or with the host's system
	b.result.Output = b.target + suffix
	b.result.Record = b.result.Output + ".json"
	weights, err := b.weights(made, graph)
	if err != nil {
		return nil, err
	}
	for _, w := range weights {
		below, err := filepath.Rel(b.folder, w)
		if err != nil {
			return nil, fault.New(fault.Internal, "place the weights: %w", err)
		}
		moves = append(moves, move{w, filepath.Join(filepath.Dir(b.target), below)})
	}
	if !b.job.NoOptimize {
		b.result.Graph = b.graphPath()
		moves = append(moves, b.graphMoves(graph)...)
	}
	return append(moves, move{made, b.result.Output}), nil
}

// hasWeights says whether some of the files go into the folder of constants that models
// share.
func (b *build) hasWeights(moves []move) bool {
	folder := filepath.Join(filepath.Dir(b.target), weightFolder) + string(filepath.Separator)
	return slices.ContainsFunc(moves, func(m move) bool { return strings.HasPrefix(m.to, folder) })
}

// bringBeside copies the results of a build that went on elsewhere into a folder
// beside their places, and makes the moves begin there.
func bringBeside(ctx context.Context, moves []move, parent string) (folder string, err error) {
	if folder, err = os.MkdirTemp(parent, buildPattern); err != nil {
		return "", fault.New(fault.Missing, "make a folder beside the result: %w", err)
	}
	for i, m := range moves {
		if err := ctx.Err(); err != nil {
			return folder, err
		}
		copied := filepath.Join(folder, fmt.Sprintf("%d-%s", i, filepath.Base(m.from)))
		if err := copyFile(m.from, copied); err != nil {
			return folder, fault.New(fault.Missing, "copy the result: %w", err)
		}
		moves[i].from = copied
	}
	return folder, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// weightFolder is where ATC puts constants of their own files, beside the .om.
const weightFolder = "weight"

// weights lists the files of weights that ATC put beside the .om (--external_weight).
func (b *build) weights(made, graph string) (paths []string, err error) {
	combined := []string{strings.TrimSuffix(filepath.Base(made), ".om") + "_weight_combined", b.atcName() + "_weight_combined"}
	err = filepath.WalkDir(b.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(b.folder, path)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(below), "/")
		isWeight := top == weightFolder || slices.Contains(combined, below)
		if entry.Type().IsRegular() && isWeight && below != graph && !slices.Contains(b.links, path) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return nil, fault.New(fault.Missing, "look for the weights of the .om: %w", err)
	}
	return paths, nil
}

// graphMoves are the optimised graph and its external data, except for data that is
// the original's. The graph knows its data by name.
func (b *build) graphMoves(graph string) (moves []move) {
	parent := filepath.Dir(b.target)
	side := filepath.Join(b.folder, graph+".data")
	if _, err := os.Stat(side); err == nil && !slices.Contains(b.links, side) {
		moves = append(moves, move{side, filepath.Join(parent, graph+".data")})
	}
	return append(moves, move{filepath.Join(b.folder, graph), b.graphPath()})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// place brings files into their places, in this order. When one of them cannot be
// placed, those before it are taken back, and what was there before is there again:
// old is a folder for that, on the same disk.
func place(moves []move, old string) error {
	if err := os.MkdirAll(old, 0o777); err != nil {
		return err
	}
	var undo []func() error
	for i, m := range moves {
		back, err := placeOne(m, filepath.Join(old, filepath.Base(m.to)+"-"+time.Now().Format("150405.000000000")))
		if err != nil {
			for _, u := range slices.Backward(undo[:i]) {
				err = errors.Join(err, u())
			}
			return err
		}
		undo = append(undo, back)
	}
	return nil
}

func placeOne(m move, old string) (back func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(m.to), 0o777); err != nil {
		return nil, err
	}
	m.to = atomicfile.Resolve(m.to) // a link stays one, and what it points to is replaced
	// Looked at again: the compile took its time. A folder would go to old, which is removed.
	if err := mayWrite(m.to); err != nil {
		return nil, err
	}
	hadOld := true
	if err := os.Link(m.to, old); errors.Is(err, fs.ErrNotExist) {
		hadOld = false
	} else if err != nil { // a file system without links, or no file
		if err := os.Rename(m.to, old); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(m.from, m.to); err != nil {
		if hadOld {
			err = errors.Join(err, os.Rename(old, m.to))
		}
		return nil, err
	}
	if !hadOld {
		return func() error { return os.Remove(m.to) }, nil
	}
	return func() error { return os.Rename(old, m.to) }, nil
}
