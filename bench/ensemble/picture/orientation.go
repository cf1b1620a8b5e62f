package picture

import (
	"encoding/binary"
	"strings"
)

// exifOfJPEG finds the EXIF of a JPEG: in a segment before the picture's data.
func exifOfJPEG(file string) string {
	const application1, scan = 0xe1, 0xda
	for at := 2; at+4 <= len(file) && file[at] == 0xff; {
		kind, size := file[at+1], int(file[at+2])<<8|int(file[at+3])
		if kind == 0xff { // a byte that only fills up
			at++
			continue
		}
		if kind == scan || size < 2 || at+2+size > len(file) {
			return ""
		}
		if body := file[at+4 : at+2+size]; kind == application1 && strings.HasPrefix(body, exifMark) {
			return body
		}
		at += 2 + size
	}
	return ""
}

// exifMark stands before the EXIF of JPEG files, and of some others.
const exifMark = "Exif\x00\x00"

// exifOfPNG finds the chunk eXIf.
func exifOfPNG(file string) string {
	for at := 8; at+12 <= len(file); {
		size := int64(binary.BigEndian.Uint32([]byte(file[at:])))
		if size > int64(len(file)-at-12) {
			return ""
		}
		if file[at+4:at+8] == "eXIf" {
			return file[at+8 : at+8+int(size)]
		}
		at += 12 + int(size)
	}
	return ""
}

// exifOfWebP finds the chunk EXIF.
func exifOfWebP(file string) string {
	for at := 12; at+8 <= len(file); {
		size := int64(binary.LittleEndian.Uint32([]byte(file[at+4:])))
		if size > int64(len(file)-at-8) {
			return ""
		}
		if file[at:at+4] == "EXIF" {
			return file[at+8 : at+8+int(size)]
		}
		at += 8 + int(size+size%2)
	}
	return ""
}

// orientation reads the tag of that name out of EXIF; 1 is a picture that stands as it is.
func orientation(exif string) int {
	data := []byte(strings.TrimPrefix(exif, exifMark))
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(data) < 8:
		return 1
	case string(data[:2]) == "MM":
		order = binary.BigEndian
	case string(data[:2]) != "II":
		return 1
	}
	at := int64(order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return 1
	}
	const tag, short, entry = 0x0112, 3, 12
	for n := range int64(order.Uint16(data[at:])) {
		field := at + 2 + n*entry
		if field+entry > int64(len(data)) {
			return 1
		}
		if order.Uint16(data[field:]) == tag && order.Uint16(data[field+2:]) == short {
			return int(order.Uint16(data[field+8:]))
		}
	}
	return 1
}

// turned gives a picture as it should stand. Other numbers than 2 to 8 leave it.
func (p *Pixels) turned(orientation int) *Pixels {
	if orientation < 2 || orientation > 8 {
		return p
	}
	out := New(p.Width, p.Height, p.Channels)
	if orientation >= 5 {
		out.Width, out.Height = p.Height, p.Width
	}
	right, bottom := p.Width-1, p.Height-1
	for y := range out.Height {
		row := out.row(y)
		for x := range out.Width {
			fromX, fromY := x, y
			switch orientation {
			case 2:
				fromX = right - x
			case 3:
				fromX, fromY = right-x, bottom-y
			case 4:
				fromY = bottom - y
			case 5:
				fromX, fromY = y, x
			case 6:
				fromX, fromY = y, bottom-x
			case 7:
				fromX, fromY = right-y, bottom-x
			case 8:
				fromX, fromY = right-y, x
			}
			at := (fromY*p.Width + fromX) * p.Channels
			copy(row[x*p.Channels:(x+1)*p.Channels], p.Bytes[at:])
		}
	}
	return out
}
