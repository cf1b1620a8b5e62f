package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
)

// distribution draws the latencies of a level, with its percentiles.
func distribution(l *measure.Level) *chart {
	c := newChart("Latency distribution", "latency from the intended sending, ms", "requests", 280)
	c.Text = fmt.Sprintf("Half of %d requests were answered within %s ms, 99 %% within %s ms, the slowest after %s ms.", l.OK, number(l.Latency.P50), number(l.Latency.P99), number(l.Latency.Max))
	least := math.Max(l.Latency.Min, 1e-6)
	x := scale{from: least * 0.98, to: math.Max(l.Latency.Max, least) * 1.02, begin: c.Left, end: c.Right, log: true}
	most := int64(0)
	for _, b := range l.Histogram {
		most = max(most, b.Count)
	}
	y := upTo(float64(most), c.Bottom, c.Top)
	c.axes(x, y)
	from := least
	for _, b := range l.Histogram {
		left, right := x.at(from), x.at(b.UpTo)
		top := y.at(float64(b.Count))
		c.Bars = append(c.Bars, bar{left, top, math.Max(0.5, round(right-left)), round(c.Bottom - top), "c0", fmt.Sprintf("%s to %s ms: %d requests", number(from), number(b.UpTo), b.Count)})
		from = b.UpTo
	}
	for i, name := range measure.PercentileNames() {
		value, _ := l.Latency.Value(name)
		title := fmt.Sprintf("%s: %s ms", name, number(value))
		if interval, known := l.Latency.Intervals[name]; known {
			title += fmt.Sprintf(", 95 %% between %s and %s ms", number(interval[0]), number(interval[1]))
		} else {
			title += ", of too few requests to say how sure"
		}
		m := mark{X: x.at(value), TextX: x.at(value) + 3, Anchor: "start", TextY: c.Top + 10 + 11*float64(i), Text: name, Title: title}
		if m.X > c.Right-40 {
			m.TextX, m.Anchor = m.X-3, "end"
		}
		c.Marks = append(c.Marks, m)
	}
	return c
}

// curve draws the throughput and the latencies of all levels. Lines go from level to level
// of one kind of load, in the order of the load.
func curve(levels []*measure.Level) *chart {
	c := newChart("Throughput and latency", "answers a second", "latency, ms", 300)
	c.Text = fmt.Sprintf("Throughput and latency of %d levels of load; the table has the figures.", len(levels))
	fastest, slowest := 0.0, 0.0
	loads := map[string][]*measure.Level{}
	for _, l := range levels {
		fastest, slowest = math.Max(fastest, l.Throughput), math.Max(slowest, l.Latency.P99)
		kind := l.Settings.Mode + l.Settings.Arrivals
		loads[kind] = append(loads[kind], l)
	}
	x, y := upTo(fastest, c.Left, c.Right), upTo(slowest, c.Bottom, c.Top)
	c.axes(x, y)
	for _, kind := range slices.Sorted(maps.Keys(loads)) {
		slices.SortStableFunc(loads[kind], func(a, b *measure.Level) int {
			return cmp.Or(cmp.Compare(a.Settings.Rate, b.Settings.Rate), cmp.Compare(a.Settings.Workers, b.Settings.Workers))
		})
		for i, figure := range []string{"p50", "p95", "p99"} {
			c.level(loads[kind], figure, fmt.Sprintf("c%d", i), x, y)
		}
	}
	c.legends([2]string{"c0", "p50"}, [2]string{"c1", "p95"}, [2]string{"c2", "p99"})
	return c
}

// level draws one figure of levels of one kind.
func (c *chart) level(levels []*measure.Level, figure, class string, x, y scale) {
	points := [][2]float64{}
	for _, l := range levels {
		value, _ := l.Latency.Value(figure)
		at := [2]float64{x.at(l.Throughput), y.at(value)}
		points = append(points, at)
		p := point{X: at[0], Y: at[1], Class: class, Title: fmt.Sprintf("%s: %s/s, %s %s ms", l.Name(), number(l.Throughput), figure, number(value))}
		if len(Verdicts(l)) > 0 {
			p.Class += " doubtful"
		}
		if figure == "p99" {
			p.Text = l.Name()
		}
		c.Points = append(c.Points, p)
	}
	c.Lines = append(c.Lines, line{path(points), class})
}

