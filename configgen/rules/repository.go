package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/findings"
)

const configName = "config.pbtxt"

// configLimit is more than any config has. It bounds what a hostile file costs.
const configLimit = 16 << 20

// readConfig reads a config file. Pipes and devices are none.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > configLimit:
		return nil, fmt.Errorf("it has %d bytes; a config has at most %d", info.Size(), configLimit)
	}
	return os.ReadFile(path)
}

// openRepository reads all models of a folder.
func openRepository(path string) (*Repository, error) {
	r := &Repository{Path: path, disk: diskFolder(path)}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.New(fault.Input, "read the repository: %w", err)
	}
	for _, e := range entries {
		r.entries = append(r.entries, e.Name())
		if kind, _ := r.disk.stat(e.Name()); kind == directory {
			folder := filepath.Join(path, e.Name())
			r.Models = append(r.Models, readModel(r, folder, filepath.Join(folder, configName)))
		}
	}
	return r, nil
}

// around makes the repository of a single model's folder: its siblings are read when
// an ensemble asks for them.
func around(folder, configPath string) *Repository {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		absolute = folder
	}
	parent := filepath.Dir(folder)
	if filepath.Base(folder) != filepath.Base(absolute) {
		parent = filepath.Dir(absolute)
	}
	r := &Repository{Path: parent, disk: diskFolder(parent)}
	r.Models = []*Model{readModel(r, folder, configPath)}
	return r
}

// model gives the model of a name, or nil. Where only one model was asked for, its
// siblings on disk are looked up too.
func (r *Repository) model(name string) *Model {
	if r.byName == nil {
		r.byName = map[string]*Model{}
	}
	for ; r.indexed < len(r.Models); r.indexed++ {
		if m := r.Models[r.indexed]; r.byName[m.Name] == nil {
			r.byName[m.Name] = m
		}
	}
	if m := r.byName[name]; m != nil {
		return m
	}
	if r.lone || r.entries != nil || name == "" || strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
		return nil
	}
	folder := filepath.Join(r.Path, name)
	if kind, _ := r.disk.stat(name); kind != directory {
		return nil
	}
	m := readModel(r, folder, filepath.Join(folder, configName))
	r.Models = append(r.Models, m)
	return m
}

// names lists the models there are, for suggestions.
func (r *Repository) names() []string {
	if !r.lone && r.entries == nil {
		return subfolders(r.disk, ".")
	}
	var out []string
	for _, m := range r.Models {
		out = append(out, m.Name)
	}
	return out
}

// circleThrough gives the ensemble from which a circle returns to the model, or "".
func (r *Repository) circleThrough(start *Model) string {
	seen := map[*Model]bool{}
	var visit func(m *Model) string
	visit = func(m *Model) string {
		if seen[m] || m.Config == nil || m.Config.Ensemble == nil {
			return ""
		}
		seen[m] = true
		for _, s := range m.Config.Ensemble.Step {
			next := r.model(s.ModelName)
			if next == start {
				return m.Name
			}
			if next == nil {
				continue
			}
			if last := visit(next); last != "" {
				return last
			}
		}
		return ""
	}
	return visit(start)
}

// isRefused says whether the server refuses a model. A model that contains itself
// counts as not refused while it is being looked at.
func (r *Repository) isRefused(m *Model, options Options) bool {
	if m.refused == nil {
		no := false
		m.refused = &no
		yes := slices.ContainsFunc(checkModel(r, m, options), func(f findings.Finding) bool { return f.Refuses })
		m.refused = &yes
	}
	return *m.refused
}

// statAbsolute says what stands at a path of this machine.
func (d diskFolder) statAbsolute(path string) (entryKind, int64) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err != nil:
		return nothing, 0
	case info.IsDir():
		return directory, 0
	}
	return regularFile, info.Size()
}

