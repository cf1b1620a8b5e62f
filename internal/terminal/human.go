package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count writes a number with its thousands apart: 12,345.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// Counted writes a number with its noun: 1 input, 2 inputs.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(int64(n)) + " " + noun
}

// decimalUnits are what sizes are counted in: powers of 1000, as file managers do.
var decimalUnits = [...]string{"kB", "MB", "GB", "TB", "PB", "EB"}

// Bytes writes a size: 512 B, 1.6 MB, 23 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	return scaled(float64(n), decimalUnits[:])
}

// largeUnits are what operations are counted in.
var largeUnits = [...]string{"K", "M", "G", "T", "P", "E"}

// Large writes a large number in short: 4.1 G.
func Large(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return scaled(float64(n), largeUnits[:])
}

// scaled writes a number of at least 1000 with two or three digits and a unit.
func scaled(x float64, units []string) string {
	unit := -1
	for x >= 999.5 && unit < len(units)-1 {
		x /= 1000
		unit++
	}
	if x < 9.95 {
		return fmt.Sprintf("%.1f %s", x, units[unit])
	}
	return fmt.Sprintf("%.0f %s", x, units[unit])
}

// Duration writes a time as long as people care: 12 ms, 1.4 s, 2 min 5 s.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