// stages draws what the requests around each percentile spent their time on.
func stages(l *measure.Level) *chart {
	rows := []string{"mean"}
	for _, name := range measure.PercentileNames() {
		if l.StagesAt[name] != nil {
			rows = append(rows, name)
		}
	}
	const each = 30
	c := newChart("Where the time goes", "ms", "", 90+each*float64(len(rows)))
	c.Text = "Stages of the mean latency and of the requests around percentiles; the table has the figures of the mean."
	of := func(row, stage string) float64 {
		if row == "mean" {
			return l.Stages[stage].Mean
		}
		return l.StagesAt[row][stage]
	}
	longest := 0.0
	for _, row := range rows {
		sum := 0.0
		for _, stage := range load.StageNames {
			sum += math.Max(0, of(row, stage))
		}
		longest = math.Max(longest, sum)
	}
	x := upTo(longest, c.Left, c.Right)
	c.XTicks = x.ticks()
	for i, row := range rows {
		top, sum := c.Top+4+each*float64(i), 0.0
		c.YTicks = append(c.YTicks, tick{top + each/2 - 3, row})
		for s, stage := range load.StageNames {
			value := math.Max(0, of(row, stage))
			left, right := x.at(sum), x.at(sum+value)
			sum += value
			c.Bars = append(c.Bars, bar{left, top, round(right - left), each - 8, fmt.Sprintf("c%d", s), fmt.Sprintf("%s, %s: %s ms", row, stage, number(value))})
		}
	}
	entries := [][2]string{}
	for s, stage := range load.StageNames {
		entries = append(entries, [2]string{fmt.Sprintf("c%d", s), stage})
	}
	c.legends(entries...)
	return c
}

// over draws figures of a timeline, one line each.
func over(t *measure.Timeline, title, unit string, height float64, lines ...series) *chart {
	c := newChart(title, "seconds", unit, height)
	n := len(t.Moments)
	c.Text = fmt.Sprintf("%s over %s seconds.", title, number(t.Width*float64(n)))
	most := 0.0
	for _, s := range lines {
		for _, m := range t.Moments {
			most = math.Max(most, s.of(m))
		}
	}
	x, y := scale{to: t.Width * float64(n), begin: c.Left, end: c.Right}, upTo(most, c.Bottom, c.Top)
	c.axes(x, y)
	entries := [][2]string{}
	for i, s := range lines {
		class := fmt.Sprintf("c%d", i)
		points := [][2]float64{}
		for _, m := range t.Moments {
			points = append(points, [2]float64{x.at(m.Start + t.Width/2), y.at(s.of(m))})
		}
		c.Lines = append(c.Lines, line{path(points), class})
		entries = append(entries, [2]string{class, s.name})
	}
	c.legends(entries...)
	return c
}

type series struct {
	name string
	of   func(measure.Moment) float64
}

// timelines draws what happened when.
func timelines(l *measure.Level) []*chart {
	if len(l.Timeline.Moments) == 0 {
		return nil
	}
	t := &l.Timeline
	charts := []*chart{
		over(t, "Answers", "a second", 220, series{"answered", func(m measure.Moment) float64 { return m.Throughput }},
			series{"failed", func(m measure.Moment) float64 { return m.Failures }}),
		over(t, "Queue", "requests", 220, series{"waiting", func(m measure.Moment) float64 { return float64(m.Waiting) }},
			series{"running", func(m measure.Moment) float64 { return float64(m.Running) }}),
		over(t, "Latency", "ms", 220, series{"mean", func(m measure.Moment) float64 { return m.MeanLatency }},
			series{"slowest", func(m measure.Moment) float64 { return m.MaxLatency }}),
	}
	if l.MeanBatch > 0 {
		charts = append(charts, over(t, "Batches", "items", 200, series{"mean size", func(m measure.Moment) float64 { return m.MeanBatch }}))
	}
	return charts
}

