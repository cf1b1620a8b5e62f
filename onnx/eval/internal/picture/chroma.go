package picture

import "image"

// chroma is how a file format brings two planes of chroma to the size of the
// picture, and colours out of the three.
type chroma struct {
	half  func(plane []uint8, stride, width, height, x, y int) int // of planes half as wide and high
	toRGB func(y, cb, cr int) (r, g, b uint8)
}

var (
	jpegChroma = chroma{jpegHalf, jpegColor}
	webpChroma = chroma{webpHalf, webpColor}
)

func (c chroma) convert(img *image.YCbCr, out *RGB) {
	at := c.reader(img)
	for y := range out.Height {
		for x := range out.Width {
			luma := int(img.Y[y*img.YStride+x])
			r, g, b := c.toRGB(luma, at(img.Cb, x, y), at(img.Cr, x, y))
			out.Pixels = append(out.Pixels, r, g, b)
		}
	}
}

// reader gives the chroma of a pixel. Planes of unusual sizes are not interpolated.
func (c chroma) reader(img *image.YCbCr) func(plane []uint8, x, y int) int {
	b := img.Bounds()
	width, height := (b.Dx()+1)/2, (b.Dy()+1)/2
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio420:
		return func(plane []uint8, x, y int) int { return c.half(plane, img.CStride, width, height, x, y) }
	case image.YCbCrSubsampleRatio422:
		return func(plane []uint8, x, y int) int {
			row := plane[y*img.CStride : y*img.CStride+width]
			near, far := neighbours(x, width)
			if near == far {
				return int(row[near])
			}
			return (3*int(row[near]) + int(row[far]) + 1 + x%2) >> 2
		}
	}
	return func(plane []uint8, x, y int) int { return int(plane[img.COffset(b.Min.X+x, b.Min.Y+y)]) }
}

// neighbours gives the sample of a half-sized line that a position lies in, and the
// one next to it on the other side; the ends have themselves.
func neighbours(at, count int) (near, far int) {
	near = at / 2
	far = near + 2*(at%2) - 1
	return near, max(0, min(far, count-1))
}

// jpegHalf weighs the four samples around a pixel 9:3:3:1, rows first. Halves are
// rounded down and up in turn.
func jpegHalf(plane []uint8, stride, width, height, x, y int) int {
	nearRow, farRow := neighbours(y, height)
	nearColumn, farColumn := neighbours(x, width)
	column := func(c int) int { return 3*int(plane[nearRow*stride+c]) + int(plane[farRow*stride+c]) }
	return (3*column(nearColumn) + column(farColumn) + 8 - x%2) >> 4
}

// jpegColor is the conversion of JFIF, in fixed point with 16 bits.
func jpegColor(y, cb, cr int) (r, g, b uint8) {
	const half = 1 << 15
	cb, cr = cb-128, cr-128
	return clamp(y + (91881*cr+half)>>16), clamp(y + (-22554*cb-46802*cr+half)>>16), clamp(y + (116130*cb+half)>>16)
}

// webpHalf weighs 9:3:3:1 as well, with the rounding of libwebp: it takes the mean
// of the nearest sample and of one on the diagonal.
func webpHalf(plane []uint8, stride, width, height, x, y int) int {
	nearRow, farRow := neighbours(y, height)
	nearColumn, farColumn := neighbours(x, width)
	a, b := int(plane[nearRow*stride+nearColumn]), int(plane[nearRow*stride+farColumn])
	c, d := int(plane[farRow*stride+nearColumn]), int(plane[farRow*stride+farColumn])
	return (a + (a+3*b+3*c+d+8)>>3) >> 1
}

// webpColor is the conversion of VP8, whose luma goes from 16 to 235.
func webpColor(y, u, v int) (r, g, b uint8) {
	high := func(v, factor int) int { return v * factor >> 8 }
	luma := high(y, 19077)
	return clamp((luma + high(v, 26149) - 14234) >> 6),
		clamp((luma - high(u, 6419) - high(v, 13320) + 8708) >> 6),
		clamp((luma + high(u, 33050) - 17685) >> 6)
}

func clamp(v int) uint8 { return uint8(max(0, min(v, 255))) }
