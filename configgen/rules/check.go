package rules

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/soc"
)

// Options say how to check.
type Options struct {
	Language Language
	// Chip is the chip that models are held against; nil for none in particular.
	Chip *soc.Chip

	table []Rule
}

// Verdict is what the server would say.
type Verdict string

// The verdicts.
const (
	Accept Verdict = "accept"
	Refuse Verdict = "refuse"
)

// Result is what was found at some paths.
type Result struct {
	Findings []findings.Finding
	Verdict  Verdict
	// Judged is set when there was something for a server to judge: a model's folder or a
	// config, not only model files.
	Judged bool
	// NoChip is set when models for NPUs were looked at and no chip was named, so that
	// nothing was held against one.
	NoChip bool
	// Checked are the models and files that were looked at, for messages.
	Checked []string
}

// Check looks at paths: repositories, folders of models, config files, .onnx and .om
// files. A path that is not there, or no such thing, is an error.
func Check(paths []string, options Options) (Result, error) {
	r := Result{Verdict: Accept}
	options.table = Rules()
	homes := map[string]string{} // of models, to see a name in two repositories
	for _, path := range paths {
		if err := r.path(path, options, homes); err != nil {
			return r, err
		}
	}
	r.judge()
	return r, nil
}

// CheckText checks the text of a config as if it stood alone in a file at path, which
// need not be there.
func CheckText(path string, data []byte, options Options) Result {
	r := Result{Verdict: Accept}
	options.table = Rules()
	r.lone(path, data, options)
	r.judge()
	return r
}

// judge brings the findings into order and says what the server would.
func (r *Result) judge() {
	findings.Sort(r.Findings)
	if slices.ContainsFunc(r.Findings, func(f findings.Finding) bool { return f.Refuses }) {
		r.Verdict = Refuse
	}
}

func (r *Result) path(path string, options Options, homes map[string]string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Input, "%s: there is no such file or folder", path)
	case err != nil:
		return fault.New(fault.Input, "%w", err)
	case !info.IsDir():
		return r.file(path, options)
	case isModelFolder(path):
		repository := around(path, filepath.Join(path, configName))
		r.model(repository, repository.Models[0], options, path)
		return nil
	}
	repository, err := openRepository(path)
	if err != nil {
		return err
	}
	r.repository(repository, options, homes)
	return nil
}

// isModelFolder says whether a folder is a model's and not a repository: it has a
// config, or versions and no models below.
func isModelFolder(path string) bool {
	d := diskFolder(path)
	if kind, _ := d.stat(configName); kind != nothing {
		return true
	}
	if len(versionsIn(d)) == 0 {
		return false
	}
	for _, name := range subfolders(d, ".") {
		if kind, _ := d.stat(join(name, configName)); kind != nothing || len(versionsIn(diskFolder(d.display(name)))) > 0 {
			return false
		}
	}
	return true
}

// file checks one file: a model file, or a config.
func (r *Result) file(path string, options Options) error {
	c := newContext(nil, &Model{Path: path, ConfigPath: path}, options)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".om":
		c.checkOM(path)
		r.add(c.found, path)
		return nil
	case ".onnx":
		c.checkONNX(path)
		r.add(c.found, path)
		r.NoChip = r.NoChip || options.Chip == nil
		return nil
	}
	folder := filepath.Dir(path)
	if filepath.Base(path) == configName && len(versionsIn(diskFolder(folder))) > 0 {
		repository := around(folder, path)
		r.model(repository, repository.Models[0], options, path)
		return nil
	}
	data, err := readConfig(path)
	if err != nil {
		return fault.New(fault.Input, "read the config: %w", err)
	}
	r.lone(path, data, options)
	return nil
}

// lone checks a config that stands alone.
func (r *Result) lone(path string, data []byte, options Options) {
	repository := imagine(path, data)
	r.addModel(checkModel(repository, repository.Models[0], options), path)
}

// checkONNX looks at an .onnx file by itself.
func (c *context) checkONNX(path string) {
	file := openModelFile(path, path, c.options.Chip)
	if file.err != nil {
		head, _ := diskFolder(filepath.Dir(path)).read(filepath.Base(path), 256)
		c.reportModelFile(file, head)
		return
	}
	for _, rule := range nodeRules {
		c.use(rule)
		c.reportNodes(file, rule)
	}
	c.use("scalar-tensor")
	c.reportScalars(file)
}

// model checks a model that is there with its files.
func (r *Result) model(repository *Repository, m *Model, options Options, checked string) {
	r.addModel(checkModel(repository, m, options), checked)
	r.NoChip = r.NoChip || m.isGE() && options.Chip == nil
}

