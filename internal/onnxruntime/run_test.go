//go:build cgo && (linux || darwin)

package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/npuctl/npuctl/internal/onnxpb"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// run gives x to a session with the input x, and returns its first output.
func run(t testing.TB, s *Session, x Value) (Value, error) {
	t.Helper()
	outputs, err := s.Run(context.Background(), map[string]Value{"x": x}, nil)
	if err != nil {
		return nil, err
	}
	return outputs[0], nil
}

func TestTensorsOfEveryTypeAndShape(t *testing.T) {
	l := library(t)
	types := []tensor.Type{
		tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String,
		tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
		tensor.Float8E4M3FN, tensor.Float8E5M2, tensor.Float8E4M3FNUZ, tensor.Float8E5M2FNUZ,
	}
	for _, elem := range types {
		for _, shape := range [][]int{{}, {0}, {5}, {2, 0, 3}, {2, 3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1}} {
			t.Run(fmt.Sprint(elem, shape), func(t *testing.T) {
				s := session(t, l, identity(t, anyRank(elem)))
				x := samples(t, elem, shape...)
				y, err := run(t, s, x)
				if err != nil {
					t.Fatal(err)
				}
				if !tensor.EqualBits(x, y.(*tensor.Dense)) {
					t.Errorf("gave %v, got %v", x, y)
				}
			})
		}
	}
}

// Elements of 4 bits go in and come out packed.
func TestFourBitTensors(t *testing.T) {
	l := library(t)
	if l.minor < 19 {
		t.Skipf("SKIPPED: ONNX Runtime %s has no 4-bit tensors; 1.19 has", l.Version())
	}
	scale := initializer("scale", tensor.Scalar(float32(1)))
	for elem, values := range map[tensor.Type][]float32{
		tensor.Int4:  {-8, -1, 0, 1, 7},
		tensor.Uint4: {0, 1, 8, 14, 15},
	} {
		zero := initializer("zero", samples(t, elem, 1))
		zero.Dims, zero.RawData = nil, []byte{0}
		floats := tensor.Of(values, 5)
		quantize := session(t, l, modelOf(t, fourBitIR, fourBitOpset, &onnxpb.GraphProto{
			Node:        []*onnxpb.NodeProto{node("QuantizeLinear", []string{"x", "scale", "zero"}, []string{"y"})},
			Initializer: []*onnxpb.TensorProto{scale, zero},
			Input:       []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 5))},
			Output:      []*onnxpb.ValueInfoProto{declare("y", tensorOf(elem, 5))},
		}))
		quantized, err := run(t, quantize, floats)
		if err != nil {
			t.Fatal(err)
		}
		if d := quantized.(*tensor.Dense); d.Type() != elem || len(d.Raw()) != 3 {
			t.Fatalf("%v in %d bytes, want %v in 3", d.Type(), len(d.Raw()), elem)
		}
		dequantize := session(t, l, modelOf(t, fourBitIR, fourBitOpset, &onnxpb.GraphProto{
			Node:        []*onnxpb.NodeProto{node("DequantizeLinear", []string{"x", "scale", "zero"}, []string{"y"})},
			Initializer: []*onnxpb.TensorProto{scale, zero},
			Input:       []*onnxpb.ValueInfoProto{declare("x", tensorOf(elem, 5))},
			Output:      []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Float32, 5))},
		}))
		back, err := run(t, dequantize, quantized)
		if err != nil {
			t.Fatal(err)
		}
		if !tensor.EqualBits(back.(*tensor.Dense), floats) {
			t.Errorf("%v: %v came back as %v", elem, floats, back)
		}
	}
}

func TestElementNumbers(t *testing.T) {
	for _, elem := range tensor.Types() {
		number, ok := elementNumber(elem)
		if elem == tensor.Float8E8M0 {
			if ok {
				t.Errorf("%v has the number %d", elem, number)
			}
			continue
		}
		if !ok || elementType(number) != elem {
			t.Errorf("%v becomes %d and that %v", elem, number, elementType(number))
		}
	}
	for _, number := range []int{-1, 0, 26, 1000} {
		if got := elementType(number); got != tensor.Undefined {
			t.Errorf("%d is %v", number, got)
		}
	}
}

