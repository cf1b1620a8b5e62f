package eval

import (
	"errors"

	"github.com/npuctl/npuctl/onnx/eval/internal/picture"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// imageOperators read pictures.
var imageOperators = []operator{
	{name: "ImageDecoder", since: 20, run: imageDecoder},
}

// imageDecoder gives the pixels of a file of one of the usual formats; JPEG 2000 is
// not among them. What cannot be decoded gives a picture without pixels, as the
// specification says. Decoders of lossy formats differ in the last bit, so folding
// leaves the operator alone.
func imageDecoder(c *Call) error {
	d, err := c.Tensor(0)
	if err != nil {
		return err
	}
	data := tensor.Data[uint8](d)
	if data == nil || d.Rank() != 1 {
		return c.Errorf("an encoded picture of %s%v, not UINT8[n]", d.Type(), d.Shape())
	}
	if err := c.Undefined("pixels of an encoded picture"); err != nil {
		return err
	}
	channels, pick := 3, map[string]func(to, pixel []uint8){
		"RGB":       func(to, p []uint8) { copy(to, p) },
		"BGR":       func(to, p []uint8) { to[0], to[1], to[2] = p[2], p[1], p[0] },
		"Grayscale": func(to, p []uint8) { to[0] = brightness(p) },
	}[c.String("pixel_format", "RGB")]
	switch {
	case pick == nil:
		return c.Errorf("attribute \"pixel_format\" is %q", c.String("pixel_format", ""))
	case c.String("pixel_format", "RGB") == "Grayscale":
		channels = 1
	}
	img, err := picture.Decode(data, c.Charge)
	switch {
	case errors.Is(err, picture.ErrUnsupported):
		return c.Unsupported("%v", err)
	case errors.Is(err, picture.ErrFormat):
		img = &picture.RGB{}
	case err != nil:
		return err
	}
	y, err := Output[uint8](c, 0, img.Height, img.Width, channels)
	if err != nil {
		return err
	}
	for i := range img.Height * img.Width {
		pick(y[i*channels:], img.Pixels[3*i:3*i+3])
	}
	return nil
}

// brightness weighs the colours as ITU-R BT.601 does, in fixed point.
func brightness(p []uint8) uint8 {
	return uint8((19595*int(p[0]) + 38470*int(p[1]) + 7471*int(p[2]) + 1<<15) >> 16)
}