// repositoryRules are about folders and files around the configs: what the server
// takes for a version or a model that is none, and what it misses.
func repositoryRules() []Rule {
	return []Rule{
		{"version-too-large", errorLevel, refuses, Text{"a version folder whose number does not fit", "版本目录的数字过大"}, Text{"the server dies at load, with every other model it serves", "服务器在加载时崩溃，其他模型一并中断"},
			Text{"rename the folder to a small number", "改成较小的数字"}, Text{"version folder %q is above 9223372036854775807", "版本目录 %q 超过 9223372036854775807"}, (*context).checkVersionTooLarge},
		{"version-name", errorLevel, loads, Text{"a version folder that is not a plain number", "版本目录不是纯数字"}, Text{"the server reads the number it begins with and may serve it as the newest version, from a folder that is not there", "服务器读取开头的数字，可能把它当作最新版本，并到不存在的目录去找文件"},
			Text{"rename the folder, or move it out of the model", "改名，或移出模型目录"}, Text{"folder %q is taken for version %d", "目录 %q 被当作版本 %d"}, (*context).checkVersionName},
		{"version-twice", errorLevel, loads, Text{"two folders for one version", "同一版本有两个目录"}, Text{"one of them is served, from the folder with exactly that name", "只提供其中之一：名字恰为该数字的目录"},
			Text{"keep one folder a version", "每个版本只留一个目录"}, Text{"folders %q and %q are both version %d", "目录 %q 和 %q 都是版本 %d"}, (*context).checkVersionTwice},
		{"version-leading-zero", errorLevel, loads, Text{"a version folder with leading zeros", "版本目录带前导零"}, Text{"the server ignores the folder; another version stays the newest", "服务器忽略该目录，其他版本仍是最新"},
			Text{"rename it without the zeros", "去掉前导零"}, Text{"folder %q is ignored: its name begins with 0", "目录 %q 被忽略：名字以 0 开头"}, (*context).checkLeadingZero},
		{"version-negative", errorLevel, loads, Text{"a negative version", "版本号为负"}, Text{"the server loads it, and the index shows it without a number", "服务器会加载它，索引中没有版本号"},
			Text{"number versions from 1", "版本从 1 编号"}, Text{"folder %q is version %d", "目录 %q 是版本 %d"}, (*context).checkVersionNegative},
		{"version-policy-empty", warningLevel, loads, Text{"an empty version_policy", "version_policy 为空"}, Text{"the server loads all versions, not the newest", "服务器加载全部版本，而不是最新的"},
			Text{"write latest { num_versions: 1 } or all { }, or remove it", "写 latest { num_versions: 1 } 或 all { }，或删去"}, Text{"an empty version_policy loads all versions", "空的 version_policy 会加载所有版本"}, (*context).checkPolicyEmpty},
		{"version-absent", errorLevel, loads, Text{"a version that the policy names and that is not there", "策略指定的版本不存在"}, Text{"the other versions are served; only the log mentions the missing one", "只提供其他版本；缺失的仅记入日志"},
			Text{"add the folder, or take the number out", "添加目录，或去掉该数字"}, Text{"version %d is named in specific and has no folder", "specific 指定的版本 %d 没有目录"}, (*context).checkVersionAbsent},
		{"name-characters", errorLevel, loads, Text{"a model name that no URL carries", "模型名不能用于 URL"}, Text{"HTTP calls answer 404 or 400, since the server does not decode % escapes; gRPC works", "HTTP 调用返回 404 或 400，因为服务器不解码 % 转义；gRPC 可用"},
			Text{"use A-Z a-z 0-9 . _ - in the folder's name", "目录名只用 A-Z a-z 0-9 . _ -"}, Text{"model name %q holds characters outside A-Z a-z 0-9 . _ -", "模型名 %q 含有 A-Z a-z 0-9 . _ - 以外的字符"}, (*context).checkNameCharacters},
		{"stray-folder", warningLevel, loads, Text{"a folder that is no model", "仓库中有非模型目录"}, Text{"the server takes every folder for a model; loading all fails for it, and with exit-on-error the server ends", "服务器把每个目录都当作模型；全部加载时它会失败，启用 exit-on-error 时服务器退出"},
			Text{"move it out of the repository", "移出仓库"}, Text{"folder %q is no model", "目录 %q 不是模型"}, nil},
		{"dangling-link", errorLevel, refuses, Text{"a link that leads nowhere", "失效的符号链接"}, Text{"no model of the whole repository loads", "整个仓库的模型都不加载"},
			Text{"remove the link, or restore what it pointed to", "删除该链接，或恢复其目标"}, Text{"link %q leads nowhere", "链接 %q 指向不存在的目标"}, nil},
		{"repository-empty", errorLevel, loads, Text{"a repository without a model", "仓库中没有模型"}, Text{"the server starts and serves nothing", "服务器启动但没有模型可用"},
			Text{"give the path of the repository, one level above the models", "给出仓库路径，即模型目录的上一级"}, Text{"%q holds no model", "%q 中没有模型"}, nil},
		{"python-file", errorLevel, refuses, Text{"a Python model without model.py", "Python 模型缺少 model.py"}, Text{"the load does not end, and the server is never live", "加载不会结束，服务器始终不就绪"},
			Text{"put model.py into the version folder", "在版本目录放入 model.py"}, Text{"%q is not there", "%q 不存在"}, (*context).checkPythonFile},
		{"filename-ignored", warningLevel, loads, Text{"a model file that is not there, or outside the version folder", "模型文件不存在或在版本目录之外"}, Text{"the server itself does not look; what happens is up to the backend: npu_ge takes the first .onnx of the model's folder", "服务器自身不检查；结果取决于后端：npu_ge 取模型目录中的第一个 .onnx"},
			Text{"put the file into each version folder and name it alone", "把文件放进每个版本目录，只写文件名"}, Text{"default_model_filename %q: %s", "default_model_filename %q：%s"}, (*context).checkFilename},
		{"model-file-missing", warningLevel, loads, Text{"a version without the model file", "版本目录中没有模型文件"}, Text{"the backend does not load this version", "后端不加载该版本"},
			Text{"put the model file into the version folder", "把模型文件放进版本目录"}, Text{"version %d has no %s", "版本 %d 没有 %s"}, (*context).checkModelFile},
		{"suppression-reason", warningLevel, loads, Text{"an ignore comment without a reason, or for a rule that there is not", "忽略注释缺少理由或规则不存在"}, Text{"the comment does nothing", "该注释不起作用"},
			Text{"write # npuctl:ignore RULE reason", "写成 # npuctl:ignore 规则 理由"}, Text{"npuctl:ignore: %s", "npuctl:ignore：%s"}, nil},
	}
}