func TestSequences(t *testing.T) {
	l := library(t)
	floats := Sequence{tensor.Of([]float32{1, 2}, 2), tensor.Of([]float32{}, 0), tensor.Scalar(float32(3))}
	words := Sequence{tensor.Of([]string{"a", "\x00b", ""}, 3), tensor.Scalar("c")}
	halves := Sequence{samples(t, tensor.Float16, 3), samples(t, tensor.Float16, 2, 2)}
	for _, test := range []struct {
		name string
		elem tensor.Type
		give Sequence
	}{
		{"floats", tensor.Float32, floats},
		{"strings", tensor.String, words},
		{"halves", tensor.Float16, halves},
		{"bools", tensor.Bool, Sequence{samples(t, tensor.Bool, 3)}},
		{"empty", tensor.Int64, Sequence{}},
		{"empty strings", tensor.String, Sequence{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := session(t, l, identity(t, sequenceOf(anyRank(test.elem))))
			got, err := run(t, s, test.give)
			if err != nil {
				t.Fatal(err)
			}
			checkSequence(t, got, test.give)
		})
	}
}

func checkSequence(t *testing.T, got Value, want Sequence) {
	t.Helper()
	sequence, ok := got.(Sequence)
	if !ok || len(sequence) != len(want) {
		t.Fatalf("got %T of %v, want %d elements", got, got, len(want))
	}
	for i := range want {
		if !tensor.EqualBits(sequence[i].(*tensor.Dense), want[i].(*tensor.Dense)) {
			t.Errorf("element %d is %v, want %v", i, sequence[i], want[i])
		}
	}
}

func TestSequenceOutOfOperators(t *testing.T) {
	split := node("SplitToSequence", []string{"x"}, []string{"y"}, intAttribute("axis", 0))
	s := session(t, library(t), oneNode(t, split,
		[]*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Int64, 2, 2))},
		[]*onnxpb.ValueInfoProto{declare("y", sequenceOf(anyRank(tensor.Int64)))}))
	got, err := run(t, s, tensor.Of([]int64{1, 2, 3, 4}, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	checkSequence(t, got, Sequence{tensor.Of([]int64{1, 2}, 1, 2), tensor.Of([]int64{3, 4}, 1, 2)})
}

func TestOptionals(t *testing.T) {
	l := library(t)
	has := func(declared *onnxpb.TypeProto) *Session {
		return session(t, l, oneNode(t, node("OptionalHasElement", []string{"x"}, []string{"y"}),
			[]*onnxpb.ValueInfoProto{declare("x", declared)},
			[]*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Bool))}))
	}
	for _, test := range []struct {
		name     string
		declared *onnxpb.TypeProto
		give     Value
		want     bool
	}{
		{"tensor", optionalOf(anyRank(tensor.Float32)), tensor.Scalar(float32(1)), true},
		{"no tensor", optionalOf(anyRank(tensor.Float32)), nil, false},
		{"sequence", optionalOf(sequenceOf(anyRank(tensor.Float32))), Sequence{tensor.Scalar(float32(1))}, true},
		{"empty sequence", optionalOf(sequenceOf(anyRank(tensor.Float32))), Sequence{}, true},
		{"no sequence", optionalOf(sequenceOf(anyRank(tensor.Float32))), nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := run(t, has(test.declared), test.give)
			if err != nil {
				t.Fatal(err)
			}
			if test.give == nil {
				outputs, err := has(test.declared).Run(context.Background(), nil, nil)
				if err != nil || !tensor.EqualBits(outputs[0].(*tensor.Dense), got.(*tensor.Dense)) {
					t.Errorf("left out, it gives %v, %v", outputs, err)
				}
			}
			if !tensor.EqualBits(got.(*tensor.Dense), tensor.Scalar(test.want)) {
				t.Errorf("has element: %v, want %v", tensor.Data[bool](got.(*tensor.Dense)), test.want)
			}
			same, err := run(t, session(t, l, identity(t, test.declared)), test.give)
			if err != nil {
				t.Fatal(err)
			}
			if (same == nil) != (test.give == nil) {
				t.Errorf("%v comes back as %v", test.give, same)
			}
		})
	}
}

