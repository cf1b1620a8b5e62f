package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// mostLevels is how many levels one run may have.
const mostLevels = 1000

// ParseLevels reads levels, rates or numbers of clients: 8; 1,2,8; 10:50:10 (from, to,
// step); 1:32:x2 (from, to, factor). The last one of a range is there only when a step
// reaches it. They come in the order given.
func ParseLevels(text string) ([]float64, error) {
	var levels []float64
	for word := range strings.SplitSeq(text, ",") {
		some, err := parseRange(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		if levels = append(levels, some...); len(levels) > mostLevels {
			return nil, fmt.Errorf("%q are more than %d levels", text, mostLevels)
		}
	}
	return levels, nil
}

// ParseCounts reads levels that are whole numbers, up to most.
func ParseCounts(text string, most int) ([]int, error) {
	levels, err := ParseLevels(text)
	if err != nil {
		return nil, err
	}
	counts := make([]int, len(levels))
	for i, level := range levels {
		if level != math.Trunc(level) || level > float64(most) {
			return nil, fmt.Errorf("%q: %v is no whole number from 1 to %d", text, level, most)
		}
		counts[i] = int(level)
	}
	return counts, nil
}

func parseRange(word string) ([]float64, error) {
	parts := strings.Split(word, ":")
	if len(parts) == 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q is no level: give 8, 1,2,8, 10:50:10 or 1:32:x2", word)
	}
	from, err := parseLevel(parts[0])
	if err != nil || len(parts) == 1 {
		return []float64{from}, err
	}
	to, err := parseLevel(parts[1])
	if err != nil {
		return nil, err
	}
	digits, isFactor := strings.CutPrefix(parts[2], "x")
	step, err := parseLevel(digits)
	switch {
	case err != nil:
		return nil, err
	case to < from:
		return nil, fmt.Errorf("%q ends before it begins", word)
	case isFactor && step <= 1:
		return nil, fmt.Errorf("%q: the factor must be above 1", word)
	}
	var levels []float64
	for i := 0; len(levels) <= mostLevels; i++ {
		level := from + float64(i)*step
		if isFactor {
			level = from * math.Pow(step, float64(i))
		}
		if level > to*(1+1e-9) {
			break
		}
		levels = append(levels, level)
	}
	return levels, nil
}

func parseLevel(text string) (float64, error) {
	level, err := strconv.ParseFloat(text, 64)
	if err != nil || !(level > 0) || level > 1e9 {
		return 0, fmt.Errorf("%q is no number above 0 and up to 1e9", text)
	}
	return level, nil
}
