package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// WriteNPY writes d in .npy form; what becomes of types that numpy lacks is in
// the package comment. It fails on strings that are not UTF-8 or end in a zero
// character, which the format cannot hold.
func WriteNPY(w io.Writer, d *tensor.Dense) error {
	if err := write(w, d); err != nil {
		return fmt.Errorf("write npy array: %w", err)
	}
	return nil
}

func write(w io.Writer, d *tensor.Dense) error {
	descr, data, err := encode(d)
	if err != nil {
		return err
	}
	start, err := formatHeader(descr, d.Shape())
	if err != nil {
		return err
	}
	if _, err := w.Write(start); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// encode returns the dtype of d as a Python literal, and its data.
func encode(d *tensor.Dense) (descr string, data []byte, err error) {
	t := d.Type()
	switch {
	case t == tensor.String:
		return encodeText(tensor.Data[string](d))
	case !foreign(t):
		return "'" + descriptors[t] + "'", d.Raw(), nil
	}
	descr = fmt.Sprintf("[('%v', '%s')]", t, storage(t))
	if t.Width() == 1 {
		return descr, tensor.Words[uint8](d), nil
	}
	return descr, d.Raw(), nil
}

// encodeText fills all strings up to the length of the longest.
func encodeText(texts []string) (descr string, data []byte, err error) {
	width := 1
	for i, s := range texts {
		if !utf8.ValidString(s) {
			return "", nil, fmt.Errorf("element %d is not UTF-8", i)
		}
		if strings.HasSuffix(s, "\x00") {
			return "", nil, fmt.Errorf("element %d ends in a zero character, which the format drops", i)
		}
		width = max(width, utf8.RuneCountInString(s))
	}
	if width > maxText || int64(len(texts)) > min(tensor.MaxBytes, math.MaxInt)/int64(width*runeSize) {
		return "", nil, fmt.Errorf("%d strings filled up to %d characters: %w", len(texts), width, tensor.ErrTooLarge)
	}
	data = make([]byte, len(texts)*width*runeSize)
	for i, s := range texts {
		at := i * width * runeSize
		for _, r := range s {
			binary.LittleEndian.PutUint32(data[at:], uint32(r))
			at += runeSize
		}
	}
	return fmt.Sprintf("'<U%d'", width), data, nil
}

// alignment is that of the data in the file, so that it can be mapped.
const alignment = 64

func formatHeader(descr string, shape []int) ([]byte, error) {
	var dims strings.Builder
	for axis, dim := range shape {
		if axis > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, dim)
	}
	if len(shape) == 1 {
		dims.WriteByte(',')
	}
	text := fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	const fixed = len(magic) + 4 // with version and length
	text += strings.Repeat(" ", alignment-1-(fixed+len(text))%alignment) + "\n"
	if len(text) > math.MaxUint16 {
		return nil, errors.New("the shape does not fit a header")
	}
	start := append([]byte(magic), 1, 0)
	start = binary.LittleEndian.AppendUint16(start, uint16(len(text)))
	return append(start, text...), nil
}
