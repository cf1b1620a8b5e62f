package part

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/bench/engine"
	"github.com/npuctl/npuctl/bench/ensemble/picture"
	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// Bounds of what a config may ask for.
const (
	longestSide  = math.MaxInt16
	mostPixels   = 1 << 30  // of a picture
	scalingRoom  = 64 << 20 // pixels that a picture may always take on its way
	mostOfOutput = 64 << 20 // pixels of the model's size
)

// image is image/model.py.
type image struct {
	height, width int
	fit           func(*image, *picture.Pixels) (fitted, error)
	shortSide     int
	filter        picture.Filter
	pad           uint8
	decode        picture.Options
	channels      int
	isReversed    bool // bgr
	isFirst       bool // channels stand first
	room          int64
	isSingle      bool // without a batch axis
	hasGeometry   bool
	// table has, for each channel of the output, the bits of every value of a byte.
	table [3][256]uint64
	size  int // bytes of an element
}

func newImage(s *settings) (Part, error) {
	if !s.tensors(1, 1, 2) {
		return nil, s.err
	}
	c := s.config
	fits := map[string]func(*image, *picture.Pixels) (fitted, error){"stretch": (*image).stretch, "crop": (*image).crop, "letterbox": (*image).letterbox}
	p := &image{
		fit: fits[s.oneOf("resize", "stretch", "crop", "letterbox")], shortSide: s.int("short_side", 1, longestSide), pad: uint8(s.int("pad", 0, 255)),
		decode:   picture.Options{MaxPixels: int64(s.int("max_pixels", 1, mostPixels)), Upright: s.bool("upright")},
		channels: 3, isFirst: s.oneOf("layout", "NCHW", "NHWC") == "NCHW",
		isSingle: c.MaxBatchSize == 0 && len(c.Output[0].Dims) == 3, hasGeometry: len(c.Output) > 1,
	}
	colour := s.oneOf("colour", "rgb", "bgr", "gray")
	p.isReversed, p.decode.Gray = colour == "bgr", colour == "gray"
	if p.decode.Gray {
		p.channels = 1
	}
	var err error
	if p.filter, err = picture.FilterNamed(s.oneOf("interpolation", "nearest", "bilinear", "bicubic", "lanczos", "box")); err != nil {
		s.refuse("%w", err)
	}
	p.readSize(s)
	p.room = max(scalingRoom, p.decode.MaxPixels)
	p.fill(s)
	p.checkTensors(s)
	return p, s.err
}

// readSize reads HEIGHT,WIDTH.
func (p *image) readSize(s *settings) {
	height, width, ok := strings.Cut(s.text("size"), ",")
	var errs [2]error
	p.height, errs[0] = strconv.Atoi(strings.TrimSpace(height))
	p.width, errs[1] = strconv.Atoi(strings.TrimSpace(width))
	isSide := func(n int) bool { return n >= 1 && n <= longestSide }
	if !ok || errs[0] != nil || errs[1] != nil || !isSide(p.height) || !isSide(p.width) || p.height*p.width > mostOfOutput {
		s.refuse("parameter size %q: give HEIGHT,WIDTH, of at most %d pixels", s.text("size"), mostOfOutput)
	}
}

// fill makes the table: a byte times scale, less mean, divided by std, each rounded to
// float32, and then to the type of the output.
func (p *image) fill(s *settings) {
	scale, mean, std := s.float("scale"), s.floats("mean", p.channels), s.floats("std", p.channels)
	kind := s.config.Output[0].DataType
	for c := range p.channels {
		for b := range 256 {
			x := float32(float32(float32(b)*scale)-mean[c]) / std[c]
			switch kind {
			case configgen.TypeUint8:
				p.table[c][b], p.size = uint64(b), 1
			case configgen.TypeFP16:
				p.table[c][b], p.size = uint64(tensor.F16From(x)), 2
			case configgen.TypeFP32:
				p.table[c][b], p.size = uint64(math.Float32bits(x)), 4
			case configgen.TypeFP64:
				p.table[c][b], p.size = math.Float64bits(float64(x)), 8
			}
		}
	}
	if p.size == 0 {
		s.refuse("output %s is %v: pictures are TYPE_FP32, TYPE_FP16, TYPE_FP64 or TYPE_UINT8", s.config.Output[0].Name, kind)
	}
}

// checkTensors holds what the config declares against the size.
func (p *image) checkTensors(s *settings) {
	in, out := &s.config.Input[0], &s.config.Output[0]
	if in.DataType != configgen.TypeString {
		s.refuse("input %s is %v: pictures are files, TYPE_STRING", in.Name, in.DataType)
	}
	want := []int64{int64(p.channels), int64(p.height), int64(p.width)}
	if !p.isFirst {
		want = []int64{want[1], want[2], want[0]}
	}
	dims := out.Dims
	if s.config.MaxBatchSize == 0 && len(dims) == 4 {
		dims = dims[1:]
	}
	fits := len(dims) == len(want)
	for i := 0; fits && i < len(dims); i++ {
		fits = dims[i] < 0 || dims[i] == want[i]
	}
	if !fits {
		s.refuse("output %s has dims %v, and the parameters size, colour and layout make %v", out.Name, out.Dims, want)
	}
}

