package pipeline_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/internal/engine"
	"github.com/npuctl/npuctl/internal/tritonserver"
	"github.com/npuctl/npuctl/internal/tritonserver/tritontest"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// value is an input or output of a request. Data is the tensor's bytes; of BYTES, each
// element behind its length.
type value struct {
	name, kind string
	shape      []int64
	data       []byte
}

func textsOf(name string, shape []int64, elements ...[]byte) value {
	v := value{name: name, kind: "BYTES", shape: shape}
	for _, e := range elements {
		v.data = append(binary.LittleEndian.AppendUint32(v.data, uint32(len(e))), e...)
	}
	return v
}

func (v value) floats() (out []float64) {
	for at := 0; at+4 <= len(v.data); at += 4 {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data[at:]))))
	}
	return out
}

func (v value) ints() (out []int32) {
	for at := 0; at+4 <= len(v.data); at += 4 {
		out = append(out, int32(binary.LittleEndian.Uint32(v.data[at:])))
	}
	return out
}

func (v value) texts() (out []string) {
	for at := 0; at+4 <= len(v.data); {
		n := int(binary.LittleEndian.Uint32(v.data[at:]))
		out = append(out, string(v.data[at+4:at+4+n]))
		at += 4 + n
	}
	return out
}

// client calls a model over one of the server's two ports. It gives the outputs by
// name, or what the server says against the request.
type client func(t testing.TB, model string, inputs ...value) (map[string]value, string)

// clients are both ports of a server.
func clients(s *tritonserver.Server) map[string]client {
	return map[string]client{"HTTP": overHTTP(s.HTTP), "gRPC": overGRPC(s.GRPC)}
}

func overHTTP(address string) client {
	return func(t testing.TB, model string, inputs ...value) (map[string]value, string) {
		t.Helper()
		type tensor struct {
			Name       string         `json:"name"`
			Shape      []int64        `json:"shape"`
			Datatype   string         `json:"datatype"`
			Parameters map[string]any `json:"parameters"`
		}
		head := map[string]any{"parameters": map[string]any{"binary_data_output": true}}
		var list []tensor
		var data []byte
		for _, in := range inputs {
			list = append(list, tensor{in.name, in.shape, in.kind, map[string]any{"binary_data_size": len(in.data)}})
			data = append(data, in.data...)
		}
		head["inputs"] = list
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodPost, "http://"+address+"/v2/models/"+model+"/infer", bytes.NewReader(append(text, data...)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			return nil, string(body)
		}
		length := len(body)
		if _, err := fmt.Sscan(response.Header.Get("Inference-Header-Content-Length"), &length); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Outputs []tensor }
		if err := json.Unmarshal(body[:length], &answer); err != nil {
			t.Fatal(err)
		}
		out, rest := map[string]value{}, body[length:]
		for _, o := range answer.Outputs {
			n := int(o.Parameters["binary_data_size"].(float64))
			out[o.Name] = value{o.Name, o.Datatype, o.Shape, rest[:n]}
			rest = rest[n:]
		}
		return out, ""
	}
}

// overGRPC makes one call of gRPC a POST of HTTP/2 with a message behind five bytes.
func overGRPC(address string) client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	connection := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	return func(t testing.TB, model string, inputs ...value) (map[string]value, string) {
		t.Helper()
		text := func(m []byte, field protowire.Number, s string) []byte {
			return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
		}
		message := text(make([]byte, 5), 1, model)
		for _, in := range inputs {
			var shape []byte
			for _, n := range in.shape {
				shape = protowire.AppendVarint(shape, uint64(n))
			}
			message = text(message, 5, string(text(text(text(nil, 1, in.name), 2, in.kind), 3, string(shape))))
		}
		for _, in := range inputs {
			message = text(message, 7, string(in.data))
		}
		binary.BigEndian.PutUint32(message[1:], uint32(len(message)-5))
		request, err := http.NewRequest(http.MethodPost, "http://"+address+"/inference.GRPCInferenceService/ModelInfer", bytes.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/grpc")
		request.Header.Set("TE", "trailers")
		response, err := connection.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) < 5 || response.Trailer.Get("Grpc-Status") != "0" {
			said, _ := url.PathUnescape(response.Trailer.Get("Grpc-Message") + response.Header.Get("Grpc-Message"))
			return nil, said
		}
		return readAnswer(t, body[5:])
	}
}

// readAnswer reads a ModelInferResponse.
func readAnswer(t testing.TB, message []byte) (map[string]value, string) {
	t.Helper()
	var outputs []value
	var raw [][]byte
	eachBytes(t, message, func(field protowire.Number, data []byte) {
		switch field {
		case 5:
			var v value
			eachBytes(t, data, func(field protowire.Number, data []byte) {
				switch field {
				case 1:
					v.name = string(data)
				case 2:
					v.kind = string(data)
				case 3:
					for len(data) > 0 {
						n, size := protowire.ConsumeVarint(data)
						v.shape, data = append(v.shape, int64(n)), data[size:]
					}
				}
			})
			outputs = append(outputs, v)
		case 6:
			raw = append(raw, data)
		}
	})
	out := map[string]value{}
	for i, v := range outputs {
		v.data = raw[i]
		out[v.name] = v
	}
	return out, ""
}

