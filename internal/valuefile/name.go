package valuefile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a file name of any name, without an extension. [Unescape] is the
// way back. Letters and digits of all scripts, '-', '_' and '.' stay; other
// characters, and what some system would take for something else (a leading or
// trailing dot, the device names of Windows), become % and two hexadecimal digits a byte.
func Escape(name string) string {
	if name == "" {
		return emptyName
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		isEdge := i == 0 || i+n == len(name)
		if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '.' && !isEdge) {
			b.WriteString(name[i : i+n])
		} else {
			b.WriteString(hex(name[i : i+n]))
		}
		i += n
	}
	escaped := b.String()
	if isDevice(escaped) {
		return hex(escaped[:1]) + escaped[1:]
	}
	return escaped
}

// emptyName stands for the empty name, which files cannot bear.
const emptyName = "%"

func hex(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// isDevice says whether Windows takes a file of that name for a device.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "COM" || stem[:3] == "LPT") && stem[3] >= '0' && stem[3] <= '9'
}

// Unescape gives back the name that [Escape] made a file name of. A % that is
// followed by something else than two hexadecimal digits stands for itself.
func Unescape(escaped string) string {
	if escaped == emptyName {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		var c byte
		if escaped[i] == '%' && i+2 < len(escaped) && isHex(escaped[i+1]) && isHex(escaped[i+2]) {
			fmt.Sscanf(escaped[i+1:i+3], "%02X", &c)
			i += 2
		} else {
			c = escaped[i]
		}
		b.WriteByte(c)
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
}

// EscapeAll escapes names so that no two differ by letter case alone, which many
// file systems do not tell apart: later ones have their letters spelled out.
func EscapeAll(names []string) []string {
	out := make([]string, len(names))
	taken := map[string]bool{}
	for i, name := range names {
		out[i] = Escape(name)
		if taken[strings.ToLower(out[i])] {
			out[i] = hex(name)
		}
		taken[strings.ToLower(out[i])] = true
	}
	return out
}
