// Package interpreter lets another process compute ONNX models over a pipe: the
// emulated libascendcl.so runs models by it where there is no ONNX Runtime.
//
// # Protocol
//
// All numbers are little-endian. A request is a byte and what belongs to it; the
// reply to each is a status, 0 for success, and what belongs to that. Any other
// status is followed by a u32 length and a text that says what was wrong.
//
//	1 load    u64 n, n bytes of an ONNX model     → u32 0, u32 model
//	2 run     u32 model, u32 count, count tensors → u32 0, u32 count, count tensors
//	3 unload  u32 model                           → u32 0
//
// A tensor is: u32 length and bytes of its name, i32 aclDataType, u32 rank, rank times
// i64, u64 size and as many bytes. Outputs come in the order of the graph's outputs.
// The end of the input ends the conversation. A request that cannot be told apart
// from noise is answered once and ends it, too: nobody knows where the next begins.
//
// A size that a request claims is never believed: memory grows with the bytes that
// do arrive.
package interpreter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/npuctl/npuctl/internal/cannemu/datatype"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// The requests.
const (
	loadRequest   = 1
	runRequest    = 2
	unloadRequest = 3
)

// Limits of a request; what is beyond is noise.
const (
	maxModel  = 4 << 30 // a protobuf message ends at 2 GiB
	maxTensor = uint64(tensor.MaxBytes)
	maxName   = 64 << 10
	maxInputs = 1 << 16
	maxRank   = 128
	maxModels = 1 << 12
)

// failed is the status of every failure: the text says which.
const failed = 1

// Options says what models may use.
type Options struct {
	// Threads is how many cores a run may use; 0 means all.
	Threads int
	// MaxBytes bounds the intermediate results of a run; 0 is the interpreter's default.
	MaxBytes int64
}

