package eval

import (
	"slices"
)

// detectionOperators work on boxes around things that were found in pictures.
var detectionOperators = []operator{
	{name: "NonMaxSuppression", since: 10, run: nonMaxSuppression},
}

// box has its corners in order.
type box struct{ top, left, bottom, right float32 }

func (b box) area() float32 { return float32((b.bottom - b.top) * (b.right - b.left)) }

// cornerBox takes any two opposite corners.
func cornerBox(v []float32) box {
	return box{min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])}
}

// centerBox takes the centre's x and y, the width and the height.
func centerBox(v []float32) box {
	w, h := float32(v[2]/2), float32(v[3]/2)
	return box{v[1] - h, v[0] - w, v[1] + h, v[0] + w}
}

// overlaps says whether the shared part of two boxes is more than limit of their
// union. Boxes without area overlap nothing.
func (b box) overlaps(o box, limit float32) bool {
	height := min(b.bottom, o.bottom) - max(b.top, o.top)
	width := min(b.right, o.right) - max(b.left, o.left)
	if !(height > 0 && width > 0) {
		return false
	}
	shared := float32(height * width)
	union := b.area() + o.area() - shared
	return union > 0 && shared/union > limit
}

// suppression is what NonMaxSuppression was asked.
type suppression struct {
	boxes, scores  []float32
	count, classes int // boxes of a picture; classes
	most           int // boxes to keep per picture and class
	overlap        float32
	minimum        *float32 // nil takes every score
	toBox          func([]float32) box
}

// nonMaxSuppression keeps the boxes with the highest scores that do not overlap one
// kept before. Of equal scores the lower index comes first. A box whose
// score is NaN is never kept.
func nonMaxSuppression(c *Call) error {
	s, batches, err := newSuppression(c)
	if err != nil {
		return err
	}
	pairs := batches * s.classes
	if s.count == 0 || s.most == 0 {
		pairs = 0
	}
	kept := make([][]int, pairs)
	c.Parallel(pairs, 1, func(first, last int) {
		for i := first; i < last; i++ {
			kept[i] = s.keep(i/s.classes, i)
		}
	})
	total := 0
	for _, k := range kept {
		total += len(k)
	}
	out, err := Output[int64](c, 0, total, 3)
	if err != nil {
		return err
	}
	for i, k := range kept {
		for _, b := range k {
			copy(out, []int64{int64(i / s.classes), int64(i % s.classes), int64(b)})
			out = out[3:]
		}
	}
	return nil
}

func newSuppression(c *Call) (*suppression, int, error) {
	boxes, err := numberInput[float32](c, 0)
	if err != nil {
		return nil, 0, err
	}
	scores, err := numberInput[float32](c, 1)
	if err != nil {
		return nil, 0, err
	}
	b, p := boxes.shape, scores.shape
	if len(b) != 3 || len(p) != 3 || b[2] != 4 || b[0] != p[0] || b[1] != p[2] {
		return nil, 0, c.Errorf("boxes of shape %v and scores of shape %v", b, p)
	}
	s := &suppression{boxes: boxes.data, scores: scores.data, count: b[1], classes: p[1], toBox: cornerBox}
	if c.Int("center_point_box", 0) != 0 {
		s.toBox = centerBox
	}
	most, err := c.IntsInput(2)
	if err != nil {
		return nil, 0, err
	}
	if len(most) > 0 {
		s.most = int(min(max(most[0], 0), int64(s.count)))
	}
	overlap, err := optionalNumbers[float32](c, 3)
	if err != nil {
		return nil, 0, err
	}
	if len(overlap.data) > 0 {
		s.overlap = overlap.data[0]
	}
	minimum, err := optionalNumbers[float32](c, 4)
	if err != nil {
		return nil, 0, err
	}
	if len(minimum.data) > 0 {
		s.minimum = &minimum.data[0]
	}
	// Sorting takes an index for each score.
	return s, b[0], c.Charge(int64(len(scores.data)) * 8)
}

// keep chooses boxes of one picture by one row of scores.
func (s *suppression) keep(picture, row int) []int {
	scores := s.scores[row*s.count : (row+1)*s.count]
	var order []int
	for i, score := range scores {
		if s.minimum == nil && score == score || s.minimum != nil && score > *s.minimum {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	var kept []int
	var boxes []box
	for _, i := range order {
		at := (picture*s.count + i) * 4
		b := s.toBox(s.boxes[at : at+4])
		if slices.ContainsFunc(boxes, func(o box) bool { return b.overlaps(o, s.overlap) }) {
			continue
		}
		if kept, boxes = append(kept, i), append(boxes, b); len(kept) == s.most {
			break
		}
	}
	return kept
}
