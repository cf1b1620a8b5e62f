package part

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Part answers requests.
type Part interface {
	// Run computes the outputs of a request from its inputs, in the order of config.pbtxt,
	// with the batch axis where the model has one. Memory of the outputs that is there and
	// large enough is used again.
	Run(in, out []engine.Buffer) error
}

// New makes the part of a kind, by the config of a model and its folder. What does not
// fit is a fault of the input that names the parameter.
func New(k Kind, c *configgen.Config, folder string) (Part, error) {
	make := map[Kind]func(*settings) (Part, error){Image: newImage, Features: newFeatures, TopK: newTopK, Boxes: newBoxes}[k]
	if make == nil {
		return nil, fault.New(fault.Internal, "%s is no part of a pipeline", k)
	}
	s := &settings{config: c, folder: folder}
	p, err := make(s)
	if err == nil {
		err = s.err
	}
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err).With("npuctl config ensemble writes such a model with all its parameters")
	}
	return p, nil
}

// settings reads parameters. The first that is wrong is kept.
type settings struct {
	config *configgen.Config
	folder string
	err    error
}

func (s *settings) refuse(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *settings) text(name string) string {
	value, ok := s.config.Parameter(name)
	if !ok {
		s.refuse("the parameter %s is missing", name)
	}
	return value
}

// oneOf reads a word.
func (s *settings) oneOf(name string, words ...string) string {
	value := s.text(name)
	if !slices.Contains(words, value) {
		s.refuse("parameter %s %q: %s", name, value, suggest.Text(value, words))
	}
	return value
}

func (s *settings) bool(name string) bool { return s.oneOf(name, "true", "false") == "true" }

// int reads a whole number between two.
func (s *settings) int(name string, least, most int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s.text(name)))
	if err != nil || n < least || n > most {
		s.refuse("parameter %s %q: give a whole number from %d to %d", name, s.text(name), least, most)
	}
	return n
}

func (s *settings) float(name string) float32 { return s.floats(name, 1)[0] }

// floats reads one number, or so many.
func (s *settings) floats(name string, count int) []float32 {
	words := strings.Split(s.text(name), ",")
	list := make([]float32, max(count, 1))
	if len(words) != 1 && len(words) != count {
		s.refuse("parameter %s %q: give one number, or %d", name, s.text(name), count)
		return list
	}
	for i := range list {
		x, err := strconv.ParseFloat(strings.TrimSpace(words[min(i, len(words)-1)]), 64)
		if err != nil || math.IsNaN(x) {
			s.refuse("parameter %s: %q is no number", name, words[min(i, len(words)-1)])
		}
		list[i] = float32(x)
	}
	return list
}

// tensors holds how many inputs and outputs there are.
func (s *settings) tensors(inputs, leastOutputs, mostOutputs int) bool {
	in, out := len(s.config.Input), len(s.config.Output)
	if in != inputs || out < leastOutputs || out > mostOutputs {
		s.refuse("it has %d inputs and %d outputs: such a model has %d, and %d to %d", in, out, inputs, leastOutputs, mostOutputs)
		return false
	}
	return true
}

// rank is the number of dims of an input, batch included.
func (s *settings) rank(in *configgen.Input) int {
	if s.config.MaxBatchSize > 0 {
		return len(in.Dims) + 1
	}
	return len(in.Dims)
}

// floatTypes are those that models give, and how they are read.
var floatTypes = map[configgen.DataType]tensor.Type{
	configgen.TypeFP16: tensor.Float16, configgen.TypeFP32: tensor.Float32, configgen.TypeFP64: tensor.Float64,
}

// floatType is the type of an input of numbers.
func (s *settings) floatType(in *configgen.Input) tensor.Type {
	t, ok := floatTypes[in.DataType]
	if !ok {
		s.refuse("input %s is %v: give TYPE_FP32, TYPE_FP16 or TYPE_FP64", in.Name, in.DataType)
	}
	return t
}

// labelsLimit bounds a file of names.
const labelsLimit = 16 << 20

// labels reads the names of classes, one a line, as Python does: a line ends with \n, \r
// or both.
func (s *settings) labels() []string {
	name := s.text("labels")
	if s.err != nil {
		return nil
	}
	if !filepath.IsLocal(name) {
		s.refuse("parameter labels %q: give a file in the folder of the model", name)
		return nil
	}
	path := filepath.Join(s.folder, name)
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > labelsLimit) {
		err = fmt.Errorf("%s is no file of at most %d bytes", path, labelsLimit)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%s is not UTF-8", path)
	}
	if err != nil {
		s.refuse("parameter labels: %w", err)
		return nil
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// label gives the name of a class; those below 0 count from the end, as in Python.
func label(names []string, class int32) (string, error) {
	at := int(class)
	if at < 0 {
		at += len(names)
	}
	if at < 0 || at >= len(names) {
		return "", fmt.Errorf("the class %d has no name: the file of labels has %d", class, len(names))
	}
	return names[at], nil
}

// float32sOf gives the numbers of a tensor. They may be its memory.
func float32sOf(t tensor.Type, b *engine.Buffer) ([]float32, error) {
	shape := make([]int, len(b.Shape))
	for i, d := range b.Shape {
		shape[i] = int(d)
	}
	d, err := tensor.FromRaw(t, shape, b.Bytes)
	if err != nil {
		return nil, err
	}
	if list, ok := d.Float32s(); ok {
		return list, nil
	}
	wide, _ := d.Float64s()
	list := make([]float32, len(wide))
	for i, x := range wide {
		list[i] = float32(x)
	}
	return list, nil
}

// shaped gives an output its shape, and memory for as many bytes.
func shaped(b *engine.Buffer, size int, lead []int64, dims ...int64) []byte {
	b.Shape = append(append(b.Shape[:0], lead...), dims...)
	if b.Shape == nil {
		b.Shape = []int64{}
	}
	b.Strings = nil
	if cap(b.Bytes) < size {
		b.Bytes = make([]byte, size)
	}
	b.Bytes = b.Bytes[:size]
	return b.Bytes
}

// shapedStrings is shaped for texts.
func shapedStrings(b *engine.Buffer, count int, lead []int64, dims ...int64) []string {
	b.Shape = append(append(b.Shape[:0], lead...), dims...)
	b.Bytes = nil
	if cap(b.Strings) < count {
		b.Strings = make([]string, count)
	}
	b.Strings = b.Strings[:count]
	return b.Strings
}
