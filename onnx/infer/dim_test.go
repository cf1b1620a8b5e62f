package infer

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Symbols of the tests: three sizes and a number of unknown sign.
var (
	batch  = newNamed("batch").dim()
	height = newNamed("height").dim()
	width  = newNamed("width").dim()
	signed = newNameless(7, false).dim()
)

func TestDimText(t *testing.T) {
	for _, c := range []struct {
		d    Dim
		want string
	}{
		{Const(-3), "-3"},
		{batch, "batch"},
		{batch.MulConst(2).AddConst(1), "2*batch+1"},
		{batch.AddConst(1).Mul(height.AddConst(-1)), "batch*height-batch+height-1"},
		{height.AddConst(1).FloorDiv(Const(2)), "floor((height+1)/2)"},
		{height.Min(Const(5)), "height-max(height-5,0)"},
		{Unknown(), "?"},
	} {
		if got := c.d.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// Expressions that are equal by arithmetic must be equal whatever way they came about.
func TestDimCanonicalForm(t *testing.T) {
	half := func(d Dim) Dim { return d.AddConst(1).FloorDiv(Const(2)) }
	for name, c := range map[string]struct{ got, want Dim }{
		"sum and difference":        {height.Add(batch).Sub(height), batch},
		"product over a factor":     {batch.Mul(height).Div(height), batch},
		"product over a sum":        {height.AddConst(1).Mul(width).Div(height.AddConst(1)), width},
		"multiple over number":      {batch.MulConst(12).Div(Const(4)), batch.MulConst(3)},
		"fraction in lowest terms":  {batch.MulConst(6).Div(Const(4)), batch.MulConst(3).Div(Const(2))},
		"common factor of fraction": {batch.Mul(height).FloorDiv(batch.Mul(width)), height.FloorDiv(width)},
		"whole part of fraction":    {height.MulConst(5).AddConst(7).FloorDiv(Const(2)), height.MulConst(2).AddConst(3).Add(height.AddConst(1).FloorDiv(Const(2)))},
		"halves of halves":          {half(half(height)), height.AddConst(3).FloorDiv(Const(4))},
		"ceiling":                   {height.CeilDiv(Const(2)), half(height)},
		"up to a multiple of 32":    {height.Add(Const(32).Sub(height.Mod(Const(32))).Mod(Const(32))), height.CeilDiv(Const(32)).MulConst(32)},
		"minimum of a minimum":      {height.Min(Const(9)).Min(Const(9)), height.Min(Const(9))},
		"what is left of a cut":     {height.Sub(height.AddConst(-3).Max(Const(0))), height.Min(Const(3))},
		"minimum either way":        {height.Min(width), width.Min(height)},
		"maximum of sizes and 0":    {height.Max(Const(0)), height},
		"floor of a maximum":        {signed.Max(Const(0)).FloorDiv(Const(2)), signed.FloorDiv(Const(2)).Max(Const(0))},
		"maximum of a maximum":      {signed.Max(Const(0)).AddConst(-2).Max(Const(0)), signed.AddConst(-2).Max(Const(0))},
		"remainder of a multiple":   {batch.MulConst(6).Mod(Const(3)), Const(0)},
	} {
		if !c.got.Equal(c.want) {
			t.Errorf("%s: %s is not %s", name, c.got, c.want)
		}
	}
}

func TestDimOrder(t *testing.T) {
	for name, c := range map[string]struct {
		d    Dim
		want bool
	}{
		"a size":                {height, true},
		"a size minus one":      {height.AddConst(-1), false},
		"an element":            {signed, false},
		"a remainder":           {height.Mod(Const(32)), true},
		"a number less it":      {Const(31).Sub(height.Mod(Const(32))), true},
		"a cut":                 {height.Min(Const(3)), true},
		"what a cut leaves":     {height.Sub(height.Min(Const(3))), true},
		"half":                  {height.Sub(height.FloorDiv(Const(2))), true},
		"twice the half":        {height.Sub(height.FloorDiv(Const(2)).MulConst(2)), true},
		"twice the larger half": {height.Sub(height.CeilDiv(Const(2)).MulConst(2)), false},
		"unknown":               {Unknown(), false},
	} {
		if got := c.d.NonNegative(); got != c.want {
			t.Errorf("%s, %s: not negative is %v", name, c.d, got)
		}
	}
}

func TestDimBeyondInt64IsUnknown(t *testing.T) {
	largest, smallest := Const(math.MaxInt64), Const(math.MinInt64)
	for name, d := range map[string]Dim{
		"sum":              largest.AddConst(1),
		"difference":       smallest.AddConst(-1),
		"product":          largest.MulConst(2),
		"coefficient":      batch.MulConst(math.MaxInt64).MulConst(2),
		"quotient":         smallest.Div(Const(-1)),
		"quotient by zero": batch.Div(Const(0)),
		"power":            batch.Mul(batch).Mul(batch).Mul(batch).Mul(batch).Mul(batch).Mul(batch).Mul(batch).Mul(batch),
	} {
		if !d.IsUnknown() || d.Equal(d) {
			t.Errorf("%s is %s", name, d)
		}
	}
	if d := smallest.positivePart(); !d.Is(0) {
		t.Errorf("max(%s,0) is %s", smallest, d)
	}
}

func TestExpressionsStaySmall(t *testing.T) {
	d := height
	for range 200 {
		d = d.Mul(width).AddConst(1).FloorDiv(Const(3)).Min(batch).AddConst(-1).Max(Const(0))
		if len(d.String()) > 40*maxKey {
			t.Fatalf("an expression of %d bytes", len(d.String()))
		}
	}
}

// Whatever is computed with expressions must come out as with numbers.
func TestDimArithmeticAgreesWithNumbers(t *testing.T) {
	operations := []struct {
		name    string
		dims    func(a, b Dim) Dim
		numbers func(a, b int64) int64
	}{
		{"add", Dim.Add, func(a, b int64) int64 { return a + b }},
		{"subtract", Dim.Sub, func(a, b int64) int64 { return a - b }},
		{"multiply", Dim.Mul, func(a, b int64) int64 { return a * b }},
		{"divide", Dim.Div, func(a, b int64) int64 { return a / b }},
		{"floor", Dim.FloorDiv, floorQuotient},
		{"ceiling", Dim.CeilDiv, func(a, b int64) int64 { return -floorQuotient(-a, b) }},
		{"mod", Dim.Mod, func(a, b int64) int64 { return a - b*floorQuotient(a, b) }},
		{"remainder", Dim.Remainder, func(a, b int64) int64 { return a % b }},
		{"minimum", Dim.Min, func(a, b int64) int64 { return min(a, b) }},
		{"maximum", Dim.Max, func(a, b int64) int64 { return max(a, b) }},
	}
	rapid.Check(t, func(t *rapid.T) {
		values := assignment{
			`"batch"`: rapid.Int64Range(0, 5).Draw(t, "batch"), `"height"`: rapid.Int64Range(0, 70).Draw(t, "height"),
			"?7": rapid.Int64Range(-9, 9).Draw(t, "signed"),
		}
		known := []Dim{batch, height, signed, Const(rapid.Int64Range(-6, 6).Draw(t, "number")), Const(32)}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			a := rapid.SampledFrom(known).Draw(t, "a")
			b := rapid.SampledFrom(known).Draw(t, "b")
			x, _ := values.of(a)
			y, _ := values.of(b)
			o := rapid.SampledFrom(operations).Draw(t, "operation")
			if y == 0 && !(o.name == "add" || o.name == "subtract" || o.name == "multiply" || o.name == "minimum" || o.name == "maximum") {
				continue
			}
			d := o.dims(a, b)
			n, ok := values.of(d)
			if !ok {
				continue // too large to be expressed, or divides by what is zero
			}
			if want := o.numbers(x, y); n != want {
				t.Fatalf("%s of %s = %d and %s = %d: %s = %d, want %d", o.name, a, x, b, y, d, n, want)
			}
			checkOrder(t, d, n)
			known = append(known, d)
		}
	})
}

func checkOrder(t *rapid.T, d Dim, n int64) {
	if d.NonNegative() && n < 0 {
		t.Fatalf("%s is said not to be negative, and is %d", d, n)
	}
	if !d.Equal(d) {
		t.Fatalf("%s is not equal to itself", d)
	}
}
