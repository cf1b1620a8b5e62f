package picture

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
)

// portable is the header of a PBM, PGM or PPM file, and where its pixels are read.
type portable struct {
	from          *bufio.Reader
	kind          byte // '1' to '6': bits, grays and colours, as text and as bytes
	width, height int
	most          int // the number that means full
}

func readPortableHeader(r io.Reader) (*portable, error) {
	p := &portable{from: bufio.NewReader(r), most: 1}
	var magic [2]byte
	if _, err := io.ReadFull(p.from, magic[:]); err != nil {
		return nil, err
	}
	if magic[0] != 'P' || magic[1] < '1' || magic[1] > '6' {
		return nil, errors.New("no portable map")
	}
	p.kind = magic[1]
	fields := []*int{&p.width, &p.height, &p.most}
	if p.kind == '1' || p.kind == '4' {
		fields = fields[:2]
	}
	for _, field := range fields {
		var err error
		if *field, err = p.number(); err != nil {
			return nil, err
		}
	}
	if p.most < 1 || p.most > 65535 {
		return nil, fmt.Errorf("colours up to %d", p.most)
	}
	return p, nil
}

// number reads a decimal number and the one blank after it; # starts a comment.
func (p *portable) number() (int, error) {
	n, digits := 0, 0
	for {
		b, err := p.from.ReadByte()
		switch {
		case err != nil && (err != io.EOF || digits == 0):
			return 0, err
		case err == nil && b >= '0' && b <= '9' && n < 1<<30/10:
			n, digits = 10*n+int(b-'0'), digits+1
			continue
		case err == nil && b == '#':
			if _, err := p.from.ReadString('\n'); err != nil {
				return 0, err
			}
		case err == nil && b != ' ' && b != '\t' && b != '\n' && b != '\r':
			return 0, fmt.Errorf("%q in a number", b)
		}
		if digits > 0 {
			return n, nil
		}
	}
}

func decodePortableConfig(r io.Reader) (image.Config, error) {
	p, err := readPortableHeader(r)
	if err != nil {
		return image.Config{}, err
	}
	return image.Config{ColorModel: color.NRGBAModel, Width: p.width, Height: p.height}, nil
}

func decodePortable(r io.Reader) (image.Image, error) {
	p, err := readPortableHeader(r)
	if err != nil {
		return nil, err
	}
	img := image.NewNRGBA(image.Rect(0, 0, p.width, p.height))
	for y := range p.height {
		for x := range p.width {
			c, err := p.pixel(x)
			if err != nil {
				return nil, err
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img, nil
}

// pixel reads the next pixel, which is in column x.
func (p *portable) pixel(x int) (color.NRGBA, error) {
	channels := 1
	if p.kind == '3' || p.kind == '6' {
		channels = 3
	}
	var v [3]uint8
	for i := range channels {
		sample, err := p.sample(x)
		if err != nil {
			return color.NRGBA{}, err
		}
		v[i] = uint8((min(sample, p.most)*255 + p.most/2) / p.most)
	}
	if p.kind == '1' || p.kind == '4' {
		v[0] = 255 - v[0] // 1 is black
	}
	if channels == 1 {
		v[1], v[2] = v[0], v[0]
	}
	return color.NRGBA{v[0], v[1], v[2], 255}, nil
}

func (p *portable) sample(x int) (int, error) {
	switch {
	case p.kind == '1':
		return p.bit()
	case p.kind < '4':
		return p.number()
	case p.kind == '4':
		b, err := p.from.ReadByte()
		if err == nil && x%8 != 7 && x != p.width-1 {
			err = p.from.UnreadByte()
		}
		return int(b >> (7 - x%8) & 1), err
	}
	high, err := p.from.ReadByte()
	if err != nil || p.most < 256 {
		return int(high), err
	}
	low, err := p.from.ReadByte()
	return int(high)<<8 | int(low), err
}

// bit reads one digit; digits may follow each other without a blank.
func (p *portable) bit() (int, error) {
	for {
		b, err := p.from.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case b == '0' || b == '1':
			return int(b - '0'), nil
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			return 0, fmt.Errorf("%q in a bitmap", b)
		}
	}
}