func eachBytes(t testing.TB, message []byte, look func(protowire.Number, []byte)) {
	t.Helper()
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(field, kind, message[n:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			data, _ := protowire.ConsumeBytes(message[n:])
			look(field, data)
		}
		message = message[n+size:]
	}
}

// load starts the server over a repository and loads a model. A server whose Python
// lacks packages is no server for this.
func load(t *testing.T, repository string, models ...string) *tritonserver.Server {
	t.Helper()
	s := tritontest.Start(t, repository, tritonserver.Options{})
	for _, model := range models {
		outcome, err := s.Load(context.Background(), model)
		if err != nil {
			t.Fatal(err)
		}
		if outcome.State == tritonserver.Ready {
			continue
		}
		if strings.Contains(outcome.Cause+s.Log(0), "No module named") && os.Getenv(tritontest.RequiredVariable) == "" {
			t.Skipf("NOT TESTED: the Python of the Triton server that is here lacks packages; .ci/fetch-triton brings one that has them. %s", outcome.Cause)
		}
		t.Fatalf("%s: %s: %s\n%s", model, outcome.State, outcome.Cause, s.Log(0))
	}
	return s
}

// Everything that is made runs in the real server and answers over both of its ports.
// One server serves it all: starting one takes seconds.
func TestServed(t *testing.T) {
	tritontest.Find(t)
	repository := t.TempDir()
	type test struct {
		model string
		check func(*testing.T, map[string]client)
	}
	var tests []test
	var models []string
	for _, prepare := range []func(*testing.T, string) (string, func(*testing.T, map[string]client)){
		featuresServed, boxesServed, topKServed, compiledServed, gearsServed, speechServed, backendLoads,
		letterboxServed, cropServed, objectBoxesServed, endToEndServed,
	} {
		model, check := prepare(t, repository)
		models, tests = append(models, model), append(tests, test{model, check})
	}
	s := load(t, repository, models...)
	for _, test := range tests {
		t.Run(test.model, func(t *testing.T) { test.check(t, clients(s)) })
	}
}

