package compilation

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/modelfile"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/onnxpass"
)

// Complete fills in what the command line leaves out: from the project file p, which
// may be nil, and the model from the folder when it is the only one there. isGiven
// says which flags the user gave: they win. What is returned says what was chosen
// and why, in the words of a report.
func (j *Job) Complete(folder string, p *project.Project, isGiven func(flag string) bool) (chosen []string, err error) {
	if p == nil {
		p = &project.Project{}
	}
	c := completion{job: j, project: p, isGiven: isGiven}
	j.wishes.project = p
	if err := c.model(folder); err != nil {
		return nil, err
	}
	c.sizes() // first, as a report shows the first few: what is left out matters most
	c.options()
	if j.Gears, err = gears.Expand(j.Gears); err != nil {
		return nil, fmt.Errorf("%s: %w", j.wishes.name("gears"), err)
	}
	return c.chosen, nil
}

type completion struct {
	job     *Job
	project *project.Project
	isGiven func(flag string) bool
	chosen  []string
	// isProjects says that the model is the one that the project file speaks of.
	isProjects bool
}

func (c *completion) say(format string, args ...any) {
	c.chosen = append(c.chosen, fmt.Sprintf(format, args...))
}

// model chooses the model when none is named.
func (c *completion) model(folder string) error {
	if len(c.job.Models) > 0 {
		c.isProjects = len(c.job.Models) == 1 && c.project.Model.Path != "" && sameFile(c.job.Models[0], c.project.ModelPath())
		return nil
	}
	if path := c.project.ModelPath(); path != "" {
		if _, err := os.Stat(path); err != nil {
			return fault.New(fault.Input, "%s: model: there is no file %s", c.project.Place("model", "path"), path).
				With("correct it, or name a model on the command line")
		}
		c.job.Models, c.isProjects = []string{path}, true
		c.say("model %s: %s says so", path, project.FileName)
		return nil
	}
	lone, err := LoneModel(folder)
	if err != nil {
		return err
	}
	c.job.Models, c.isProjects = []string{lone}, true
	c.say("model %s: it is the only one here", lone)
	return nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// LoneModel finds the only model of a folder; those that npuctl made of others do
// not count.
func LoneModel(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fault.New(fault.Missing, "look for a model: %w", err)
	}
	var models []string
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() && filepath.Ext(name) == ".onnx" && !isMade(name) {
			models = append(models, name)
		}
	}
	switch len(models) {
	case 0:
		return "", fault.New(fault.Usage, "no model is named, and there is no .onnx file here").With("name one, or set model in %s", project.FileName)
	case 1:
		return filepath.Join(folder, models[0]), nil
	}
	return "", fault.New(fault.Usage, "no model is named, and there are %d here: %s", len(models), strings.Join(models[:min(len(models), 5)], ", ")).
		With("name one, or set model in %s (npuctl init MODEL writes it)", project.FileName)
}

// options takes over what the project file says of how to compile.
func (c *completion) options() {
	j, p := c.job, c.project
	output := p.Resolve(p.Compile.Output)
	if !c.isProjects && !strings.HasSuffix(output, string(filepath.Separator)) {
		output = "" // a file is that of the file's model; a folder takes all
	}
	if len(j.SoCs) == 0 && len(p.SoC) > 0 {
		j.SoCs = slices.Clone(p.SoC)
		c.take("soc", strings.Join(p.SoC, ", "))
	}
	for _, o := range []struct {
		flag   string
		target *string
		value  string
	}{
		{"output", &j.Output, output},
		{"cann", &j.CANN, p.Compile.CANN},
		{"precision", &j.Options.Precision, p.Compile.Precision},
		{"keep-dtype", &j.Options.KeepDType, p.Resolve(p.Compile.KeepDType)},
		{"mixlist", &j.Options.Mixlist, p.Resolve(p.Compile.Mixlist)},
		{"fusion-switch", &j.Options.FusionSwitch, p.Resolve(p.Compile.FusionSwitch)},
		{"aicore-num", &j.Options.AICoreNum, p.Compile.AICoreNum},
		{"input-format", &j.Options.InputFormat, p.Compile.InputFormat},
		{"output-type", &j.Options.OutputType, p.Compile.OutputType},
	} {
		if o.value != "" && !c.isGiven(o.flag) {
			*o.target = o.value
			c.take(o.flag, o.value)
		}
	}
	if len(p.Compile.FP16Inputs) > 0 && !c.isGiven("fp16-input") {
		j.Options.FP16Inputs = p.Compile.FP16Inputs
		c.take("fp16-input", strings.Join(p.Compile.FP16Inputs, ", "))
	}
	if len(p.Compile.ATCArgs) > 0 && !c.isGiven("atc-arg") {
		j.Options.Extra = p.Compile.ATCArgs
		c.take("atc-arg", strings.Join(p.Compile.ATCArgs, " "))
	}
	if p.Compile.Timeout > 0 && !c.isGiven("timeout") {
		j.Timeout = p.Compile.Timeout
	}
	if p.Compile.Jobs > 0 && !c.isGiven("jobs") {
		j.Jobs = int(p.Compile.Jobs)
	}
	if p.Optimize.Off && !c.isGiven("no-optimize") {
		j.NoOptimize = true
		j.wishes.take("no-optimize")
		c.say("the graph as it is: %s says so", project.FileName)
	}
	if !c.isGiven("passes") && !c.isGiven("skip") {
		j.Passes.Only, j.Passes.Skip = p.Optimize.Passes, p.Optimize.Skip
		j.wishes.take("passes")
		j.wishes.take("skip")
	}
}

