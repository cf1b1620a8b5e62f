package picture

import (
	"fmt"
	"image"
	"image/gif"
	"io"
	"strings"
)

// gifHead is a GIF up to its first frame.
type gifHead struct {
	bytes []byte // up to the descriptor of the frame
	// canvas is as large as the file says, or as its first frame needs.
	canvas image.Point
	// outside is the index of the colour around a frame that is smaller.
	outside uint8
}

// readGIFHead walks the blocks before the first frame. The decoder would make the colour
// of the transparent index black; here the flag is taken out, and the colour stays.
func readGIFHead(file string) (h gifHead, err error) {
	const screen, extension, control, frame = 13, 0x21, 0xf9, 0x2c
	at := screen
	if len(file) > 10 && file[10]&0x80 != 0 {
		at += 3 << (file[10]&7 + 1)
	}
	var flags []int
	for at < len(file) && file[at] == extension {
		if at+7 <= len(file) && file[at+1] == control && file[at+2] == 4 && file[at+3]&1 != 0 {
			flags = append(flags, at+3)
			h.outside = file[at+6]
		}
		for at += 2; at < len(file) && file[at] != 0; {
			at += 1 + int(file[at])
		}
		at++
	}
	if at+9 > len(file) || file[at] != frame {
		return h, fmt.Errorf("%w: GIF: there is no frame", ErrFormat)
	}
	h.bytes = []byte(file[:at])
	for _, flag := range flags {
		h.bytes[flag] &^= 1
	}
	number := func(at int) int { return int(file[at]) | int(file[at+1])<<8 }
	h.canvas.X = max(number(6), number(at+1)+number(at+5))
	h.canvas.Y = max(number(8), number(at+3)+number(at+7))
	return h, nil
}

// decodeGIF gives the first frame, on the canvas.
func decodeGIF(file string, o Options) (*Pixels, error) {
	h, err := readGIFHead(file)
	if err != nil {
		return nil, err
	}
	if err := o.check(h.canvas.X, h.canvas.Y); err != nil {
		return nil, err
	}
	for i, side := range []int{h.canvas.X, h.canvas.Y} {
		h.bytes[6+2*i], h.bytes[7+2*i] = uint8(side), uint8(side>>8)
	}
	decoded, err := gif.Decode(io.MultiReader(strings.NewReader(string(h.bytes)), strings.NewReader(file[len(h.bytes):])))
	if err != nil {
		return nil, fmt.Errorf("GIF: %w", err)
	}
	m, ok := decoded.(*image.Paletted)
	if !ok {
		return nil, fmt.Errorf("GIF: it has no palette")
	}
	out := New(h.canvas.X, h.canvas.Y, 3)
	around := coloursOf(m.Palette)[h.outside]
	for i := 0; i < len(out.Bytes) && !m.Rect.Eq(image.Rectangle{Max: h.canvas}); i += 3 {
		copy(out.Bytes[i:], around[:])
	}
	read := reader(m)
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		read(out.row(y)[3*m.Rect.Min.X:3*m.Rect.Max.X], y)
	}
	if o.Gray {
		out = out.gray()
	}
	return out, nil
}
