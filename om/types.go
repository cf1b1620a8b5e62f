package om

import "fmt"

// element is a type of tensor elements: its name as ONNX and NumPy have it, and how
// many bits it takes; 0 where elements have no fixed size.
type element struct {
	name string
	bits int64
}

// The two numberings of element types. Runtime interfaces and MODEL_INOUT_INFO use
// that of AscendCL; inside the graph stands GE's own.
var (
	aclElements = map[int64]element{
		0: {"float32", 32}, 1: {"float16", 16}, 2: {"int8", 8}, 3: {"int32", 32}, 4: {"uint8", 8},
		6: {"int16", 16}, 7: {"uint16", 16}, 8: {"uint32", 32}, 9: {"int64", 64}, 10: {"uint64", 64},
		11: {"float64", 64}, 12: {"bool", 8}, 13: {"string", 0}, 16: {"complex64", 64}, 17: {"complex128", 128},
		27: {"bfloat16", 16}, 29: {"int4", 4}, 30: {"uint1", 1}, 33: {"complex32", 32}, 34: {"hifloat8", 8},
		35: {"float8_e5m2", 8}, 36: {"float8_e4m3fn", 8}, 37: {"float8_e8m0", 8}, 38: {"float6_e3m2", 6},
		39: {"float6_e2m3", 6}, 40: {"float4_e2m1", 4}, 41: {"float4_e1m2", 4},
	}
	graphElements = map[int64]element{
		1: {"float32", 32}, 2: {"float16", 16}, 3: {"int8", 8}, 4: {"uint8", 8}, 5: {"int16", 16}, 6: {"uint16", 16},
		7: {"int32", 32}, 8: {"int64", 64}, 9: {"uint32", 32}, 10: {"uint64", 64}, 11: {"bool", 8}, 12: {"float64", 64},
		13: {"string", 0}, 27: {"bfloat16", 16}, 28: {"int4", 4}, 29: {"uint1", 1},
	}
)

// undefined is what an element type or format is called that says it is not known.
const undefined = "undefined"

func elementOf(table map[int64]element, number int64) element {
	if e, ok := table[number]; ok {
		return e
	}
	if number <= 0 {
		return element{name: undefined}
	}
	return element{name: fmt.Sprintf("type %d", number)}
}

// aclFormats are the layouts in AscendCL's numbering.
var aclFormats = map[int32]string{
	-1: undefined, 0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z", 12: "NC1HWC0_C04", 16: "HWCN",
	27: "NDHWC", 29: "FRACTAL_NZ", 30: "NCDHW", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D", 35: "NC", 47: "NCL",
	50: "FRACTAL_NZ_C0_16", 51: "FRACTAL_NZ_C0_32", 52: "FRACTAL_NZ_C0_2", 53: "FRACTAL_NZ_C0_4", 54: "FRACTAL_NZ_C0_8",
}

func formatName(number int32) string {
	if name, ok := aclFormats[number]; ok {
		return name
	}
	return fmt.Sprintf("format %d", number)
}

// plainFormats keep elements in the order of the dims, without padding.
var plainFormats = map[string]bool{"ND": true, "NCHW": true, "NHWC": true, "HWCN": true, "NCDHW": true, "NDHWC": true, "NC": true, "NCL": true}

// tensorBytes is what a tensor takes, when its dims, type and format say so.
func tensorBytes(e element, format string, dims []int64) (int64, bool) {
	if e.bits == 0 || !plainFormats[format] {
		return 0, false
	}
	const limit = int64(1) << 55 // times the widest element it still fits
	count := int64(1)
	for _, d := range dims {
		if d < 0 || d > 0 && count > limit/d {
			return 0, false
		}
		count *= d
	}
	return (count*e.bits + 7) / 8, true
}
