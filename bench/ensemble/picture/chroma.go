package picture

import "image"

// chroma is how a format brings planes of chroma to the size of the picture, and colours
// out of the three. Decoders of the standard library leave both to their caller.
type chroma struct {
	// quarter widens a row of a plane that is half as wide and half as high: near is the
	// row that the wanted one lies in, far the next one on its other side. out is as wide
	// as the picture.
	quarter func(out, near, far []uint8)
	// narrowest is how wide such a plane must be at least to be widened with weights.
	narrowest int
	// colours makes red, green and blue of the pixels of a row.
	colours func(row, luma, cb, cr []uint8)
}

var (
	jpegChroma = chroma{widenAsLibjpeg, 3, coloursOfJFIF}
	webpChroma = chroma{widenAsLibwebp, 1, coloursOfVP8}
)

// convert writes the colours of a picture.
func (c *chroma) convert(m *image.YCbCr, out *Pixels) {
	cb, cr := make([]uint8, out.Width), make([]uint8, out.Width)
	origin := m.Rect.Min
	for y := range out.Height {
		c.widen(cb, m.Cb, m, y)
		c.widen(cr, m.Cr, m, y)
		at := m.YOffset(origin.X, origin.Y+y)
		c.colours(out.row(y), m.Y[at:at+out.Width], cb, cr)
	}
}

// widen gives a row of a plane at the size of the picture.
func (c *chroma) widen(out, plane []uint8, m *image.YCbCr, y int) {
	width, height := (len(out)+1)/2, (m.Rect.Dy()+1)/2
	row := func(y, width int) []uint8 { return plane[y*m.CStride:][:width] }
	near, far := halves(y, height)
	switch {
	case m.SubsampleRatio == image.YCbCrSubsampleRatio444:
		copy(out, row(y, len(out)))
	case m.SubsampleRatio == image.YCbCrSubsampleRatio420 && width >= c.narrowest:
		c.quarter(out, row(near, width), row(far, width))
	case m.SubsampleRatio == image.YCbCrSubsampleRatio422 && width >= c.narrowest:
		widenRow(out, row(y, width))
	case m.SubsampleRatio == image.YCbCrSubsampleRatio440:
		a, b := row(near, len(out)), row(far, len(out))
		for x := range out {
			out[x] = uint8((3*int(a[x]) + int(b[x]) + 1 + y%2) >> 2)
		}
	default:
		for x := range out {
			out[x] = plane[m.COffset(m.Rect.Min.X+x, m.Rect.Min.Y+y)]
		}
	}
}

// halves gives the sample of a line of half the length that a place lies in, and the one
// next to it on the other side; at the ends that is itself.
func halves(at, count int) (near, far int) {
	near = at / 2
	far = near + 2*(at%2) - 1
	return near, max(0, min(far, count-1))
}

// widenRow weighs the two samples around a place 3 to 1, as libjpeg does.
func widenRow(out, row []uint8) {
	for x := range out {
		near, far := halves(x, len(row))
		if near == far {
			out[x] = row[near]
			continue
		}
		out[x] = uint8((3*int(row[near]) + int(row[far]) + 1 + x%2) >> 2)
	}
}

// widenAsLibjpeg weighs the four samples around a place 9 : 3 : 3 : 1, rows first. Halves
// are rounded down and up in turn.
func widenAsLibjpeg(out, near, far []uint8) {
	last := 3*int(near[0]) + int(far[0])
	this := last
	for c := range near {
		next := this
		if c+1 < len(near) {
			next = 3*int(near[c+1]) + int(far[c+1])
		}
		out[2*c] = uint8((3*this + last + 8) >> 4)
		if 2*c+1 < len(out) {
			out[2*c+1] = uint8((3*this + next + 7) >> 4)
		}
		last, this = this, next
	}
}

// widenAsLibwebp has the same weights, and rounds twice: it takes the mean of the nearest
// sample and of one on the diagonal.
func widenAsLibwebp(out, near, far []uint8) {
	for x := range out {
		n, f := halves(x, len(near))
		a, b, c, d := int(near[n]), int(near[f]), int(far[n]), int(far[f])
		out[x] = uint8((a + (a+3*b+3*c+d+8)>>3) >> 1)
	}
}

// coloursOfJFIF is the conversion of JPEG files, in fixed point of 16 bits.
func coloursOfJFIF(row, luma, cbs, crs []uint8) {
	const half = 1 << 15
	for x, y := range luma {
		y, cb, cr := int32(y), int32(cbs[x])-128, int32(crs[x])-128
		to := row[3*x : 3*x+3 : 3*x+3]
		to[0] = clamp(y + (91881*cr+half)>>16)
		to[1] = clamp(y + (-22554*cb-46802*cr+half)>>16)
		to[2] = clamp(y + (116130*cb+half)>>16)
	}
}

// coloursOfVP8 is the conversion of WebP, whose luma goes from 16 to 235.
func coloursOfVP8(row, luma, us, vs []uint8) {
	for x, y := range luma {
		y, u, v := int32(y)*19077>>8, int32(us[x]), int32(vs[x])
		to := row[3*x : 3*x+3 : 3*x+3]
		to[0] = clamp((y + v*26149>>8 - 14234) >> 6)
		to[1] = clamp((y - u*6419>>8 - v*13320>>8 + 8708) >> 6)
		to[2] = clamp((y + u*33050>>8 - 17685) >> 6)
	}
}

func clamp(v int32) uint8 {
	if uint32(v) <= 255 {
		return uint8(v)
	}
	return uint8(max(0, min(v, 255)))
}
