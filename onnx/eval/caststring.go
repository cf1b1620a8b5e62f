package eval

import (
	"math"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// castString converts to or from strings. How a float is written the
// specification hardly says, so folding refuses; here it is the shortest decimal
// form without an exponent that reads back as the same number, with NaN, INF and
// -INF; BOOL is 1 or 0.
func (c *Call) castString(d *tensor.Dense, to tensor.Type, how casting) (*tensor.Dense, error) {
	if d.Type() != tensor.String {
		return c.formatNumbers(d)
	}
	words := tensor.Data[string](d)
	if isWhole(to) {
		return c.parseIntegers(words, d.Shape(), to)
	}
	if !to.IsFloat() {
		return nil, c.noKernel(d.Type())
	}
	numbers, err := c.New(tensor.Float64, d.Shape()...)
	if err != nil {
		return nil, err
	}
	bits := 64
	if to == tensor.Float32 {
		bits = 32 // rounds once
	}
	for i, word := range words {
		if tensor.Data[float64](numbers)[i], err = c.parseFloat(word, bits); err != nil {
			return nil, err
		}
	}
	return c.castAs(numbers, to, how)
}

// parseFloat reads a number. What is none is undefined, and here an error.
func (c *Call) parseFloat(word string, bits int) (float64, error) {
	word = strings.TrimSpace(word)
	v, err := strconv.ParseFloat(word, bits)
	if err != nil && !math.IsInf(v, 0) || strings.ContainsAny(word, "_xX") {
		if err := c.Undefined("%q as a number", word); err != nil {
			return 0, err
		}
		return 0, c.Errorf("%q is no number", word)
	}
	return v, nil
}

// parseIntegers reads whole numbers. A fraction is undefined, and here dropped.
func (c *Call) parseIntegers(words []string, shape []int, to tensor.Type) (*tensor.Dense, error) {
	numbers, err := c.New(tensor.Int64, shape...)
	if err != nil {
		return nil, err
	}
	for i, word := range words {
		word = strings.TrimSpace(word)
		v, err := strconv.ParseInt(word, 10, 64)
		if u, e := strconv.ParseUint(word, 10, 64); err != nil && e == nil {
			v, err = int64(u), nil
		}
		if err != nil {
			if err := c.Undefined("%q as a whole number", word); err != nil {
				return nil, err
			}
			f, err := c.parseFloat(word, 64)
			if err != nil {
				return nil, err
			}
			v = truncate(f, to)
		}
		tensor.Data[int64](numbers)[i] = v
	}
	return c.cast(numbers, to)
}

func (c *Call) formatNumbers(d *tensor.Dense) (*tensor.Dense, error) {
	out, err := c.New(tensor.String, d.Shape()...)
	if err != nil {
		return nil, err
	}
	words := tensor.Data[string](out)
	if d.Type() == tensor.Uint64 {
		for i, v := range tensor.Data[uint64](d) {
			words[i] = strconv.FormatUint(v, 10)
		}
		return out, nil
	}
	if d.Type().IsInteger() {
		integers, _ := d.Int64s()
		for i, v := range integers {
			words[i] = strconv.FormatInt(v, 10)
		}
		return out, nil
	}
	if err := c.Undefined("%s as STRING", d.Type()); err != nil {
		return nil, err
	}
	bits := 32
	if d.Type() == tensor.Float64 {
		bits = 64
	}
	numbers, ok := d.Float64s()
	if !ok {
		return nil, c.noKernel(d.Type())
	}
	for i, v := range numbers {
		words[i] = formatFloat(v, bits)
	}
	return out, nil
}

func formatFloat(v float64, bits int) string {
	switch {
	case v != v:
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	}
	return strconv.FormatFloat(v, 'f', -1, bits)
}
