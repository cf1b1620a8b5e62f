package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/files"
)

// How a file came into its place.
const (
	made   = "made"
	copied = "copied"
	kept   = "kept"
)

// placing is a file or folder of the repository that is to be.
type placing struct {
	file
	to      string
	how     string
	differs bool // another file is there
	isLink  bool // and is a link: it makes room for a file, and what it leads to stays as it is
}

// put brings all files into their places, or none.
func put(ctx context.Context, o Options, parts []*part, r *Result) error {
	var all []placing
	for i, p := range parts {
		list, err := look(o, p, &r.Models[i])
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	for _, f := range all {
		if text, err := f.diff(); err != nil {
			return err
		} else {
			r.Diff += text
		}
	}
	if o.Preview {
		return nil
	}
	for _, f := range all {
		if err := f.refuseLinkedFolder(o.Repository); err != nil {
			return err
		}
		if f.differs && !o.Force {
			return fault.New(fault.Usage, "%s is there and says something else; nothing was written", f.to).
				With("--diff shows what would change, --force replaces it")
		}
	}
	if !slices.ContainsFunc(all, func(f placing) bool { return f.how != kept }) {
		return nil
	}
	if err := write(ctx, all); err != nil {
		return err
	}
	r.Written = true
	return nil
}

// look lists a model's files, its config last, and what of them is there.
func look(o Options, p *part, m *Model) (out []placing, err error) {
	if p.text == nil {
		return nil, nil
	}
	folder := filepath.Join(o.Repository, p.config.Name)
	for _, f := range append(slices.Clone(p.files), file{path: configFile, data: p.text}) {
		g := placing{file: f, to: filepath.Join(folder, filepath.FromSlash(f.path)), how: made}
		if f.from != "" {
			g.how = copied
		}
		size, err := g.look()
		if err != nil {
			return nil, fault.New(fault.Input, "%w", err)
		}
		if f.path != configFile && !g.isFolder() {
			m.Files = append(m.Files, generate.File{Path: g.to, Bytes: size, How: g.how})
		}
		out = append(out, g)
	}
	return out, nil
}

// isFolder says whether it is only a folder.
func (g *placing) isFolder() bool { return strings.HasSuffix(g.path, "/") }

// folder is the folder that has to be there.
func (g *placing) folder() string {
	if g.isFolder() {
		return g.to
	}
	return filepath.Dir(g.to)
}

// look says how large the file will be, and whether it or another is there.
func (g *placing) look() (size int64, err error) {
	size = int64(len(g.data))
	if g.from != "" {
		info, err := os.Stat(g.from)
		if err != nil {
			return 0, err
		}
		size = info.Size()
	}
	if link, err := os.Lstat(g.to); err == nil {
		g.isLink = link.Mode()&fs.ModeSymlink != 0
	}
	there, err := os.Stat(g.to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		g.differs = g.isLink // it leads nowhere, and is somebody's
		return size, nil
	case err != nil:
		return 0, err
	case g.isFolder() && there.IsDir():
		g.how = kept
		return size, nil
	case g.isFolder() || !there.Mode().IsRegular():
		return 0, fmt.Errorf("%s is there, and is of another kind", g.to)
	}
	isSame := there.Size() == size
	if isSame {
		isSame, err = g.sameAs()
	}
	if g.differs = !isSame; isSame {
		g.how = kept
	}
	return size, err
}

// refuseLinkedFolder sees to it that nothing is written through a folder of the
// repository that is a link: what lies behind it is not the repository's.
func (g *placing) refuseLinkedFolder(repository string) error {
	if g.how == kept {
		return nil
	}
	root := filepath.Clean(repository)
	for at := g.folder(); at != root && at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fault.New(fault.Usage, "%s is a link, and what is behind it is not the repository's; nothing was written", at).
				With("put a folder in its place, or give the model another name")
		}
	}
	return nil
}

// sameAs compares with the file that is there.
func (g *placing) sameAs() (bool, error) {
	old, err := os.Open(g.to)
	if err != nil {
		return false, err
	}
	defer old.Close()
	source, err := g.open()
	if err != nil {
		return false, err
	}
	defer source.Close()
	return files.Same(old, source)
}

func (g *placing) open() (io.ReadCloser, error) {
	if g.from == "" {
		return io.NopCloser(bytes.NewReader(g.data)), nil
	}
	return os.Open(g.from)
}

// diff shows how a text file changes; "" for others, and where nothing does.
func (g *placing) diff() (string, error) {
	if g.isFolder() || g.from != "" || g.how == kept {
		return "", nil
	}
	from := os.DevNull
	var old []byte
	if g.differs {
		var err error
		if old, err = os.ReadFile(g.to); err != nil && !(g.isLink && errors.Is(err, fs.ErrNotExist)) {
			return "", fault.New(fault.Input, "%w", err)
		}
		from = g.to
	}
	return string(diff.Diff(filepath.ToSlash(from), old, filepath.ToSlash(g.to), g.data)), nil
}

// write brings files into their places; what was done is undone when something fails.
func write(ctx context.Context, all []placing) (err error) {
	var begun []*atomicfile.File
	var folders []string
	defer func() {
		for _, f := range begun {
			f.Abort()
		}
		if err != nil {
			for _, folder := range slices.Backward(folders) {
				os.Remove(folder)
			}
		}
	}()
	for _, g := range all {
		made, err := files.MakeFolder(g.folder())
		folders = append(folders, made...)
		if err != nil {
			return fault.New(fault.Missing, "%w", err)
		}
		if g.how == kept || g.isFolder() {
			continue
		}
		f, err := atomicfile.Replace(g.to)
		if err != nil {
			return fault.New(fault.Missing, "write %s: %w", g.to, err)
		}
		begun = append(begun, f)
		if err := g.copy(ctx, f); err != nil {
			return err
		}
	}
	if err := atomicfile.Commit(begun...); err != nil {
		return fault.New(fault.Missing, "write the pipeline: %w", err)
	}
	return nil
}

// copy fills a file.
func (g *placing) copy(ctx context.Context, into io.Writer) error {
	source, err := g.open()
	if err != nil {
		return fault.New(fault.Input, "%w", err)
	}
	defer source.Close()
	if err := files.Copy(ctx, into, source); err != nil && ctx.Err() == nil {
		return fault.New(fault.Missing, "write %s: %w", g.to, err)
	}
	return ctx.Err()
}