func TestMaps(t *testing.T) {
	l := library(t)
	zip := inDomain("ai.onnx.ml", node("ZipMap", []string{"x"}, []string{"y"}, stringsAttribute("classlabels_strings", "cat", "dog")))
	scores := session(t, l, oneNode(t, zip,
		[]*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 2, 2))},
		[]*onnxpb.ValueInfoProto{declare("y", sequenceOf(mapOf(tensor.String, tensorOf(tensor.Float32))))}))
	wantType := Type{Kind: KindMap, Elem: tensor.String}
	if got := scores.Outputs()[0]; got.Kind != KindSequence || got.Inner.Kind != wantType.Kind || got.Inner.Elem != wantType.Elem || got.Inner.Inner.Elem != tensor.Float32 {
		t.Errorf("output %+v", got)
	}
	got, err := run(t, scores, tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	rows := got.(Sequence)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range []map[string]float32{{"cat": 1, "dog": 2}, {"cat": 3, "dog": 4}} {
		if row := goMap[string, float32](t, rows[i].(*Map)); !reflect.DeepEqual(row, want) {
			t.Errorf("row %d is %v, want %v", i, row, want)
		}
	}

	vectorize := inDomain("ai.onnx.ml", node("DictVectorizer", []string{"x"}, []string{"y"}, stringsAttribute("string_vocabulary", "dog", "bird", "cat")))
	vector := session(t, l, oneNode(t, vectorize,
		[]*onnxpb.ValueInfoProto{declare("x", mapOf(tensor.String, tensorOf(tensor.Float32)))},
		[]*onnxpb.ValueInfoProto{declare("y", anyRank(tensor.Float32))}))
	flat, err := run(t, vector, rows[1])
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Data[float32](flat.(*tensor.Dense)); !reflect.DeepEqual(got, []float32{4, 0, 3}) {
		t.Errorf("vector %v", got)
	}
}

func TestMapsWithIntegerKeys(t *testing.T) {
	zip := inDomain("ai.onnx.ml", node("ZipMap", []string{"x"}, []string{"y"}, intsAttribute("classlabels_int64s", 7, -7)))
	s := session(t, library(t), oneNode(t, zip,
		[]*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32, 1, 2))},
		[]*onnxpb.ValueInfoProto{declare("y", sequenceOf(mapOf(tensor.Int64, tensorOf(tensor.Float32))))}))
	got, err := run(t, s, tensor.Of([]float32{1, 2}, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if row := goMap[int64, float32](t, got.(Sequence)[0].(*Map)); !reflect.DeepEqual(row, map[int64]float32{7: 1, -7: 2}) {
		t.Errorf("row %v", row)
	}
}

func goMap[K interface {
	comparable
	tensor.Element
}, V tensor.Element](t *testing.T, m *Map) map[K]V {
	t.Helper()
	keys, values := tensor.Data[K](m.Keys), tensor.Data[V](m.Values)
	if len(keys) == 0 || len(keys) != len(values) {
		t.Fatalf("%v keys and %v values", m.Keys, m.Values)
	}
	result := map[K]V{}
	for i, key := range keys {
		result[key] = values[i]
	}
	return result
}

func TestChosenOutputs(t *testing.T) {
	s := session(t, library(t), model(t, &onnxpb.GraphProto{
		Node:   []*onnxpb.NodeProto{node("Neg", []string{"x"}, []string{"minus"}), node("Abs", []string{"x"}, []string{"plus"})},
		Input:  []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Float32))},
		Output: []*onnxpb.ValueInfoProto{declare("minus", tensorOf(tensor.Float32)), declare("plus", tensorOf(tensor.Float32))},
	}))
	inputs := map[string]Value{"x": tensor.Scalar(float32(2))}
	for _, test := range []struct {
		outputs []string
		want    []float32
		err     string
	}{
		{outputs: nil, want: []float32{-2, 2}},
		{outputs: []string{"plus", "minus"}, want: []float32{2, -2}},
		{outputs: []string{"plus"}, want: []float32{2}},
		{outputs: []string{}, err: "no output is asked for"},
		{outputs: []string{"pluss"}, err: `the model has no output "pluss"; it has "minus", "plus"`},
		{outputs: []string{"plus", "plus"}, err: `output "plus" is asked for twice`},
	} {
		got, err := s.Run(context.Background(), inputs, test.outputs)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: error %v, want %q in it", test.outputs, err, test.err)
			}
			continue
		}
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%q: %v, %v", test.outputs, got, err)
			continue
		}
		for i, want := range test.want {
			if !tensor.EqualBits(got[i].(*tensor.Dense), tensor.Scalar(want)) {
				t.Errorf("%q: output %d is %v, want %v", test.outputs, i, got[i], want)
			}
		}
	}
}

