package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// outsideRules are found by others than this package: by a server that runs, from a
// build record, from a project file, by estimating memory, by comparing numbers. They stand in the table so
// that all ids and texts are in one place; [Find] makes their findings.
func outsideRules() []Rule {
	row := func(id string, severity findings.Severity, isRefused verdict, title, effect, fix, message Text) Rule {
		return Rule{ID: id, Severity: severity, Refuses: isRefused, Title: title, Effect: effect, Fix: fix, message: message}
	}
	return []Rule{
		row("load-refused", errorLevel, refuses, Text{"a real server refuses the model", "真实服务器拒绝加载该模型"}, notLoaded,
			Text{"see what the server says, and the other findings of this file", "参考服务器的信息以及该文件的其他检查结果"}, Text{"%s does not load", "%s 无法加载"}),
		row("load-killed", errorLevel, refuses, Text{"a real server dies of the model", "真实服务器因该模型崩溃"}, Text{"every other model of the server goes with it", "服务器上的其他模型一并中断"},
			Text{"take the model out of the repository until it is repaired", "修复前把该模型移出仓库"}, Text{"the server died while it loaded %s", "服务器在加载 %s 时崩溃"}),
		row("load-hung", errorLevel, refuses, Text{"a real server does not end loading the model", "真实服务器加载该模型没有结束"}, Text{"until all models are loaded the server is not live", "全部模型加载完成之前服务器不就绪"},
			Text{"see what it waits for; --load-timeout gives it longer", "查看它在等待什么；--load-timeout 可延长时间"}, Text{"%s had not loaded after %s", "%s 在 %s 后仍未加载完成"}),
		row("load-backend", warningLevel, loads, Text{"the server that was asked lacks the backend", "所用服务器没有该后端"}, Text{"what the backend says of the model was not heard", "没有得到后端对模型的判断"},
			Text{"name a server that has it: --server", "用 --server 指定带有该后端的服务器"}, Text{"%s was not loaded: the server has no backend %q", "%s 未加载：服务器没有后端 %q"}),
		row("load-stand-in", noteLevel, loads, Text{"a stand-in took the place of a backend", "以替身代替了后端"}, Text{"the server judged the configuration; what the backend says of the model file was not heard", "服务器判断了配置；没有得到后端对模型文件的判断"},
			Text{"name a server that has the backend: --server", "用 --server 指定带有该后端的服务器"}, Text{"the server has no backend %q: a stand-in that takes any model was loaded", "服务器没有后端 %q：加载了接受任何模型的替身"}),
		row("load-accepted", noteLevel, loads, Text{"a real server takes what a rule refuses", "真实服务器接受了规则拒绝的模型"}, Text{"this server is of another release than the rules are from, or its stand-in is", "该服务器的版本与规则的来源不同，或其替身不同"},
			Text{"trust the server that serves", "以实际提供服务的服务器为准"}, Text{"%s loads, though the rule %s refuses it", "%s 可以加载，尽管规则 %s 拒绝它"}),
		row("om-emulated", errorLevel, loads, Text{"an .om of the emulator", "模拟器生成的 .om"}, Text{"it holds no code for a chip: no device runs it", "其中没有芯片代码：任何设备都无法运行"},
			Text{"compile it where CANN is: npuctl compile --cann local", "在装有 CANN 的机器上编译：npuctl compile --cann local"}, Text{"%s was made by npuctl's emulator", "%s 由 npuctl 的模拟器生成"}),
		row("om-changed", errorLevel, loads, Text{"an .om that its build record does not describe", ".om 与编译记录不符"}, Text{"nobody knows what it was made of", "无法知道它由什么生成"},
			Text{"compile it again, or put the record back that belongs to it", "重新编译，或放回对应的记录"}, Text{"%s is not what %s describes: %s", "%s 与 %s 的描述不符：%s"}),
		row("om-stale", warningLevel, loads, Text{"an .om older than its model", ".om 比它的模型旧"}, Text{"it computes what the model was when it was compiled", "它计算的是编译时的模型"},
			Text{"compile it again: npuctl compile", "重新编译：npuctl compile"}, Text{"%s was compiled from another %s", "编译 %s 所用的 %s 已改变"}),
		row("om-source-missing", noteLevel, loads, Text{"the model of an .om is not there", ".om 的源模型不存在"}, Text{"whether the .om is up to date cannot be told", "无法判断 .om 是否最新"},
			Text{"keep the model beside the .om", "把模型与 .om 放在一起"}, Text{"%s was compiled from %s, which is not there", "编译 %s 所用的 %s 不存在"}),
		row("om-no-record", noteLevel, loads, Text{"an .om without a build record", ".om 没有编译记录"}, Text{"whether it is up to date cannot be told", "无法判断它是否最新"},
			Text{"compile with npuctl compile, which writes one", "用 npuctl compile 编译，它会写记录"}, Text{"%s has no build record %s", "%s 没有编译记录 %s"}),
		row("project-file", errorLevel, loads, Text{"a project file that does not read", "项目文件有误"}, Text{"no command of npuctl takes it", "npuctl 的命令都无法使用它"},
			Text{"correct it at the place that is named", "在指出的位置改正"}, Text{"%s", "%s"}),
		row("project-path", errorLevel, loads, Text{"a project file names what is not there", "项目文件引用的文件不存在"}, Text{"the command that needs it fails", "需要它的命令会失败"},
			Text{"correct the path, which is relative to the project file", "改正路径，它相对于项目文件"}, Text{"%s: %s is not there", "%s：%s 不存在"}),
		row("project-name", errorLevel, loads, Text{"a project file names what the model has not", "项目文件引用了模型中没有的名字"}, Text{"compile and optimize refuse it", "compile 和 optimize 会拒绝"},
			Text{"use a name of the model: npuctl inspect lists them", "使用模型中的名字：npuctl inspect 会列出"}, Text{"%s: the model has no %q", "%s：模型没有 %q"}),
		row("project-gears", errorLevel, loads, Text{"gears that do not fit the model", "档位与模型不符"}, Text{"compile refuses them", "compile 会拒绝"},
			Text{"give sizes for the model's open dims", "为模型的可变维给出大小"}, Text{"gears: %s", "gears：%s"}),
		row("project-value", errorLevel, loads, Text{"a value in the project file that cannot be", "项目文件中的值无效"}, Text{"the command that reads it refuses it", "读取它的命令会拒绝"},
			Text{"use one of the known values", "使用已知的值"}, Text{"%s: %s", "%s：%s"}),
		row("chip-memory", errorLevel, loads, Text{"a model that needs more memory than the chip has, or nearly all of it", "模型所需内存超过或几乎占满芯片内存"}, Text{"the model does not load, or its first large request fails", "模型无法加载，或第一个大请求失败"},
			Text{"use fewer streams (--streams), a smaller largest batch (--max-batch-size) or gear, or precision fp16", "减少流（--streams），减小最大批量（--max-batch-size）或档位，或使用精度 fp16"}, Text{"the model takes about %s on each NPU, and %s has %s", "模型在每个 NPU 上约占 %s，而 %s 有 %s"}),
		row("numerics", errorLevel, loads, Text{"an output that is not the original's", "输出与原模型不同"}, Text{"the model answers other numbers than the one it was made from", "该模型给出的数与原模型不同"},
			Text{"find the pass with npuctl optimize --skip, or allow more with --tolerance", "用 npuctl optimize --skip 找出哪个变换，或用 --tolerance 放宽"}, Text{"output %q: %s", "输出 %q：%s"}),
	}
}

