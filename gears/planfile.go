package gears

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/yamlfile"
)

// filePrefix says that what follows is a file with a plan, and no list of gears.
const filePrefix = "@"

// planFile is a plan as a file holds it.
type planFile struct {
	Axes  []string `yaml:"axes"` // names, in the order of the numbers; may be missing
	Gears list     `yaml:"gears"`
}

// list is gears as text.
type list string

// DecodeYAML reads the gears of a file: see [DecodeList].
func (l *list) DecodeYAML(d *yamlfile.Decoder, n *yaml.Node) error {
	text, err := DecodeList(d, n)
	*l = list(text)
	return err
}

// DecodeList reads gears as YAML has them, into the form that [Parse] takes: a text in that
// form, a list of numbers, or a list of lists of numbers.
func DecodeList(d *yamlfile.Decoder, n *yaml.Node) (text string, err error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.MappingNode:
		return "", d.Refuse(n, "a list of gears is wanted here, not %s", yamlfile.KindText(n))
	}
	parts := make([]string, 0, len(n.Content))
	for _, e := range n.Content {
		var numbers []string
		if err := d.Decode(e, &numbers); err != nil {
			return "", err
		}
		parts = append(parts, strings.Join(numbers, ","))
	}
	return strings.Join(parts, ";"), nil
}

// Expand gives the list that a text stands for: @FILE is the plan in a file, as
// `npuctl gears` writes it; every other text stands for itself. Errors name the file.
func Expand(text string) (string, error) {
	path, isFile := IsFile(text)
	if !isFile {
		return text, nil
	}
	data, err := yamlfile.Read(path)
	if err != nil {
		return "", fault.New(fault.Input, "read the plan of gears %s: %w", path, err)
	}
	return parsePlan(path, data)
}

// parsePlan reads the plan of a file, whose name is for messages.
func parsePlan(path string, data []byte) (string, error) {
	root, err := yamlfile.Parse(path, data)
	if err != nil {
		return "", err
	}
	var p planFile
	if root != nil {
		if err := yamlfile.NewDecoder(path).Decode(root, &p); err != nil {
			return "", err
		}
	}
	gears, err := parseList(string(p.Gears))
	if err == nil && len(p.Axes) > 0 && !allOfLength(gears, len(p.Axes)) {
		err = fmt.Errorf("gears has a gear that is not of %s, as axes says", numbers(len(p.Axes)))
	}
	if err != nil {
		return "", fault.New(fault.Input, "%s: %w", path, err).With("npuctl gears writes such a file")
	}
	return Named(p.Axes, gears), nil
}

// Named writes a list of gears as [Parse] reads it, with the names of its axes before it.
// Names that such a text cannot hold are left out.
func Named(axes []string, gears [][]int64) string {
	words := make([]string, len(gears))
	for i, gear := range gears {
		words[i] = Text(gear)
	}
	text := strings.Join(words, ";")
	isUnfit := func(name string) bool {
		return name == "" || strings.ContainsAny(name, ",;:") || strings.TrimSpace(name) != name
	}
	if len(axes) == 0 || slices.ContainsFunc(axes, isUnfit) {
		return text
	}
	return strings.Join(axes, ",") + ": " + text
}

// FileText is the contents of a file with a plan, as [Expand] reads it. Each line of the
// comment comes first. Axes without a name are left out.
func FileText(comment string, axes []string, gears [][]int64) string {
	var b strings.Builder
	for line := range strings.Lines(comment) {
		b.WriteString(strings.TrimSpace("# "+strings.TrimSpace(line)) + "\n")
	}
	if len(axes) > 0 && !slices.Contains(axes, "") {
		quoted := make([]string, len(axes))
		for i, name := range axes {
			quoted[i] = quote(name)
		}
		fmt.Fprintf(&b, "axes: [%s]\n", strings.Join(quoted, ", "))
	}
	b.WriteString("gears:\n")
	for _, gear := range gears {
		fmt.Fprintf(&b, "  - [%s]\n", strings.ReplaceAll(Text(gear), ",", ", "))
	}
	return b.String()
}

// quote writes a name so that YAML takes it for a text.
func quote(name string) string {
	if isPlain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""; isPlain {
		var asText any
		if err := yaml.Unmarshal([]byte(name), &asText); err == nil && asText == any(name) {
			return name
		}
	}
	return strconv.QuoteToASCII(name)
}

// IsFile says whether a text names a file with a plan, and which.
func IsFile(text string) (path string, ok bool) { return strings.CutPrefix(text, filePrefix) }

// AtFile is the text that names a file with a plan.
func AtFile(path string) string { return filePrefix + path }
