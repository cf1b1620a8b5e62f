package picture_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/npuctl/npuctl/onnx/eval/internal/picture"
)

func anything(int64) error { return nil }

// gradient changes slowly, so that halved chroma loses little.
func gradient(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetNRGBA(x, y, color.NRGBA{uint8(4 * x), uint8(4 * y), uint8(2 * (x + y)), 255})
		}
	}
	return img
}

func TestLosslessFormatsGiveWhatWasEncoded(t *testing.T) {
	img := gradient(7, 5)
	for name, encode := range map[string]func(w *bytes.Buffer) error{
		"png":  func(w *bytes.Buffer) error { return png.Encode(w, img) },
		"bmp":  func(w *bytes.Buffer) error { return bmp.Encode(w, img) },
		"tiff": func(w *bytes.Buffer) error { return tiff.Encode(w, img, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var data bytes.Buffer
			if err := encode(&data); err != nil {
				t.Fatal(err)
			}
			got, err := picture.Decode(data.Bytes(), anything)
			if err != nil {
				t.Fatal(err)
			}
			if got.Width != 7 || got.Height != 5 {
				t.Fatalf("%d by %d pixels", got.Width, got.Height)
			}
			for i := range 7 * 5 {
				if want := img.Pix[4*i : 4*i+3]; !slices.Equal(got.Pixels[3*i:3*i+3], want) {
					t.Fatalf("pixel %d is %v, want %v", i, got.Pixels[3*i:3*i+3], want)
				}
			}
		})
	}
}

// The standard encoder halves chroma; with interpolation a gradient survives that,
// by blocks of equal colour it would be off by more.
func TestJPEGInterpolatesChroma(t *testing.T) {
	img := gradient(33, 31)
	var data bytes.Buffer
	if err := jpeg.Encode(&data, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	got, err := picture.Decode(data.Bytes(), anything)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 33 * 31 {
		for k := range 3 {
			if d := int(got.Pixels[3*i+k]) - int(img.Pix[4*i+k]); d < -6 || d > 6 {
				t.Fatalf("pixel %d has %v, want about %v", i, got.Pixels[3*i:3*i+3], img.Pix[4*i:4*i+3])
			}
		}
	}
}

func TestPortableMaps(t *testing.T) {
	tests := []struct {
		name, file string
		want       []uint8
	}{
		{"bits as text", "P1\n# a comment\n3 1\n101\n", []uint8{0, 0, 0, 255, 255, 255, 0, 0, 0}},
		{"grays as text", "P2 2 1 4 0 4", []uint8{0, 0, 0, 255, 255, 255}},
		{"colours as text", "P3 1 1 255 1 2 3\n", []uint8{1, 2, 3}},
		{"bits as bytes, a byte a row", "P4 9 1\n\x80\x80", []uint8{
			0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0}},
		{"grays as bytes", "P5 2 1 255\n\x07\xff", []uint8{7, 7, 7, 255, 255, 255}},
		{"grays of 16 bits", "P5 1 1 65535\n\x80\x00", []uint8{128, 128, 128}},
		{"colours as bytes", "P6 1 1 255\n\x0a\x0b\x0c", []uint8{10, 11, 12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := picture.Decode([]byte(tt.file), anything)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Pixels, tt.want) {
				t.Errorf("pixels %v, want %v", got.Pixels, tt.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, file string
		want       error
	}{
		{"nothing", "", picture.ErrFormat},
		{"no picture", "hello", picture.ErrFormat},
		{"cut short", "P6 2 2 255\nabc", picture.ErrFormat},
		{"a negative size", "P6 -1 2 255\nabc", picture.ErrFormat},
		{"broken PNG", "\x89PNG\r\n\x1a\nxxxx", picture.ErrFormat},
		{"JPEG 2000", "\xff\x4f\xff\x51\x00", picture.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := picture.Decode([]byte(tt.file), anything); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestAsksBeforeMakingSomethingLarge(t *testing.T) {
	tooLarge := errors.New("too large")
	_, err := picture.Decode([]byte("P6 100000 100000 255\n"), func(n int64) error {
		if n < 100000*100000 {
			t.Errorf("asked for %d bytes only", n)
		}
		return tooLarge
	})
	if !errors.Is(err, tooLarge) {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	var data bytes.Buffer
	if err := jpeg.Encode(&data, gradient(9, 9), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(data.Bytes()))
	data.Reset()
	if err := tiff.Encode(&data, gradient(9, 9), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Clone(data.Bytes()))
	for _, s := range []string{"P1 2 2 1001", "P4 9 1\n\x80\x80", "P6 1 1 255\n\x0a\x0b\x0c", "RIFF\x00\x00\x00\x00WEBPVP8 "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := picture.Decode(data, func(n int64) error {
			if n > 1<<24 {
				return errors.New("too large")
			}
			return nil
		})
		if err == nil && len(img.Pixels) != 3*img.Width*img.Height {
			t.Errorf("%d bytes for %d by %d pixels", len(img.Pixels), img.Width, img.Height)
		}
	})
}