// infer computes a model as npuctl infer does.
func infer(t testing.TB, path string, inputs map[string]eval.Value) map[string]eval.Value {
	t.Helper()
	e, err := engine.Open(engine.Reference, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p, err := e.Load(context.Background(), engine.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Run(context.Background(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func floatsOf(t testing.TB, v eval.Value) []float64 {
	t.Helper()
	out, ok := v.(*tensor.Dense).Float64s()
	if !ok {
		t.Fatalf("%v is not of real numbers", v)
	}
	return out
}

// near fails unless numbers are equal but for a tolerance.
func near(t testing.TB, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	worst := 0.0
	for i := range got {
		worst = max(worst, math.Abs(got[i]-want[i]))
	}
	if !(worst <= tolerance) {
		t.Errorf("%s: off by %g, more than %g", what, worst, tolerance)
	}
}

// photo is a picture with slopes and corners.
func photo(width, height, seed int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			u, v := float64(x)/float64(width), float64(y)/float64(height)
			wave := func(a, b float64) uint8 {
				return uint8(127 + 90*math.Sin(a*u+b*v+float64(seed)) + 30*math.Cos(9*u*v))
			}
			m.Set(x, y, color.RGBA{wave(5, 2), wave(-3, 6), wave(8, -4), 255})
		}
	}
	return m
}

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// plane gives one channel of a picture as numbers, row by row.
func plane(m image.Image, channel int) [][]float64 {
	b := m.Bounds()
	rows := make([][]float64, b.Dy())
	for y := range rows {
		rows[y] = make([]float64, b.Dx())
		for x := range rows[y] {
			r, g, b, _ := m.At(b.Min.X+x, b.Min.Y+y).RGBA()
			rows[y][x] = float64([]uint32{r, g, b}[channel] >> 8)
		}
	}
	return rows
}

// cubic and linear are kernels with their reach.
func cubic(x float64) float64 {
	const a = -0.5
	if x = math.Abs(x); x < 1 {
		return (a+2)*x*x*x - (a+3)*x*x + 1
	} else if x < 2 {
		return a*x*x*x - 5*a*x*x + 8*a*x - 4*a
	}
	return 0
}

func linear(x float64) float64 { return max(0, 1-math.Abs(x)) }

// resample changes the length of a row: each new pixel is the mean of all old ones that
// it covers, weighed by the kernel.
func resample(row []float64, length int, kernel func(float64) float64, reach float64) []float64 {
	scale := float64(len(row)) / float64(length)
	wide := max(scale, 1)
	out := make([]float64, length)
	for i := range out {
		centre := (float64(i) + 0.5) * scale
		sum, weights := 0.0, 0.0
		for j := max(0, int(centre-reach*wide+0.5)); j < min(len(row), int(centre+reach*wide+0.5)); j++ {
			w := kernel((float64(j) - centre + 0.5) / wide)
			sum, weights = sum+w*row[j], weights+w
		}
		out[i] = math.Round(min(255, max(0, sum/weights)))
	}
	return out
}

func transposed(rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows[0]))
	for x := range out {
		out[x] = make([]float64, len(rows))
		for y := range rows {
			out[x][y] = rows[y][x]
		}
	}
	return out
}

func resized(rows [][]float64, width, height int, kernel func(float64) float64, reach float64) [][]float64 {
	for y := range rows {
		rows[y] = resample(rows[y], width, kernel, reach)
	}
	columns := transposed(rows)
	for x := range columns {
		columns[x] = resample(columns[x], height, kernel, reach)
	}
	return transposed(columns)
}

// prepare is image/model.py told anew, for pictures that are stretched.
func prepare(m image.Image, side int, mean, std []float64) (out []float32) {
	for channel := range 3 {
		for _, row := range resized(plane(m, channel), side, side, cubic, 2) {
			for _, x := range row {
				out = append(out, float32((x/255-mean[channel])/std[channel]))
			}
		}
	}
	return out
}

// PNG files become feature vectors in the real server, over both ports, as npuctl infer
// computes them of the same pictures; a broken file fails its own request.
func featuresServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": `
name: features
preprocess: { preset: cn_clip, instances: 2 }
model: { path: model.onnx, backend: python, max_queue_delay: 20ms, preferred: [4] }
postprocess: { kind: features, from: image_features }`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	pictures := []image.Image{photo(32, 32, 1), photo(80, 50, 2), photo(20, 90, 3)}
	var files [][]byte
	var pixels []float32
	for _, m := range pictures {
		files = append(files, asPNG(t, m))
		pixels = append(pixels, prepare(m, 32, []float64{0.48145466, 0.4578275, 0.40821073}, []float64{0.26862954, 0.26130258, 0.27577711})...)
	}
	words := value{"words", "INT64", []int64{3, 4}, make([]byte, 3*4*8)}
	want := infer(t, filepath.Join(dir, "model.onnx"), map[string]eval.Value{
		"image": tensor.Of(pixels, 3, 3, 32, 32), "words": tensor.Of(make([]int64, 12), 3, 4),
	})
	vectors := floatsOf(t, want["image_features"])
	for i := range pictures {
		unit(vectors[96*i : 96*(i+1)])
	}
	return "features", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, "features", textsOf("picture", []int64{3, 1}, files...), words)
				if refused != "" {
					t.Fatal(refused)
				}
				got := out["features"]
				if !slices.Equal(got.shape, []int64{3, 96}) {
					t.Fatalf("shape %v", got.shape)
				}
				near(t, "a picture of the model's size", got.floats()[:96], vectors[:96], 1e-6)
				near(t, "pictures that are resized", got.floats()[96:], vectors[96:], 1e-3)

				one := value{"words", "INT64", []int64{1, 4}, make([]byte, 4*8)}
				out, refused = call(t, "features", textsOf("picture", []int64{1, 1}, files[2]), one)
				if refused != "" {
					t.Fatal(refused)
				}
				near(t, "alone and in a batch", out["features"].floats(), got.floats()[2*96:], 1e-6)

				t.Run("broken", func(t *testing.T) { // while others are well
					type answer struct {
						out     map[string]value
						refused string
					}
					fine := make(chan answer)
					go func() {
						out, refused := call(t, "features", textsOf("picture", []int64{1, 1}, files[0]), one)
						fine <- answer{out, refused}
					}()
					broken := [][]byte{files[0], files[1][:len(files[1])/2], files[2]}
					if _, refused := call(t, "features", textsOf("picture", []int64{3, 1}, broken...), words); !strings.Contains(refused, "picture 1 of the request") {
						t.Errorf("half a file: %q", refused)
					}
					if _, refused := call(t, "features", textsOf("picture", []int64{1, 1}, []byte("GIF")), one); !strings.Contains(refused, "3 bytes that are no picture") {
						t.Errorf("no picture: %q", refused)
					}
					a := <-fine
					if a.refused != "" {
						t.Fatal(a.refused)
					}
					near(t, "beside broken ones", a.out["features"].floats(), vectors[:96], 1e-6)
				})
			})
		}
	}
}

// unit brings a vector to the length 1.
func unit(v []float64) {
	length := 0.0
	for _, x := range v {
		length += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(length)
	}
}

// found is a box, for comparison.
type found struct {
	left, top, right, bottom, score float64
	class                           int32
}

// detect is boxes/model.py told anew: candidates of [4 + classes, n] to boxes.
func detect(candidates []float64, n int, confidence, overlap float64, toOriginal func(x, y float64) (float64, float64)) (kept []found) {
	var all []found
	for i := range n {
		at := func(row int) float64 { return candidates[row*n+i] }
		f := found{at(0) - at(2)/2, at(1) - at(3)/2, at(0) + at(2)/2, at(1) + at(3)/2, -1, 0}
		for class := 4; class*n < len(candidates); class++ {
			if at(class) > f.score {
				f.score, f.class = at(class), int32(class-4)
			}
		}
		if f.score >= confidence {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return int(math.Copysign(1, b.score-a.score)) })
	for _, f := range all {
		covers := func(g found) bool {
			w, h := min(f.right, g.right)-max(f.left, g.left), min(f.bottom, g.bottom)-max(f.top, g.top)
			shared := max(0, w) * max(0, h)
			area := func(f found) float64 { return (f.right - f.left) * (f.bottom - f.top) }
			return f.class == g.class && shared > overlap*(area(f)+area(g)-shared)
		}
		if !slices.ContainsFunc(kept, covers) {
			kept = append(kept, f)
		}
	}
	for i := range kept {
		kept[i].left, kept[i].top = toOriginal(kept[i].left, kept[i].top)
		kept[i].right, kept[i].bottom = toOriginal(kept[i].right, kept[i].bottom)
	}
	return kept
}

// A JPEG file becomes boxes in the original picture, over both ports, as npuctl infer
// and a second telling of the search give them.
func boxesServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": detector(), "names.txt": "red\ngreen\nblue\n", "pipe.yaml": `
name: boxes
preprocess: { preset: yolo, instances: 1 }
model: { path: model.onnx, backend: python }
postprocess: { kind: boxes, confidence: 0.45, overlap: 0.15, labels: names.txt, max_boxes: 20 }
outputs: [output0]`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, photo(128, 96, 5), &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	decoded, err := jpeg.Decode(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	// 128 x 96 becomes 64 x 48, with bars of 8 above and below.
	pixels := make([]float32, 3*64*64)
	for i := range pixels {
		pixels[i] = 114.0 / 255
	}
	for channel := range 3 {
		for y, row := range resized(plane(decoded, channel), 64, 48, linear, 1) {
			for x, v := range row {
				pixels[(channel*64+y+8)*64+x] = float32(v / 255)
			}
		}
	}
	raw := floatsOf(t, infer(t, filepath.Join(dir, "model.onnx"), map[string]eval.Value{"images": tensor.Of(pixels, 1, 3, 64, 64)})["output0"])
	toOriginal := func(x, y float64) (float64, float64) {
		return min(128, max(0, x*2)), min(96, max(0, (y-8)*2))
	}
	return "boxes", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, "boxes", textsOf("picture", []int64{1}, file.Bytes()))
				if refused != "" {
					t.Fatal(refused)
				}
				served := out["output0"].floats()
				near(t, "what the model gives", served, raw, 0.01) // two decoders of JPEG differ a little
				want := detect(served, 16, 0.45, 0.15, toOriginal)
				count := int(out["count"].ints()[0])
				if count != len(want) || count < 4 {
					t.Fatalf("%d boxes, want %d", count, len(want))
				}
				boxes, scores, classes, labels := out["boxes"].floats(), out["scores"].floats(), out["classes"].ints(), out["labels"].texts()
				for i, f := range want {
					near(t, "a box", boxes[4*i:4*i+4], []float64{f.left, f.top, f.right, f.bottom}, 1e-4)
					near(t, "its score", scores[i:i+1], []float64{f.score}, 1e-6)
					if classes[i] != f.class || labels[i] != []string{"red", "green", "blue"}[f.class] {
						t.Errorf("box %d is of class %d (%s), want %d", i, classes[i], labels[i], f.class)
					}
				}
				if len(classes) != 20 || classes[count] != -1 || scores[count] != 0 || labels[count] != "" {
					t.Errorf("behind the last box: %v %v", classes[count], scores[count])
				}
				if _, refused := call(t, "boxes", textsOf("picture", []int64{1}, file.Bytes()[:200])); !strings.Contains(refused, "picture 0 of the request") {
					t.Errorf("a cut file: %q", refused)
				}
			})
		}
	}
}

// The best classes, their names, and a model of another layout.
func topKServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": classifier, "names.txt": "cat\ndog\n人\nbird\nfish", "pipe.yaml": `
name: topk
preprocess: { instances: 1, size: 16, resize: crop, short_side: 40, interpolation: nearest }
model: { path: model.onnx, backend: python }
postprocess: { kind: topk, k: 2, labels: names.txt }`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	// Bytes of a picture of one colour are those of its middle, whatever its size.
	m := image.NewRGBA(image.Rect(0, 0, 50, 30))
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], []byte{51, 204, 102, 255}) // 0.2, 0.8, 0.4
	}
	wide := asPNG(t, image.NewGray(image.Rect(0, 0, 60000, 1))) // 2400000 x 40 once it is scaled
	p := []float64{math.Exp(0.2), math.Exp(0.8), math.Exp(0.4), math.Exp(0.2), math.Exp(0.8)}
	sum := 0.0
	for _, x := range p {
		sum += x
	}
	return "topk", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, "topk", textsOf("picture", []int64{2, 1}, asPNG(t, m), asPNG(t, m)))
				if refused != "" {
					t.Fatal(refused)
				}
				if got := out["classes"].ints(); !slices.Equal(got, []int32{1, 4, 1, 4}) {
					t.Errorf("classes %v", got)
				}
				if got := out["labels"].texts(); !slices.Equal(got, []string{"dog", "fish", "dog", "fish"}) {
					t.Errorf("labels %q", got)
				}
				if _, refused := call(t, "topk", textsOf("picture", []int64{1, 1}, wide)); !strings.Contains(refused, "takes more than 67108864") {
					t.Errorf("a picture that grows: %q", refused)
				}
				best := p[1] / sum
				near(t, "scores", out["scores"].floats(), []float64{best, best, best, best}, 1e-6)
			})
		}
	}
}

// squares is a gray picture of squares of 2 x 2, each of its own shade.
func squares(width, height int, shade func(x, y int) uint8) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, 2*width, 2*height))
	for y := range 2 * height {
		for x := range 2 * width {
			m.SetGray(x, y, color.Gray{shade(x/2, y/2)})
		}
	}
	return m
}

func shade(x, y int) uint8 { return uint8(40 + 10*x + y) }

// graysWanted is what a model of 8 x 8 shades gets.
func graysWanted(of func(x, y int) uint8) (out []byte) {
	for y := range 8 {
		for x := range 8 {
			out = append(out, of(x, y))
		}
	}
	return out
}

// withEXIF puts a turn into a PNG: 6 says that the picture is shown a quarter clockwise.
func withEXIF(file []byte, orientation byte) []byte {
	exif := []byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00")
	chunk := append([]byte("eXIf"), exif...)
	const head = 8 + 25 // the signature, and the first chunk
	out := binary.BigEndian.AppendUint32(slices.Clone(file[:head]), uint32(len(exif)))
	out = binary.BigEndian.AppendUint32(append(out, chunk...), crc32.ChecksumIEEE(chunk))
	return append(out, file[head:]...)
}

// Gray pictures of one bit to sixteen are whole between their bars; what has no scale
// of grays, or costs more than it is worth, is refused.
func letterboxServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": alone, "pipe.yaml": `
name: letterbox
preprocess: { instances: 1, resize: letterbox, pad: 7, interpolation: nearest }
model: { path: model.onnx, backend: python }`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	eight := squares(8, 4, shade)
	sixteen := image.NewGray16(eight.Rect)
	for y := range 8 {
		for x := range 16 {
			sixteen.SetGray16(x, y, color.Gray16{uint16(eight.GrayAt(x, y).Y)<<8 | 0xaa})
		}
	}
	bilevel := image.NewPaletted(eight.Rect, color.Palette{color.Gray{0}, color.Gray{255}})
	copy(bilevel.Pix, bytes.Repeat([]byte{1}, 64)) // the upper half is white
	between := func(of func(x, y int) uint8) []byte {
		return graysWanted(func(x, y int) uint8 {
			if y < 2 || y > 5 {
				return 7
			}
			return of(x, y-2)
		})
	}
	return "letterbox", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				for name, test := range map[string]struct {
					file []byte
					want []byte
				}{
					"8 bits": {asPNG(t, eight), between(shade)}, "16 bits": {asPNG(t, sixteen), between(shade)},
					"1 bit": {asPNG(t, bilevel), between(func(_, y int) uint8 { return uint8(max(0, 255-255*(y/2))) })},
				} {
					out, refused := call(t, "letterbox", textsOf("picture", []int64{1}, test.file))
					if got := out["y"].data; refused != "" || !bytes.Equal(got, test.want) {
						t.Errorf("%s: %s\ngot  %v\nwant %v", name, refused, got, test.want)
					}
				}
				for name, test := range map[string]struct {
					file []byte
					want string
				}{
					"a TIFF": {floatTIFF(), "that are no picture"}, "PostScript": {[]byte("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n"), "that are no picture"},
					"too long": {asPNG(t, image.NewGray(image.Rect(0, 0, 1, 70000))), "a side has at most 65535"},
				} {
					if _, refused := call(t, "letterbox", textsOf("picture", []int64{1}, test.file)); !strings.Contains(refused, "picture 0 of the request") || !strings.Contains(refused, test.want) {
						t.Errorf("%s: %q", name, refused)
					}
				}
			})
		}
	}
}

// floatTIFF is a picture of one white pixel, if anybody knew what white is.
func floatTIFF() []byte {
	file := []byte("MM\x00*\x00\x00\x00\x08\x00\x08")
	for _, entry := range [][3]uint32{
		{256, 4, 1}, {257, 4, 1}, {258, 4, 32}, {262, 4, 1}, {273, 4, 110}, {277, 4, 1}, {279, 4, 4}, {339, 4, 3},
	} {
		file = binary.BigEndian.AppendUint16(file, uint16(entry[0]))
		file = binary.BigEndian.AppendUint16(file, uint16(entry[1]))
		file = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(file, 1), entry[2])
	}
	return binary.BigEndian.AppendUint32(append(file, 0, 0, 0, 0), math.Float32bits(1))
}

// The middle of a gray picture is cut out, once it stands upright; a picture whose
// scaled form would fill the memory is refused.
func cropServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": alone, "pipe.yaml": `
name: crop
preprocess: { instances: 1, resize: crop, upright: true, interpolation: nearest }
model: { path: model.onnx, backend: python }`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	upright := asPNG(t, squares(16, 8, shade))
	turned := withEXIF(asPNG(t, squares(8, 16, func(x, y int) uint8 { return shade(15-y, x) })), 6)
	want := graysWanted(func(x, y int) uint8 { return shade(x+4, y) })
	return "crop", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				for name, file := range map[string][]byte{"upright": upright, "turned": turned} {
					out, refused := call(t, "crop", textsOf("picture", []int64{1}, file))
					if got := out["y"].data; refused != "" || !bytes.Equal(got, want) {
						t.Errorf("%s: %s\ngot  %v\nwant %v", name, refused, got, want)
					}
				}
				narrow := asPNG(t, image.NewGray(image.Rect(0, 0, 1, 60000)))
				if out, refused := call(t, "crop", textsOf("picture", []int64{1}, narrow)); refused != "" || len(out["y"].data) != 64 {
					t.Errorf("what can be done is refused: %s", refused)
				}
			})
		}
	}
}

// pictureBoxes serves a model whose output0 is candidates, and holds the boxes in a
// picture of 128 x 96 against what want makes of output0.
func pictureBoxes(t *testing.T, repository, name, graph string, want func(output []float64, toOriginal func(x, y float64) (float64, float64)) []found) func(*testing.T, map[string]client) {
	dir := folder(t, map[string]string{"model.onnx": graph, "names.txt": "red\ngreen\nblue\n", "pipe.yaml": `
name: ` + name + `
preprocess: { preset: yolo, instances: 1 }
model: { path: model.onnx, backend: python }
postprocess: { kind: boxes, confidence: 0.3, overlap: 0.15, labels: names.txt, max_boxes: 16 }
outputs: [output0]`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	file, dark := asPNG(t, photo(128, 96, 5)), asPNG(t, image.NewRGBA(image.Rect(0, 0, 64, 64)))
	toOriginal := func(x, y float64) (float64, float64) {
		return min(128, max(0, x*2)), min(96, max(0, (y-8)*2))
	}
	return func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, name, textsOf("picture", []int64{1}, file))
				if refused != "" {
					t.Fatal(refused)
				}
				boxes, scores, classes, labels := out["boxes"].floats(), out["scores"].floats(), out["classes"].ints(), out["labels"].texts()
				all := want(out["output0"].floats(), toOriginal)
				if count := int(out["count"].ints()[0]); count != len(all) || count < 3 || count > 15 {
					t.Fatalf("%d boxes, want %d", count, len(all))
				}
				for i, f := range all {
					near(t, "a box", boxes[4*i:4*i+4], []float64{f.left, f.top, f.right, f.bottom}, 1e-4)
					near(t, "its score", scores[i:i+1], []float64{f.score}, 1e-6)
					if classes[i] != f.class || labels[i] != []string{"red", "green", "blue"}[f.class] {
						t.Errorf("box %d is of class %d (%s), want %d", i, classes[i], labels[i], f.class)
					}
				}
				out, refused = call(t, name, textsOf("picture", []int64{1}, dark))
				if refused != "" || out["count"].ints()[0] != 0 || out["classes"].ints()[0] != -1 {
					t.Errorf("where nothing is: %v, %s", out["count"], refused)
				}
			})
		}
	}
}

// turned gives [rows, columns] as [columns, rows].
func turned(m []float64, columns int) []float64 {
	rows := len(m) / columns
	out := make([]float64, 0, len(m))
	for column := range columns {
		for row := range rows {
			out = append(out, m[row*columns+column])
		}
	}
	return out
}

// Scores of classes count as much as there is an object.
func objectBoxesServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	object := make([]string, 16)
	for i := range object {
		object[i] = []string{"1", "0.75", "0.25"}[i%3]
	}
	graph := strings.Replace(detector(), "float[1,7,16] output0", "float[1,16,8] output0", 1)
	graph = strings.Replace(graph, "int64[3] flat", "float[1,1,16] object = {"+strings.Join(object, ",")+"}, int64[3] flat", 1)
	graph = strings.Replace(graph, "output0 = Concat <axis = 1> (grid, scores)", "rows = Concat <axis = 1> (grid, object, scores)\noutput0 = Transpose <perm = [0, 2, 1]> (rows)", 1)
	return "objects", pictureBoxes(t, repository, "objects", graph, func(output []float64, toOriginal func(x, y float64) (float64, float64)) []found {
		rows := turned(output, 8)
		for i := 5 * 16; i < len(rows); i++ {
			rows[i] *= rows[4*16+i%16]
		}
		return detect(append(slices.Clone(rows[:4*16]), rows[5*16:]...), 16, 0.3, 0.15, toOriginal)
	})
}

// A model that suppresses overlaps itself keeps what it gives, however much they share.
func endToEndServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	corners, classes := make([]string, 4*16), make([]string, 16)
	for i := range 16 {
		classes[i] = fmt.Sprint(i % 3)
		for side := range 4 {
			corners[side*16+i] = fmt.Sprint(i + 24*(side/2))
		}
	}
	graph := `net (float[1,3,64,64] images) => (float[1,16,6] output0) <float[1,4,16] corners = {` + strings.Join(corners, ",") + `}, float[1,1,16] class = {` + strings.Join(classes, ",") + `}, int64[3] flat = {1, 3, 16}> {
		means = AveragePool <kernel_shape = [16, 16], strides = [16, 16]> (images)
		channels = Reshape (means, flat)
		score = ReduceMean <axes = [1], keepdims = 1> (channels)
		rows = Concat <axis = 1> (corners, score, class)
		output0 = Transpose <perm = [0, 2, 1]> (rows)
	}`
	return "endtoend", pictureBoxes(t, repository, "endtoend", graph, func(output []float64, toOriginal func(x, y float64) (float64, float64)) (all []found) {
		for i := range 16 {
			if row := output[6*i : 6*i+6]; row[4] >= 0.3 {
				f := found{score: row[4], class: int32(row[5])}
				f.left, f.top = toOriginal(row[0], row[1])
				f.right, f.bottom = toOriginal(row[2], row[3])
				all = append(all, f)
			}
		}
		slices.SortStableFunc(all, func(a, b found) int { return int(math.Copysign(1, b.score-a.score)) })
		return all
	})
}

// standIn takes the place of ais_bench: it runs in what gears say, and nothing else.
const standIn = `import numpy as np

class InferSession:
    def __init__(self, device_id, model_path):
        self.device = device_id
        assert open(model_path, "rb").read(4) == b"IMOD"

    def infer(self, feeds, mode="static", custom_sizes=100000, out_array=True):
        assert mode == "dymdims", mode
        assert feeds[0].shape in [(2, 4), (2, 8)], feeds[0].shape
        assert feeds[0].dtype == np.float32 and feeds[0].flags["C_CONTIGUOUS"]
        return [feeds[0] * 2 + 1]

    def free_resource(self):
        pass
`

// layAISBench puts the stand-in where a model of a repository finds it.
func layAISBench(t testing.TB, version, source string) {
	t.Helper()
	for path, content := range map[string]string{"ais_bench/__init__.py": "", "ais_bench/infer/__init__.py": "", "ais_bench/infer/interface.py": source} {
		path = filepath.Join(version, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func float32s(name string, shape []int64, values ...float32) value {
	v := value{name: name, kind: "FP32", shape: shape}
	for _, x := range values {
		v.data = binary.LittleEndian.AppendUint32(v.data, math.Float32bits(x))
	}
	return v
}

// A compiled model gets gears, filled up and cut back; what none holds fails alone.
func compiledServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": `net (float[N,L] x) => (float[N,L] y) { y = Relu (x) }`})
	om := compile(t, dir, "--input_format=ND", "--input_shape=x:2,-1", "--dynamic_dims=4;8")
	job := pipeline.PythonJob{Model: om, Name: "net", Instances: 2, Devices: []int{0, 3}, Options: pipeline.Options{Repository: repository}}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	layAISBench(t, filepath.Join(repository, "net", "1"), standIn)
	return "net", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, "net", float32s("x", []int64{2, 3}, 1, 2, 3, 4, 5, 6))
				if refused != "" {
					t.Fatal(refused)
				}
				y := out["y"]
				if !slices.Equal(y.shape, []int64{2, 3}) || !slices.Equal(y.floats(), []float64{3, 5, 7, 9, 11, 13}) {
					t.Errorf("%v %v", y.shape, y.floats())
				}
				if out, refused = call(t, "net", float32s("x", []int64{2, 5}, make([]float32, 10)...)); refused != "" || !slices.Equal(out["y"].shape, []int64{2, 5}) {
					t.Errorf("%v %s", out["y"].shape, refused)
				}
				if _, refused = call(t, "net", float32s("x", []int64{2, 9}, make([]float32, 18)...)); !strings.Contains(refused, "no gear holds") {
					t.Errorf("too long: %q", refused)
				}
			})
		}
	}
}

// Of gears that hold a request, the one with the fewest elements runs: the sum over the
// inputs counts, and not what their sizes would make multiplied with each other.
func gearsServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": `net (float[L] x, float[M] y) => (float[L] a, float[M] b) { a = Relu (x)
		b = Relu (y) }`})
	om := compile(t, dir, "--input_format=ND", "--input_shape=x:-1;y:-1", "--dynamic_dims=100,1;20,20")
	job := pipeline.PythonJob{Model: om, Name: "gears", Options: pipeline.Options{Repository: repository}}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	layAISBench(t, filepath.Join(repository, "gears", "1"), `class InferSession:
    def __init__(self, device_id, model_path):
        pass

    def infer(self, feeds, mode="static", custom_sizes=100000, out_array=True):
        return [feed * 0 + len(feed) for feed in feeds]

    def free_resource(self):
        pass
`)
	return "gears", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				for length, ran := range map[int64]float64{2: 20, 30: 100} {
					out, refused := call(t, "gears", float32s("x", []int64{length}, make([]float32, length)...), float32s("y", []int64{1}, 0))
					if refused != "" {
						t.Fatal(refused)
					}
					if got := out["a"].floats(); int64(len(got)) != length || got[0] != ran {
						t.Errorf("of a length of %d: %v, want %g", length, got, ran)
					}
				}
			})
		}
	}
}

// backendLoads makes a pipeline around npu_ge, which is a stand-in here: what is judged
// by loading it are maps, types and shapes.
func backendLoads(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	dir := folder(t, map[string]string{"model.onnx": clip, "pipe.yaml": `
name: geared
preprocess: { instances: 1 }
model: { path: model.onnx, gears: "1,2,4" }
postprocess: { kind: features, from: image_features }
outputs: [image_features]`})
	if _, err := ensemble(dir, repository); err != nil {
		t.Fatal(err)
	}
	return "geared", func(*testing.T, map[string]client) {}
}

// The encoder hears which fifth of the bins is the loudest; the first of them is CTC's
// blank. The decoder takes the likeliest text.
const (
	encoder = `encoder (float[B,T,80] speech, int32[B] speech_lengths) => (float[B,T,80] encoder_out, int32[B] encoder_out_lens, float[B,T,3] beam_log_probs, int64[B,T,3] beam_log_probs_idx)
		<int64[4] bands = {0, 0, 4, 20}, int64[1] three = {3}> {
		split = Reshape (speech, bands)
		loud = ReduceMean <axes = [3], keepdims = 0> (split)
		likely = LogSoftmax <axis = 2> (loud)
		beam_log_probs, beam_log_probs_idx = TopK <axis = 2> (likely, three)
		encoder_out = Identity (speech)
		encoder_out_lens = Identity (speech_lengths)
	}`
	decoder = `decoder (float[B,T,80] encoder_out, int32[B] encoder_out_lens, int64[B,4,U] hyps_pad_sos_eos, int32[B,4] hyps_lens_sos, float[B,4] ctc_score) => (int64[B] best_index) {
		best_index = ArgMax <axis = 1, keepdims = 0> (ctc_score)
	}`
)

// tones is a WAV file with tones of 0.3 s.
func tones(frequencies ...float64) []byte {
	var samples []byte
	for _, hz := range frequencies {
		for i := range 4800 {
			samples = binary.LittleEndian.AppendUint16(samples, uint16(int16(9000*math.Sin(2*math.Pi*hz*float64(i)/16000))))
		}
	}
	head := []byte("RIFF\x00\x00\x00\x00WAVEfmt ")
	for _, n := range []uint32{16, 1 | 1<<16, 16000, 32000, 2 | 16<<16} { // one channel of 16 bits
		head = binary.LittleEndian.AppendUint32(head, n)
	}
	head = binary.LittleEndian.AppendUint32(append(head, "data"...), uint32(len(samples)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)-8+len(samples)))
	return append(head, samples...)
}

// Paths of recordings become texts: alone and in a batch of different lengths. Paths
// that lead out, and files that are no recordings, fail their own request.
func speechServed(t *testing.T, repository string) (model string, check func(*testing.T, map[string]client)) {
	const low, one, two, three = 250, 1100, 2300, 5800
	recordings := folder(t, map[string]string{
		"abc.wav": string(tones(one, low, two, low, three)), "aa.wav": string(tones(one, low, one)), "noise.wav": "RIFF",
	})
	dir := folder(t, map[string]string{"encoder.onnx": encoder, "decoder.onnx": decoder, "words.txt": "<blank> 0\na 1\nb 2\nc 3\n<end> 4\n", "speech.yaml": `
name: speech
speech: { encoder: encoder.onnx, decoder: decoder.onnx, words: words.txt, audio_root: "` + recordings + `" }`})
	job := pipeline.PythonJob{Model: filepath.Join(dir, "speech.yaml"), Options: pipeline.Options{Repository: repository}}
	if _, err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return "speech", func(t *testing.T, ports map[string]client) {
		for port, call := range ports {
			t.Run(port, func(t *testing.T) {
				out, refused := call(t, "speech", textsOf("WAV_PATH", []int64{3, 1}, []byte("abc.wav"), []byte("aa.wav"), []byte("./abc.wav")))
				if got := out["TRANSCRIPTS"].texts(); refused != "" || !slices.Equal(got, []string{"abc", "aa", "abc"}) {
					t.Errorf("%q, %s", got, refused)
				}
				for path, want := range map[string]string{
					"../words.txt": "is not below the folder of recordings", "/etc/passwd": "is not below the folder of recordings",
					"noise.wav": "noise.wav: ", "absent.wav": "absent.wav: ",
				} {
					if _, refused := call(t, "speech", textsOf("WAV_PATH", []int64{2, 1}, []byte("aa.wav"), []byte(path))); !strings.Contains(refused, want) {
						t.Errorf("%s: %q", path, refused)
					}
				}
			})
		}
	}
}
