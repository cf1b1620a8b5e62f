package datatype

import (
	"testing"

	"github.com/npuctl/npuctl/onnx/tensor"
)

func TestNumbersAreDistinctAndTurnBack(t *testing.T) {
	acl, ge := map[int32]tensor.Type{}, map[int32]tensor.Type{}
	for _, typ := range tensor.Types() {
		number, ok := ACL(typ)
		if !ok {
			if GE(typ) != 0 || Name(typ) != "UNDEFINED" {
				t.Errorf("%s has no aclDataType, but GE %d, %s", typ, GE(typ), Name(typ))
			}
			continue
		}
		if back, ok := FromACL(number); !ok || back != typ {
			t.Errorf("%s is %d, which is %s", typ, number, back)
		}
		if other, taken := acl[number]; taken {
			t.Errorf("%s and %s are both %d for AscendCL", typ, other, number)
		}
		if other, taken := ge[GE(typ)]; taken || GE(typ) == 0 {
			t.Errorf("%s and %s are both %d for GE", typ, other, GE(typ))
		}
		acl[number], ge[GE(typ)] = typ, typ
	}
	if _, ok := ACL(tensor.Uint4); ok {
		t.Error("CANN has no 4-bit unsigned type")
	}
	if _, ok := FromACL(5); ok {
		t.Error("aclDataType 5 is not used")
	}
}

// Fixed points of both numberings, from the vendor's headers.
func TestKnownNumbers(t *testing.T) {
	for _, test := range []struct {
		typ     tensor.Type
		acl, ge int32
	}{
		{tensor.Float32, 0, 1}, {tensor.Int32, 3, 7}, {tensor.Int64, 9, 8}, {tensor.Bool, 12, 11}, {tensor.BFloat16, 27, 27},
	} {
		if number, _ := ACL(test.typ); number != test.acl || GE(test.typ) != test.ge {
			t.Errorf("%s: %d and %d, want %d and %d", test.typ, number, GE(test.typ), test.acl, test.ge)
		}
	}
}
