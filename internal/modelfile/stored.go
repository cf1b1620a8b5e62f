package modelfile

import (
	"fmt"
	"strings"

	"github.com/npuctl/npuctl/onnx"
)

// checkStored finds the first stored tensor whose elements are not as many as its
// shape says. Opening found those whose size stands in the file; the others are read
// here, so that every command says the same of them, and none only when it meets them.
func checkStored(m *onnx.Model) error {
	for g := range m.Graphs() {
		for _, v := range g.Initializers() {
			if err := checkInitializer(v); err != nil {
				return fmt.Errorf("%s: initializer %q: %w", g.Where(), v.Name(), err)
			}
		}
		for _, n := range g.Nodes() {
			if err := checkConstant(n); err != nil {
				return fmt.Errorf("%s: %w", n.Where(), err)
			}
			for _, a := range n.Attributes() {
				for _, t := range a.Tensors() {
					if err := filled(t); err != nil {
						return fmt.Errorf("%s: attribute %q: %w", n.Where(), a.Name(), err)
					}
				}
			}
		}
	}
	return nil
}

// checkInitializer holds a stored tensor against its elements, and, where it is the
// default of an input, against what that is declared to be.
func checkInitializer(v *onnx.Value) error {
	t := v.Initializer()
	if err := filled(t); err != nil {
		return err
	}
	if v.IsInput() && v.Type.IsTensor() && v.Type.Elem != t.Type() {
		return fmt.Errorf("it is declared as an input of type %s, and stored as %s", v.Type, onnx.TensorType(t.Type(), t.Shape()...))
	}
	return nil
}

// maxUnfolded bounds the sparse tensors that are unfolded to be looked at: what they
// take does not follow from the file's size. What is wrong with a larger one is told
// by whoever reads it.
const maxUnfolded = 16 << 20

// filled says in what the elements of a tensor differ from its type and shape. Those in
// other files have been held against the length of these.
func filled(t *onnx.Tensor) error {
	if t.IsExternal() || t.IsSparse() && t.Bytes() > maxUnfolded {
		return nil
	}
	_, err := t.Raw()
	if err == nil {
		return nil
	}
	// What stands before it in the message is the tensor, which is named already.
	parts := strings.Split(err.Error(), ": ")
	return fmt.Errorf("its elements do not make %s: %s; the export left them out, or another program damaged them",
		onnx.TensorType(t.Type(), t.Shape()...), parts[len(parts)-1])
}

// checkConstant refuses a Constant that is none, or two. One in a function may take
// its value from there: that attribute counts.
func checkConstant(n *onnx.Node) error {
	if !n.Is("Constant") {
		return nil
	}
	values := 0
	for _, a := range n.Attributes() {
		if strings.HasPrefix(a.Name(), "value") || a.Name() == "sparse_value" {
			values++
		}
	}
	if values != 1 {
		return fmt.Errorf("%d of its attributes hold a value; a Constant has exactly one", values)
	}
	return nil
}