func (c *context) checkVersionTooLarge() {
	for _, v := range c.Versions {
		if v.TooLarge {
			f := c.reportFile(c.folder.display(v.Folder), v.Folder)
			says(f, "died of signal SIGABRT; std::out_of_range: stoll")
		}
	}
}

func (c *context) checkVersionName() {
	for _, v := range c.Versions {
		if !v.IsPlain && !v.TooLarge && v.Number >= 0 {
			c.reportFile(c.folder.display(v.Folder), v.Folder, v.Number)
		}
	}
}

func (c *context) checkVersionTwice() {
	first := map[int64]string{}
	for _, v := range c.Versions {
		if v.TooLarge {
			continue
		}
		if other, ok := first[v.Number]; ok {
			c.reportFile(c.folder.display(v.Folder), other, v.Folder, v.Number)
			continue
		}
		first[v.Number] = v.Folder
	}
}

func (c *context) checkLeadingZero() {
	for _, name := range subfolders(c.folder, ".") {
		if hasLeadingZero(name) && strings.Trim(name, "0123456789") == "" {
			c.reportFile(c.folder.display(name), name)
		}
	}
}

func (c *context) checkVersionNegative() {
	for _, v := range c.Versions {
		if v.Number < 0 && !v.TooLarge {
			c.reportFile(c.folder.display(v.Folder), v.Folder, v.Number)
		}
	}
}

