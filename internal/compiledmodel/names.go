package compiledmodel

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/npuctl/npuctl/gears"
)

// place is an axis of an input.
type place struct {
	input string
	axis  int
}

// maxRecord bounds what is read of a build record.
const maxRecord = 4 << 20

// recordedNames reads what the ONNX model called the axes that gears set: the .om has
// forgotten it, the build record beside it has not. Without a record there are none.
func recordedNames(path string) map[place]string {
	record := path + ".json"
	info, err := os.Stat(record)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil
	}
	data, err := os.ReadFile(record)
	if err != nil {
		return nil
	}
	var r struct {
		Gears *gears.Plan `json:"gears"`
	}
	if json.Unmarshal(data, &r) != nil || r.Gears == nil {
		return nil
	}
	names := map[place]string{}
	for _, axis := range r.Gears.Axes {
		for _, p := range axis.Places {
			if axis.Name != "" {
				names[place{p.Input, p.Dim}] = axis.Name
			}
		}
	}
	return names
}

// imageAxes are the axes that gears of an image set, in their order.
var imageAxes = []string{"height", "width"}

// dimName names an open dim: as the model did, else after what its gears set, else
// after its place.
func (f *File) dimName(input string, axis int) string {
	if name := f.names[place{input, axis}]; name != "" {
		return name
	}
	switch g := f.Signature.Gears; {
	case g == nil:
	case g.Kind == "batch":
		return "batch"
	case g.Kind == "image":
		if i := f.openBefore(input, axis); i < len(imageAxes) {
			return imageAxes[i]
		}
	}
	return placeName(input, axis)
}

// openBefore counts the open dims of an input before an axis.
func (f *File) openBefore(input string, axis int) (n int) {
	for _, in := range f.Signature.Inputs {
		for i, size := range in.Dims {
			if in.Name == input && i < axis && size < 0 {
				n++
			}
		}
	}
	return n
}

// placeName names an open dim of which nothing is known but where it is.
func placeName(tensor string, axis int) string { return fmt.Sprintf("%s_%d", tensor, axis) }
