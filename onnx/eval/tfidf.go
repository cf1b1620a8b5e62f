package eval

import (
	"encoding/binary"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// tfIdfVectorizer counts n-grams: runs of tokens, which may leave out up to
// max_skip_count tokens between any two neighbours, always the same number.
//
// The specification ties a weight to the n-gram of its place in the pool, the
// implementations to the column of the result. Where that differs (ngram_indexes
// that are not 0, 1, 2 …) folding leaves the node alone, and ours follows the
// implementations.
func tfIdfVectorizer(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	if d.Type() == tensor.String {
		return countGrams(c, d.Shape(), tensor.Data[string](d), c.strings("pool_strings"))
	}
	tokens, err := c.IntsInput(0)
	if err != nil {
		return err
	}
	pool, _ := c.Ints("pool_int64s")
	return countGrams(c, d.Shape(), tokens, pool)
}

func countGrams[T int64 | string](c *Call, shape []int, tokens, pool []T) error {
	if len(shape) > 2 {
		return c.Errorf("an input of shape %v, not [C] or [N, C]", shape)
	}
	g, err := newGrams(c, pool)
	if err != nil {
		return err
	}
	rows, outShape := 1, []int{g.columns}
	if len(shape) == 2 {
		rows, outShape = shape[0], []int{shape[0], g.columns}
	}
	y, err := Output[float32](c, 0, outShape...)
	if err != nil {
		return err
	}
	weigh, err := g.weighing(c)
	if err != nil || len(y) == 0 {
		return err
	}
	n := len(tokens) / rows
	c.Parallel(rows, 1, func(first, last int) {
		for r := first; r < last && c.Context().Err() == nil; r++ {
			row := y[r*g.columns : (r+1)*g.columns]
			g.count(row, tokens[r*n:(r+1)*n])
			for column, count := range row {
				row[column] = weigh(column, count)
			}
		}
	})
	return c.Context().Err()
}

// grams is the pool of n-grams to look for.
type grams[T comparable] struct {
	shortest, longest int // tokens of an n-gram
	skips             int // greatest distance between neighbours
	columns           int
	numbers           map[T]uint32   // of the tokens in the pool
	column            map[string]int // by the numbers of an n-gram's tokens
	indexes           []int64
}

func newGrams[T int64 | string](c *Call, pool []T) (*grams[T], error) {
	counts, _ := c.Ints("ngram_counts")
	indexes, _ := c.Ints("ngram_indexes")
	if c.Int("min_gram_length", 1) < 1 || c.Int("max_skip_count", 0) < 0 {
		return nil, c.Errorf("min_gram_length %d, max_skip_count %d", c.Int("min_gram_length", 1), c.Int("max_skip_count", 0))
	}
	g := &grams[T]{numbers: map[T]uint32{}, column: map[string]int{}, indexes: indexes}
	g.shortest = int(min(c.Int("min_gram_length", 1), int64(len(counts))+1))
	g.longest = int(max(min(c.Int("max_gram_length", 1), int64(len(counts))), 0))
	g.skips = int(min(c.Int("max_skip_count", 0), tensor.MaxElements)) + 1
	for _, index := range indexes {
		if index < 0 || index >= tensor.MaxElements {
			return nil, c.Errorf("ngram_indexes holds %d", index)
		}
		g.columns = max(g.columns, int(index)+1)
	}
	next := 0 // of the indexes
	for i, start := range counts {
		end := int64(len(pool))
		if i+1 < len(counts) {
			end = counts[i+1]
		}
		if start < 0 || start > end || end > int64(len(pool)) {
			return nil, c.Errorf("ngram_counts %v for a pool of %d", counts, len(pool))
		}
		for length := int64(i + 1); start+length <= end; start += length {
			if next >= len(indexes) {
				return nil, c.Errorf("more n-grams in the pool than the %d ngram_indexes", len(indexes))
			}
			g.add(pool[start:start+length], int(indexes[next]))
			next++
		}
	}
	return g, nil
}

func (g *grams[T]) add(tokens []T, column int) {
	var key []byte
	for _, t := range tokens {
		number, ok := g.numbers[t]
		if !ok {
			number = uint32(len(g.numbers))
			g.numbers[t] = number
		}
		key = binary.LittleEndian.AppendUint32(key, number)
	}
	if len(tokens) >= g.shortest && len(tokens) <= g.longest {
		g.column[string(key)] = column
	}
}

// count adds 1 to the column of every n-gram found. Single tokens have no
// neighbours, and count once.
func (g *grams[T]) count(row []float32, tokens []T) {
	key := make([]byte, 0, 4*g.longest)
	for distance := 1; distance <= min(g.skips, len(tokens)); distance++ {
		for start := range tokens {
			key = key[:0]
			for length, at := 1, start; length <= g.longest && at < len(tokens); length, at = length+1, at+distance {
				number, known := g.numbers[tokens[at]]
				if !known {
					break
				}
				key = binary.LittleEndian.AppendUint32(key, number)
				if column, found := g.column[string(key)]; found && (length > 1 || distance == 1) {
					row[column]++
				}
			}
		}
	}
}

// weighing makes an entry of the result of a count.
func (g *grams[T]) weighing(c *Call) (func(column int, count float32) float32, error) {
	weights := c.floats("weights")
	if weights != nil && len(weights) < g.columns {
		return nil, c.Errorf("%d weights for %d columns", len(weights), g.columns)
	}
	weight := func(int) float32 { return 1 }
	if weights != nil {
		weight = func(column int) float32 { return weights[column] }
	}
	mode := c.String("mode", "")
	if mode != "TF" && weights != nil && !isCounting(g.indexes) {
		if err := c.Undefined("weights of n-grams that are not in the order of the columns"); err != nil {
			return nil, err
		}
	}
	switch mode {
	case "TF":
		return func(_ int, count float32) float32 { return count }, nil
	case "IDF":
		return func(column int, count float32) float32 { return min(count, 1) * weight(column) }, nil
	case "TFIDF":
		return func(column int, count float32) float32 { return count * weight(column) }, nil
	}
	return nil, c.Errorf("attribute \"mode\" is %q", mode)
}

// isCounting says whether values are 0, 1, 2 ….
func isCounting(values []int64) bool {
	for i, v := range values {
		if v != int64(i) {
			return false
		}
	}
	return true
}
