package atcemu

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/npuctl/npuctl/internal/cannemu/datatype"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
)

// portJSON is an input or output in the meta data of an OM2 package.
type portJSON struct {
	Name     string     `json:"name"`
	Index    int        `json:"index"`
	Shape    []int64    `json:"shape"`
	ShapeV2  []int64    `json:"shape_v2"`
	DataType string     `json:"data_type"`
	Format   string     `json:"format"`
	Size     uint64     `json:"size"`
	Range    [][2]int64 `json:"shape_range,omitempty"`
}

func portsJSON(ports []omwriter.Port) []portJSON {
	list := []portJSON{}
	for i, p := range ports {
		list = append(list, portJSON{p.Name, i, p.Dims, p.DimsV2, geTypeName(p.DataType), layoutName(p.Format), p.Bytes, p.Ranges})
	}
	return list
}

// geTypeName is what GE calls an element type of AscendCL's numbering.
func geTypeName(number int32) string {
	t, _ := datatype.FromACL(number)
	return "DT_" + datatype.Name(t)
}

// package2 makes an OM2 package, ATC's mode 7: a ZIP archive with a manifest, the
// signature and the constants. In place of generated code it holds the carried model.
func package2(r *request, s *omwriter.Signature, weights [][]byte, model []byte) ([]byte, error) {
	meta := map[string]any{
		"name": modelNameOf(r.output), "root_graph_name": modelNameOf(r.output), "inputs": portsJSON(s.Inputs), "outputs": portsJSON(s.Outputs),
		"dynamic_output_shape": s.OutputShapes, "user_designate_shape_order": s.ShapeOrder, "dynamic_type": dynamicType[r.gears.Kind], "dynamic_batch_info": r.gears.Rows,
	}
	manifest := map[string]any{"om2_version": "0", "model_num": 1, "atc_command": r.commandLine, "emulated": true}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range []struct {
		name    string
		content any
	}{
		{"manifest.json", manifest},
		{"data/model_0/model_meta.json", meta},
		{"data/constants/constant_0", bytes.Join(weights, nil)},
		{"data/model_0/npuctl_emulated.onnx", model},
	} {
		data, isBytes := f.content.([]byte)
		if !isBytes {
			var err error
			if data, err = json.Marshal(f.content); err != nil {
				return nil, err
			}
		}
		member, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err != nil {
			return nil, fmt.Errorf("put %s into the package: %w", f.name, err)
		}
		if _, err := member.Write(data); err != nil {
			return nil, fmt.Errorf("put %s into the package: %w", f.name, err)
		}
	}
	err := w.Close() // writes the directory, so before the bytes are taken
	return out.Bytes(), err
}
