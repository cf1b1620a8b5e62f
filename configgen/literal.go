package configgen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unquote gives the bytes that a string token stands for. A token that the scanner
// found wrong gives something; the file is refused anyway.
func unquote(token string) string {
	if token == "" {
		return ""
	}
	quote := token[0]
	body := token[1:]
	if n := len(body); n > 0 && body[n-1] == quote {
		body = body[:n-1]
	}
	if !strings.Contains(body, `\`) {
		return body
	}
	var b strings.Builder
	for body != "" {
		if body[0] != '\\' || len(body) == 1 {
			b.WriteByte(body[0])
			body = body[1:]
			continue
		}
		body = unescape(&b, body[1:])
	}
	return b.String()
}

// unescape writes what an escape means and gives what follows it. The text begins
// behind the backslash.
func unescape(b *strings.Builder, text string) (rest string) {
	first := text[0]
	switch {
	case isOctal(first):
		n := 1
		for n < 3 && n < len(text) && isOctal(text[n]) {
			n++
		}
		code, _ := strconv.ParseUint(text[:n], 8, 16)
		b.WriteByte(byte(code))
		return text[n:]
	case first == 'x':
		n := 1
		for n < 3 && n < len(text) && isHex(text[n]) {
			n++
		}
		code, _ := strconv.ParseUint(text[1:n], 16, 8)
		b.WriteByte(byte(code))
		return text[n:]
	case first == 'u' || first == 'U':
		return unescapeRune(b, text)
	case escapes[first] != 0:
		b.WriteByte(escapes[first])
	}
	return text[1:]
}

// unescapeRune writes \uXXXX, two of them that make a surrogate pair, or \UXXXXXXXX.
func unescapeRune(b *strings.Builder, text string) (rest string) {
	code, n, ok := hexCode(text)
	if !ok {
		return text[1:]
	}
	rest = text[n:]
	if low, ok := strings.CutPrefix(rest, `\`); ok && 0xd800 <= code && code < 0xdc00 && low != "" && (low[0] == 'u' || low[0] == 'U') {
		if second, m, ok := hexCode(low); ok && 0xdc00 <= second && second < 0xe000 {
			code = 0x10000 + (code-0xd800)<<10 + second - 0xdc00
			rest = low[m:]
		}
	}
	if 0xd800 <= code && code < 0xe000 {
		// Half a pair has no UTF-8; the server writes its bits all the same.
		b.Write([]byte{byte(0xe0 | code>>12), byte(0x80 | code>>6&0x3f), byte(0x80 | code&0x3f)})
		return rest
	}
	if code > utf8.MaxRune {
		fmt.Fprintf(b, `\U%08x`, code) // the scanner lets these pass, and the server writes them so
		return rest
	}
	b.Write(utf8.AppendRune(nil, rune(code)))
	return rest
}

// hexCode reads u and four digits or U and eight.
func hexCode(text string) (code uint32, length int, ok bool) {
	digits := 4
	if text[0] == 'U' {
		digits = 8
	}
	if len(text) < 1+digits {
		return 0, 0, false
	}
	value, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	return uint32(value), 1 + digits, err == nil
}

// parseInteger reads an integer token: decimal, hexadecimal with 0x, octal with 0.
func parseInteger(text string, limit uint64) (value uint64, ok bool) {
	base := 10
	if len(text) > 1 && text[0] == '0' {
		base, text = 8, text[1:]
		if text[0] == 'x' || text[0] == 'X' {
			base, text = 16, text[1:]
		}
	}
	value, err := strconv.ParseUint(text, base, 64)
	return value, err == nil && value <= limit
}

// isDecimal says whether an integer token is neither hexadecimal nor octal.
func isDecimal(text string) bool { return len(text) < 2 || text[0] != '0' }

// parseFloat reads a number token as C does; beyond the range it is infinite.
func parseFloat(text string) float64 {
	if lower := strings.ToLower(text); !strings.HasPrefix(lower, "0x") {
		text = strings.TrimSuffix(lower, "f")
	}
	value, _ := strconv.ParseFloat(text, 64)
	return value
}

// formatFloat writes a number so that reading gives the same one.
func formatFloat(x float64, bits int) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}

// quote writes a string literal. Valid UTF-8 stays readable.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < ' ' && strings.IndexByte("\n\r\t", s[i]) < 0, r == 0x7f:
			b.WriteString(`\` + string([]byte{'0' + s[i]>>6, '0' + s[i]>>3&7, '0' + s[i]&7}))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}
