package part

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// mostBoxes bounds the room of the answers.
const mostBoxes = 100_000

// boxes is boxes/model.py.
type boxes struct {
	kind          tensor.Type
	split         func(rows, columns int, list []float32) (candidates, error)
	hasGeometry   bool
	suppresses    bool
	confidence    float32
	overlap       float32
	acrossClasses bool
	maxBoxes      int
	maxCandidates int
	hasLabels     bool
	labels        []string
}

func newBoxes(s *settings) (Part, error) {
	c := s.config
	if len(c.Input) < 1 || len(c.Input) > 2 || !s.tensors(len(c.Input), 4, 5) {
		s.refuse("it has %d inputs: such a model has 1 or 2", len(c.Input))
		return nil, s.err
	}
	if n := s.rank(&c.Input[0]); n != 3 {
		s.refuse("input %s has %d dims with the batch: candidates of pictures have 3", c.Input[0].Name, n)
	}
	if len(c.Input) > 1 && c.Input[1].DataType != configgen.TypeFP32 {
		s.refuse("input %s is %v: give TYPE_FP32", c.Input[1].Name, c.Input[1].DataType)
	}
	format := s.oneOf("format", "yolo11", "yolov5", "end2end")
	p := &boxes{
		kind: s.floatType(&c.Input[0]), hasGeometry: len(c.Input) > 1, suppresses: format != "end2end",
		split:      map[string]func(int, int, []float32) (candidates, error){"yolo11": splitYOLO11, "yolov5": splitYOLOv5, "end2end": splitEndToEnd}[format],
		confidence: s.float("confidence"), overlap: s.float("overlap"), acrossClasses: s.bool("across_classes"),
		maxBoxes: s.int("max_boxes", 1, mostBoxes), maxCandidates: s.int("max_candidates", 1, mostBoxes), hasLabels: len(c.Output) > 4,
	}
	if p.hasLabels {
		p.labels = s.labels()
	}
	return p, nil
}

// box is a rectangle by its corners: left, top, right, bottom.
type box [4]float32

// candidates are what a model gives for one picture.
type candidates struct {
	boxes   []box
	scores  []float32
	classes []int32
}

func newCandidates(n int) candidates {
	return candidates{make([]box, n), make([]float32, n), make([]int32, n)}
}

// Run gives the boxes of each picture, in room for max_boxes.
func (p *boxes) Run(in, out []engine.Buffer) error {
	list, err := float32sOf(p.kind, &in[0])
	if err != nil {
		return err
	}
	shape := in[0].Shape
	if len(shape) != 3 {
		return fmt.Errorf("candidates have the shape %v: that is not pictures, rows and columns", shape)
	}
	count, rows, columns := int(shape[0]), int(shape[1]), int(shape[2])
	var places []float32
	if p.hasGeometry {
		if places, err = float32sOf(tensor.Float32, &in[1]); err != nil {
			return err
		}
		if len(in[1].Shape) != 2 || in[1].Shape[1] != 6 {
			return fmt.Errorf("the geometry has the shape %v: that is not six numbers for each picture", in[1].Shape)
		}
		count = min(count, int(in[1].Shape[0]))
	}
	a := p.answers(out, count)
	for i := range count {
		c, err := p.split(rows, columns, list[i*rows*columns:(i+1)*rows*columns])
		if err != nil {
			return err
		}
		kept := p.choose(&c)
		if p.hasGeometry {
			for _, k := range kept {
				c.boxes[k] = c.boxes[k].toOriginal(places[6*i : 6*i+6])
			}
		}
		if err := a.put(p, i, &c, kept); err != nil {
			return err
		}
	}
	return nil
}

// The formats.

// splitYOLO11 reads [4 + classes, candidates].
func splitYOLO11(rows, n int, list []float32) (c candidates, err error) {
	if rows < 5 {
		return c, fmt.Errorf("candidates have %d numbers: no class is among them", rows)
	}
	c = newCandidates(n)
	copy(c.scores, list[4*n:])
	for class := 1; class < rows-4; class++ {
		for i, score := range list[(4+class)*n : (5+class)*n] {
			c.better(i, int32(class), score)
		}
	}
	for i := range n {
		c.boxes[i] = cornersOf(list[i], list[n+i], list[2*n+i], list[3*n+i])
	}
	return c, nil
}

// splitYOLOv5 reads [candidates, 5 + classes], with a score for the object.
func splitYOLOv5(n, columns int, list []float32) (c candidates, err error) {
	if columns < 6 {
		return c, fmt.Errorf("candidates have %d numbers: no class is among them", columns)
	}
	c = newCandidates(n)
	for i := range n {
		row := list[i*columns : (i+1)*columns]
		c.boxes[i] = cornersOf(row[0], row[1], row[2], row[3])
		c.scores[i] = row[4] * row[5]
		for class, score := range row[6:] {
			c.better(i, int32(class+1), row[4]*score)
		}
	}
	return c, nil
}