func TestInputsThatDoNotFit(t *testing.T) {
	l := library(t)
	s := session(t, l, identity(t, tensorOf(tensor.Float32, 2)))
	sequences := session(t, l, identity(t, sequenceOf(anyRank(tensor.Float32))))
	good := tensor.Of([]float32{1, 2}, 2)
	for _, test := range []struct {
		name    string
		session *Session
		inputs  map[string]Value
		want    string
	}{
		{"missing", s, nil, `input "x" is missing`},
		{"unknown", s, map[string]Value{"x": good, "z": good}, `the model has no input "z"; it has "x"`},
		{"element type", s, map[string]Value{"x": tensor.Of([]int32{1, 2}, 2)}, "INVALID_ARGUMENT"},
		{"shape", s, map[string]Value{"x": tensor.Of([]float32{1, 2, 3}, 3)}, "INVALID_ARGUMENT"},
		{"rank", s, map[string]Value{"x": tensor.Scalar(float32(1))}, "INVALID_ARGUMENT"},
		{"nothing", s, map[string]Value{"x": nil}, `input "x": no value is given where a tensor is declared`},
		{"nil tensor", s, map[string]Value{"x": (*tensor.Dense)(nil)}, `input "x": the tensor is a nil pointer`},
		{"nil map", s, map[string]Value{"x": (*Map)(nil)}, `input "x": the map is a nil pointer`},
		{"map without keys", s, map[string]Value{"x": &Map{Values: good}}, `input "x": the map has no keys or no values`},
		{"another Go type", s, map[string]Value{"x": 7}, `input "x": a int is not a value`},
		{"type that ONNX Runtime has not", s, map[string]Value{"x": samples(t, tensor.Float8E8M0, 2)}, "ONNX Runtime has no element type FLOAT8E8M0"},
		{"type without tensors", s, map[string]Value{"x": samples(t, tensor.Complex64, 2)}, "ONNX Runtime says"},
		{"sequence for a tensor", s, map[string]Value{"x": Sequence{good}}, "a sequence is given where a tensor is declared"},
		{"tensor for a sequence", sequences, map[string]Value{"x": good}, "INVALID_ARGUMENT"},
		{"sequence of sequences", sequences, map[string]Value{"x": Sequence{Sequence{good}}}, "element 0: a sequence is given where a tensor is declared"},
		{"sequence with nothing in it", sequences, map[string]Value{"x": Sequence{nil}}, "element 0: no value is given"},
		{"sequence of two types", sequences, map[string]Value{"x": Sequence{good, tensor.Scalar(int8(1))}}, "ONNX Runtime says"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.session.Run(context.Background(), test.inputs, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, error %v; want %q in it", got, err, test.want)
			}
		})
	}
	if _, err := run(t, s, good); err != nil {
		t.Errorf("after all these: %v", err)
	}
}

func TestEightGoroutinesOnOneSession(t *testing.T) {
	s := session(t, library(t), addWithDefault(t))
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for i := range 200 {
				x := make([]float32, 1+(worker*31+i)%97)
				for j := range x {
					x[j] = float32(worker*1000 + i)
				}
				outputs, err := s.Run(ctx, map[string]Value{"x": tensor.Of(x, len(x))}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				y := tensor.Data[float32](outputs[0].(*tensor.Dense))
				if len(y) != len(x) || y[0] != x[0]+10 || y[len(y)-1] != x[0]+10 {
					t.Errorf("worker %d, run %d: %v + 10 is %v", worker, i, x, y)
					return
				}
			}
		})
	}
	group.Wait()
}

