package atc

import (
	"strconv"
	"strings"
)

// splitCores splits the value of --aicore_num at its first bar: cores|vector
// cores. Without a bar all of it is the number of cores.
func splitCores(text string) (cores, vectors string) {
	cores, vectors, _ = strings.Cut(text, "|")
	return cores, vectors
}

// checkCores holds one half of --aicore_num against the number of cores there are.
// "" and 0 mean all of them. The number has to be written as a computer writes it:
// no sign, no leading zero, no blank.
func checkCores(whole, half, what string, most int) *Diagnosis {
	if half == "" {
		return nil
	}
	var d Diagnosis
	n, digits, err := leadingInteger(strings.TrimLeft(half, " \t\n\v\f\r"))
	switch {
	case digits == 0:
		d = wrongValue("E10060", "aicore_num", whole, "%q is no number", half)
	case err != nil || n != int64(int32(n)):
		d = wrongValue("E10060", "aicore_num", whole, "%s is beyond 32 bits", half)
	case strconv.FormatInt(n, 10) != half:
		d = wrongValue("E10001", "aicore_num", whole, "%q is no plain number: only digits, no zero in front", half)
	case n < 0 || n > int64(most):
		d = wrongValue("E10001", "aicore_num", whole, "the chip has %d %s, not %d", most, what, n).
			with("give at most %d, or 0 for all", most)
	default:
		return nil
	}
	return &d
}
