package eval

import (
	"errors"
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
	"github.com/npuctl/npuctl/onnx/text"
)

func TestLoop(t *testing.T) {
	// A body that counts v up by k, and gives v of each round.
	const body = `body = b (int64 i, bool c, int64 v) => (c2, v2, v2) { c2 = Less (v, seven)  v2 = Add (v, k) }`
	for _, c := range []struct{ name, graph, want string }{
		{"by count", "y = Loop <" + body + "> (n, yes, zero)", "INT64[]{9}"},
		{"the rounds", "v, y = Loop <" + body + "> (n, yes, zero)", "INT64[3]{3, 6, 9}"},
		{"by condition", `v, y = Loop <` + body + `> ("", yes, zero)`, "INT64[4]{3, 6, 9, 12}"},
		{"not at all", "y = Loop <" + body + "> (n, no, zero)", "INT64[]{0}"},
		{"no rounds", "v, y = Loop <body = b (int64 i, bool c, int64 v) => (bool c2, int64 v2, int64[2] s) { c2 = Identity (c)  v2 = Identity (v)  s = Concat <axis = 0> (v, v) }> (n, no, zero)", "INT64[0,2]{}"},
		{"a negative count", "y = Loop <" + body + "> (minus, yes, zero)", "INT64[]{0}"},
		{"the round's number", "v, y = Loop <body = b (int64 i, bool c, int64 v) => (c, v, i2) { i2 = Mul (i, i) }> (n, yes, zero)", "INT64[3]{0, 1, 4}"},
		{"an inner name that hides an outer one", "y = Loop <body = b (int64 i, bool c, int64 k) => (c, k2) { k2 = Add (k, k) }> (n, yes, k)", "INT64[]{24}"},
		{"two deep", "y = Loop <body = b (int64 i, bool c, int64 v) => (c, w) { w = Loop <body = d (int64 j, bool e, int64 u) => (e, u2) { t = Add (u, i)  u2 = Add (t, k) }> (n, c, v) }> (n, yes, zero)", "INT64[]{36}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantText(t, `g (int64 n, int64 minus) => (y) <bool yes = {1}, bool no = {0}, int64 zero = {0}, int64 k = {3}, int64 seven = {7}> { `+c.graph+` }`,
				map[string]Value{"n": tensor.Scalar(int64(3)), "minus": tensor.Scalar(int64(-1))}, c.want)
		})
	}
}

func TestLoopCarriesSequences(t *testing.T) {
	got, err := runText(t, `g (int64 n) => (y) <bool yes = {1}> {
		s = SequenceEmpty <dtype = 7> ()
		y = Loop <body = b (int64 i, bool c, seq(int64) v) => (c, v2) { v2 = SequenceInsert (v, i) }> (n, yes, s)
	}`, Options{MaxBytes: 1 << 20}, map[string]Value{"n": tensor.Scalar(int64(1000))})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := got.(*Sequence); !ok || len(s.Items) != 1000 {
		t.Errorf("the loop gives %v", got)
	}
}

// TestLoopWithoutACondition ends by its body's word, though the specification has
// it ignored: folding must not choose.
func TestLoopWithoutACondition(t *testing.T) {
	source := `g (int64 n, int64 v) => (y) {
		y = Loop <body = b (int64 i, bool c, int64 v) => (c2, v2) { two = Constant <value_int = 2> ()  c2 = Less (v, two)  v2 = Add (v, two) }> (n, "", v)
	}`
	ten, zero := tensor.Scalar(int64(10)), tensor.Scalar(int64(0))
	wantText(t, source, map[string]Value{"n": ten, "v": zero}, "INT64[]{4}")
	n := text.MustParse(t, source).Graph.Nodes()[0]
	if _, err := Fold(t.Context(), n, []Value{ten, nil, zero}, nil, 0); !errors.Is(err, ErrUndefined) {
		t.Errorf("folding: error %v", err)
	}
}

func TestScan(t *testing.T) {
	const body = `body = b (float s, float e) => (s2, s2) { s2 = Add (s, e) }`
	for _, c := range []struct{ name, graph, want string }{
		{"the state", "y = Scan <num_scan_inputs = 1, " + body + "> (zero, x)", "FLOAT[]{6}"},
		{"the rounds", "s, y = Scan <num_scan_inputs = 1, " + body + "> (zero, x)", "FLOAT[3]{1, 3, 6}"},
		{"backwards", "s, y = Scan <num_scan_inputs = 1, scan_input_directions = [1], " + body + "> (zero, x)", "FLOAT[3]{3, 5, 6}"},
		{"put backwards", "s, y = Scan <num_scan_inputs = 1, scan_output_directions = [1], " + body + "> (zero, x)", "FLOAT[3]{6, 3, 1}"},
		{"other axes", "s, y = Scan <num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [1], body = b (float s, float[2] e) => (s, e2) { e2 = Add (e, s) }> (zero, m)", "FLOAT[2,3]{1, 2, 3, 4, 5, 6}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantText(t, `g (float[3] x) => (y) <float zero = {0}, float[2,3] m = {1, 2, 3, 4, 5, 6}> { `+c.graph+` }`, map[string]Value{"x": vector[float32](1, 2, 3)}, c.want)
		})
	}
}

// TestScan8 has a batch of two sequences, the second of which is shorter.
func TestScan8(t *testing.T) {
	source := `<ir_version: 3, opset_import: ["": 8]> g (int64[2] n, float[2,1] s, float[2,3,1] x) => (z, y) {
		z, y = Scan <num_scan_inputs = 1, body = b (float[1] s, float[1] e) => (s2, s2) { s2 = Add (s, e) }> (n, s, x)
	}`
	in := map[string]Value{
		"n": vector[int64](3, 1), "s": tensor.Of([]float32{0, 100}, 2, 1), "x": tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3, 1),
	}
	wantText(t, source, in, "FLOAT[2,3,1]{1, 3, 6, 104, 0, 0}")
}

func TestControlRefusesWhatDoesNotFit(t *testing.T) {
	for _, graph := range []string{
		`y = If (two) <then_branch = t () => (x) {}, else_branch = e () => (x) {}>`,
		`y = If (c) <then_branch = t () => (x) {}>`,
		`y = Loop <body = b (int64 i, bool c) => (c, c) {}> (x, c, x)`,
		`y = Loop <body = b (int64 i, bool c, float v) => (v, v) {}> (one, c, x)`,
		`y = Scan <num_scan_inputs = 2, body = b (float v) => (v) {}> (x)`,
		`y = Scan <num_scan_inputs = 1, body = b (float v) => (v) {}> (x)`,
	} {
		source := `g (bool c, bool[2] two, float x, int64 one) => (y) { ` + graph + ` }`
		in := map[string]Value{"c": tensor.Scalar(false), "two": vector(true, false), "x": tensor.Scalar(float32(1)), "one": tensor.Scalar(int64(1))}
		if graph[4] == 'L' {
			in["c"] = tensor.Scalar(true)
		}
		if got, err := runText(t, source, Options{}, in); err == nil {
			t.Errorf("%s gives %v", graph, got)
		}
	}
}
