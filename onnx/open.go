package onnx

import (
	"errors"
	"fmt"
)

// Open reads the model file at path. The file is mapped, not read: weights stay
// there until [Tensor.Dense] or [Model.Save] wants them, so it must not be changed
// in place while the model is in use. Close the model to let go of it.
//
// An error says what is wrong with the file: no ONNX, cut short, external data
// missing or outside the folder, names that nothing defines, nesting too deep.
func Open(path string) (*Model, error) {
	file, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	s := newSource(path, file)
	m, err := decode(s)
	if err != nil {
		err = s.explain(err)
		file.Close()
		return nil, err
	}
	m.Path = path
	return m, nil
}

// Parse reads a model from memory; data must not change while the model is in
// use. External data is looked for in folder; "" means the working directory.
func Parse(data []byte, folder string) (*Model, error) {
	return decode(&source{folder: folder, file: &mapping{data: data}})
}

// Close gives back the mapped files. Nothing of the model may be used afterwards.
func (m *Model) Close() error {
	if m.source == nil {
		return nil
	}
	return m.source.Close()
}

func decode(s *source) (m *Model, err error) {
	d := decoder{source: s, words: map[string]string{}}
	err = s.guarded(func() error {
		m, err = d.model(s.file.data)
		return err
	})
	return m, err
}

// explain puts the file's name before an error, and says what the file seems to
// be when it is no ONNX at all.
func (s *source) explain(err error) error {
	foreign := ""
	if !errors.Is(err, errChanged) {
		// The first bytes may be gone by now, if somebody cuts the file at this moment.
		_ = s.guarded(func() error { foreign = foreignFormat(s.file.data); return nil })
	}
	if foreign != "" {
		return fmt.Errorf("%s: not an ONNX model: %s", s.path, foreign)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
