module github.com/npuctl/npuctl/compat/onnxgo

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/npuctl/npuctl v0.0.0
	github.com/owulveryck/onnx-go v0.5.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/chewxy/hm v1.0.0 // indirect
	github.com/chewxy/math32 v1.0.4 // indirect
	github.com/gogo/protobuf v1.3.0 // indirect
	github.com/golang/protobuf v1.5.0 // indirect
	github.com/google/flatbuffers v1.11.0 // indirect
	github.com/pkg/errors v0.8.1 // indirect
	github.com/xtgo/set v1.0.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gorgonia.org/tensor v0.9.3 // indirect
	gorgonia.org/vecf32 v0.9.0 // indirect
	gorgonia.org/vecf64 v0.9.0 // indirect
)

replace github.com/npuctl/npuctl => ../..
