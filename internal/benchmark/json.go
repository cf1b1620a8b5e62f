package benchmark

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnxpass"
)

// mostJSON is the largest file of requests that is read.
const mostJSON = 1 << 30

// jsonValue is a tensor in a file of requests: numbers or words, nested or flat, or bytes
// in base64.
type jsonValue struct {
	Content json.RawMessage `json:"content"`
	Base64  *string         `json:"b64"`
	Shape   []int64         `json:"shape"`
}

// fromJSON reads requests in the form of Triton's perf_analyzer: an object whose field data
// lists requests, or lists of them, each with a field for every input. A shape may leave
// out the batch, of which a request then has one item.
func (s *source) fromJSON(path string, out *requests) error {
	refuse := func(format string, args ...any) error {
		return fault.New(fault.Input, "--inputs %s: %w", path, fmt.Errorf(format, args...))
	}
	file, err := os.Open(path)
	if err != nil {
		return refuse("%w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostJSON+1))
	if err != nil {
		return refuse("%w", err)
	}
	if len(data) > mostJSON {
		return refuse("it is larger than %d bytes", mostJSON)
	}
	var whole struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return refuse("%w", err)
	}
	requests, err := flattened(whole.Data)
	if err != nil {
		return refuse("%w", err)
	}
	if len(requests) == 0 {
		return refuse("its field data lists no requests")
	}
	for i, request := range requests {
		values := map[string]eval.Value{}
		for name, raw := range request {
			v := findInput(s.graph, name)
			if v == nil {
				return refuse("request %d: the model has no input %q", i+1, name)
			}
			d, err := s.jsonTensor(v, raw)
			if err != nil {
				return refuse("request %d, input %q: %w", i+1, name, err)
			}
			values[name] = d
		}
		one, err := s.set(values)
		if err != nil {
			return refuse("request %d: %w", i+1, err)
		}
		one.name = fmt.Sprintf("%s, request %d", path, i+1)
		if err := out.add(one); err != nil {
			return err
		}
	}
	return nil
}

// flattened gives the requests of a list of requests, or of lists of them.
func flattened(list []json.RawMessage) (requests []map[string]json.RawMessage, err error) {
	for i, raw := range list {
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			var several []map[string]json.RawMessage
			if err := json.Unmarshal(raw, &several); err != nil {
				return nil, fmt.Errorf("stream %d of data: %w", i+1, err)
			}
			requests = append(requests, several...)
			continue
		}
		var one map[string]json.RawMessage
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("request %d of data: %w", i+1, err)
		}
		requests = append(requests, one)
	}
	return requests, nil
}

// jsonTensor reads one input of a request.
func (s *source) jsonTensor(v *onnx.Value, raw json.RawMessage) (*tensor.Dense, error) {
	value := jsonValue{Content: raw}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		value = jsonValue{}
		if err := json.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
	}
	dims, err := s.jsonDims(v, value.Shape)
	if err != nil {
		return nil, err
	}
	if value.Base64 != nil {
		data, err := base64.StdEncoding.DecodeString(*value.Base64)
		if err != nil {
			return nil, err
		}
		if v.Type.Elem == tensor.String {
			return tensor.Make([]string{string(data)}, dims...)
		}
		return tensor.FromRaw(v.Type.Elem, dims, data)
	}
	if value.Content == nil {
		return nil, errors.New("it has neither content nor b64")
	}
	return parseElements(v.Type.Elem, value.Content, dims)
}

// jsonDims gives the whole shape: the one of the file or, where it has none, the model's.
func (s *source) jsonDims(v *onnx.Value, given []int64) ([]int, error) {
	declared := v.Type.Shape
	hasBatch := s.hasBatch
	if given == nil {
		if declared == nil {
			return nil, errors.New("the model does not say its shape; give one in a field shape")
		}
		var dims []int
		for axis, d := range declared.Dims {
			switch {
			case d.Known:
				dims = append(dims, int(d.Value))
			case axis == 0 && hasBatch:
				dims = append(dims, 1)
			default:
				return nil, fmt.Errorf("dim %d is open; give the shape in a field shape", axis)
			}
		}
		return dims, nil
	}
	if hasBatch && declared != nil && len(given) == len(declared.Dims)-1 {
		given = append([]int64{1}, given...)
	}
	dims := make([]int, len(given))
	for axis, n := range given {
		if n < 0 || n > tensor.MaxElements {
			return nil, fmt.Errorf("shape %v: dim %d is no size", given, axis)
		}
		dims[axis] = int(n)
	}
	return dims, nil
}

// parseElements reads numbers, truth values or words, nested as deep as they like.
func parseElements(t tensor.Type, content json.RawMessage, dims []int) (*tensor.Dense, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var words []string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch x := token.(type) {
		case json.Number:
			words = append(words, x.String())
		case string:
			words = append(words, x)
		case bool:
			words = append(words, fmt.Sprint(x))
		case json.Delim:
			if x != '[' && x != ']' {
				return nil, fmt.Errorf("%v stands where numbers should", x)
			}
		default:
			return nil, fmt.Errorf("%v is no element", x)
		}
	}
	return onnxpass.ParseElements(t, words, dims...)
}
