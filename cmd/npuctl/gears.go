package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/gears/planner"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/terminal"
	"github.com/npuctl/npuctl/soc"
)

// gearsFlags are the flags of `npuctl gears` as they are typed.
type gearsFlags struct {
	from, weight, multiple, include string
	work, chip, against, output     string
	axes                            []string
	most                            int
}

func newGearsCommand(a *app) *cobra.Command {
	f := &gearsFlags{}
	cmd := &cobra.Command{
		Use:   "gears --from FILE|- [--max N] [-o PLAN.yaml]",
		Short: "Plan the gears that pad real requests least",
		Long: "Reads the sizes of real requests and finds the gears that pad them least, for every\n" +
			"number of gears up to --max. For one axis no other gears pad less; for several a search\n" +
			"finds them, never worse than square ones. The table marks the number from which on more\n" +
			"gears are not worth it: they save less than 1 % of the work of the requests each.\n\n" +
			"The file has a number a line (or one for each axis, 224,336), or is a CSV file with a\n" +
			"header, as npuctl bench --shapes takes it, or JSON. --from - reads standard input.\n\n" +
			"-o writes the gears of --max as a plan, which npuctl compile and npuctl config take as\n" +
			"--gears @PLAN.yaml, and npuctl.yaml as gears: \"@PLAN.yaml\".",
		Example: "  npuctl gears --from lengths.txt --max 16 -o plan.yaml\n" +
			"  npuctl gears --from sizes.csv --axes h,w --multiple-of 32 --soc Ascend310P3\n" +
			"  npuctl gears --from lengths.txt --against \"262;326;390;1478\" --json",
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.gears(cmd, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.from, "from", "", "`file` of observed sizes; - is standard input")
	flags.IntVar(&f.most, "max", 16, "most gears (`N`)")
	flags.StringSliceVar(&f.axes, "axes", nil, "`names` of the axes, in the order of the model's open dims: columns of a CSV file (default all but the weights)")
	flags.StringVar(&f.weight, "weight", planner.WeightColumn, "`column` that says how often a size came")
	flags.StringVar(&f.multiple, "multiple-of", "", "`numbers` that sizes of gears are a multiple of: 16, or one for each axis: 1,16")
	flags.StringVar(&f.include, "include", "", "`gears` that must be there, as --gears takes them: 1478, or 224,224;336,336")
	flags.StringVar(&f.work, "work", "linear", "`growth` of the work with a size: linear (the product of the axes), or quadratic (its square, the batch left out: attention)")
	flags.StringVar(&f.chip, "soc", "", "`chip` whose highest number of gears is held")
	flags.StringVar(&f.against, "against", "", "`gears` to compare with, as --gears takes them")
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write the plan to")
	completeWords(cmd, "work", "linear", "quadratic")
	return cmd
}

// gearPlan is the result, as --json prints it.
type gearPlan struct {
	Gears  [][]int64 `json:"gears"`
	Total  float64   `json:"total"`
	Padded float64   `json:"padded"`
	Waste  float64   `json:"waste"`
	Knee   int       `json:"knee"`

	Exact     bool             `json:"exact"`
	Axes      []string         `json:"axes"`
	Sizes     int              `json:"sizes"`
	Weight    float64          `json:"weight"`
	Before    planner.Choice   `json:"before"`
	Against   *planner.Choice  `json:"against,omitempty"`
	Choices   []planner.Choice `json:"choices"`
	Uses      []planner.Use    `json:"uses"`
	Histogram [][]planner.Bin  `json:"histogram"` // by axis
	Output    string           `json:"output,omitempty"`
	Notes     []string         `json:"notes"`
}

func (a *app) gears(cmd *cobra.Command, f *gearsFlags) error {
	say, stop := a.progress()
	p, err := f.plan(cmd.Context(), say)
	stop()
	if err != nil {
		return err
	}
	if f.output != "" {
		if err := p.write(f); err != nil {
			return err
		}
	}
	switch {
	case a.json:
		return a.printJSON(p)
	case a.quiet:
		return nil
	}
	return a.printGears(p)
}

// plan reads the sizes, and finds gears for them.
func (f *gearsFlags) plan(ctx context.Context, say func(string)) (*gearPlan, error) {
	if err := f.checkMost(); err != nil {
		return nil, err
	}
	say("reading " + f.from)
	sizes, err := f.read(os.Stdin)
	if err != nil {
		return nil, err
	}
	o := planner.Options{Max: f.most, Progress: say}
	if err := f.complete(&o, sizes); err != nil {
		return nil, err
	}
	r, err := planner.Make(ctx, sizes, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fault.New(fault.Usage, "%s: %w", f.from, err)
	}
	best := r.Best()
	p := &gearPlan{
		Gears: best.Gears, Total: r.Total, Padded: best.Padded, Waste: best.Waste, Knee: r.Knee, Exact: r.Exact,
		Axes: sizes.Axes, Sizes: sizes.Len(), Weight: sizes.Weight(), Choices: r.Choices, Notes: []string{},
	}
	p.Uses, _ = planner.Uses(sizes, best.Gears, o.Exponents)
	p.Before, _ = choiceOf(sizes, [][]int64{sizes.Largest()}, o.Exponents, r.Total)
	for axis := range sizes.Axes {
		p.Histogram = append(p.Histogram, sizes.Histogram(axis, histogramBins))
	}
	if f.against != "" {
		if err := p.compare(f.against, sizes, o.Exponents); err != nil {
			return nil, err
		}
	}
	p.remark(f, o)
	return p, nil
}

// histogramBins is how many parts a histogram has at most.
const histogramBins = 12

// checkMost holds the number of gears against the chip's limit.
func (f *gearsFlags) checkMost() error {
	if f.from == "" {
		return fault.New(fault.Usage, "--from: the file of observed sizes is missing").With("give it, or - for standard input")
	}
	most, of := soc.QueryGears, "the runtime"
	if f.chip != "" {
		chip, err := soc.Lookup(f.chip)
		if err != nil {
			return fault.New(fault.Usage, "--soc: %w", err)
		}
		if family := chip.Shared(); family.Name != "" { // else only CANN knows the chip
			most, of = family.Gears(), chip.Name
		}
	}
	if f.most < 1 || f.most > most {
		return fault.New(fault.Usage, "--max %d: %s takes 1 to %d gears", f.most, of, most)
	}
	return nil
}

// read reads the observed sizes.
func (f *gearsFlags) read(in io.Reader) (*planner.Sizes, error) {
	name := "standard input"
	if f.from != "-" {
		name = f.from
		file, err := os.Open(f.from)
		if err != nil {
			return nil, fault.New(fault.Input, "--from: %w", err)
		}
		defer file.Close()
		in = file
	}
	how := planner.Reading{Weight: f.weight}
	for _, axis := range f.axes {
		how.Axes = append(how.Axes, strings.TrimSpace(axis))
	}
	sizes, err := planner.Read(in, how)
	if err != nil {
		return nil, fault.New(fault.Input, "%s: %w", name, err)
	}
	return sizes, nil
}

// complete gives options their meaning for these axes.
func (f *gearsFlags) complete(o *planner.Options, sizes *planner.Sizes) error {
	n := len(sizes.Axes)
	if f.multiple != "" {
		list, err := gears.Parse(f.multiple)
		switch {
		case err != nil:
			return fault.New(fault.Usage, "--multiple-of %s: %w", f.multiple, err)
		case len(list) == 1 && len(list[0]) == 1:
			o.Multiple = slices.Repeat(list[0], n)
		case len(list) == 1 && len(list[0]) == n:
			o.Multiple = list[0]
		default:
			return fault.New(fault.Usage, "--multiple-of %s: give one number, or one for each of %s", f.multiple, terminal.Counted(n, "axis"))
		}
	}
	switch f.work {
	case "linear":
	case "quadratic":
		for _, axis := range sizes.Axes {
			exponent := 2
			if axis == "batch" {
				exponent = 1
			}
			o.Exponents = append(o.Exponents, exponent)
		}
	default:
		return fault.New(fault.Usage, "--work %s: give linear or quadratic", f.work)
	}
	var err error
	if f.include != "" {
		if o.Include, err = gearList("--include", f.include, n); err != nil {
			return err
		}
	}
	return nil
}

// gearList reads gears of so many numbers each, of a flag.
func gearList(flag, text string, n int) ([][]int64, error) {
	list, err := gears.Expand(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	rows, err := gears.Parse(list)
	if err == nil && n == 1 && len(rows) == 1 { // 1,2,4,8
		row := rows[0]
		rows = nil
		for _, size := range row {
			rows = append(rows, []int64{size})
		}
	}
	if i := slices.IndexFunc(rows, func(row []int64) bool { return len(row) != n }); err == nil && i >= 0 {
		err = fmt.Errorf("gear %s needs a number for each of %s", gears.Text(rows[i]), terminal.Counted(n, "axis"))
	}
	if err != nil {
		return nil, fault.New(fault.Usage, "%s %s: %w", flag, text, err)
	}
	return rows, nil
}

// choiceOf says what gears waste; ok is false when a size has none.
func choiceOf(sizes *planner.Sizes, rows [][]int64, exponents []int, total float64) (c planner.Choice, ok bool) {
	uses, ok := planner.Uses(sizes, rows, exponents)
	c.Gears = rows
	for _, u := range uses {
		c.Padded += u.Padded
	}
	c.Waste = c.Padded / total
	return c, ok
}

// compare adds what other gears waste.
func (p *gearPlan) compare(text string, sizes *planner.Sizes, exponents []int) error {
	rows, err := gearList("--against", text, len(sizes.Axes))
	if err != nil {
		return err
	}
	c, ok := choiceOf(sizes, rows, exponents, p.Total)
	if !ok {
		return fault.New(fault.Usage, "--against %s: these gears do not hold all sizes: the largest is %s", text, gears.Text(sizes.Largest()))
	}
	p.Against = &c
	return nil
}

// remark notes what the figures do not say.
func (p *gearPlan) remark(f *gearsFlags, o planner.Options) {
	if len(p.Gears) == 1 {
		p.Notes = append(p.Notes, "one gear is none: fix the shape with --batch, --dim or --input-shape instead")
	}
	if len(p.Gears) < o.Max {
		p.Notes = append(p.Notes, fmt.Sprintf("more than %s would not pad less", terminal.Counted(len(p.Gears), "gear")))
	}
	if f.work == "quadratic" {
		p.Notes = append(p.Notes, "sizes are squares here, as the work of attention")
	}
}

// write writes the plan.
func (p *gearPlan) write(f *gearsFlags) error {
	if f.output == f.from || isSameFile(f.output, f.from) {
		return fault.New(fault.Usage, "-o %s: that is the file of observed sizes", f.output).With("give another name, such as plan.yaml")
	}
	comment := fmt.Sprintf("Gears of npuctl gears for %s: %s of padding.\nnpuctl compile and npuctl config take them as --gears @FILE, npuctl.yaml as gears: \"@FILE\".",
		strconv.QuoteToGraphic(f.from), share(p.Waste))
	err := atomicfile.Write(f.output, func(file *os.File) error {
		_, err := file.WriteString(gears.FileText(comment, p.Axes, p.Gears))
		return err
	})
	if err != nil {
		return fault.New(fault.Missing, "write the plan: %w", err)
	}
	p.Output = f.output
	return nil
}

// share writes a share of the work of the requests.
func share(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// printGears prints the plan for people.
func (a *app) printGears(p *gearPlan) error {
	w := labelled{a.out, a.palette()}
	w.line("sizes", "%s, %s in each; %s requests", terminal.Counted(p.Sizes, "row"), terminal.Counted(len(p.Axes), "number"), amount(p.Weight))
	w.line("real size", "%s", amount(p.Total))
	for axis, bins := range p.Histogram {
		if err := a.printHistogram(axisTitle(p.Axes, axis), bins, p.Weight); err != nil {
			return err
		}
	}
	if err := a.printChoices(p); err != nil {
		return err
	}
	if err := a.printUses(p); err != nil {
		return err
	}
	w.line("before", "%s padding with %s alone", share(p.Before.Waste), gears.Text(p.Before.Gears[0]))
	if p.Against != nil {
		w.line("against", "%s padding with the %s compared with: %s", share(p.Against.Waste), terminal.Counted(len(p.Against.Gears), "gear"), amount(p.Against.Padded))
	}
	method := "no others of as many pad less"
	if !p.Exact {
		method = "found by a search"
	}
	w.line("after", "%s padding with %s: %s; %s", share(p.Waste), terminal.Counted(len(p.Gears), "gear"), amount(p.Padded), method)
	w.line("gears", "%s", terminal.Clean(gears.Named(nil, p.Gears)))
	if p.Knee < len(p.Gears) {
		w.line("recommended", "%s: each more saves less than %g %% of the work (--max %d makes them)", terminal.Counted(p.Knee, "gear"), 100*planner.WorthOfGear, p.Knee)
	}
	for _, note := range p.Notes {
		w.line("note", "%s", note)
	}
	if p.Output != "" {
		w.line("written", "%s: npuctl compile --gears @%s", terminal.Clean(p.Output), terminal.Clean(p.Output))
	}
	return nil
}

// amount writes a sum of weights or of work.
func amount(x float64) string {
	if x == float64(int64(x)) && x < 1e15 {
		return terminal.Count(int64(x))
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// axisTitle is the name of an axis, or its number.
func axisTitle(axes []string, i int) string {
	if axes[i] != "" {
		return terminal.Clean(axes[i])
	}
	if len(axes) == 1 {
		return "size"
	}
	return fmt.Sprintf("axis %d", i+1)
}

func (a *app) printHistogram(title string, bins []planner.Bin, weight float64) error {
	const width = 40
	most := 0.0
	for _, b := range bins {
		most = max(most, b.Weight)
	}
	t := terminal.Table{Header: []string{title, "requests", ""}, Right: []int{0, 1}}
	for _, b := range bins {
		bar := strings.Repeat("█", int(b.Weight/most*width+0.5))
		if bar == "" && b.Weight > 0 {
			bar = "▏"
		}
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%d – %d", b.From, b.To), share(b.Weight / weight), bar})
	}
	return t.Write(a.out)
}

func (a *app) printChoices(p *gearPlan) error {
	t := terminal.Table{Header: []string{"gears", "padding", "of the real size", ""}, Right: []int{0, 1, 2}}
	for _, c := range p.Choices {
		mark := ""
		if len(c.Gears) == p.Knee {
			mark = "recommended"
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(len(c.Gears)), amount(c.Padded), share(c.Waste), mark})
	}
	return t.Write(a.out)
}

func (a *app) printUses(p *gearPlan) error {
	t := terminal.Table{Header: []string{"gear", "requests", "padding"}, Right: []int{0, 1, 2}}
	for _, u := range p.Uses {
		t.Rows = append(t.Rows, []string{gears.Text(u.Gear), share(u.Weight / p.Weight), amount(u.Padded)})
	}
	return t.Write(a.out)
}