// splitEndToEnd reads [candidates, 6]: corners, score and class.
func splitEndToEnd(n, columns int, list []float32) (c candidates, err error) {
	if columns < 6 {
		return c, fmt.Errorf("candidates have %d numbers, not 6", columns)
	}
	c = newCandidates(n)
	for i := range n {
		row := list[i*columns:]
		c.boxes[i], c.scores[i], c.classes[i] = box(row[:4]), row[4], whole(row[5])
	}
	return c, nil
}

// whole cuts what is behind the point off, as processors of x86 do it: what does not fit
// is the lowest number.
func whole(x float32) int32 {
	if !(x > -0x1p31-1 && x < 0x1p31) {
		return math.MinInt32
	}
	return int32(x)
}

// better takes a score if it is higher; what is no number is the highest.
func (c *candidates) better(i int, class int32, score float32) {
	if old := c.scores[i]; score > old || score != score && old == old {
		c.scores[i], c.classes[i] = score, class
	}
}

func cornersOf(x, y, width, height float32) box {
	width, height = width/2, height/2
	return box{x - width, y - height, x + width, y + height}
}

// choose gives the numbers of the boxes that stay, the best first.
func (p *boxes) choose(c *candidates) (kept []int) {
	for i, score := range c.scores {
		if score >= p.confidence {
			kept = append(kept, i)
		}
	}
	slices.SortStableFunc(kept, func(a, b int) int { return cmp.Compare(c.scores[b], c.scores[a]) })
	kept = kept[:min(len(kept), p.maxCandidates)]
	if p.suppresses {
		kept = p.suppress(c, kept)
	}
	return kept[:min(len(kept), p.maxBoxes)]
}

// suppress leaves those that cover none better. Two boxes cover each other when what they
// share is more than overlap of what they cover together; boxes of different classes do
// not, unless that is asked for.
func (p *boxes) suppress(c *candidates, rest []int) (kept []int) {
	for len(rest) > 0 && len(kept) < p.maxBoxes {
		best := rest[0]
		kept = append(kept, best)
		a := &c.boxes[best]
		area, left := a.area(), rest[:0]
		for _, other := range rest[1:] {
			b := &c.boxes[other]
			common := box{max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])}
			shared := common.area()
			together := area + b.area() - shared
			covers := shared > float32(p.overlap*together)
			if !covers || !p.acrossClasses && c.classes[other] != c.classes[best] {
				left = append(left, other)
			}
		}
		rest = left
	}
	return kept
}

func (b *box) area() float32 { return float32(max(b[2]-b[0], 0) * max(b[3]-b[1], 0)) }

// toOriginal gives a box in the picture that was sent, and inside it.
func (b box) toOriginal(geometry []float32) box {
	for i := range b {
		axis := i % 2
		b[i] = min(max((b[i]-geometry[2+axis])/geometry[axis], 0), geometry[4+axis])
	}
	return b
}

// answers are the outputs.
type answers struct {
	boxes, scores, classes, count []byte
	labels                        []string
}

func (p *boxes) answers(out []engine.Buffer, pictures int) (a answers) {
	lead, room := []int64{int64(pictures)}, int64(p.maxBoxes)
	all := pictures * p.maxBoxes
	a.boxes = shaped(&out[0], 16*all, lead, room, 4)
	a.scores = shaped(&out[1], 4*all, lead, room)
	a.classes = shaped(&out[2], 4*all, lead, room)
	a.count = shaped(&out[3], 4*pictures, lead, 1)
	if p.hasLabels {
		a.labels = shapedStrings(&out[4], all, lead, room)
	}
	return a
}

// put writes the boxes of a picture. Behind the last one stand zeros, and -1 for the class.
func (a *answers) put(p *boxes, picture int, c *candidates, kept []int) (err error) {
	first := picture * p.maxBoxes
	clear(a.boxes[16*(first+len(kept)) : 16*(first+p.maxBoxes)])
	clear(a.scores[4*(first+len(kept)) : 4*(first+p.maxBoxes)])
	if a.labels != nil {
		clear(a.labels[first+len(kept) : first+p.maxBoxes])
	}
	for at := first + len(kept); at < first+p.maxBoxes; at++ {
		binary.LittleEndian.PutUint32(a.classes[4*at:], math.MaxUint32)
	}
	for n, k := range kept {
		at := first + n
		for side, x := range c.boxes[k] {
			binary.LittleEndian.PutUint32(a.boxes[16*at+4*side:], math.Float32bits(x))
		}
		binary.LittleEndian.PutUint32(a.scores[4*at:], math.Float32bits(c.scores[k]))
		binary.LittleEndian.PutUint32(a.classes[4*at:], uint32(c.classes[k]))
		if a.labels == nil {
			continue
		}
		if a.labels[at], err = label(p.labels, c.classes[k]); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(a.count[4*picture:], uint32(len(kept)))
	return nil
}
