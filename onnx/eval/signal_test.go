package eval

import "testing"

func TestWindows(t *testing.T) {
	stored := "int64 four = {4}, int32 five = {5}, int64 one = {1}, int64 none = {0}, int64 less = {-1}"
	runOperatorCases(t, []operatorCase{
		{opset: 17, stored: stored, node: "y = HannWindow (four)", want: "FLOAT[4]{0, 0.5, 1, 0.5}"},
		{opset: 17, stored: stored, node: "y = HannWindow <periodic = 0, output_datatype = 11> (five)", want: "DOUBLE[5]{0, 0.5, 1, 0.5, 0}"},
		{opset: 17, stored: stored, node: "y = HammingWindow (four)", want: "FLOAT[4]{0.08695652, 0.54347825, 1, 0.54347825}"},
		{opset: 17, stored: stored, node: "y = BlackmanWindow <periodic = 0> (five)", want: "FLOAT[5]{-1.3877788e-17, 0.34, 1, 0.34, -1.3877788e-17}"},
		{opset: 17, stored: stored, node: "y = HannWindow <output_datatype = 7> (four)", want: "INT64[4]{0, 0, 1, 0}"},
		{opset: 17, stored: stored, node: "y = HannWindow <periodic = 0> (one)", want: "FLOAT[1]{0}", folds: ErrUndefined},
		{opset: 17, stored: stored, node: "y = HannWindow (none)", want: "FLOAT[0]{}"},
		{opset: 17, stored: stored, node: "y = HannWindow (less)", want: "error: input 0 is [-1]"},
		{opset: 17, stored: stored, node: "y = HannWindow <output_datatype = 8> (four)", want: `error: attribute "output_datatype" is STRING`},
	})
}

func TestMelWeightMatrix(t *testing.T) {
	stored := "int64 bands = {2}, int64 length = {8}, int64 rate = {8192}, float low = {0}, float high = {4096}, float beyond = {40960}"
	runOperatorCases(t, []operatorCase{
		{opset: 17, stored: stored, node: "y = MelWeightMatrix (bands, length, rate, low, high)", want: "FLOAT[5,2]{1, 0, 0, 1, 0, 0, 0, 0, …}"},
		{opset: 17, stored: stored, node: "y = MelWeightMatrix (bands, length, rate, low, beyond)", want: "error: is not within 5 bins"},
	})
}

func TestDFT(t *testing.T) {
	stored := "float[1,4,1] x = {1, 2, 3, 4}, float[1,3,2] half = {10, 0, -2, 2, -2, 0}, int64 six = {6}, int64 two = {2}, int64 axis = {1}, int64 last = {-1}, double[1,3,1] d = {1, 1, 1}"
	runOperatorCases(t, []operatorCase{
		{opset: 17, stored: stored, node: "y = DFT (x)", want: "FLOAT[1,4,2]{10, 0, -2, 2, -2, 0, -2, -2}"},
		{opset: 20, stored: stored, node: "y = DFT <onesided = 1> (x)", want: "FLOAT[1,3,2]{10, 0, -2, 2, -2, 0}"},
		{opset: 20, stored: stored, node: "y = DFT <onesided = 1, inverse = 1> (half)", want: "FLOAT[1,4,1]{1, 2, 3, 4}"},
		{opset: 20, stored: stored, node: "y = DFT <onesided = 1> (x, two, axis)", want: "FLOAT[1,2,2]{3, 0, -1, 0}"},
		{opset: 20, stored: stored, node: `y = DFT <onesided = 1> (d, six)`, want: "DOUBLE[1,4,2]{3, 0, 1, -1.7320508075688774, 5.551115123125783e-17, 0, 1, 0}"},
		{opset: 20, stored: stored, node: `y = DFT (x, "", last)`, want: "error: axis -1 holds the parts"},
		{opset: 20, stored: stored, node: "y = DFT <onesided = 1> (half)", want: `error: attribute "onesided" with a complex signal`},
	})
}

func TestSTFT(t *testing.T) {
	stored := "float[1,6,1] x = {1, 2, 3, 4, 5, 6}, int64 step = {2}, int64 none = {0}, float[2] window = {1, 0.5}, int64 length = {2}, int64 three = {3}"
	runOperatorCases(t, []operatorCase{
		{opset: 17, stored: stored, node: "y = STFT (x, step, window)", want: "FLOAT[1,3,2,2]{2, 0, 0, 0, 5, 0, 1, 0, …}"},
		{opset: 17, stored: stored, node: `y = STFT <onesided = 0> (x, step, "", three)`, want: "FLOAT[1,2,3,2]{6, 0, -1.5, 0.8660254, -1.5, -0.8660254, 12, 0, …}"},
		{opset: 17, stored: stored, node: "y = STFT (x, step, window, three)", want: "error: a window FLOAT[2] for frames of length 3"},
		{opset: 17, stored: stored, node: "y = STFT (x, none, window)", want: "error: 0 apart"},
	})
}
