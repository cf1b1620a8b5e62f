package gemm

// Product is one task C += A·B. C has as many rows as A and columns as B; its rows
// are Step elements apart. Its elements must be no other product's.
type Product[T Number] struct {
	C    []T
	Step int
	A, B *Operand[T]
}

// Sizes of the blocks between depth and tile, in lines. A block of B of 256 by 256
// float32 and one of A of 96 by 256 fit the second-level cache of any server
// processor of the last ten years. They do not affect the result's bits.
const (
	rowBlock    = 96
	columnBlock = 256
)

// taskWork is the number of multiplications below which a further core costs more
// than it saves.
const taskWork = 1 << 18

// fewPanels is the number of panels below which sharing them out would leave cores idle.
const fewPanels = 8

// Run computes all products. They are shared out together, so that many small ones
// keep all cores busy as well as a large one does.
func (k *Kernel[T]) Run(parallel Parallel, products ...Product[T]) {
	jobs := make([]job[T], 0, len(products))
	units, work := 0, 0
	for _, p := range products {
		j := newJob(k, p)
		if j.units == 0 || p.A.depth == 0 {
			continue
		}
		j.first = units
		units += j.units
		work += p.A.lines * p.B.lines * p.A.depth
		jobs = append(jobs, j)
	}
	if units == 0 {
		return
	}
	grain := 1 + taskWork/max(1, work/units)
	parallel(units, grain, func(first, last int) {
		var w worker[T]
		for _, j := range jobs {
			from, to := max(first-j.first, 0), min(last-j.first, j.units)
			if from < to {
				w.run(k, j, from, to)
			}
		}
	})
}

// job is a product and how it is shared out: by panels of A or of B.
type job[T Number] struct {
	Product[T]
	byRows bool
	units  int // panels on that side
	first  int // number of its first unit among those of all jobs
}

func newJob[T Number](k *Kernel[T], p Product[T]) job[T] {
	rows := (p.A.lines + k.rows - 1) / k.rows
	columns := (p.B.lines + k.columns - 1) / k.columns
	j := job[T]{Product: p, units: columns}
	if rows == 0 || columns == 0 {
		j.units = 0
		return j
	}
	// Every core has to make the panels of the side that is not shared out, unless
	// they are there.
	j.byRows = p.A.packed == nil && p.B.packed != nil
	own, other := columns, rows
	if j.byRows {
		own, other = rows, columns
	}
	if own < fewPanels && other > own {
		j.byRows = !j.byRows
	}
	if j.byRows {
		j.units = rows
	}
	return j
}

// worker is what one core needs while it runs: room for panels, and for the tiles
// at the edge of C.
type worker[T Number] struct {
	a, b, edge []T
}

// run computes the panels first to last of the side of C that is shared out.
func (w *worker[T]) run(k *Kernel[T], j job[T], first, last int) {
	rows := span{0, (j.A.lines + k.rows - 1) / k.rows}
	columns := span{0, (j.B.lines + k.columns - 1) / k.columns}
	if j.byRows {
		rows = span{first, last}
	} else {
		columns = span{first, last}
	}
	wide := columns.last - columns.first
	if j.B.packed == nil {
		wide = columnBlock / k.columns
	}
	for c := range columns.pieces(wide) {
		for k0 := 0; k0 < j.A.depth; k0 += DepthBlock {
			k1 := min(k0+DepthBlock, j.A.depth)
			b := j.B.panels(&w.b, k0, k1, c.first, c.last)
			for r := range rows.pieces(rowBlock / k.rows) {
				a := j.A.panels(&w.a, k0, k1, r.first, r.last)
				w.block(k, j.Product, a, b, k1-k0, r, c)
			}
		}
	}
}

// block adds the product of a block of A and one of B, both in panels.
func (w *worker[T]) block(k *Kernel[T], p Product[T], a, b []T, depth int, rows, columns span) {
	for c := columns.first; c < columns.last; c++ {
		bPanel := b[(c-columns.first)*depth*k.columns:][:depth*k.columns]
		wide := min(k.columns, p.B.lines-c*k.columns)
		for r := rows.first; r < rows.last; r++ {
			aPanel := a[(r-rows.first)*depth*k.rows:][:depth*k.rows]
			high := min(k.rows, p.A.lines-r*k.rows)
			target := p.C[r*k.rows*p.Step+c*k.columns:]
			switch {
			case wide == k.columns && high == k.rows:
				k.tile(depth, aPanel, bPanel, target, p.Step)
			case wide == k.columns && high == 1 && k.row != nil:
				k.row(depth, aPanel, bPanel, target, p.Step)
			default:
				w.edgeTile(k, aPanel, bPanel, target, depth, p.Step, high, wide)
			}
		}
	}
}

// edgeTile computes a tile that C does not hold all of.
func (w *worker[T]) edgeTile(k *Kernel[T], a, b, target []T, depth, step, high, wide int) {
	if w.edge == nil {
		w.edge = make([]T, k.rows*k.columns)
	}
	clear(w.edge)
	if high == 1 && k.row != nil {
		k.row(depth, a, b, w.edge, k.columns)
	} else {
		k.tile(depth, a, b, w.edge, k.columns)
	}
	for i := range high {
		row := target[i*step:][:wide]
		for j, v := range w.edge[i*k.columns:][:wide] {
			row[j] += v
		}
	}
}

// span is a range of panels.
type span struct{ first, last int }

// pieces yields the parts of a span that are at most size long.
func (s span) pieces(size int) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		for first := s.first; first < s.last; first += size {
			if !yield(span{first, min(first+size, s.last)}) {
				return
			}
		}
	}
}
