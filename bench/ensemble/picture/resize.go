package picture

import (
	"fmt"
	"math"
)

// Filter is how pixels of another size come about.
type Filter int

// The filters, under Pillow's names. All but Nearest weigh every pixel that a new one
// covers, so that shrinking loses none.
const (
	Nearest Filter = iota
	Box
	Bilinear
	Bicubic
	Lanczos
)

// kernels have the weight of a pixel by its distance, and how far they reach; in pixels
// of the smaller picture.
var kernels = map[Filter]struct {
	weight func(x float64) float64
	reach  float64
}{
	Box:      {boxWeight, 0.5},
	Bilinear: {func(x float64) float64 { return max(0, 1-math.Abs(x)) }, 1},
	Bicubic:  {bicubicWeight, 2},
	Lanczos:  {lanczosWeight, 3},
}

func boxWeight(x float64) float64 {
	if x > -0.5 && x <= 0.5 {
		return 1
	}
	return 0
}

// bicubicWeight rounds every product by itself, as do the others: what machines that add
// and multiply at once would make of it differs.
func bicubicWeight(x float64) float64 {
	const a = -0.5
	x = math.Abs(x)
	if x < 1 {
		return float64(float64((float64((a+2)*x)-(a+3))*x)*x) + 1
	}
	if x < 2 {
		return (float64((float64((x-5)*x)+8)*x) - 4) * a
	}
	return 0
}

func lanczosWeight(x float64) float64 {
	sinc := func(x float64) float64 {
		if x == 0 {
			return 1
		}
		x *= math.Pi
		return math.Sin(x) / x
	}
	if x >= -3 && x < 3 {
		return sinc(x) * sinc(x/3)
	}
	return 0
}

// weightBits are those behind the point of a weight.
const weightBits = 32 - 8 - 2

// window is which pixels make a new one: so many from first on.
type window struct {
	first   int
	weights []int32
}

// windows gives those of a line that gets another length.
func windows(from, to int, f Filter) []window {
	k := kernels[f]
	scale := float64(from) / float64(to)
	wide := max(scale, 1)
	reach := float64(k.reach * wide)
	list := make([]window, to)
	weights := make([]float64, 0, 2*int(math.Ceil(reach))+1)
	for i := range list {
		centre := float64((float64(i) + 0.5) * scale)
		first := max(0, int(centre-reach+0.5))
		end := min(from, int(centre+reach+0.5))
		sum := 0.0
		weights = weights[:0]
		for j := first; j < end; j++ {
			w := k.weight(float64((float64(j) - centre + 0.5) * (1 / wide)))
			weights = append(weights, w)
			sum += w
		}
		list[i] = window{first, make([]int32, len(weights))}
		for j, w := range weights {
			if sum != 0 {
				w /= sum
			}
			list[i].weights[j] = int32(math.Copysign(0.5, w) + float64(w*(1<<weightBits)))
		}
	}
	return list
}

// Resize gives the picture at another size. Both passes round to bytes, as Pillow's do.
// It goes along rows first, but for pictures whose height shrinks by more than twice as
// many pixels as their width: so does Pillow 13, while older ones always begin with rows,
// and differ there by 1, seldom by more.
func (p *Pixels) Resize(width, height int, f Filter) *Pixels {
	if width == p.Width && height == p.Height {
		return p
	}
	if f == Nearest {
		return p.nearest(width, height)
	}
	rows, columns := windows(p.Width, width, f), windows(p.Height, height, f)
	if p.Height > height && p.Height-height > 2*(p.Width-width) {
		return p.alongColumns(columns).alongRows(rows)
	}
	return p.alongRows(rows).alongColumns(columns)
}

const half = 1 << (weightBits - 1)

// alongRows gives the picture another width.
func (p *Pixels) alongRows(list []window) *Pixels {
	if len(list) == p.Width {
		return p
	}
	out := New(len(list), p.Height, p.Channels)
	for y := range p.Height {
		row, to := p.row(y), out.row(y)
		if p.Channels == 1 {
			for x := range list {
				sum := int32(half)
				for j, b := range row[list[x].first:][:len(list[x].weights)] {
					sum += int32(b) * list[x].weights[j]
				}
				to[x] = clamp(sum >> weightBits)
			}
			continue
		}
		for x := range list {
			r, g, b := int32(half), int32(half), int32(half)
			weights := list[x].weights
			from := row[3*list[x].first:][:3*len(weights)]
			for at, j := 0, 0; at+2 < len(from) && j < len(weights); at, j = at+3, j+1 {
				r += int32(from[at]) * weights[j]
				g += int32(from[at+1]) * weights[j]
				b += int32(from[at+2]) * weights[j]
			}
			to[3*x], to[3*x+1], to[3*x+2] = clamp(r>>weightBits), clamp(g>>weightBits), clamp(b>>weightBits)
		}
	}
	return out
}

// alongColumns gives it another height.
func (p *Pixels) alongColumns(list []window) *Pixels {
	if len(list) == p.Height {
		return p
	}
	out := New(p.Width, len(list), p.Channels)
	sums := make([]int32, p.Width*p.Channels)
	for y := range list {
		for i := range sums {
			sums[i] = half
		}
		for j, w := range list[y].weights {
			for i, b := range p.row(list[y].first + j) {
				sums[i] += int32(b) * w
			}
		}
		to := out.row(y)
		for i, sum := range sums {
			to[i] = clamp(sum >> weightBits)
		}
	}
	return out
}

// nearest takes the pixel in which the middle of a new one lies. The places are summed
// up, as Pillow does it: a product would round otherwise.
func (p *Pixels) nearest(width, height int) *Pixels {
	places := func(from, to int) []int {
		scale := float64(from) / float64(to)
		list, at := make([]int, to), float64(scale*0.5)
		for i := range list {
			list[i] = min(int(at), from-1)
			at += scale
		}
		return list
	}
	out, columns := New(width, height, p.Channels), places(p.Width, width)
	for y, from := range places(p.Height, height) {
		row, to := p.row(from), out.row(y)
		for x, column := range columns {
			copy(to[x*p.Channels:(x+1)*p.Channels], row[column*p.Channels:])
		}
	}
	return out
}

// Window gives the part of a picture of this size, from a place on that may lie outside:
// what lies there is filled.
func (p *Pixels) Window(left, top, width, height int, fill uint8) *Pixels {
	out := New(width, height, p.Channels)
	if fill != 0 {
		for i := range out.Bytes {
			out.Bytes[i] = fill
		}
	}
	from, end := max(left, 0), min(left+width, p.Width)
	if from >= end {
		return out
	}
	for y := max(top, 0); y < min(top+height, p.Height); y++ {
		copy(out.row(y - top)[(from-left)*p.Channels:], p.row(y)[from*p.Channels:end*p.Channels])
	}
	return out
}

// FilterNamed gives a filter by the name that configs have for it.
func FilterNamed(name string) (Filter, error) {
	f, ok := map[string]Filter{"nearest": Nearest, "bilinear": Bilinear, "bicubic": Bicubic, "lanczos": Lanczos, "box": Box}[name]
	if !ok {
		return 0, fmt.Errorf("there is no filter %q", name)
	}
	return f, nil
}
