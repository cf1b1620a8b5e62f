package picture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// ErrFormat is the error of files that are no picture, or one whose header is broken.
var ErrFormat = errors.New("no picture")

// LongestSide is the most that a side of a picture may have, as in JPEG: rows cost,
// however short they are.
const LongestSide = 65535

// Options say how to decode.
type Options struct {
	// MaxPixels is the most that a picture may have; a larger one is not decoded.
	MaxPixels int64
	// Gray gives one channel; else there are three: red, green, blue.
	Gray bool
	// Upright turns pictures as their EXIF says.
	Upright bool
}

// Pixels are the bytes of a picture, row by row, with the channels of a pixel together.
type Pixels struct {
	Width, Height, Channels int
	Bytes                   []byte
}

// New makes a picture that is black.
func New(width, height, channels int) *Pixels {
	return &Pixels{width, height, channels, make([]byte, width*height*channels)}
}

// row gives the bytes of a row.
func (p *Pixels) row(y int) []byte {
	size := p.Width * p.Channels
	return p.Bytes[y*size : (y+1)*size]
}

// format is a kind of file, which its first bytes tell.
type format struct {
	name, magic string // in magic a ? stands for any byte
	config      func(io.Reader) (image.Config, error)
	decode      func(io.Reader) (image.Image, error)
	chroma      *chroma
	// exif finds the EXIF of a file, where a format has any.
	exif func(file string) string
}