// Run makes the tensor of all pictures of a request.
func (p *image) Run(in, out []engine.Buffer) error {
	files := in[0].Strings
	if len(files) == 0 {
		return errors.New("there are no pictures in the request")
	}
	count := len(files)
	var lead []int64
	if p.isSingle {
		count = 1
	} else {
		lead = []int64{int64(count)}
	}
	dims := [3]int64{int64(p.channels), int64(p.height), int64(p.width)}
	if !p.isFirst {
		dims = [3]int64{dims[1], dims[2], dims[0]}
	}
	each := p.channels * p.height * p.width * p.size
	tensors := shaped(&out[0], count*each, lead, dims[:]...)
	var places []byte
	if p.hasGeometry {
		places = shaped(&out[1], count*24, lead, 6)
	}
	for i, file := range files {
		f, err := p.prepare(i, file)
		if err != nil {
			return err
		}
		if i >= count {
			continue // looked at, as in the server, and not given
		}
		p.write(tensors[i*each:(i+1)*each], f.pixels)
		if p.hasGeometry {
			f.write(places[i*24 : (i+1)*24])
		}
	}
	return nil
}

// fitted is a picture of the model's size, and where its points went.
type fitted struct {
	pixels   *picture.Pixels
	geometry [6]float64 // scale x, y, offset x, y, width, height
}

func (f *fitted) write(to []byte) {
	for i, x := range f.geometry {
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(float32(x)))
	}
}

func (p *image) prepare(number int, file string) (f fitted, err error) {
	pixels, err := picture.Decode(file, p.decode)
	if errors.Is(err, picture.ErrFormat) {
		return f, fmt.Errorf("picture %d of the request is %d bytes that are no picture", number, len(file))
	}
	if err != nil {
		return f, fmt.Errorf("picture %d of the request cannot be decoded: %w", number, err)
	}
	if f, err = p.fit(p, pixels); err != nil {
		return f, fmt.Errorf("picture %d of the request cannot be brought to the model's size: %w", number, err)
	}
	f.geometry[4], f.geometry[5] = float64(pixels.Width), float64(pixels.Height)
	return f, nil
}

// scaled is another size. The width changes first, so that the higher of both heights
// counts.
func (p *image) scaled(m *picture.Pixels, width, height int) (*picture.Pixels, error) {
	if int64(width)*int64(max(height, m.Height)) > p.room {
		return nil, fmt.Errorf("it has %d x %d pixels, and scaling it to %d x %d takes more than %d", m.Width, m.Height, width, height, p.room)
	}
	return m.Resize(width, height, p.filter), nil
}

func (p *image) stretch(m *picture.Pixels) (f fitted, err error) {
	f.geometry = [6]float64{float64(p.width) / float64(m.Width), float64(p.height) / float64(m.Height)}
	f.pixels, err = p.scaled(m, p.width, p.height)
	return f, err
}

// crop has the shorter side become short_side, and cuts the middle out.
func (p *image) crop(m *picture.Pixels) (f fitted, err error) {
	factor := float64(p.shortSide) / float64(min(m.Width, m.Height))
	width := max(int(float64(m.Width)*factor), p.shortSide)
	height := max(int(float64(m.Height)*factor), p.shortSide)
	left := int(math.RoundToEven(float64(width-p.width) / 2))
	top := int(math.RoundToEven(float64(height-p.height) / 2))
	f.geometry = [6]float64{float64(width) / float64(m.Width), float64(height) / float64(m.Height), -float64(left), -float64(top)}
	large, err := p.scaled(m, width, height)
	if err != nil {
		return f, err
	}
	f.pixels = large.Window(left, top, p.width, p.height, 0)
	return f, nil
}

// letterbox is the whole picture, with bars where its form is another.
func (p *image) letterbox(m *picture.Pixels) (f fitted, err error) {
	factor := min(float64(p.width)/float64(m.Width), float64(p.height)/float64(m.Height))
	width := max(1, int(math.RoundToEven(float64(m.Width)*factor)))
	height := max(1, int(math.RoundToEven(float64(m.Height)*factor)))
	left, top := (p.width-width)>>1, (p.height-height)>>1
	f.geometry = [6]float64{float64(width) / float64(m.Width), float64(height) / float64(m.Height), float64(left), float64(top)}
	small, err := p.scaled(m, width, height)
	if err != nil {
		return f, err
	}
	f.pixels = small.Window(-left, -top, p.width, p.height, p.pad)
	return f, nil
}

// write makes the tensor of a picture, in the layout and type of the output.
func (p *image) write(to []byte, m *picture.Pixels) {
	count := p.height * p.width
	for c := range p.channels {
		source := c
		if p.isReversed {
			source = 2 - c
		}
		table := &p.table[c]
		at, step := c*count, 1
		if !p.isFirst {
			at, step = c, p.channels
		}
		for i := source; i < len(m.Bytes); i += p.channels {
			bits := table[m.Bytes[i]]
			switch p.size {
			case 1:
				to[at] = uint8(bits)
			case 2:
				binary.LittleEndian.PutUint16(to[2*at:], uint16(bits))
			case 4:
				binary.LittleEndian.PutUint32(to[4*at:], uint32(bits))
			default:
				binary.LittleEndian.PutUint64(to[8*at:], bits)
			}
			at += step
		}
	}
}