// Find makes a finding of a rule that is found outside of this package, about a file.
// The arguments are those of the rule's message. An unknown id is a fault of ours.
func Find(id string, l Language, file string, args ...any) findings.Finding {
	r := byID(Rules(), id)
	if r == nil {
		r = &Rule{ID: id, Severity: errorLevel, message: Text{"%v", "%v"}}
	}
	return r.finding(l, file, args...)
}

// Models gives the folder that a server would have as its repository for a path, and
// the names of the models in it that the path means: all of a repository, the one of a
// model's folder or of a config in one. alone is set for a config file that stands by
// itself: it has no repository until [LayOut] makes one. A path that means no model
// gives none.
func Models(path string) (repository string, models []string, alone bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, false, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", nil, false, err
	}
	switch {
	case info.IsDir() && isModelFolder(path):
		return filepath.Dir(absolute), []string{filepath.Base(absolute)}, false, nil
	case info.IsDir():
		r, err := openRepository(path)
		if err != nil {
			return "", nil, false, err
		}
		for _, m := range r.Models {
			if !isStray(m) {
				models = append(models, m.Name)
			}
		}
		return absolute, models, false, nil
	case filepath.Base(path) == configName && len(versionsIn(diskFolder(filepath.Dir(path)))) > 0:
		folder := filepath.Dir(absolute)
		return filepath.Dir(folder), []string{filepath.Base(folder)}, false, nil
	case slices.Contains([]string{".om", ".onnx"}, strings.ToLower(filepath.Ext(path))):
		return "", nil, false, nil
	}
	return "", nil, true, nil
}

// laidLimit bounds the made-up files of a repository that is laid out.
const laidLimit = 16 << 20

// LayOut writes the repository that is made up around a config that stands alone, as
// [Check] judges it, into a folder, and gives the model's name.
func LayOut(path, folder string) (model string, err error) {
	data, err := readConfig(path)
	if err != nil {
		return "", fmt.Errorf("read the config: %w", err)
	}
	repository := imagine(path, data)
	for _, m := range repository.Models {
		home := filepath.Join(folder, m.Name)
		files, _ := m.folder.(imaginedFolder)
		if m != repository.Models[0] {
			files[configName] = imaginedFile{text: string(configgen.NewDocument("", m.Config).Print())}
		}
		for _, name := range sortedKeys(files) {
			if err := files[name].layOut(filepath.Join(home, filepath.FromSlash(name))); err != nil {
				return "", fmt.Errorf("lay out a repository for the config: %w", err)
			}
		}
	}
	return repository.Models[0].Name, nil
}

func (f imaginedFile) layOut(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
		return err
	}
	if f.size > int64(len(f.text)) {
		return os.Truncate(path, min(f.size, laidLimit))
	}
	return nil
}