func (c *context) checkPolicyEmpty() {
	p := c.Config.VersionPolicy
	if p != nil && p.Latest == nil && p.All == nil && p.Specific == nil {
		f := c.report(c.Config.At("version_policy"))
		v := c.Config.Message().Field("version_policy").Values[0]
		replace(f, v, "{ all { } }")
	}
}

func (c *context) checkVersionAbsent() {
	p := c.Config.VersionPolicy
	if p == nil || p.Specific == nil || len(c.served()) == 0 {
		return // version-none says more
	}
	for i, number := range p.Specific.Versions {
		isThere := slices.ContainsFunc(c.Versions, func(v Version) bool { return v.Number == number && !v.TooLarge })
		if !isThere {
			c.report(p.Specific.ValueAt("versions", i), number)
		}
	}
}

func (c *context) checkNameCharacters() {
	isFine := func(r rune) bool {
		return r == '.' || r == '_' || r == '-' || r < 0x80 && isWordByte(byte(r))
	}
	name := c.Name
	if c.imagined {
		name = c.displayName()
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !isFine(r) }) {
		if c.Config.Name != "" {
			c.report(c.Config.At("name"), name)
			return
		}
		c.reportFile(c.Path, name)
	}
}

func (c *context) checkPythonFile() {
	id := c.identify()
	if id.backend != "python" || c.Config.Runtime != "" {
		return
	}
	for _, version := range c.served() {
		name := join(folderOf(version), id.filename)
		if kind, _ := c.folder.stat(name); kind == nothing || kind == danglingLink {
			f := c.report(c.Config.At("backend"), name)
			says(f, "no answer to the load")
			c.near(f, nearest(id.filename, c.folder.list(folderOf(version))))
		}
	}
}

// What can be wrong with default_model_filename.
var (
	fileOutside = Text{"it leads out of the version folder", "它指向版本目录之外"}
	fileMissing = Text{"it is not in version %d", "版本 %d 中没有它"}
)

func (c *context) checkFilename() {
	name := c.Config.DefaultModelFilename
	if name == "" || c.isEnsemble() {
		return
	}
	l := c.options.Language
	if clean, ok := inside(name); !ok || clean == "." || strings.HasPrefix(name, "/") {
		c.report(c.Config.At("default_model_filename"), name, fileOutside.In(l))
		return
	}
	if c.imagined || c.identify().backend == "python" {
		return
	}
	for _, version := range c.served() {
		if kind, _ := c.folder.stat(join(folderOf(version), name)); kind == nothing {
			f := c.report(c.Config.At("default_model_filename"), name, fmt.Sprintf(fileMissing.In(l), version))
			c.near(f, nearest(name, c.folder.list(folderOf(version))))
		}
	}
}

// checkModelFile looks for the file that a known backend opens when the config names
// none.
func (c *context) checkModelFile() {
	id := c.identify()
	isNamed := c.Config.DefaultModelFilename != ""
	if isNamed || c.imagined || c.isEnsemble() || id.filename == "" || id.backend == "python" || platformsOf[id.backend] == nil && id.backend != "openvino" {
		return
	}
	for _, version := range c.served() {
		if kind, _ := c.folder.stat(join(folderOf(version), id.filename)); kind == nothing {
			f := c.reportFile(c.folder.display(folderOf(version)), version, id.filename)
			c.near(f, nearest(id.filename, c.folder.list(folderOf(version))))
		}
	}
}

// suggestKey suggests the tensor that a misspelt key of a map means, and lets --fix
// write it.
func (c *context) suggestKey(f *findings.Finding, e configgen.Entry[string, string], names []string) {
	near := nearest(e.Key, names)
	c.near(f, near)
	if near == "" {
		return
	}
	if field := e.Message().Field("key"); field != nil {
		replace(f, field.Values[0], quoted(near))
	}
}

// removeAll lets --fix take all occurrences of a field out.
func (c *context) removeAll(f *findings.Finding, field string) {
	for _, occurrence := range c.Config.Message().All(field) {
		remove(f, c.Doc, occurrence)
	}
}