// take notes that the file stands in for a flag, and says so.
func (c *completion) take(flag, value string) {
	c.job.wishes.take(flag)
	what := flag
	if flag == "soc" {
		what = "chip"
	}
	c.say("%s %s: %s says so", what, value, project.FileName)
}

// sizes takes over the sizes of open dims and the gears, which belong to the project's
// model alone. What the user says of sizes wins as a whole: a part of the file that would
// contradict it is left out, and that is said.
func (c *completion) sizes() {
	j, p := c.job, c.project
	way, size := c.firstGiven("static", "gears", "dynamic"), c.firstGiven("batch", "dim", "input-shape")
	if way == "" {
		j.Static, j.Dynamic = p.Compile.Static, p.Compile.Dynamic
		j.wishes.take("static")
		j.wishes.take("dynamic")
	}
	if c.isProjects && len(p.Model.Bind) > 0 && !c.isGiven("bind") {
		j.Sizes.Bind = p.Model.Bind
		j.wishes.take("bind")
	}
	hasGears, hasSizes := p.Gears.Text != "", p.Model.Batch > 0 || len(p.Model.Dims)+len(p.Model.InputShapes) > 0
	if !c.isProjects && (hasGears || hasSizes || len(p.Model.Bind) > 0) {
		c.sayForeign()
	}
	switch {
	case !c.isProjects || !hasGears:
	case way != "" || size != "":
		c.say("gears %s of %s are left out: --%s is given", p.Gears.Text, project.FileName, cmp.Or(way, size))
	default:
		j.Gears = p.Gears.Text
		c.take("gears", j.Gears)
	}
	switch {
	case !c.isProjects || !hasSizes:
	case size != "":
		c.say("sizes of open dims in %s are left out: --%s is given", project.FileName, size)
	case way == "dynamic" || way == "gears" && !hasGears: // they would leave nothing open
		c.say("sizes of open dims in %s are left out: --%s is given", project.FileName, way)
	default:
		j.Sizes.Batch, j.Sizes.Dims = p.Model.Batch, p.Model.Dims
		for name, text := range p.Model.InputShapes {
			if shape, err := onnxpass.ParseShape(text); err == nil { // the file was checked
				if j.Sizes.Shapes == nil {
					j.Sizes.Shapes = map[string][]int64{}
				}
				j.Sizes.Shapes[name] = shape
			}
		}
		for _, flag := range []string{"batch", "dim", "input-shape"} {
			j.wishes.take(flag)
		}
		c.say("sizes of open dims: %s gives them", project.FileName)
	}
}

// sayForeign says why sizes and gears of the file do not count.
func (c *completion) sayForeign() {
	if path := c.project.Model.Path; path != "" {
		c.say("sizes and gears of %s are left out: they are of %s", project.FileName, path)
		return
	}
	c.say("sizes and gears of %s are left out: it does not name the model that they are of", project.FileName)
}

// firstGiven is the first of these flags that the user gave.
func (c *completion) firstGiven(flags ...string) string {
	for _, f := range flags {
		if c.isGiven(f) {
			return f
		}
	}
	return ""
}

// WriteProject writes a first project file for a model into a folder, and gives its
// path. One that is there stays.
func WriteProject(folder, model, chip string) (path string, err error) {
	path = filepath.Join(folder, project.FileName)
	if _, err := os.Lstat(path); err == nil {
		return "", fault.New(fault.Usage, "%s is there already", path).With("edit it, or move it away first")
	}
	if model == "" {
		if model, err = LoneModel(folder); err != nil {
			return "", err
		}
	}
	f := project.Facts{Model: relative(folder, model)}
	if chip != "" {
		known, err := Job{}.lookupChip(chip)
		if err != nil {
			return "", fault.New(fault.Usage, "--soc %s: %w", chip, err)
		}
		f.SoC = known.Name
	}
	m, err := modelfile.Open(model)
	if err != nil {
		return "", err
	}
	defer m.Close()
	for _, v := range fedInputs(m) {
		if v.Type.IsTensor() && v.Type.Shape != nil {
			f.Inputs = append(f.Inputs, gearInput(v))
		}
	}
	for _, v := range m.Graph.Outputs() {
		f.Outputs = append(f.Outputs, v.Name()+" "+v.Type.String())
	}
	err = atomicfile.Write(path, func(file *os.File) error {
		_, err := file.WriteString(project.Template(f))
		return err
	})
	if err != nil {
		return "", fault.New(fault.Missing, "write %s: %w", path, err)
	}
	return path, nil
}
