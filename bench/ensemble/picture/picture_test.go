package picture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The bytes of all kinds of files are held against Pillow's in package part.

// pngOf is a PNG whose header says a size, without the pixels.
func pngOf(width, height uint32) string {
	chunk := func(kind string, data []byte) []byte {
		out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		out = append(append(out, kind...), data...)
		return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return "\x89PNG\r\n\x1a\n" + string(chunk("IHDR", append(size, 8, 2, 0, 0, 0))) + string(chunk("IEND", nil))
}

// gifOf is a GIF with a screen and a frame of other sizes, without the pixels.
func gifOf(screen, frame uint16) string {
	two := func(n uint16) string { return string(binary.LittleEndian.AppendUint16(nil, n)) }
	return "GIF89a" + two(screen) + two(screen) + "\x80\x00\x00" + strings.Repeat("abc", 2) + "," + two(0) + two(0) + two(frame) + two(frame) + "\x00\x02\x00;"
}

// bmpOf is a BMP whose header says a size.
func bmpOf(width, height int32) string {
	out := make([]byte, 54)
	copy(out, "BM")
	binary.LittleEndian.PutUint32(out[10:], 54)
	binary.LittleEndian.PutUint32(out[14:], 40)
	binary.LittleEndian.PutUint32(out[18:], uint32(width))
	binary.LittleEndian.PutUint32(out[22:], uint32(height))
	copy(out[26:], "\x01\x00\x18\x00")
	return string(out)
}

// webPOf is an extended WebP whose canvas has a size.
func webPOf(side uint32, flags byte) string {
	out := []byte("RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00")
	out = append(out, flags, 0, 0, 0)
	for range 2 {
		out = append(out, byte(side-1), byte((side-1)>>8), byte((side-1)>>16))
	}
	return string(append(out, 0, 0))
}

// Headers that say too much are refused before memory is made; other files say why.
func TestRefused(t *testing.T) {
	jpeg := func(height, width string) string {
		return "\xff\xd8\xff\xc0\x00\x11\x08" + height + width + "\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00"
	}
	for _, test := range []struct {
		name, file, want string
		isFormat         bool
	}{
		{"nothing", "", "no picture", true},
		{"a text", "hello", "no picture", true},
		{"PNG, large", pngOf(60000, 60000), "it has 60000 x 60000 pixels, and max_pixels is 67108864", false},
		{"PNG, long", pngOf(65536, 1), "it has 65536 x 1 pixels, and a side has at most 65535", false},
		{"PNG, without data", pngOf(8, 8), "PNG: ", false},
		{"PNG, broken", pngOf(8, 8)[:20], "no picture: PNG: ", true},
		{"PNG of no size", pngOf(0, 8), "no picture", true},
		{"JPEG, large", jpeg("\xff\xff", "\xff\xff"), "it has 65535 x 65535 pixels", false},
		{"JPEG, without data", jpeg("\x00\x08", "\x00\x08"), "JPEG: ", false},
		{"JPEG with arithmetic coding", "\xff\xd8\xff\xc9\x00\x11\x08\x00\x08\x00\x08\x03\x01\x22\x00\x02\x11\x00\x03\x11\x00", "JPEG: unsupported", false},
		{"GIF, a large screen", gifOf(65000, 2), "it has 65000 x 65000 pixels", false},
		{"GIF, a large frame", gifOf(2, 65000), "it has 65000 x 65000 pixels", false},
		{"GIF, without data", gifOf(2, 2), "GIF: ", false},
		{"GIF, without a frame", gifOf(2, 2)[:19], "no picture: GIF: there is no frame", true},
		{"BMP, large", bmpOf(60000, 60000), "it has 60000 x 60000 pixels", false},
		{"BMP, upside down and large", bmpOf(60000, -60000), "it has 60000 x 60000 pixels", false},
		{"BMP, without data", bmpOf(2, 2), "BMP: ", false},
		{"WebP, large", webPOf(16000, 0), "it has 16000 x 16000 pixels", false},
		{"WebP, animated", webPOf(16, 2), "WebP: it is animated, which is not read here", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Decode(test.file, Options{MaxPixels: 64 << 20})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || errors.Is(err, ErrFormat) != test.isFormat {
				t.Errorf("%v, want %s", err, test.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
				t.Errorf("%d bytes of memory for a file of %d", used, len(test.file))
			}
		})
	}
}

// numbered is a picture whose pixels are numbered.
func numbered(width, height int) *Pixels {
	p := New(width, height, 1)
	for i := range p.Bytes {
		p.Bytes[i] = uint8(i + 1)
	}
	return p
}

func TestTurned(t *testing.T) {
	for orientation, want := range []string{
		"[1 2 3 4 5 6]", "[1 2 3 4 5 6]", "[3 2 1 6 5 4]", "[6 5 4 3 2 1]", "[4 5 6 1 2 3]", "[1 4 2 5 3 6]", "[4 1 5 2 6 3]", "[6 3 5 2 4 1]", "[3 6 2 5 1 4]", "[1 2 3 4 5 6]",
	} {
		p := numbered(3, 2).turned(orientation)
		if fmt.Sprint(p.Bytes) != want || (p.Width == 2) != (orientation >= 5 && orientation <= 8) {
			t.Errorf("orientation %d: %v, %d wide, want %s", orientation, p.Bytes, p.Width, want)
		}
	}
}

// EXIF in both byte orders; what is broken leaves a picture as it is.
func TestOrientation(t *testing.T) {
	for exif, want := range map[string]int{
		"II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00":             6,
		"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x03\x00\x00": 3,
		"":        1,
		"II*\x00": 1,
		"XX*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00": 1,
		"II*\x00\xff\xff\xff\xff\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00": 1,
		"II*\x00\x08\x00\x00\x00\xff\xff":                                                 1,
	} {
		if got := orientation(exif); got != want {
			t.Errorf("%q: %d, want %d", exif, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	p := numbered(3, 2)
	for _, test := range []struct {
		left, top, width, height int
		want                     string
	}{
		{0, 0, 3, 2, "[1 2 3 4 5 6]"}, {1, 1, 1, 1, "[5]"}, {-1, -1, 3, 2, "[9 9 9 9 1 2]"}, {2, 1, 3, 2, "[6 9 9 9 9 9]"}, {7, 7, 2, 1, "[9 9]"}, {-9, 0, 2, 1, "[9 9]"},
	} {
		if got := fmt.Sprint(p.Window(test.left, test.top, test.width, test.height, 9).Bytes); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// Whatever a file holds, it becomes a picture within the limits or an error.
func FuzzDecode(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 4000 {
			f.Add(string(data))
		}
	}
	f.Fuzz(func(t *testing.T, file string) {
		p, err := Decode(file, Options{MaxPixels: 1 << 14, Upright: true})
		if err != nil {
			return
		}
		if p.Width*p.Height > 1<<14 || len(p.Bytes) != 3*p.Width*p.Height {
			t.Errorf("%d x %d with %d bytes", p.Width, p.Height, len(p.Bytes))
		}
	})
}
