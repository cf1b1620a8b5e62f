// Command gemm writes the micro-kernels of package gemm; see the README above.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The tile is 6 by 16: 12 vector registers of sums, 2 for a step of B, and 2 that
// take turns with the elements of A make the 16 that there are.
const (
	tileRows    = 6
	tileColumns = 16
	vectors     = tileColumns / 8 // in a row of the tile
	unroll      = 4               // steps in one turn of the loop
)

func main() {
	tile("tile6x16", tileRows)
	tile("tile1x16", 1)
	Generate()
}

// tile writes a micro-kernel for the first rows rows of a tile. Panels of A are
// tileRows wide whatever rows is.
func tile(name string, rows int) {
	signature := "func(depth int, a, b, c *float32, step int)"
	if rows == 1 {
		signature = "func(depth int, a, b, c *float32)"
	}
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s adds to the first %d rows of %d elements of a tile at c the product of the panels a and b.", name, rows, tileColumns))
	depth := Load(Param("depth"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())

	sums := make([][]VecVirtual, rows)
	for i := range sums {
		for range vectors {
			sum := YMM()
			VXORPS(sum, sum, sum)
			sums[i] = append(sums[i], sum)
		}
	}
	loop(name+"_many", depth, unroll, a, b, sums)
	loop(name+"_one", depth, 1, a, b, sums)
	addTo(c, sums)
	VZEROUPPER()
	RET()
}

// loop runs while at least steps steps are left, steps at a time.
func loop(label string, depth Register, steps int, a, b Register, sums [][]VecVirtual) {
	Label(label)
	CMPQ(depth, U32(steps))
	JLT(LabelRef(label + "_end"))
	for s := range steps {
		step(Mem{Base: a, Disp: 4 * tileRows * s}, Mem{Base: b, Disp: 4 * tileColumns * s}, sums)
	}
	ADDQ(U32(4*tileRows*steps), a)
	ADDQ(U32(4*tileColumns*steps), b)
	SUBQ(U32(steps), depth)
	JMP(LabelRef(label))
	Label(label + "_end")
}

// step adds one step of the product: a column of A by a row of B.
func step(a, b Mem, sums [][]VecVirtual) {
	row := make([]VecVirtual, vectors)
	for v := range row {
		row[v] = YMM()
		VMOVUPS(b.Offset(32*v), row[v])
	}
	for i := range sums {
		element := YMM()
		VBROADCASTSS(a.Offset(4*i), element)
		for v := range row {
			VFMADD231PS(row[v], element, sums[i][v])
		}
	}
}

// addTo adds the sums to the rows of C.
func addTo(c Register, sums [][]VecVirtual) {
	var stride Register
	if len(sums) > 1 {
		stride = Load(Param("step"), GP64())
		SHLQ(U8(2), stride)
	}
	for i := range sums {
		for v, sum := range sums[i] {
			at := Mem{Base: c, Disp: 32 * v}
			VADDPS(at, sum, sum)
			VMOVUPS(sum, at)
		}
		if i < len(sums)-1 {
			ADDQ(stride, c)
		}
	}
}
