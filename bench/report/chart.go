package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// chart is a drawing with two axes, in the units of its SVG. It is drawn by hand, as it
// says what a point means when one points at it.
type chart struct {
	Title string
	// Text says in words what it shows, for those who do not see it.
	Text          string
	Width, Height float64
	Left, Top     float64 // of the area between the axes
	Right, Bottom float64
	XLabel        string
	YLabel        string
	XTicks        []tick
	YTicks        []tick
	Bars          []bar
	Lines         []line
	Points        []point
	Marks         []mark
	Legend        []legend
}

type tick struct {
	At   float64
	Text string
}

type bar struct {
	X, Y, Width, Height float64
	Class, Title        string
}

type line struct{ Points, Class string }

type point struct {
	X, Y               float64
	Class, Title, Text string
}

// mark is a line across the chart, such as a percentile.
type mark struct {
	X                   float64
	TextX, TextY        float64
	Anchor, Text, Title string
}

type legend struct {
	X           float64
	Class, Text string
}

// newChart makes an empty one.
func newChart(title, x, y string, height float64) *chart {
	return &chart{Title: title, XLabel: x, YLabel: y, Width: 720, Height: height, Left: 64, Top: 28, Right: 704, Bottom: height - 44}
}

// scale takes values to places of a chart.
type scale struct {
	from, to   float64 // values
	begin, end float64 // places
	log        bool
}

func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.log {
		v, from, to = math.Log10(max(v, s.from)), math.Log10(from), math.Log10(to)
	}
	if to <= from {
		return s.begin
	}
	return round(s.begin + (s.end-s.begin)*(v-from)/(to-from))
}

// round keeps a tenth of a unit: nobody sees more, and files stay small.
func round(x float64) float64 { return math.Round(10*x) / 10 }

// ticks are round numbers along a scale.
func (s scale) ticks() []tick {
	ticks := []tick{}
	if s.log {
		for power := math.Floor(math.Log10(s.from)); power <= math.Log10(s.to); power++ {
			for _, digit := range []float64{1, 2, 5} {
				if v := digit * math.Pow(10, power); v >= s.from && v <= s.to {
					ticks = append(ticks, tick{s.at(v), short(v)})
				}
			}
		}
		return thinned(ticks)
	}
	step := niceStep((s.to - s.from) / 5)
	for i := math.Ceil(s.from / step); i*step <= s.to*(1+1e-9); i++ {
		ticks = append(ticks, tick{s.at(i * step), short(i * step)})
	}
	return ticks
}

// mostTicks is how many ticks an axis has, about.
const mostTicks = 12

// thinned keeps each third tick of a long axis: the powers of ten.
func thinned(ticks []tick) []tick {
	if len(ticks) <= mostTicks {
		return ticks
	}
	kept := []tick{}
	for _, t := range ticks {
		if strings.Trim(t.Text, "0.") == "1" || strings.HasPrefix(t.Text, "1e") {
			kept = append(kept, t)
		}
	}
	return kept
}

// niceStep is the next of 1, 2, 5, 10, … from a step on.
func niceStep(step float64) float64 {
	if !(step > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= step {
			return digit * power
		}
	}
	return 10 * power
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// upTo is a scale that begins at 0 and ends a little above a value.
func upTo(most, begin, end float64) scale {
	if !(most > 0) {
		most = 1
	}
	step := niceStep(most / 5)
	return scale{from: 0, to: step * math.Ceil(most/step), begin: begin, end: end}
}

// path writes points for a polyline.
func path(points [][2]float64) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%g,%g", p[0], p[1])
	}
	return b.String()
}

func (c *chart) axes(x, y scale) {
	c.XTicks, c.YTicks = x.ticks(), y.ticks()
}

// legends lays out a legend above the chart.
func (c *chart) legends(entries ...[2]string) {
	x := c.Left
	for _, e := range entries {
		c.Legend = append(c.Legend, legend{x, e[0], e[1]})
		x += 28 + 7*float64(len(e[1]))
	}
}
