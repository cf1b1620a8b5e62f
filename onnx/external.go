package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// external says where a tensor's elements lie outside the model file.
type external struct {
	side   *sideFile
	offset int64
	length int64
}

// sideFile is a file beside a model that holds elements of tensors.
type sideFile struct {
	location string // as the model writes it, relative to its folder
	path     string // the file, links followed
	info     os.FileInfo

	mu     sync.Mutex
	mapped *mapping // nil until somebody asks for bytes
}

// source is the file a model was read from, with the side files its tensors lie in.
type source struct {
	path   string // "" when the model came from memory
	folder string // where external data is
	file   *mapping
	sides  map[string]*sideFile // by location
}

func newSource(path string, file *mapping) *source {
	return &source{path: path, folder: filepath.Dir(path), file: file}
}

func (s *source) mapping() *mapping {
	if s == nil {
		return nil
	}
	return s.file
}

// Close gives back the mappings. No tensor of the model may be used afterwards.
func (s *source) Close() error {
	errs := []error{s.file.Close()}
	for _, side := range s.sides {
		side.mu.Lock()
		if side.mapped != nil {
			errs = append(errs, side.mapped.Close())
			side.mapped = nil
		}
		side.mu.Unlock()
	}
	return errors.Join(errs...)
}

// external reads a tensor's external_data entries and holds them against the
// file: it must lie in the model's folder and be long enough.
func (s *source) external(entries [][]byte, size int64) (*external, error) {
	e := &external{length: size}
	location := ""
	for _, b := range entries {
		p := decodeProperty(b)
		var err error
		switch p.Key {
		case "location":
			location = p.Value
		case "offset":
			e.offset, err = strconv.ParseInt(p.Value, 10, 64)
		case "length":
			e.length, err = strconv.ParseInt(p.Value, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("external_data %s %q is no number of bytes", p.Key, p.Value)
		}
	}
	var err error
	if e.side, err = s.side(location); err != nil {
		return nil, err
	}
	if e.offset < 0 || e.length != size {
		return nil, fmt.Errorf("external data at offset %d, length %d, does not fit the %d bytes of its dims", e.offset, e.length, size)
	}
	if have := e.side.info.Size(); e.offset > have || e.length > have-e.offset {
		return nil, fmt.Errorf("external data file %q has %d bytes; the tensor needs %d from offset %d: the file is short or another model's", location, have, e.length, e.offset)
	}
	return e, nil
}

// side finds a side file by its location.
func (s *source) side(location string) (*sideFile, error) {
	if side := s.sides[location]; side != nil {
		return side, nil
	}
	path, info, err := s.resolve(location)
	if err != nil {
		return nil, err
	}
	side := &sideFile{location: location, path: path, info: info}
	if s.sides == nil {
		s.sides = map[string]*sideFile{}
	}
	s.sides[location] = side
	return side, nil
}

// resolve finds the file, and refuses a location that leaves the model's folder
// by its text or through a symbolic link. A model that is a link itself, as in
// caches of downloads, has two folders: that of the link and that of the file.
func (s *source) resolve(location string) (path string, info os.FileInfo, err error) {
	if location == "" {
		return "", nil, errors.New("external data without a location")
	}
	local := filepath.FromSlash(location)
	if !filepath.IsLocal(local) || strings.Contains(location, `\`) {
		return "", nil, fmt.Errorf("external data location %q leaves the model's folder: refused", location)
	}
	folders, err := s.folders()
	if err != nil {
		return "", nil, err
	}
	for _, folder := range folders {
		if path, err = filepath.EvalSymlinks(filepath.Join(folder, local)); err == nil {
			break
		}
	}
	if err == nil {
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("external data file %q: %w; it belongs beside the model", location, unwrapPath(err))
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("external data file %q is not a regular file", location)
	}
	for _, folder := range folders {
		if inside, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(inside) {
			return path, info, nil
		}
	}
	return "", nil, fmt.Errorf("external data location %q is a link that leaves the model's folder: refused; put the file itself there", location)
}

// folders gives the folder the model was opened in and, if it is a link, the one
// where the file lies, both absolute and without links.
func (s *source) folders() ([]string, error) {
	real := func(path string) (string, error) {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(path)
	}
	folder, err := real(s.folder)
	if err != nil {
		return nil, fmt.Errorf("resolve the model's folder: %w", err)
	}
	folders := []string{folder}
	if s.path != "" {
		if file, err := real(s.path); err == nil && filepath.Dir(file) != folder {
			folders = append(folders, filepath.Dir(file))
		}
	}
	return folders, nil
}

// read gives the tensor's bytes, from a mapping of the side file that all its tensors share.
func (e *external) read() ([]byte, error) {
	if e.length == 0 {
		return []byte{}, nil
	}
	m, err := e.side.open()
	if err != nil {
		return nil, err
	}
	if err := m.checkSize(); err != nil || e.offset+e.length > int64(len(m.data)) {
		return nil, fmt.Errorf("external data file %q: %w", e.side.location, errChanged)
	}
	return m.data[e.offset : e.offset+e.length : e.offset+e.length], nil
}

func (s *sideFile) open() (*mapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped == nil {
		m, err := mapFile(s.path)
		if err != nil {
			return nil, fmt.Errorf("external data file %q: %w", s.location, unwrapPath(err))
		}
		s.mapped = m
	}
	return s.mapped, nil
}

// mapping is the side file's, nil before somebody asked for bytes.
func (e *external) mapping() *mapping {
	e.side.mu.Lock()
	defer e.side.mu.Unlock()
	return e.side.mapped
}

func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
