package conformance

import (
	"fmt"
	"slices"

	"github.com/npuctl/npuctl/onnx/eval"
	"github.com/npuctl/npuctl/onnx/tensor"
)

func compareValues(got, want eval.Value, tol tolerance) error {
	switch want := want.(type) {
	case *tensor.Dense:
		got, ok := got.(*tensor.Dense)
		if !ok {
			return fmt.Errorf("is no tensor, want %s%v", want.Type(), want.Shape())
		}
		return compareTensors(got, want, tol)
	case *eval.Sequence:
		got, ok := got.(*eval.Sequence)
		if !ok || len(got.Items) != len(want.Items) {
			return fmt.Errorf("is %v, want a sequence of %d", got, len(want.Items))
		}
		for i := range want.Items {
			if err := compareValues(got.Items[i], want.Items[i], tol); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	case *eval.Optional:
		got, ok := got.(*eval.Optional)
		if !ok || (got.Value == nil) != (want.Value == nil) {
			return fmt.Errorf("is %v, want %v", got, want)
		}
		if want.Value == nil {
			return nil
		}
		return compareValues(got.Value, want.Value, tol)
	}
	return fmt.Errorf("cannot compare with %T", want)
}

func compareTensors(got, want *tensor.Dense, tol tolerance) error {
	if got.Type() != want.Type() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("is %s%v, want %s%v", got.Type(), got.Shape(), want.Type(), want.Shape())
	}
	bad := 0
	var first error
	for i := range want.Len() {
		if sameElement(got, want, i, tol) {
			continue
		}
		if bad++; bad == 1 {
			first = fmt.Errorf("element %d is %s, want %s", i, elementText(got, i), elementText(want, i))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d differ in %s%v: %w", bad, want.Len(), want.Type(), want.Shape(), first)
	}
	return nil
}
