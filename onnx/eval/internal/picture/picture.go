// Package picture reads image files into plain red, green and blue bytes, as close
// to the reference decoders as the standard library's parts allow: the chroma of
// JPEG and WebP, which is stored at half the size, is interpolated as libjpeg-turbo
// and libwebp do it.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// ErrUnsupported marks files that may be in order, but are of a kind that this
// package cannot read.
var ErrUnsupported = errors.New("picture format not supported")

// ErrFormat marks files that are no picture, or a broken one.
var ErrFormat = errors.New("not a picture that can be decoded")

// RGB is a picture: three bytes a pixel, row by row.
type RGB struct {
	Width, Height int
	Pixels        []uint8
}

// format reads one kind of file, which its first bytes tell.
type format struct {
	magic  string // a ? stands for any byte
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	chroma chroma // how colours come out of a YCbCr picture
}

var formats = []format{
	{"BM", bmp.DecodeConfig, bmp.Decode, jpegChroma},
	{"\xff\xd8", jpeg.DecodeConfig, jpeg.Decode, jpegChroma},
	{"\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode, jpegChroma},
	{"II*\x00", tiff.DecodeConfig, tiff.Decode, jpegChroma},
	{"MM\x00*", tiff.DecodeConfig, tiff.Decode, jpegChroma},
	{"RIFF????WEBPVP8", webp.DecodeConfig, webp.Decode, webpChroma},
	{"P?", decodePortableConfig, decodePortable, jpegChroma},
}

// knownButUnread are the first bytes of formats that have no decoder here.
var knownButUnread = []string{"\x00\x00\x00\x0cjP  \r\n\x87\n", "\xff\x4f\xff\x51"} // JPEG 2000

// Decode reads a picture. allow is asked, before anything large is made, whether
// that many bytes may be.
func Decode(data []byte, allow func(bytes int64) error) (*RGB, error) {
	for _, magic := range knownButUnread {
		if hasMagic(data, magic) {
			return nil, fmt.Errorf("%w: JPEG 2000", ErrUnsupported)
		}
	}
	for _, f := range formats {
		if hasMagic(data, f.magic) {
			return f.read(data, allow)
		}
	}
	return nil, ErrFormat
}

func hasMagic(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range magic {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}

func (f format) read(data []byte, allow func(bytes int64) error) (*RGB, error) {
	config, err := f.config(bytes.NewReader(data))
	if err != nil {
		return nil, classified(err)
	}
	if config.Width <= 0 || config.Height <= 0 || int64(config.Width) > (1<<40)/int64(config.Height) {
		return nil, fmt.Errorf("%w: %d by %d pixels", ErrFormat, config.Width, config.Height)
	}
	// The decoder's picture has up to 8 bytes a pixel, ours has 3.
	if err := allow(int64(config.Width) * int64(config.Height) * 11); err != nil {
		return nil, err
	}
	img, err := f.decode(bytes.NewReader(data))
	if err != nil {
		return nil, classified(err)
	}
	return toRGB(img, f.chroma), nil
}

// classified says whether a decoder's error is about the file or about itself.
func classified(err error) error {
	var fromJPEG jpeg.UnsupportedError
	var fromPNG png.UnsupportedError
	var fromTIFF tiff.UnsupportedError
	if errors.As(err, &fromJPEG) || errors.As(err, &fromPNG) || errors.As(err, &fromTIFF) || errors.Is(err, bmp.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// toRGB drops transparency and the lower half of 16-bit colours.
func toRGB(img image.Image, c chroma) *RGB {
	b := img.Bounds()
	out := &RGB{b.Dx(), b.Dy(), make([]uint8, 0, 3*b.Dx()*b.Dy())}
	switch img := img.(type) {
	case *image.YCbCr:
		c.convert(img, out)
		return out
	case *image.NYCbCrA:
		c.convert(&img.YCbCr, out)
		return out
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			p := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			out.Pixels = append(out.Pixels, p.R, p.G, p.B)
		}
	}
	return out
}
