package validation

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/internal/project"
	"github.com/npuctl/npuctl/internal/suggest"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnxpass"
	"github.com/npuctl/npuctl/soc"
)

// projectCheck is one look at a project file.
type projectCheck struct {
	job     Job
	path    string
	project *project.Project
	rules.Result
}

// checkProject looks at a project file and at all that it names.
func (j Job) checkProject(path string) (rules.Result, error) {
	c := &projectCheck{job: j, path: path, Result: rules.Result{Checked: []string{path}}}
	p, err := project.Read(path)
	if err != nil {
		c.unread(err)
		return c.Result, nil
	}
	c.project = p
	chips := c.chips()
	if model := c.modelPath(); model != "" {
		if err := c.checkFiles([]string{model}, chips); err != nil {
			return c.Result, err
		}
		c.checkModel(model)
	}
	c.checkCompile(chips)
	if err := c.checkServe(chips); err != nil {
		return c.Result, err
	}
	if inputs := p.Bench.Inputs; inputs != "" && !exists(p.Resolve(inputs)) {
		c.tell("project-path", []string{"bench", "inputs"}, "bench.inputs", inputs)
	}
	return c.Result, nil
}

var placeInFile = regexp.MustCompile(`^:(\d+)(?::(\d+))?: *`)

// unread tells of a project file that does not read, at the place that the error names.
func (c *projectCheck) unread(err error) {
	var f *fault.Error
	text, fix := err.Error(), ""
	if errors.As(err, &f) {
		text, fix = f.Err.Error(), f.Remedy
	}
	found := rules.Find("project-file", c.job.Language, c.path, strings.TrimPrefix(text, c.path+": "))
	if rest, isPlaced := strings.CutPrefix(text, c.path); isPlaced {
		if m := placeInFile.FindStringSubmatch(rest); m != nil {
			found.Line, _ = strconv.Atoi(m[1])
			found.Column, _ = strconv.Atoi(m[2])
			found.Message = rest[len(m[0]):]
		}
	}
	if fix != "" {
		found.Fix = fix
	}
	c.Findings = append(c.Findings, found)
}

// tell adds a finding at the value that a path of keys leads to.
func (c *projectCheck) tell(id string, keys []string, args ...any) *findings.Finding {
	f := rules.Find(id, c.job.Language, c.path, args...)
	f.Line, f.Column = c.project.Position(keys...)
	c.Findings = append(c.Findings, f)
	return &c.Findings[len(c.Findings)-1]
}

func (c *projectCheck) chips() (chips []*soc.Chip) {
	if c.job.Chip != nil {
		return []*soc.Chip{c.job.Chip}
	}
	for _, name := range c.project.SoC {
		chip, err := soc.Lookup(name)
		if err != nil {
			c.tell("project-value", []string{"soc"}, "soc", err)
			continue
		}
		chips = append(chips, &chip)
	}
	if chips == nil {
		chips = []*soc.Chip{nil}
	}
	return chips
}

// modelPath is the model's file; "" when none is named or it is not there.
func (c *projectCheck) modelPath() string {
	path := c.project.ModelPath()
	if path != "" && !exists(path) {
		c.tell("project-path", []string{"model", "path"}, "model.path", c.project.Model.Path)
		return ""
	}
	return path
}

// checkFiles holds files or folders against the rules, for each chip.
func (c *projectCheck) checkFiles(paths []string, chips []*soc.Chip) error {
	for _, chip := range chips {
		r, err := rules.Check(paths, rules.Options{Language: c.job.Language, Chip: chip})
		if err != nil {
			return err
		}
		c.Findings = append(c.Findings, r.Findings...)
		c.Checked = append(c.Checked, r.Checked...)
		c.Judged, c.NoChip = c.Judged || r.Judged, c.NoChip || r.NoChip
	}
	return nil
}

// checkModel holds what the file says of the model's inputs and dims against it.
func (c *projectCheck) checkModel(path string) {
	m, err := onnx.Open(path)
	if err != nil {
		return // the rules say so
	}
	defer m.Close()
	var inputs, dims []string
	for _, v := range onnxpass.RealInputs(m) {
		inputs = append(inputs, v.Name())
		if v.Type == nil || v.Type.Shape == nil {
			continue
		}
		for _, d := range v.Type.Shape.Dims {
			if !d.Known && d.Param != "" {
				dims = append(dims, d.Param)
			}
		}
	}
	for _, list := range []struct {
		key   string
		names []string
		known []string
	}{
		{"dims", slices.Sorted(maps.Keys(c.project.Model.Dims)), dims},
		{"input_shapes", slices.Sorted(maps.Keys(c.project.Model.InputShapes)), inputs},
		{"bind", slices.Sorted(maps.Keys(c.project.Model.Bind)), inputs},
	} {
		for _, name := range list.names {
			if !slices.Contains(list.known, name) {
				f := c.tell("project-name", []string{"model", list.key, name}, "model."+list.key, name)
				f.Fix += "; " + suggest.Text(name, list.known)
			}
		}
	}
	c.checkGears(m)
}

