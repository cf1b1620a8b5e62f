package feeds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/onnx"
)

// role is what an open axis seems to be, by its place.
type role int

const (
	batchRole role = iota
	spatialRole
	otherRole
	roles
)

// choices lists sizes by role, the likeliest to be legal first. Convolutions want
// multiples of 32; few models break on a batch of 1. A row whose sizes are small
// adds the number of the dim to the last two, so that dims differ.
var choices = [...]struct {
	sizes  [roles]int
	differ bool
}{
	{sizes: [roles]int{1, 64, 8}},
	{sizes: [roles]int{2, 96, 5}, differ: true},
	{sizes: [roles]int{3, 32, 16}},
	{sizes: [roles]int{1, 224, 1}},
	{sizes: [roles]int{1, 1, 1}},
	{sizes: [roles]int{2, 3, 4}, differ: true},
	{sizes: [roles]int{4, 16, 4}},
	{sizes: [roles]int{1, 128, 64}},
	{sizes: [roles]int{2, 320, 128}},
	{sizes: [roles]int{8, 8, 8}},
	// From here on for models that refuse all before: samples of sound.
	{sizes: [roles]int{1, 256, 512}},
	{sizes: [roles]int{2, 48, 1280}},
	{sizes: [roles]int{1, 640, 16000}},
}

// usualChoices is how many of the choices are small enough for any model.
const usualChoices = 10

// unknownShapes are what inputs of unknown rank get, by plan.
var unknownShapes = [...][]int{{2}, {2, 3}, {}, {1, 3, 8, 8}, {1}, {2, 3, 4}}

// sizes is one choice: what every open dim gets.
type sizes struct {
	number int
	names  []string // of the dims, in the order of the inputs
	of     map[string]int
}

// plansFor lists the different choices for the open dims of the inputs.
func plansFor(inputs []input) []sizes {
	names, of := openDims(inputs)
	anyRank := slices.ContainsFunc(inputs, func(in input) bool { return tensorType(in.typ) != nil && tensorType(in.typ).Shape == nil })
	if len(names) == 0 && !anyRank {
		return []sizes{{}}
	}
	var out []sizes
	for i, c := range choices {
		s := sizes{number: i, names: names, of: map[string]int{}}
		for k, name := range names {
			size := c.sizes[of[name]]
			if c.differ && of[name] == otherRole {
				size += k % 4
			}
			s.of[name] = size
		}
		isNew := !slices.ContainsFunc(out, func(o sizes) bool { return o.String() == s.String() })
		if isNew || anyRank && i < len(unknownShapes) {
			out = append(out, s)
		}
	}
	return out
}

// tensorType is the type of the tensors that a value of type t holds.
func tensorType(t *onnx.Type) *onnx.Type {
	for t != nil && t.Kind != onnx.KindTensor {
		t = t.Inner
	}
	return t
}

// openDims lists the names of all open dims, each once, with the role of its first place.
func openDims(inputs []input) (names []string, of map[string]role) {
	of = map[string]role{}
	for _, in := range inputs {
		t := tensorType(in.typ)
		if t == nil || t.Shape == nil {
			continue
		}
		for axis, d := range t.Shape.Dims {
			if d.Known {
				continue
			}
			for _, name := range symbols(dimName(in, axis, d)) {
				if _, seen := of[name]; !seen {
					names = append(names, name)
					of[name] = roleOf(t.Shape, axis)
				}
			}
		}
	}
	return names, of
}

// dimName is what an open dim is called: its symbol, or its place.
func dimName(in input, axis int, d onnx.Dim) string {
	if d.Param != "" {
		return d.Param
	}
	return fmt.Sprintf("%s[%d]", in.name, axis)
}

func roleOf(s *onnx.Shape, axis int) role {
	last := s.Dims[len(s.Dims)-1]
	switch isImage := len(s.Dims) >= 4; {
	case axis == 0:
		return batchRole
	case len(s.Dims) == 3 && axis == 1 && s.Dims[0].Known && last.Known: // the state of a recurrent layer
		return batchRole
	case isImage && last.Known && last.Value <= 4 && axis < len(s.Dims)-1: // channels last
		return spatialRole
	case isImage && axis >= 2:
		return spatialRole
	}
	return otherRole
}

// symbols gives the names in a dim such as "past + 1", which exporters write for sums.
func symbols(name string) []string {
	parts := strings.Split(name, "+")
	var out []string
	for _, p := range parts {
		p = strings.TrimSpace(p)
		if !isSymbol(p) {
			if _, err := strconv.Atoi(p); err != nil {
				return []string{name}
			}
			continue
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return []string{name}
	}
	return out
}

// isSymbol says whether s looks like one name rather than a formula.
func isSymbol(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsAny(s, "+-*/() ")
}

// size gives an open dim its size.
func (s sizes) size(name string) int {
	if n, ok := s.of[name]; ok {
		return n
	}
	total := 0
	for _, p := range strings.Split(name, "+") {
		p = strings.TrimSpace(p)
		n, err := strconv.Atoi(p)
		if err != nil {
			n = s.of[p]
		}
		total += n
	}
	return total
}

// shape is the shape of an input's tensors.
func (s sizes) shape(in input) []int {
	t := tensorType(in.typ)
	if t == nil {
		return nil
	}
	if t.Shape == nil {
		return unknownShapes[s.number%len(unknownShapes)]
	}
	shape := make([]int, len(t.Shape.Dims))
	for axis, d := range t.Shape.Dims {
		if d.Known {
			shape[axis] = int(d.Value)
		} else {
			shape[axis] = s.size(dimName(in, axis, d))
		}
	}
	return shape
}

// length is a size that a scalar or vector may mean: that of the first open axis
// which is no batch.
func (s sizes) length(in input) int64 {
	own := tensorType(in.typ)
	for _, name := range s.names {
		isOwn := own != nil && own.Shape != nil && slices.ContainsFunc(own.Shape.Dims, func(d onnx.Dim) bool { return d.Param == name })
		if !isOwn {
			return int64(s.of[name])
		}
	}
	return 0
}

// String lists the sizes: batch=2, seq=8.
func (s sizes) String() string {
	parts := make([]string, len(s.names))
	for i, name := range s.names {
		parts[i] = fmt.Sprintf("%s=%d", name, s.of[name])
	}
	return strings.Join(parts, ", ")
}