// endless is a model that counts up to x and does not get there in a lifetime.
func endless(t *testing.T) []byte {
	step := initializer("step", tensor.Scalar(int64(1)))
	body := &onnxpb.GraphProto{
		Name:        new("body"),
		Node:        []*onnxpb.NodeProto{node("Identity", []string{"go_on"}, []string{"go_on_out"}), node("Add", []string{"sum", "step"}, []string{"sum_out"})},
		Initializer: []*onnxpb.TensorProto{step},
		Input: []*onnxpb.ValueInfoProto{
			declare("i", tensorOf(tensor.Int64)), declare("go_on", tensorOf(tensor.Bool)), declare("sum", tensorOf(tensor.Int64))},
		Output: []*onnxpb.ValueInfoProto{declare("go_on_out", tensorOf(tensor.Bool)), declare("sum_out", tensorOf(tensor.Int64))},
	}
	return model(t, &onnxpb.GraphProto{
		Node:        []*onnxpb.NodeProto{node("Loop", []string{"x", "", "zero"}, []string{"y"}, graphAttribute("body", body))},
		Initializer: []*onnxpb.TensorProto{initializer("zero", tensor.Scalar(int64(0)))},
		Input:       []*onnxpb.ValueInfoProto{declare("x", tensorOf(tensor.Int64))},
		Output:      []*onnxpb.ValueInfoProto{declare("y", tensorOf(tensor.Int64))},
	})
}

func TestCancel(t *testing.T) {
	s := session(t, library(t), endless(t))
	forever := map[string]Value{"x": tensor.Scalar(int64(math.MaxInt64))}
	cause := errors.New("changed my mind")

	ctx, cancel := context.WithCancelCause(context.Background())
	var canceled time.Time
	time.AfterFunc(20*time.Millisecond, func() { canceled = time.Now(); cancel(cause) })
	if _, err := s.Run(ctx, forever, nil); !errors.Is(err, cause) {
		t.Fatalf("run ended with %v, want the cause", err)
	}
	if late := time.Since(canceled); late > 5*time.Second {
		t.Errorf("it took %v to stop", late)
	}
	if _, err := s.Run(ctx, forever, nil); !errors.Is(err, cause) {
		t.Errorf("run with a context that had ended: %v", err)
	}

	expired, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	if _, err := s.Run(expired, forever, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run ended with %v, want the deadline", err)
	}

	if y, err := run(t, s, tensor.Scalar(int64(3))); err != nil || !tensor.EqualBits(y.(*tensor.Dense), tensor.Scalar(int64(3))) {
		t.Errorf("the session is of no more use after that: %v, %v", y, err)
	}
}

// Close lets runs finish before it releases what they use.
func TestCloseWaitsForRuns(t *testing.T) {
	s := session(t, library(t), endless(t))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := s.Run(ctx, map[string]Value{"x": tensor.Scalar(int64(math.MaxInt64))}, nil)
		ended <- err
	}()
	time.AfterFunc(20*time.Millisecond, cancel)
	time.Sleep(5 * time.Millisecond)
	s.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		t.Errorf("run ended with %v", err)
	}
}

// A leak of the values of one run would be 2 MB here, and 1 GB after 500 runs.
func TestRunsDoNotLeak(t *testing.T) {
	s := session(t, library(t), identity(t, anyRank(tensor.Float32)))
	x := tensor.Of(make([]float32, 1<<18), 1<<18)
	before := residentBytes(t)
	for range 500 {
		if _, err := run(t, s, x); err != nil {
			t.Fatal(err)
		}
	}
	if grown := residentBytes(t) - before; grown > 300<<20 {
		t.Errorf("500 runs left %d MB behind", grown>>20)
	}
}

// residentBytes returns the memory of this process that is in use.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("SKIPPED: memory is measured on Linux only")
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(content), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// What a run costs beside the work of the operators.
func BenchmarkRun(b *testing.B) {
	l := library(b)
	for _, elements := range []int{1, 150528} {
		b.Run(fmt.Sprint(elements), func(b *testing.B) {
			s := session(b, l, identity(b, anyRank(tensor.Float32)))
			inputs := map[string]Value{"x": tensor.Of(make([]float32, elements), elements)}
			b.SetBytes(int64(4 * elements))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Run(context.Background(), inputs, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
