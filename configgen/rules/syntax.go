package rules

import (
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/findings"
)

// syntaxRules are about the text of the file. They have no functions of their own:
// the parser finds them, and reportSyntax tells them.
func syntaxRules() []Rule {
	row := func(id string, title, fix Text) Rule {
		return Rule{ID: id, Severity: errorLevel, Refuses: true, Title: title, Fix: fix, message: Text{"%s", "%s"},
			Effect: Text{"the server cannot read the file and does not load the model", "服务器无法读取该文件，不加载模型"}}
	}
	placeholder := row("template-leftover", Text{"a placeholder of a template was never filled in", "模板占位符未被替换"},
		Text{"fill the template in before it goes into the repository", "放入仓库前先渲染模板"})
	return []Rule{
		placeholder,
		row("syntax-character", Text{"a character that may not stand outside a string", "字符串之外出现非法字符"},
			Text{"replace the character; use ASCII outside of strings", "替换该字符；字符串之外只用 ASCII"}),
		row("syntax-number", Text{"digits that make no number", "数字写法有误"},
			Text{"write a plain decimal number without unit or suffix", "写成不带单位和后缀的十进制数"}),
		row("syntax-string", Text{"a string without end, or with a wrong escape", "字符串未结束或转义有误"},
			Text{"close the string on its line, and double backslashes", "在同一行内结束字符串，反斜杠写两个"}),
		row("syntax-token", Text{"a brace, bracket, colon or comma is missing or too many", "括号、冒号或逗号缺失或多余"},
			Text{"see what was expected there", "按提示补上或删去符号"}),
		row("syntax-value", Text{"a value of another type", "值的类型不对"},
			Text{"write a value of the field's type", "写成该字段类型的值"}),
		row("syntax-range", Text{"a number out of range", "数值超出范围"},
			Text{"use a number that the field can hold", "使用该字段能容纳的数值"}),
		row("syntax-enum", Text{"a word that the field does not know", "枚举值不存在"},
			Text{"use one of the field's words", "使用该字段已有的枚举值"}),
		row("syntax-field", Text{"a field that there is not", "字段不存在"},
			Text{"correct the name, or move the field to the block it belongs to", "改正字段名，或移到它所属的块中"}),
		row("syntax-duplicate", Text{"a field twice that may be set once", "只能出现一次的字段出现了两次"},
			Text{"keep one of them", "只保留一个"}),
		row("syntax-oneof", Text{"two fields that exclude each other", "互斥的字段同时出现"},
			Text{"keep one of them", "只保留一个"}),
		row("syntax-extension", Text{"an extension, which the format has none of", "使用了扩展语法"},
			Text{"remove the field in brackets", "删去方括号字段"}),
	}
}

// syntaxRuleOf says which rule an error of the parser belongs to.
func syntaxRuleOf(e configgen.SyntaxError, doc *configgen.Document) string {
	for _, p := range doc.Placeholders() {
		if !p.InString && p.Offset <= e.Offset && e.Offset < p.Offset+len(p.Text) {
			return "template-leftover"
		}
	}
	return "syntax-" + string(e.Kind)
}

// expectedChinese are the Chinese words for what the parser expected.
var expectedChinese = map[string]string{
	"an integer": "整数", "an integer from 0 up": "非负整数", "a string": "字符串", "a number": "数字", "true or false": "true 或 false",
}

// syntaxMessage words an error in a language. What the parser says stays as it is;
// in Chinese it stands behind what it is about.
func syntaxMessage(e configgen.SyntaxError, title Text, l Language) string {
	if l == English {
		return e.Message
	}
	switch {
	case e.Kind == configgen.UnknownField:
		return "没有字段 " + e.Field
	case e.Kind == configgen.DuplicateOnce:
		return e.Field + " 出现了第二次"
	case e.Kind == configgen.BadEnum:
		return e.Field + " 没有这个枚举值（" + e.Message + "）"
	case e.Expected != "":
		word, ok := expectedChinese[e.Expected]
		if !ok {
			word = e.Expected
		}
		return strings.TrimSpace(e.Field + " 此处应为 " + word + "（" + e.Message + "）")
	}
	return title.In(l) + "（" + e.Message + "）"
}

// reportSyntax tells what the parser found. The first error is what the server
// stops at; the others are what it would say next.
func (c *context) reportSyntax() {
	seen := map[[2]any]bool{}
	for i, e := range c.ParseErr.Errors {
		id := syntaxRuleOf(e, c.Doc)
		line, _ := c.Doc.Place(e.Offset)
		if seen[[2]any{id, line}] {
			continue
		}
		seen[[2]any{id, line}] = true
		if i > 0 && followsFrom(c.ParseErr.Errors[i-1], e) {
			continue
		}
		c.use(id)
		f := c.report(e.Offset, syntaxMessage(e, c.rule.Title, c.options.Language))
		c.near(f, e.Near)
		if i == 0 {
			f.Server = c.ParseErr.Server()
		}
		c.editSyntax(f, e)
	}
}

// followsFrom says whether an error is only what another one left behind: the rest of
// a number or string that the scanner gave up on.
func followsFrom(first, second configgen.SyntaxError) bool {
	isScanner := first.Kind == configgen.BadNumber || first.Kind == configgen.BadString || first.Kind == configgen.BadCharacter
	return isScanner && second.Offset-first.Offset < 80
}

// editSyntax repairs a word that was clearly meant.
func (c *context) editSyntax(f *findings.Finding, e configgen.SyntaxError) {
	if e.Near == "" || e.Kind != configgen.UnknownField && e.Kind != configgen.BadEnum && e.Kind != configgen.BadValue {
		return
	}
	end := e.Offset
	for end < len(c.Doc.Text) && isWordByte(c.Doc.Text[end]) {
		end++
	}
	if end > e.Offset {
		f.Edits = []findings.Edit{{Start: e.Offset, End: end, Text: e.Near}}
	}
}

func isWordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
