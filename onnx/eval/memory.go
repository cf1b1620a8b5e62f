package eval

import (
	"fmt"
	"unsafe"

	"github.com/npuctl/npuctl/onnx/tensor"
)

// memory counts the bytes of arrays that are alive in one run.
//
// The rule: an array is charged once, when a kernel asks for it, and given back
// when the last holder lets go of it. Holders are the slots of values that will
// still be read, and calls under way, of what they made and of what their
// subgraphs gave them. Arrays on the same memory (Reshape, Identity) are one.
// What the caller passed in and what the program keeps (weights) costs nothing,
// and nor do arrays that share its memory. A string costs its header and its
// bytes, whether it shares them with another string or not.
type memory struct {
	limit, used int64
	// held knows every charged array by the address of its first element. It is
	// nil where one node without subgraphs is folded: all is alive to the end.
	held map[uintptr]holding
}

// holding is one charged array.
type holding struct {
	bytes   int64
	holders int
}

func newMemory(limit int64, counted bool) memory {
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	m := memory{limit: limit}
	if counted {
		m.held = map[uintptr]holding{}
	}
	return m
}

// stringHeader is what an empty string takes.
const stringHeader = int64(unsafe.Sizeof(""))

// arrayHeader is what an array takes besides its elements, roughly: a loop can
// make very many small ones.
const arrayHeader = 128

// sizeFor is the memory that an array of n elements takes, the bytes of strings apart.
func sizeFor(t tensor.Type, n int) int64 {
	if t == tensor.String {
		return arrayHeader + int64(n)*stringHeader
	}
	return arrayHeader + int64(n)*int64(t.Width())
}

func sizeOf(d *tensor.Dense) int64 {
	size := sizeFor(d.Type(), d.Len())
	if d.Type() == tensor.String {
		size += d.Bytes()
	}
	return size
}

// address is where the elements of d lie. It is a number, which keeps nothing
// alive: only arrays that a holder keeps alive are in the table.
func address(d *tensor.Dense) uintptr {
	switch d.Type().Width() {
	case 1:
		return addressOf(tensor.Words[uint8](d))
	case 2:
		return addressOf(tensor.Words[uint16](d))
	case 4:
		return addressOf(tensor.Words[uint32](d))
	case 8:
		return addressOf(tensor.Words[uint64](d))
	case 16:
		return addressOf(tensor.Words[[2]uint64](d))
	}
	return addressOf(tensor.Words[string](d))
}

func addressOf[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// fits refuses what is beyond the budget, before it is made.
func (m *memory) fits(size int64) error {
	if size > m.limit-m.used {
		return fmt.Errorf("%w: %d bytes more than the %d still free of %d", ErrBudget, size, m.limit-m.used, m.limit)
	}
	return nil
}

// made charges an array that a call has just made and holds.
func (m *memory) made(d *tensor.Dense) {
	if d.Len() == 0 {
		return
	}
	size := sizeFor(d.Type(), d.Len())
	m.used += size
	if m.held != nil {
		m.held[address(d)] = holding{bytes: size, holders: 1}
	}
}

// hold adds a holder of every array in v. Those not known yet are charged, unless
// free says that somebody else pays for them.
func (m *memory) hold(v Value, free func(*tensor.Dense) bool) error {
	return m.each(v, func(d *tensor.Dense) error {
		at := address(d)
		h, known := m.held[at]
		size := h.bytes
		switch {
		case !known && !free(d):
			size = sizeOf(d)
		case known && h.bytes > 0 && d.Type() == tensor.String:
			size = sizeOf(d) // the strings came after the array
		}
		if err := m.fits(size - h.bytes); err != nil {
			return err
		}
		m.used += size - h.bytes
		m.held[at] = holding{bytes: size, holders: h.holders + 1}
		return nil
	})
}

// drop takes a holder of every array in v away.
func (m *memory) drop(v Value) {
	_ = m.each(v, func(d *tensor.Dense) error {
		at := address(d)
		h, known := m.held[at]
		switch {
		case !known:
		case h.holders > 1:
			h.holders--
			m.held[at] = h
		default:
			m.used -= h.bytes
			delete(m.held, at)
		}
		return nil
	})
}

// each calls f with the arrays inside v that take memory.
func (m *memory) each(v Value, f func(*tensor.Dense) error) error {
	if m.held == nil {
		return nil
	}
	switch v := v.(type) {
	case *tensor.Dense:
		if v != nil && v.Len() > 0 {
			return f(v)
		}
	case *Sequence:
		for _, item := range v.Items {
			if err := m.each(item, f); err != nil {
				return err
			}
		}
	case *Optional:
		return m.each(v.Value, f)
	case *Map:
		if err := m.each(v.Keys, f); err != nil {
			return err
		}
		return m.each(v.Values, f)
	}
	return nil
}

// always says of every array that somebody else pays for it.
func always(*tensor.Dense) bool { return true }