// checkGears holds the gears against the model's open dims.
func (c *projectCheck) checkGears(m *onnx.Model) {
	text := c.project.Gears.Text
	if text == "" {
		return
	}
	_ = onnxpass.Specialize(m, c.sizes()) // what does not fit is told already
	inputs, err := compilation.GearInputs(m)
	if err == nil {
		_, err = gears.Fit(inputs, text)
	}
	if err != nil {
		c.tell("project-gears", []string{"gears"}, err)
	}
}

// sizes are those that the file fixes; gears choose the rest.
func (c *projectCheck) sizes() onnxpass.Specialization {
	s := onnxpass.Specialization{Batch: c.project.Model.Batch, Dims: c.project.Model.Dims, Shapes: map[string][]int64{}}
	for name, text := range c.project.Model.InputShapes {
		if shape, err := onnxpass.ParseShape(text); err == nil {
			s.Shapes[name] = shape
		}
	}
	return s
}

// checkCompile holds the options of compile against the chip, and the .om that it made
// against its record.
func (c *projectCheck) checkCompile(chips []*soc.Chip) {
	o := c.project.Compile
	if modes := compilation.PrecisionModes(); o.Precision != "" && !slices.Contains(modes, o.Precision) {
		f := c.tell("project-value", []string{"compile", "precision"}, "compile.precision", fmt.Sprintf("%q", o.Precision))
		f.Fix = suggest.Text(o.Precision, modes)
	}
	for key, path := range map[string]string{"mixlist": o.Mixlist, "fusion_switch": o.FusionSwitch, "keep_dtype": o.KeepDType} {
		if path != "" && !exists(c.project.Resolve(path)) {
			c.tell("project-path", []string{"compile", key}, "compile."+key, path)
		}
	}
	for _, path := range c.compiled() {
		c.Checked = append(c.Checked, path)
		c.Findings = append(c.Findings, c.job.checkBuild(path)...)
		for _, chip := range chips {
			if made := chipOf(path); chip != nil && len(chips) == 1 && made != "" && made != chip.Name {
				c.Findings = append(c.Findings, rules.Find("om-chip", c.job.Language, path, path, made, chip.Name))
			}
		}
	}
}

// compiled are the .om files that compile makes of the project, as far as they are there.
func (c *projectCheck) compiled() (paths []string) {
	output := c.project.Compile.Output
	switch {
	case output != "":
		output = strings.TrimSuffix(c.project.Resolve(output), ".om")
	case c.project.ModelPath() != "":
		output = strings.TrimSuffix(c.project.ModelPath(), filepath.Ext(c.project.ModelPath()))
	default:
		return nil
	}
	for _, pattern := range []string{output + ".om", filepath.Join(output, "*.om")} {
		found, err := filepath.Glob(pattern)
		if err == nil {
			paths = append(paths, found...)
		}
	}
	return paths
}

// checkServe looks at what the section serve names, and at the model's folder in the
// repository, when it is there.
func (c *projectCheck) checkServe(chips []*soc.Chip) error {
	s := c.project.Serve
	if s.Backend != "" && !slices.Contains(generate.Backends(), s.Backend) {
		f := c.tell("project-value", []string{"serve", "backend"}, "serve.backend", fmt.Sprintf("%q", s.Backend))
		f.Fix = suggest.Text(s.Backend, generate.Backends())
	}
	for _, input := range slices.Sorted(maps.Keys(s.WarmupData)) {
		if path := s.WarmupData[input]; !exists(c.project.Resolve(path)) {
			c.tell("project-path", []string{"serve", "warmup_data", input}, "serve.warmup_data", path)
		}
	}
	if s.Repository == "" {
		return nil
	}
	folder := c.project.Resolve(s.Repository)
	if !exists(folder) {
		return nil // npuctl config makes it
	}
	if s.Name != "" {
		folder = filepath.Join(folder, s.Name)
		if !exists(folder) {
			return nil
		}
	}
	return c.checkFiles([]string{folder}, chips)
}
