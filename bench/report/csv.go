package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/npuctl/npuctl/bench/load"
	"github.com/npuctl/npuctl/bench/measure"
)

// csvColumns are the columns before those of latencies and stages. They do not depend on
// what was asked.
var csvColumns = []struct {
	name string
	of   func(*measure.Level) string
}{
	{"level", func(l *measure.Level) string { return l.Name() }},
	{"mode", func(l *measure.Level) string { return l.Settings.Mode }},
	{"arrivals", func(l *measure.Level) string { return l.Settings.Arrivals }},
	{"workers", func(l *measure.Level) string { return strconv.Itoa(l.Settings.Workers) }},
	{"rate", func(l *measure.Level) string { return decimal(l.Settings.Rate) }},
	{"duration_s", func(l *measure.Level) string { return decimal(l.Duration) }},
	{"requests", func(l *measure.Level) string { return integer(l.Requests) }},
	{"ok", func(l *measure.Level) string { return integer(l.OK) }},
	{"errors", func(l *measure.Level) string { return integer(l.Errors) }},
	{"rejected", func(l *measure.Level) string { return integer(l.Rejected) }},
	{"failed", func(l *measure.Level) string { return integer(l.Failed) }},
	{"cancelled", func(l *measure.Level) string { return integer(l.Cancelled) }},
	{"unsent", func(l *measure.Level) string { return integer(l.Unsent) }},
	{"offered_rate", func(l *measure.Level) string { return decimal(l.OfferedRate) }},
	{"throughput", func(l *measure.Level) string { return decimal(l.Throughput) }},
	{"goodput", func(l *measure.Level) string { return decimal(l.Goodput) }},
	{"items_throughput", func(l *measure.Level) string { return decimal(l.ItemThroughput) }},
	{"mean_batch", func(l *measure.Level) string { return decimal(l.MeanBatch) }},
	{"padding_waste", func(l *measure.Level) string { return decimal(l.Padding) }},
	{"stable", func(l *measure.Level) string { return strconv.FormatBool(l.Stable) }},
	{"overloaded", func(l *measure.Level) string { return strconv.FormatBool(l.Overloaded) }},
	{"valid", func(l *measure.Level) string { return strconv.FormatBool(l.Valid) }},
	{"lateness_p99_ms", func(l *measure.Level) string { return decimal(l.Generator.Lateness.P99) }},
	{"held", func(l *measure.Level) string { return decimal(l.Generator.Held) }},
	{"cpu", func(l *measure.Level) string { return decimal(l.Generator.CPU) }},
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', 10, 64) }

func integer(n int64) string { return strconv.FormatInt(n, 10) }

// WriteCSV writes a line of names and a row for each level, in the order in which they were
// measured.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	names := []string{}
	for _, c := range csvColumns {
		names = append(names, c.name)
	}
	figures := append([]string{"mean", "std"}, append(measure.PercentileNames(), "max")...)
	for _, of := range []string{"latency", "send_latency"} {
		for _, figure := range figures {
			names = append(names, of+"_"+figure+"_ms")
		}
	}
	for _, stage := range load.StageNames {
		names = append(names, stage+"_mean_ms", stage+"_p99_ms")
	}
	names = append(names, "engine", "device", "emulated")
	rows := [][]string{names}
	for _, l := range r.Levels {
		rows = append(rows, append(csvRow(l, figures), r.Engine, r.Device, strconv.FormatBool(r.Emulated)))
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("print the report as CSV: %w", err)
	}
	return nil
}

func csvRow(l *measure.Level, figures []string) []string {
	row := []string{}
	for _, c := range csvColumns {
		row = append(row, c.of(l))
	}
	for _, f := range []*measure.Figures{&l.Latency, &l.SendLatency} {
		for _, figure := range figures {
			value, _ := f.Value(figure)
			row = append(row, decimal(value))
		}
	}
	for _, name := range load.StageNames {
		stage := l.Stages[name]
		row = append(row, decimal(stage.Mean), decimal(stage.P99))
	}
	return row
}

// WriteServiceTimes writes how long executions took, by gear or, without gears, by batch
// size: a file that `npuctl simulate --service` reads.
func WriteServiceTimes(w io.Writer, l *measure.Level) error {
	rows := [][]string{{"batch", "time_ms"}}
	for _, b := range l.Batches {
		rows = append(rows, []string{integer(b.Size), decimal(b.Mean)})
	}
	if len(l.Gears) > 0 {
		rows = [][]string{{"gear", "time_ms"}}
	}
	for _, g := range l.Gears {
		rows = append(rows, []string{g.Gear, decimal(g.Mean)})
	}
	if len(rows) == 1 {
		return errors.New("the target did not tell of its executions, so there are no service times")
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("print the service times: %w", err)
	}
	return nil
}
