package atcemu_test

import (
	"context"
	"testing"

	"github.com/npuctl/npuctl/om"
	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/compare"
	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

// execute runs an encoded model; the results come in the order of its outputs.
func execute(t *testing.T, model []byte, inputs map[string]eval.Value) (names []string, results []eval.Value) {
	t.Helper()
	m, err := onnx.Parse(model, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := eval.Prepare(m, eval.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(context.Background(), inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Graph.Outputs() {
		names = append(names, v.Name())
		results = append(results, out[v.Name()])
	}
	return names, results
}

// half gives an array as FLOAT16.
func half(t *testing.T, values ...float32) *tensor.Dense {
	t.Helper()
	d, err := tensor.FromFloat32s(tensor.Float16, values, len(values))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The carried model takes and gives what the signature says, and computes what the
// user's model does.
func TestCarriedModel(t *testing.T) {
	const chain = `<ir_version: 8, opset_import: ["": 17]>
	chain (float[N] x, float[N] z) => (float[N] y) {
		[first] a = Add (x, z)
		[second] b = Mul (a, x)
		[third] y = Neg (b)
	}`
	x, z := tensor.Of([]float32{1, 2}, 2), tensor.Of([]float32{3, 4}, 2)
	a, b, y := []float32{4, 6}, []float32{4, 12}, []float32{-4, -12}
	for _, test := range []struct {
		name   string
		args   []string
		inputs map[string]eval.Value
		ports  []string // names in the signature
		want   []eval.Value
	}{
		{"as it is", []string{"--input_shape=x:2;z:2"}, nil, []string{"third:0:y"}, []eval.Value{tensor.Of(y, 2)}},
		{"an output of a node", []string{"--input_shape=x:2;z:2", "--out_nodes=first:0"}, nil, []string{"first:0"}, []eval.Value{tensor.Of(a, 2)}},
		{"outputs in another order", []string{"--input_shape=x:2;z:2", "--out_nodes=third:0;second:0"}, nil, []string{"third:0", "second:0"}, []eval.Value{tensor.Of(y, 2), tensor.Of(b, 2)}},
		{"tensors", []string{"--input_shape=x:2;z:2", "--out_nodes=b;a"}, nil, []string{"second:0:b", "first:0:a"}, []eval.Value{tensor.Of(b, 2), tensor.Of(a, 2)}},
		{"the same twice", []string{"--input_shape=x:2;z:2", "--out_nodes=first:0;first:0"}, nil, []string{"first:0", "first:0"}, []eval.Value{tensor.Of(a, 2), tensor.Of(a, 2)}},
		{"an input", []string{"--input_shape=x:2;z:2", "--out_nodes=x:0"}, nil, []string{"x:0"}, []eval.Value{x}},
		{"FLOAT16 out", []string{"--input_shape=x:2;z:2", "--output_type=FP16"}, nil, []string{"third:0:y"}, []eval.Value{half(t, y...)}},
		{"one type for one node", []string{"--input_shape=x:2;z:2", "--out_nodes=first:0;third:0", "--output_type=first:0:UINT8"}, nil,
			[]string{"first:0", "third:0"}, []eval.Value{tensor.Of([]uint8{4, 6}, 2), tensor.Of(y, 2)}},
		{"FLOAT16 in", []string{"--input_shape=x:2;z:2", "--input_fp16_nodes=x"}, map[string]eval.Value{"x": half(t, 1, 2), "z": z}, []string{"third:0:y"}, []eval.Value{tensor.Of(y, 2)}},
		{"FLOAT16 in and out again", []string{"--input_shape=x:2;z:2", "--input_fp16_nodes=x;z", "--out_nodes=x:0;third:0", "--output_type=FP16"},
			map[string]eval.Value{"x": half(t, 1, 2), "z": half(t, 3, 4)}, []string{"x:0", "third:0"}, []eval.Value{half(t, 1, 2), half(t, y...)}},
		{"a gear", []string{"--input_shape=x:-1;z:-1", "--dynamic_batch_size=1,2,4"}, nil, []string{"third:0:y"}, []eval.Value{tensor.Of(y, 2)}},
		{"a dynamic shape", []string{"--input_shape=x:-1;z:-1"}, nil, []string{"third:0:y"}, []eval.Value{tensor.Of(y, 2)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t, chain).must(test.args...)
			signature, err := f.Signature()
			if err != nil {
				t.Fatal(err)
			}
			inputs := test.inputs
			if inputs == nil {
				inputs = map[string]eval.Value{"x": x, "z": z}
			}
			checkTypes(t, signature.Inputs, inputs)
			names, results := execute(t, carried(t, f), inputs)
			if len(names) != len(signature.Outputs) || len(names) != len(test.want) {
				t.Fatalf("outputs %q, in the signature %+v", names, signature.Outputs)
			}
			for i, want := range test.want {
				port := signature.Outputs[i]
				if port.Name != test.ports[i] || port.Tensor != "" && port.Tensor != names[i] {
					t.Errorf("output %d is %q, called %q in the signature, want %q", i, names[i], port.Name, test.ports[i])
				}
				if got := results[i].(*tensor.Dense); got.Type().NumPy() != port.DType {
					t.Errorf("output %d is %s, in the signature %s", i, got.Type(), port.DType)
				}
				if r := compare.Values(want, results[i], compare.Options{}); !r.Equal {
					t.Errorf("output %d: %v", i, r)
				}
			}
		})
	}
}

// checkTypes holds values against the signature's inputs.
func checkTypes(t *testing.T, ports []om.Tensor, values map[string]eval.Value) {
	t.Helper()
	for _, port := range ports {
		d, ok := values[port.Name].(*tensor.Dense)
		if !ok || d.Type().NumPy() != port.DType {
			t.Errorf("input %q is %v, in the signature %s", port.Name, d, port.DType)
		}
	}
}

// A layout of channels in groups of 16 goes in and comes out.
func TestPackedLayouts(t *testing.T) {
	for _, opset := range []string{"8", "17"} {
		model := `<ir_version: 8, opset_import: ["": ` + opset + `]>
		(float[1,3,2,2] x) => (float[1,3,2,2] y) { [double] y = Add (x, x) }`
		f := open(t, model).must("--input_fp16_nodes=x", "--is_input_adjust_hw_layout=true", "--out_nodes=double:0", "--is_output_adjust_hw_layout=true")
		signature, err := f.Signature()
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range []om.Tensor{signature.Inputs[0], signature.Outputs[0]} {
			if port.Format != "NC1HWC0" || port.DType != "float16" || port.Bytes != 1*1*2*2*16*2 {
				t.Errorf("opset %s: port %+v", opset, port)
			}
		}
		packed, want := make([]float32, 64), make([]float32, 64)
		for i := range packed {
			if c := i % 16; c < 3 {
				packed[i], want[i] = float32(i), float32(2*i)
			} else {
				packed[i] = 99 // what fills up the group is not looked at
			}
		}
		in, err := half(t, packed...).Reshape(1, 1, 2, 2, 16)
		if err != nil {
			t.Fatal(err)
		}
		out, err := half(t, want...).Reshape(1, 1, 2, 2, 16)
		if err != nil {
			t.Fatal(err)
		}
		if _, results := execute(t, carried(t, f), map[string]eval.Value{"x": in}); !compare.Values(out, results[0], compare.Options{}).Equal {
			t.Errorf("opset %s: %v", opset, results[0])
		}
	}
}

// Inputs with a stored value are constants for the parser.
func TestDefaultsAreConstants(t *testing.T) {
	f := open(t, `<ir_version: 8, opset_import: ["": 17]> (float[2] x, float[2] bias = {10, 20}) => (float[2] y) { [add] y = Add (x, bias) }`).must()
	signature, err := f.Signature()
	if err != nil || len(signature.Inputs) != 1 {
		t.Fatalf("inputs %+v, %v", signature.Inputs, err)
	}
	if _, results := execute(t, carried(t, f), map[string]eval.Value{"x": tensor.Of([]float32{1, 2}, 2)}); !compare.Values(tensor.Of([]float32{11, 22}, 2), results[0], compare.Options{}).Equal {
		t.Errorf("%v", results[0])
	}
}
