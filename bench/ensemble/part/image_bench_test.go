package part

import (
	"bytes"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"testing"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/configgen"
)

// BenchmarkImage prepares a picture of 1280 x 853 for a model of 224 x 224.
func BenchmarkImage(b *testing.B) {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, 1280, 853))
	for y := range 853 {
		for x := range 1280 {
			wave := func(f float64) uint8 { return uint8(127 + 100*math.Sin(f*float64(x*y)/9000) + float64((x*7+y*13)%9)) }
			m.Set(x, y, color.NRGBA{wave(1), wave(1.3), wave(0.7), 255})
		}
	}
	var asPNG, asJPEG bytes.Buffer
	if err := png.Encode(&asPNG, m); err != nil {
		b.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, m, &jpeg.Options{Quality: 90}); err != nil {
		b.Fatal(err)
	}
	config := imageConfig(8, configgen.TypeFP32, 224, 224, 3, "interpolation", "bicubic", "layout", "NCHW", "max_pixels", "67108864")
	for name, file := range map[string]string{"PNG": asPNG.String(), "JPEG": asJPEG.String()} {
		b.Run(name, func(b *testing.B) {
			p, err := New(Image, config, "")
			if err != nil {
				b.Fatal(err)
			}
			in, out := []engine.Buffer{{Shape: []int64{1, 1}, Strings: []string{file}}}, make([]engine.Buffer, 2)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(in, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