// Serve answers the requests that come from in until it ends, and gives nil then. An
// error says that in or out failed, that ctx ended, or that a request was noise.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := &server{
		in: bufio.NewReader(in), out: bufio.NewWriter(out), models: map[uint32]*loaded{},
		options: eval.Options{Threads: o.Threads, MaxBytes: o.MaxBytes},
	}
	defer s.closeAll()
	for {
		request, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.answer(ctx, request); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// loaded is a model that is ready to run.
type loaded struct {
	model   *onnx.Model
	program *eval.Program
}

type server struct {
	in      *bufio.Reader
	out     *bufio.Writer
	options eval.Options
	models  map[uint32]*loaded
	next    uint32
}

func (s *server) closeAll() {
	for _, l := range s.models {
		l.model.Close()
	}
}

// refusal is a failure that leaves the conversation in step.
type refusal struct{ error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// answer serves one request. A refusal is told and passes; any other error is told,
// if it can be, and returned.
func (s *server) answer(ctx context.Context, request byte) error {
	handlers := map[byte]func(context.Context) error{loadRequest: s.load, runRequest: s.run, unloadRequest: s.unload}
	err := fmt.Errorf("request %d: there is no such request", request)
	if handle := handlers[request]; handle != nil {
		err = handle(ctx)
	}
	var refused refusal
	isRefusal := errors.As(err, &refused)
	if err != nil {
		s.put(uint32(failed))
		s.putText(err.Error())
	}
	if flushErr := s.out.Flush(); flushErr != nil {
		return fmt.Errorf("write a reply: %w", flushErr)
	}
	if isRefusal {
		return nil
	}
	return err
}

func (s *server) load(context.Context) error {
	size, err := get[uint64](s, "the size of a model")
	if err != nil {
		return err
	}
	if size > maxModel {
		return fmt.Errorf("load: a model of %d bytes is beyond %d", size, int64(maxModel))
	}
	data, err := s.getBytes(size, "a model")
	if err != nil {
		return err
	}
	if len(s.models) >= maxModels {
		return refuse("load: %d models are loaded already", len(s.models))
	}
	model, err := onnx.Parse(data, "")
	if err != nil {
		return refuse("load: %w", err)
	}
	program, err := eval.Prepare(model, s.options)
	if err != nil {
		model.Close()
		return refuse("load: %w", err)
	}
	s.next++
	s.models[s.next] = &loaded{model, program}
	s.put(uint32(0))
	s.put(s.next)
	return nil
}

func (s *server) unload(context.Context) error {
	id, err := get[uint32](s, "a model's number")
	if err != nil {
		return err
	}
	l := s.models[id]
	if l == nil {
		return refuse("unload: there is no model %d", id)
	}
	delete(s.models, id)
	l.model.Close()
	s.put(uint32(0))
	return nil
}

func (s *server) run(ctx context.Context) error {
	id, err := get[uint32](s, "a model's number")
	if err != nil {
		return err
	}
	inputs, err := s.inputs()
	if err != nil {
		return err
	}
	l := s.models[id]
	if l == nil {
		return refuse("run: there is no model %d", id)
	}
	values, err := l.values(inputs)
	if err != nil {
		return err
	}
	results, err := l.program.Run(ctx, values, nil)
	if err != nil {
		return refuse("run: %w", err)
	}
	return s.putResults(l, results)
}

// argument is an input as it came; its elements are looked at when all is read.
type argument struct {
	name     string
	dataType int32
	shape    []int
	data     []byte
}

func (s *server) inputs() ([]argument, error) {
	count, err := get[uint32](s, "the number of inputs")
	if err != nil {
		return nil, err
	}
	if count > maxInputs {
		return nil, fmt.Errorf("run: %d inputs are beyond %d", count, maxInputs)
	}
	var inputs []argument
	for range count {
		a, err := s.input()
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, a)
	}
	return inputs, nil
}

func (s *server) input() (a argument, err error) {
	length, err := get[uint32](s, "the length of a name")
	if err != nil {
		return a, err
	}
	if length > maxName {
		return a, fmt.Errorf("run: a name of %d bytes is beyond %d", length, maxName)
	}
	name, err := s.getBytes(uint64(length), "a name")
	if err != nil {
		return a, err
	}
	a.name = string(name)
	if a.dataType, err = get[int32](s, "a data type"); err != nil {
		return a, err
	}
	if a.shape, err = s.shape(); err != nil {
		return a, err
	}
	size, err := get[uint64](s, "the size of a tensor")
	if err != nil {
		return a, err
	}
	if size > maxTensor {
		return a, fmt.Errorf("run: input %q of %d bytes is beyond %d", a.name, size, maxTensor)
	}
	a.data, err = s.getBytes(size, "a tensor")
	return a, err
}

func (s *server) shape() ([]int, error) {
	rank, err := get[uint32](s, "a rank")
	if err != nil {
		return nil, err
	}
	if rank > maxRank {
		return nil, fmt.Errorf("run: rank %d is beyond %d", rank, maxRank)
	}
	shape := make([]int, rank)
	for i := range shape {
		dim, err := get[int64](s, "a dim")
		if err != nil {
			return nil, err
		}
		shape[i] = int(dim)
	}
	return shape, nil
}

// values makes arrays of the arguments.
func (l *loaded) values(inputs []argument) (map[string]eval.Value, error) {
	values := map[string]eval.Value{}
	for _, a := range inputs {
		t, ok := datatype.FromACL(a.dataType)
		if !ok {
			return nil, refuse("run: input %q: aclDataType %d is nothing that ONNX has", a.name, a.dataType)
		}
		d, err := tensor.FromRaw(t, a.shape, a.data)
		if err != nil {
			return nil, refuse("run: input %q: %w", a.name, err)
		}
		if _, twice := values[a.name]; twice {
			return nil, refuse("run: input %q is given twice", a.name)
		}
		values[a.name] = d
	}
	return values, nil
}

// putResults writes the outputs; all are looked at before the first byte goes out.
func (s *server) putResults(l *loaded, results map[string]eval.Value) error {
	outputs := l.model.Graph.Outputs()
	for _, v := range outputs {
		d, isTensor := results[v.Name()].(*tensor.Dense)
		if !isTensor {
			return refuse("run: output %q is no tensor", v.Name())
		}
		if _, ok := datatype.ACL(d.Type()); !ok || d.Type() == tensor.String {
			return refuse("run: output %q: CANN has no buffers of %s", v.Name(), d.Type())
		}
	}
	s.put(uint32(0))
	s.put(uint32(len(outputs)))
	for _, v := range outputs {
		d := results[v.Name()].(*tensor.Dense)
		number, _ := datatype.ACL(d.Type())
		s.putText(v.Name())
		s.put(number)
		s.put(uint32(d.Rank()))
		for _, dim := range d.Shape() {
			s.put(int64(dim))
		}
		raw := d.Raw()
		s.put(uint64(len(raw)))
		s.putRaw(raw)
	}
	return nil
}

// get reads one number.
func get[T uint32 | uint64 | int32 | int64](s *server, what string) (v T, err error) {
	if err := binary.Read(s.in, binary.LittleEndian, &v); err != nil {
		return 0, fmt.Errorf("read %s: %w", what, unexpected(err))
	}
	return v, nil
}

// getBytes reads n bytes into memory that grows as they come.
func (s *server) getBytes(n uint64, what string) ([]byte, error) {
	const piece = 1 << 20
	data := make([]byte, 0, min(n, piece))
	for uint64(len(data)) < n {
		at := len(data)
		step := int(min(n-uint64(at), uint64(max(piece, at))))
		data = append(data, make([]byte, step)...)
		if _, err := io.ReadFull(s.in, data[at:]); err != nil {
			return nil, fmt.Errorf("read %s of %d bytes: %w", what, n, unexpected(err))
		}
	}
	return data, nil
}

// unexpected is the error of an input that ends inside a request.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A bufio.Writer keeps its first error until it is flushed, which answer does.

func (s *server) put(v any) { _ = binary.Write(s.out, binary.LittleEndian, v) }

func (s *server) putText(text string) {
	s.put(uint32(len(text)))
	s.putRaw([]byte(text))
}

func (s *server) putRaw(data []byte) { _, _ = s.out.Write(data) }
