package eval

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// textOperators work on strings, which are UTF-8.
var textOperators = []operator{
	{name: "RegexFullMatch", since: 20, run: regexFullMatch},
	{name: "StringConcat", since: 20, run: stringConcat},
	{name: "StringNormalizer", since: 10, run: stringNormalizer},
	{name: "StringSplit", since: 20, run: stringSplit},
	{name: "TfIdfVectorizer", since: 9, run: tfIdfVectorizer},
}

// stringInput gives input i, which must be a tensor of strings.
func (c *Call) stringInput(i int) (*tensor.Dense, []string, error) {
	d, err := c.Tensor(i)
	if err != nil {
		return nil, nil, err
	}
	if d.Type() != tensor.String {
		return nil, nil, c.Errorf("input %d is %s, not STRING", i, d.Type())
	}
	return d, tensor.Data[string](d), nil
}

// setStrings makes output i of strings, which are charged with all their bytes.
func (c *Call) setStrings(i int, values []string, shape ...int) error {
	d, err := tensor.Make(values, shape...)
	if err != nil {
		return c.Errorf("%w", err)
	}
	c.own(d)
	c.Outputs[i] = d
	return nil
}

// stringConcat appends the second string to the first; the tensors broadcast.
func stringConcat(c *Call) error {
	a, x, err := c.stringInput(0)
	if err != nil {
		return err
	}
	b, y, err := c.stringInput(1)
	if err != nil {
		return err
	}
	shape, err := tensor.BroadcastShapes(a.Shape(), b.Shape())
	if err != nil {
		return c.Errorf("%w", err)
	}
	if err := c.reserve(tensor.String, shape); err != nil {
		return err
	}
	walk, err := tensor.BroadcastWalk(shape, a.Shape(), b.Shape())
	if err != nil {
		return c.Errorf("%w", err)
	}
	z := make([]string, product(shape))
	var bytes int64
	walk.Range(0, walk.Runs(), func(run int, at []int) {
		for i := range walk.Len() {
			first, second := x[at[0]+i*walk.Step(0)], y[at[1]+i*walk.Step(1)]
			bytes += int64(len(first) + len(second))
			if err == nil {
				err = c.frame.run.memory.fits(bytes)
			}
			if err == nil {
				z[run*walk.Len()+i] = first + second
			}
		}
	})
	if err != nil {
		return c.Errorf("%w", err)
	}
	return c.setStrings(0, z, shape...)
}

// regexFullMatch says for each string whether all of it matches the pattern, in the
// syntax of RE2.
func regexFullMatch(c *Call) error {
	d, x, err := c.stringInput(0)
	if err != nil {
		return err
	}
	pattern := c.String("pattern", "")
	if _, err := regexp.Compile(pattern); err != nil {
		return c.Errorf("attribute \"pattern\": %w", err)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return c.Errorf("attribute \"pattern\": %w", err)
	}
	y, err := Output[bool](c, 0, d.Shape()...)
	if err != nil {
		return err
	}
	for i, s := range x {
		y[i] = whole.MatchString(s)
	}
	return nil
}

// stringNormalizer drops stop words, which are whole elements, and changes case.
// Case follows Unicode, whatever the locale; locales that have other rules for
// letters (Turkish, Azeri, Lithuanian) are refused.
func stringNormalizer(c *Call) error {
	d, x, err := c.stringInput(0)
	if err != nil {
		return err
	}
	if d.Rank() < 1 || d.Rank() > 2 || d.Rank() == 2 && d.Shape()[0] != 1 {
		return c.Errorf("an input of shape %v, not [C] or [1, C]", d.Shape())
	}
	change := map[string]func(string) string{
		"NONE": func(s string) string { return s }, "LOWER": strings.ToLower, "UPPER": strings.ToUpper,
	}[c.String("case_change_action", "NONE")]
	if change == nil {
		return c.Errorf("attribute \"case_change_action\" is %q", c.String("case_change_action", ""))
	}
	if locale := c.String("locale", ""); hasOwnCase(locale) {
		return c.Unsupported("upper and lower case of locale %q", locale)
	}
	key := strings.ToLower
	if c.Int("is_case_sensitive", 0) != 0 {
		key = func(s string) string { return s }
	}
	stop := map[string]bool{}
	for _, s := range c.strings("stopwords") {
		stop[key(s)] = true
	}
	var y []string
	for _, s := range x {
		if !stop[key(s)] {
			y = append(y, change(s))
		}
	}
	if len(y) == 0 {
		y = []string{""}
	}
	shape := slices.Clone(d.Shape())
	shape[len(shape)-1] = len(y)
	return c.setStrings(0, y, shape...)
}

func hasOwnCase(locale string) bool {
	language, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(locale, "-", "_")), "_")
	return slices.Contains([]string{"tr", "az", "lt"}, language)
}

// strings gives a strings attribute; nil when the call leaves it out.
func (c *Call) strings(name string) []string {
	if a := c.Attribute(name); a != nil {
		return a.Strings()
	}
	return nil
}

// floats gives a floats attribute; nil when the call leaves it out.
func (c *Call) floats(name string) []float32 {
	if a := c.Attribute(name); a != nil {
		return a.Floats()
	}
	return nil
}

// stringSplit gives the parts of each string, filled up with empty ones, and how
// many there are.
func stringSplit(c *Call) error {
	d, x, err := c.stringInput(0)
	if err != nil {
		return err
	}
	most := c.Int("maxsplit", -1)
	cut := func(s string) []string { return splitFields(s, most) }
	if delimiter := c.String("delimiter", ""); delimiter != "" {
		cut = func(s string) []string { return splitAt(s, delimiter, most) }
	}
	parts := make([][]string, len(x))
	longest := 0
	for i, s := range x {
		parts[i] = cut(s)
		longest = max(longest, len(parts[i]))
	}
	y, err := Output[string](c, 0, append(slices.Clone(d.Shape()), longest)...)
	if err != nil {
		return err
	}
	counts, err := c.New(tensor.Int64, d.Shape()...)
	if err != nil {
		return err
	}
	for i, p := range parts {
		copy(y[i*longest:], p)
		tensor.Data[int64](counts)[i] = int64(len(p))
	}
	if len(c.Outputs) > 1 {
		c.Outputs[1] = counts
	}
	return nil
}

// splitAt cuts at every delimiter, but at no more than most, unless most is negative.
func splitAt(s, delimiter string, most int64) []string {
	if most < 0 || most >= int64(len(s)) {
		return strings.Split(s, delimiter)
	}
	return strings.SplitN(s, delimiter, int(most)+1)
}

// splitFields cuts at white space, which is dropped at both ends.
func splitFields(s string, most int64) []string {
	if most < 0 {
		return strings.Fields(s)
	}
	var parts []string
	rest := strings.TrimSpace(s)
	for ; rest != "" && int64(len(parts)) < most; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			break
		}
		parts, rest = append(parts, rest[:end]), rest[end:]
	}
	if rest != "" {
		parts = append(parts, rest)
	}
	return parts
}
