package configgen

import (
	"fmt"
	"math"
	"strings"

	"github.com/npuctl/npuctl/internal/suggest"
)

// scalar reads one plain value of the field's type.
func (p *parser) scalar(f *Field, v *Value) bool {
	switch f.Type.Kind {
	case Int32:
		n, ok := p.signed(f, math.MaxInt32)
		v.Scalar = int32(n)
		return ok
	case Int64:
		n, ok := p.signed(f, math.MaxInt64)
		v.Scalar = n
		return ok
	case Uint32:
		n, ok := p.unsigned(f, math.MaxUint32, "")
		v.Scalar = uint32(n)
		return ok
	case Uint64:
		n, ok := p.unsigned(f, math.MaxUint64, "")
		v.Scalar = n
		return ok
	case Float:
		x, ok := p.float(f)
		v.Scalar = float32(x)
		return ok
	case Double:
		x, ok := p.float(f)
		v.Scalar = x
		return ok
	case Bool:
		b, ok := p.boolean(f)
		v.Scalar = b
		return ok
	case EnumOf:
		e, ok := p.enum(f)
		v.Scalar = e
		return ok
	}
	s, ok := p.text(f)
	v.Scalar = s
	return ok
}

// wrong reports a value of another type. Where the value is one token, reading can
// go on behind it.
func (p *parser) wrong(f *Field, expected, server string) bool {
	hint := ""
	switch {
	case p.at("$"):
		hint = ": a placeholder that nothing has filled in"
	case p.now.kind == tokenString && expected != "a string":
		hint = ": without quotes"
	case p.now.kind == tokenFloat:
		hint = ": without a decimal point or exponent"
	case p.at("+"):
		hint = ": a number has no plus sign"
	case p.at("]"):
		hint = ": a list does not end with a comma"
	case expected == "a string" && (p.now.kind == tokenIdentifier || p.now.kind == tokenInteger):
		hint = ": in quotes"
	case p.at("-"):
		hint = ": it can't be negative"
	}
	e := p.fail(BadValue, server+p.now.text, "%s takes %s, found %s%s", f.Name, expected, p.found(), hint)
	e.Field, e.Expected = f.Name, expected
	if p.now.kind == tokenSymbol || p.now.kind == tokenEnd {
		return false
	}
	p.advance()
	return true
}

func (p *parser) unsigned(f *Field, limit uint64, sign string) (uint64, bool) {
	if p.now.kind != tokenInteger {
		expected := "an integer"
		if f.Type.Kind == Uint32 || f.Type.Kind == Uint64 {
			expected = "an integer from 0 up"
		}
		return 0, p.wrong(f, expected, "Expected integer, got: ")
	}
	value, ok := parseInteger(p.now.text, limit)
	if !ok {
		e := p.fail(BadRange, fmt.Sprintf("Integer out of range (%s)", p.now.text), "%s: %s%s is out of range, it ends at %s%d", f.Name, sign, p.now.text, sign, limit)
		e.Field = f.Name
	}
	p.advance()
	return value, true
}

func (p *parser) signed(f *Field, limit uint64) (int64, bool) {
	if !p.take("-") {
		value, ok := p.unsigned(f, limit, "")
		return int64(value), ok
	}
	value, ok := p.unsigned(f, limit+1, "-")
	return -int64(value), ok
}

func (p *parser) float(f *Field) (float64, bool) {
	sign := 1.0
	if p.take("-") {
		sign = -1
	}
	text := p.now.text
	switch {
	case p.now.kind == tokenInteger && !isDecimal(text):
		e := p.fail(BadValue, "Expect a decimal number, got: "+text, "%s takes a decimal number, found %s", f.Name, p.found())
		e.Field = f.Name
		p.advance()
		return 0, true
	case p.now.kind == tokenInteger || p.now.kind == tokenFloat:
		p.advance()
		return sign * parseFloat(text), true
	}
	if p.now.kind != tokenIdentifier {
		return 0, p.wrong(f, "a number", "Expected double, got: ")
	}
	switch strings.ToLower(text) {
	case "inf", "infinity":
		p.advance()
		return sign * math.Inf(1), true
	case "nan":
		p.advance()
		return math.NaN(), true
	}
	return 0, p.wrong(f, "a number", "Expected double, got: ")
}

func (p *parser) boolean(f *Field) (value, canGoOn bool) {
	start, text := p.now.start, p.now.text
	switch p.now.kind {
	case tokenInteger:
		n, ok := p.unsigned(f, 1, "")
		return n == 1, ok
	case tokenIdentifier:
		p.advance()
	default:
		return false, p.wrong(f, "true or false", "Expected identifier, got: ")
	}
	switch text {
	case "true", "True", "t":
		return true, true
	case "false", "False", "f":
		return false, true
	}
	e := p.failAt(start, BadValue, fmt.Sprintf("Invalid value for boolean field \"%s\". Value: \"%s\".", f.Name, text),
		"%s takes true or false, found %q", f.Name, text)
	e.Field, e.Near = f.Name, booleanNear(text)
	return false, true
}

// booleanNear says which of true and false a word of other languages means.
func booleanNear(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "y":
		return "true"
	case "false", "no", "off", "n":
		return "false"
	}
	return ""
}

func (p *parser) enum(f *Field) (Enum, bool) {
	start, text := p.now.start, p.now.text
	switch {
	case p.now.kind == tokenInteger || p.at("-"):
		n, ok := p.signed(f, math.MaxInt32)
		return Enum(n), ok
	case p.now.kind != tokenIdentifier:
		return 0, p.wrong(f, "a value of "+f.Type.Enum.Name, "Expected integer or identifier, got: ")
	}
	p.advance()
	number, ok := f.Type.Enum.ByName(text)
	if !ok {
		e := p.failAt(start, BadEnum, fmt.Sprintf("Unknown enumeration value of \"%s\" for field \"%s\".", text, f.Name),
			"%s: there is no value %q", f.Name, text)
		e.Field, e.Near = f.Name, enumNear(text, f.Type.Enum)
	}
	return Enum(number), true
}

// foreignTypes are names of types elsewhere.
var foreignTypes = map[string]string{
	"FLOAT": "TYPE_FP32", "FLOAT32": "TYPE_FP32", "FLOAT16": "TYPE_FP16", "HALF": "TYPE_FP16", "DOUBLE": "TYPE_FP64", "FLOAT64": "TYPE_FP64",
	"BYTES": "TYPE_STRING", "STR": "TYPE_STRING", "INT": "TYPE_INT32", "LONG": "TYPE_INT64", "BFLOAT16": "TYPE_BF16", "BOOLEAN": "TYPE_BOOL",
}

func enumNear(text string, e *EnumType) string {
	upper := strings.ToUpper(text)
	if meant := foreignTypes[strings.TrimPrefix(upper, "TYPE_")]; meant != "" && e.Name == "DataType" {
		return meant
	}
	if upper == "KIND_NPU" && e.Name == "ModelInstanceGroup.Kind" {
		return "KIND_CPU"
	}
	for _, v := range e.Values {
		if v.Name == upper || strings.HasSuffix(v.Name, "_"+upper) {
			return v.Name
		}
	}
	return suggest.Nearest(text, e.Names())
}

func (p *parser) text(f *Field) (string, bool) {
	if p.now.kind != tokenString {
		return "", p.wrong(f, "a string", "Expected string, got: ")
	}
	var b strings.Builder
	for p.now.kind == tokenString {
		b.WriteString(unquote(p.now.text))
		p.advance()
	}
	return b.String(), true
}