// columns draws counts by name.
func columns(title, x string, names []string, counts []int64, titles []string) *chart {
	c := newChart(title, x, "executions", 240)
	c.Text = title + ": " + fmt.Sprint(len(names)) + " kinds."
	most := int64(0)
	for _, n := range counts {
		most = max(most, n)
	}
	y := upTo(float64(most), c.Bottom, c.Top)
	c.YTicks = y.ticks()
	each := (c.Right - c.Left) / float64(max(1, len(names)))
	every := 1 + len(names)/16 // of long lists not each has its name
	for i, n := range counts {
		left, top := c.Left+each*float64(i), y.at(float64(n))
		width := math.Min(mostWidth, each*0.8)
		c.Bars = append(c.Bars, bar{round(left + (each-width)/2), top, round(width), round(c.Bottom - top), "c0", titles[i]})
		if i%every == 0 {
			c.XTicks = append(c.XTicks, tick{round(left + each/2), names[i]})
		}
	}
	return c
}

// mostColumns is how many gears or batch sizes a chart shows: those that ran most.
const mostColumns = 64

// mostWidth is how wide a column is at most.
const mostWidth = 60

// batches draws how often batches of each size ran.
func batches(l *measure.Level) *chart {
	shown := slices.Clone(l.Batches)
	if len(shown) > mostColumns {
		slices.SortStableFunc(shown, func(a, b measure.BatchUse) int { return cmp.Compare(b.Executions, a.Executions) })
		shown = shown[:mostColumns]
		slices.SortFunc(shown, func(a, b measure.BatchUse) int { return cmp.Compare(a.Size, b.Size) })
	}
	var names, titles []string
	var counts []int64
	for _, b := range shown {
		names, counts = append(names, fmt.Sprint(b.Size)), append(counts, b.Executions)
		titles = append(titles, fmt.Sprintf("%d items: %d executions", b.Size, b.Executions))
	}
	return columns("Batch sizes", "items", names, counts, titles)
}

// gearUse draws how often each gear ran; the part of it that was padding is darker.
func gearUse(l *measure.Level) *chart {
	shown := slices.Clone(l.Gears)
	if len(shown) > mostColumns {
		slices.SortStableFunc(shown, func(a, b measure.GearUse) int { return cmp.Compare(b.Runs, a.Runs) })
		shown = shown[:mostColumns]
	}
	var names, titles []string
	var counts []int64
	for _, g := range shown {
		names, counts = append(names, g.Gear), append(counts, g.Runs)
		titles = append(titles, fmt.Sprintf("gear %s: %d runs, %d items, %s padding", g.Gear, g.Runs, g.Items, percent(g.Padding)))
	}
	c := columns("Gears and their padding", "gear", names, counts, titles)
	for i, g := range shown {
		b := c.Bars[i]
		height := round(b.Height * math.Min(1, math.Max(0, g.Padding)))
		c.Bars = append(c.Bars, bar{b.X, round(b.Y + b.Height - height), b.Width, height, "c1", titles[i]})
	}
	c.legends([2]string{"c0", "runs"}, [2]string{"c1", "share of padding"})
	return c
}

// trials draws the levels of a search.
func trials(s *measure.SearchResult) *chart {
	c := newChart("Search for "+s.Goal, "requests a second", "ms", 280)
	c.Text = s.Reason
	least, fastest, slowest := math.Inf(1), 0.0, 0.0
	for _, t := range s.Trials {
		least, fastest, slowest = math.Min(least, t.Rate), math.Max(fastest, t.Rate), math.Max(slowest, t.Value)
	}
	x := scale{from: least * 0.9, to: fastest * 1.1, begin: c.Left, end: c.Right, log: true}
	y := upTo(slowest, c.Bottom, c.Top)
	c.axes(x, y)
	for _, t := range s.Trials {
		class := map[measure.Verdict]string{measure.Holds: "c2", measure.Misses: "c1"}[t.Verdict]
		if class == "" {
			class = "c6"
		}
		if !t.Sure {
			class += " doubtful"
		}
		c.Points = append(c.Points, point{X: x.at(t.Rate), Y: y.at(t.Value), Class: class, Title: fmt.Sprintf("%s/s: %s; %s", number(t.Rate), t.Verdict, t.Reason)})
	}
	c.legends([2]string{"c2", "holds"}, [2]string{"c1", "misses"})
	return c
}
