package executor

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/internal/suggest"
)

// Class stands for what must be equal in requests that run together: the shapes of
// inputs of open dims that are not ragged, and with optional inputs which ones are there.
type Class int32

// Input is what admission must know of an input of a model.
type Input struct {
	Name string
	// Dims are those of one item; -1 is open.
	Dims []int64
	// Ragged inputs may differ in shape within a batch.
	Ragged bool
	// Optional inputs may be left out.
	Optional bool
}

// Given is one input of a request: which one, and the shape of one item of it.
type Given struct {
	Input int
	Shape []int64
}

// Signature is the inputs of a model. It tells requests that do not fit, and sorts the
// others into classes. Goroutines may share it.
type Signature struct {
	Inputs []Input
	// MaxBatch is max_batch_size; see [Policy].
	MaxBatch int

	mu      sync.Mutex // of all below
	classes map[string]Class
	known   [][]Given
	key     []byte
}

// NewSignature makes a signature.
func NewSignature(inputs []Input, maxBatch int) *Signature {
	return &Signature{Inputs: inputs, MaxBatch: maxBatch, classes: map[string]Class{}}
}

// ComparesShapes and ComparesInputs are what [Policy] needs to know.
func (s *Signature) ComparesShapes() bool {
	for _, in := range s.Inputs {
		if in.isCompared() {
			return true
		}
	}
	return false
}

// ComparesInputs says whether the model has an optional input.
func (s *Signature) ComparesInputs() bool {
	for _, in := range s.Inputs {
		if in.Optional {
			return true
		}
	}
	return false
}

func (in *Input) isCompared() bool {
	if in.Ragged {
		return false
	}
	for _, d := range in.Dims {
		if d < 0 {
			return true
		}
	}
	return false
}

// Find gives the number of an input.
func (s *Signature) Find(name string) (int, error) {
	var names []string
	for i, in := range s.Inputs {
		if in.Name == name {
			return i, nil
		}
		names = append(names, in.Name)
	}
	return 0, fmt.Errorf("the model has no input %q; %s", name, suggest.Text(name, names))
}

// Admit gives the class of a request, or says why it does not fit the model. The inputs
// must be in the order of the signature, each once.
func (s *Signature) Admit(size int, given []Given) (Class, error) {
	if s.MaxBatch > 0 && (size < 1 || size > s.MaxBatch) {
		return 0, fmt.Errorf("a request of %d items: the model takes 1 to %d", size, s.MaxBatch)
	}
	next := 0
	for i := range s.Inputs {
		if next < len(given) && given[next].Input == i {
			if err := s.Inputs[i].fits(given[next].Shape); err != nil {
				return 0, err
			}
			next++
			continue
		}
		if !s.Inputs[i].Optional {
			return 0, fmt.Errorf("input %q is missing", s.Inputs[i].Name)
		}
	}
	return s.classOf(given), nil
}

func (in *Input) fits(shape []int64) error {
	fits := len(shape) == len(in.Dims)
	for i := 0; fits && i < len(shape); i++ {
		fits = shape[i] >= 0 && (in.Dims[i] < 0 || in.Dims[i] == shape[i])
	}
	if fits {
		return nil
	}
	return fmt.Errorf("input %q: the shape %s does not fit %s", in.Name, ShapeText(shape), ShapeText(in.Dims))
}

// classOf finds the class of a request, or makes one.
func (s *Signature) classOf(given []Given) Class {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = s.key[:0]
	for _, g := range given {
		s.key = binary.AppendVarint(s.key, int64(g.Input))
		if s.Inputs[g.Input].isCompared() {
			for _, d := range g.Shape {
				s.key = binary.AppendVarint(s.key, d)
			}
		}
	}
	if class, found := s.classes[string(s.key)]; found {
		return class
	}
	class := Class(len(s.known))
	s.classes[string(s.key)] = class
	kept := make([]Given, len(given))
	for i, g := range given {
		kept[i] = Given{g.Input, append([]int64(nil), g.Shape...)}
	}
	s.known = append(s.known, kept)
	return class
}

// Shapes gives the inputs of a class. Of ragged inputs they are those of the first
// request of it.
func (s *Signature) Shapes(c Class) []Given {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(c) >= len(s.known) {
		return nil
	}
	return s.known[c]
}

// text writes the inputs of a class.
func (s *Signature) text(c Class) string {
	var words []string
	for _, given := range s.Shapes(c) {
		words = append(words, fmt.Sprintf("%s %s", s.Inputs[given.Input].Name, ShapeText(given.Shape)))
	}
	return strings.Join(words, ", ")
}

// ShapeText writes a shape: 4x3.
func ShapeText(shape []int64) string {
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = fmt.Sprint(d)
	}
	return strings.Join(words, "x")
}