var formats = []format{
	{"PNG", "\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode, nil, exifOfPNG},
	{"JPEG", "\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode, &jpegChroma, exifOfJPEG},
	{"WebP", "RIFF????WEBP", webp.DecodeConfig, webp.Decode, &webpChroma, exifOfWebP},
	{"BMP", "BM", bmp.DecodeConfig, bmp.Decode, nil, nil},
}

func hasMagic(file, magic string) bool {
	if len(file) < len(magic) {
		return false
	}
	for i := range magic {
		if magic[i] != '?' && magic[i] != file[i] {
			return false
		}
	}
	return true
}

// Decode reads a picture. The error of a file that is none wraps [ErrFormat].
func Decode(file string, o Options) (*Pixels, error) {
	if hasMagic(file, "GIF8?a") {
		return decodeGIF(file, o)
	}
	for i := range formats {
		if hasMagic(file, formats[i].magic) {
			return formats[i].read(file, o)
		}
	}
	return nil, ErrFormat
}

func (f *format) read(file string, o Options) (*Pixels, error) {
	config, err := f.config(strings.NewReader(file))
	if err != nil {
		return nil, f.classified(err)
	}
	if err := o.check(config.Width, config.Height); err != nil {
		return nil, err
	}
	if isAnimatedWebP(file) {
		return nil, errors.New("WebP: it is animated, which is not read here; give one of its frames as a file")
	}
	decoded, err := f.decode(strings.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	out := convert(decoded, f.chroma)
	if o.Gray {
		out = out.gray()
	}
	if o.Upright && f.exif != nil {
		out = out.turned(orientation(f.exif(file)))
	}
	return out, nil
}

// classified tells broken headers from what a decoder cannot do.
func (f *format) classified(err error) error {
	var fromPNG png.UnsupportedError
	var fromJPEG jpeg.UnsupportedError
	if errors.As(err, &fromPNG) || errors.As(err, &fromJPEG) || errors.Is(err, bmp.ErrUnsupported) {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrFormat, f.name, err)
}

// isAnimatedWebP looks at the flags of an extended header.
func isAnimatedWebP(file string) bool {
	return hasMagic(file, "RIFF????WEBPVP8X") && len(file) > 20 && file[20]&2 != 0
}

// check holds a size against what is allowed.
func (o *Options) check(width, height int) error {
	switch {
	case width < 1 || height < 1:
		return fmt.Errorf("%w: %d x %d pixels", ErrFormat, width, height)
	case int64(width) > o.MaxPixels/int64(height):
		return fmt.Errorf("it has %d x %d pixels, and max_pixels is %d", width, height, o.MaxPixels)
	case max(width, height) > LongestSide:
		return fmt.Errorf("it has %d x %d pixels, and a side has at most %d", width, height, LongestSide)
	}
	return nil
}

// convert gives the bytes of a picture in colours.
func convert(m image.Image, c *chroma) *Pixels {
	b := m.Bounds()
	out := New(b.Dx(), b.Dy(), 3)
	switch m := m.(type) {
	case *image.YCbCr:
		c.convert(m, out)
	case *image.NYCbCrA:
		c.convert(&m.YCbCr, out)
	default:
		read := reader(m)
		for y := range b.Dy() {
			read(out.row(y), b.Min.Y+y)
		}
	}
	return out
}

// reader gives a row of a picture as red, green and blue.
func reader(m image.Image) func(row []byte, y int) {
	b := m.Bounds()
	each := func(pix []byte, offset func(x, y int) int, step int, colour func(to, from []byte)) func([]byte, int) {
		return func(row []byte, y int) {
			at := offset(b.Min.X, y)
			for ; len(row) > 0; row, at = row[3:], at+step {
				colour(row[:3:3], pix[at:at+step])
			}
		}
	}
	three := func(to, from []byte) { to[0], to[1], to[2] = from[0], from[1], from[2] }
	upper := func(to, from []byte) { to[0], to[1], to[2] = from[0], from[2], from[4] }
	one := func(to, from []byte) { to[0], to[1], to[2] = from[0], from[0], from[0] }
	switch m := m.(type) {
	case *image.Gray:
		return each(m.Pix, m.PixOffset, 1, one)
	case *image.Gray16:
		return each(m.Pix, m.PixOffset, 2, one)
	case *image.RGBA:
		return each(m.Pix, m.PixOffset, 4, three)
	case *image.NRGBA:
		return each(m.Pix, m.PixOffset, 4, three)
	case *image.RGBA64:
		return each(m.Pix, m.PixOffset, 8, upper)
	case *image.NRGBA64:
		return each(m.Pix, m.PixOffset, 8, upper)
	case *image.CMYK:
		return each(m.Pix, m.PixOffset, 4, fromInks)
	case *image.Paletted:
		colours := coloursOf(m.Palette)
		return each(m.Pix, m.PixOffset, 1, func(to, from []byte) { copy(to, colours[from[0]][:]) })
	}
	return func(row []byte, y int) {
		for x := range len(row) / 3 {
			c := color.NRGBAModel.Convert(m.At(b.Min.X+x, y)).(color.NRGBA)
			row[3*x], row[3*x+1], row[3*x+2] = c.R, c.G, c.B
		}
	}
}

// fromInks makes a colour of cyan, magenta, yellow and black.
func fromInks(to, from []byte) {
	light := 255 - int(from[3])
	for i := range to {
		product := int(from[i])*light + 128
		to[i] = clamp(int32(light - (product>>8+product)>>8))
	}
}

// coloursOf gives the colours of a palette without their transparency.
func coloursOf(p color.Palette) (colours [256][3]byte) {
	for i, c := range p[:min(len(colours), len(p))] {
		switch c := c.(type) {
		case color.NRGBA:
			colours[i] = [3]byte{c.R, c.G, c.B}
		case color.RGBA:
			colours[i] = [3]byte{c.R, c.G, c.B}
		default:
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			colours[i] = [3]byte{n.R, n.G, n.B}
		}
	}
	return colours
}

// gray gives the brightness of a picture in colours, as ITU-R 601-2 weighs them.
func (p *Pixels) gray() *Pixels {
	out := New(p.Width, p.Height, 1)
	for i := range out.Bytes {
		c := p.Bytes[3*i : 3*i+3 : 3*i+3]
		out.Bytes[i] = uint8((int(c[0])*19595 + int(c[1])*38470 + int(c[2])*7471 + 0x8000) >> 16)
	}
	return out
}