// addModel adds what was found of a model that a server would load.
func (r *Result) addModel(found []findings.Finding, checked string) {
	r.Judged = true
	r.add(found, checked)
}

func (r *Result) add(found []findings.Finding, checked string) {
	r.Findings = append(r.Findings, found...)
	r.Checked = append(r.Checked, checked)
}

// repository checks all models of a repository, and what is beside them.
func (r *Result) repository(repository *Repository, options Options, homes map[string]string) {
	c := newContext(repository, &Model{Path: repository.Path, ConfigPath: repository.Path}, options)
	for _, name := range repository.entries {
		if kind, _ := repository.disk.stat(name); kind == danglingLink {
			c.use("dangling-link")
			says(c.reportFile(repository.disk.display(name), name), "failed to stat file %s", name)
		}
	}
	repository.openModels(options)
	models := 0
	for _, m := range repository.Models {
		if isStray(m) {
			c.use("stray-folder")
			c.reportFile(m.Path, m.Name)
			continue
		}
		models++
		if home, isTwice := homes[m.Name]; isTwice && home != repository.Path {
			c.use("model-ambiguous")
			says(c.reportFile(m.Path, m.Name, home), "model '%s' appears in two or more repositories", m.Name)
		}
		homes[m.Name] = repository.Path
		r.model(repository, m, options, m.Path)
	}
	if models == 0 {
		c.use("repository-empty")
		c.reportFile(repository.Path, repository.Path)
	}
	r.add(c.found, repository.Path)
}

// openModels reads the model files side by side, which is most of the work in a large
// repository. Each is read once, whoever asks first.
func (r *Repository) openModels(options Options) {
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, m := range r.Models {
		if m.Config == nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			newContext(r, m, options).modelFile()
			<-slots
		})
	}
	group.Wait()
}

// isStray says whether a folder of a repository is no model: it has no version, and
// no config or a hidden name.
func isStray(m *Model) bool {
	isHidden := strings.HasPrefix(m.Name, ".")
	return len(m.Versions) == 0 && (!m.HasConfig || isHidden)
}

func newContext(repository *Repository, m *Model, options Options) *context {
	return &context{Model: m, repository: repository, options: options}
}

// checkModel runs the whole table on one model, and lets its comments have their say.
func checkModel(repository *Repository, m *Model, options Options) []findings.Finding {
	c := newContext(repository, m, options)
	switch {
	case m.readErr != nil:
		c.use("file-unreadable")
		c.checkReadable()
	case m.ParseErr != nil:
		c.reportSyntax()
	default:
		for i := range options.table {
			if rule := &options.table[i]; rule.check != nil {
				c.rule = rule
				rule.check(c)
			}
		}
	}
	return c.suppress()
}

// suppress takes out what the config's comments let pass, and tells of comments that
// do nothing.
func (c *context) suppress() []findings.Finding {
	if c.Doc == nil {
		return c.found
	}
	var comments []findings.Suppression
	first := len(c.Doc.Text)
	if len(c.Doc.Root.Fields) > 0 {
		first = c.Doc.Root.Fields[0].Start
	}
	c.use("suppression-reason")
	var told []findings.Finding
	for _, comment := range c.Doc.Comments() {
		line, _ := c.Doc.Place(comment.Offset)
		s, ok := findings.ParseSuppression(comment.Text, line, comment.Offset < first)
		if !ok {
			continue
		}
		if trouble := c.suppressionTrouble(s); trouble != "" {
			kept := c.found
			c.found = nil
			c.report(comment.Offset, trouble)
			told = append(told, c.found...)
			c.found = kept
			continue
		}
		comments = append(comments, s)
	}
	return append(findings.Suppress(c.found, comments), told...)
}

func (c *context) suppressionTrouble(s findings.Suppression) string {
	l := c.options.Language
	for _, id := range s.Rules {
		if byID(c.options.table, id) == nil {
			near := nearest(id, c.ruleIDs())
			if near != "" {
				return Text{"there is no rule " + id + "; did you mean " + near + "?", "没有规则 " + id + "；是否想写 " + near + "？"}.In(l)
			}
			return Text{"there is no rule " + id, "没有规则 " + id}.In(l)
		}
	}
	switch {
	case len(s.Rules) == 0:
		return Text{"it names no rule", "没有写规则"}.In(l)
	case s.Reason == "":
		return Text{"it gives no reason", "没有写理由"}.In(l)
	}
	return ""
}

// ruleIDs lists all ids.
func (c *context) ruleIDs() []string {
	out := make([]string, 0, len(c.options.table))
	for _, r := range c.options.table {
		out = append(out, r.ID)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
