package executor

import (
	"slices"
	"unsafe"
)

// padding knows what is zero in the memory of an input, so that it is made zero once and
// not for every run: the bytes from dirty to known are.
type padding struct {
	base         *byte
	dirty, known int
	// item and gear are the shapes of an item, own and padded, by which rows were written
	// where they differ. They say where in a row the padding is.
	item, gear []int64
}

// rows makes a buffer zero behind the rows that are used.
func (p *padding) rows(buffer []byte, used int) {
	p.at(buffer)
	size := len(buffer)
	if used < size {
		clear(buffer[used:max(used, min(p.dirty, size))])
		clear(buffer[min(max(used, p.known), size):])
		if p.dirty > size {
			p.known = size // what lies behind was not looked at
		}
		p.dirty, p.known = used, max(p.known, size)
		return
	}
	p.dirty = max(p.dirty, used)
	p.known = max(p.known, p.dirty)
}

// at forgets what it knew of another memory.
func (p *padding) at(buffer []byte) {
	if base := unsafe.SliceData(buffer); base != p.base {
		p.base, p.dirty, p.known = base, 0, 0
	}
}

// within makes a buffer ready for rows with padding inside: before they are written, all
// of it is zero but what rows of the same shapes will write again. used are the bytes of
// the rows that come.
func (p *padding) within(buffer []byte, used int, item, gear []int64) {
	p.at(buffer)
	if p.known == 0 || !slices.Equal(p.item, item) || !slices.Equal(p.gear, gear) {
		clear(buffer)
		p.item, p.gear = append(p.item[:0], item...), append(p.gear[:0], gear...)
		p.dirty, p.known = used, len(buffer)
		return
	}
	p.rows(buffer, used)
}

// whole says that rows without padding inside come next.
func (p *padding) whole() {
	if len(p.item) > 0 {
		p.item, p.gear = p.item[:0], p.gear[:0]
		p.dirty, p.known = 0, 0
	}
}

// copyBlock copies the first elements along each axis, as many as block says, from one
// array to another of as many axes. An element has so many units.
func copyBlock[T any](to []T, toDims []int64, from []T, fromDims, block []int64, units int) {
	if len(block) == 0 {
		copy(to[:units], from[:units])
		return
	}
	toStep, fromStep := units, units
	for i := range block[1:] {
		toStep *= int(toDims[1+i])
		fromStep *= int(fromDims[1+i])
	}
	if slices.Equal(toDims[1:], block[1:]) && slices.Equal(fromDims[1:], block[1:]) {
		n := int(block[0]) * toStep
		copy(to[:n], from[:n])
		return
	}
	for i := range int(block[0]) {
		copyBlock(to[i*toStep:], toDims[1:], from[i*fromStep:], fromDims[1:], block[1:], units)
	}
}

// elements is the product of dims, which the caller knows to be no larger than an int.
func elements(dims []int64) int {
	n := int64(1)
	for _, d := range dims {
		n = multiply(n, d)
	}
	return int(n)
}
