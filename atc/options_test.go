package atc

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestArguments(t *testing.T) {
	o := Options{
		Model: "net.onnx", Output: "out/net", SoC: "Ascend910B3", InputFormat: "ND",
		InputShapes: []InputShape{{"ids", []Range{Fixed(1), AnySize()}}, {"a:0", []Range{{1, 8}, Fixed(3)}}, {"s", nil}},
		Gears:       Gears{DimsGears, [][]int64{{64}, {128}}},
		OutNodes:    []string{"relu:0", "add:1"}, OutputType: "FP16",
		InputHWLayout: []bool{true, false}, AllowHF32: Off, EnableSingleStream: On,
		Deterministic: 1, JITCompile: "0", Extra: []string{"--new_flag=1"},
	}
	want := []string{
		"--framework=5", "--model=net.onnx", "--output=out/net", "--soc_version=Ascend910B3", "--input_format=ND",
		"--input_shape=ids:1,-1;a:0:1~8,3;s:", "--dynamic_dims=64;128", "--out_nodes=relu:0;add:1", "--output_type=FP16",
		"--is_input_adjust_hw_layout=true,false", "--allow_hf32=false", "--deterministic=1", "--enable_single_stream=true",
		"--jit_compile=0", "--new_flag=1",
	}
	if diff := cmp.Diff(want, o.Arguments()); diff != "" {
		t.Error(diff)
	}
	if got := (Options{}).Arguments(); !slices.Equal(got, []string{"--framework=5"}) {
		t.Errorf("no options: %v", got)
	}
}

func TestFromCommandLine(t *testing.T) {
	line, _ := Parse(strings.Fields("--model=a --model=b --dynamic_batch_size=1,2, --mode=3 --cal_conf=c --framework=3"))
	o, err := FromCommandLine(line)
	want := Options{Model: "b", Gears: Gears{BatchGears, [][]int64{{1}, {2}}}, Extra: []string{"--mode=3", "--cal_conf=c", "--framework=3"}}
	if diff := cmp.Diff(want, o); diff != "" || err != nil {
		t.Error(err, diff)
	}
	line, _ = Parse(strings.Fields("--input_shape_range=x:[1~8,3];a:[-1] --input_shape=x:1,3"))
	o, err = FromCommandLine(line)
	want = Options{InputShapes: []InputShape{{"a", []Range{AnySize()}}, {"x", []Range{{1, 8}, Fixed(3)}}}}
	if diff := cmp.Diff(want, o); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, args := range []string{
		"--sparsity=x", "--input_shape_range=x:1", "--save_original_model=1", "--is_input_adjust_hw_layout=1", "--input_shape=x:a",
		"--dynamic_batch_size=1;2", "--dynamic_batch_size=1,2 --dynamic_dims=1;2",
	} {
		line, _ := Parse(strings.Fields(args))
		if _, err := FromCommandLine(line); err == nil || !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Every field of Options but Extra has its row, in a flag that there is.
func TestFieldsAreAllOptions(t *testing.T) {
	var o Options
	v := reflect.ValueOf(&o).Elem()
	set := 0
	for _, f := range fields {
		if findFlag(f.flag) == nil {
			t.Errorf("--%s is no flag", f.flag)
		}
		before := reflect.ValueOf(o).Interface()
		for _, value := range []string{"1", "true", "x:1", "1,2"} {
			if f.read(&o, value) == nil && !reflect.DeepEqual(before, v.Interface()) {
				set++
				break
			}
		}
		o.Gears = Gears{}
	}
	// three flags make one field of gears
	if want := v.NumField() - 1 + 2; set != want {
		t.Errorf("%d rows set a field, there are %d fields", set, want)
	}
}

// What Arguments writes is read back as the same options.
func TestOptionsSurviveTheCommandLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawOptions(t)
		line, problems := Parse(want.Arguments())
		if len(line.Stray) > 0 {
			t.Fatalf("%v: %v", want.Arguments(), problems)
		}
		got, err := FromCommandLine(line)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawOptions fills every field of Options by its type.
func drawOptions(t *rapid.T) (o Options) {
	word := rapid.StringMatching(`[A-Za-z0-9_./|:=-]{1,12}`)
	name := rapid.StringMatching(`[A-Za-z0-9_./]{1,8}(:[a-z0-9]{1,3})?`)
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		label := v.Type().Field(i).Name
		if label == "Extra" || rapid.Bool().Draw(t, "leave "+label) {
			continue
		}
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			*f = word.Draw(t, label)
		case *int:
			*f = rapid.IntRange(0, 5).Draw(t, label)
		case *Toggle:
			*f = Toggle(rapid.IntRange(0, 2).Draw(t, label))
		case *[]bool:
			*f = notEmpty(rapid.SliceOfN(rapid.Bool(), 0, 3).Draw(t, label))
		case *[]string:
			*f = notEmpty(rapid.SliceOfN(name, 0, 3).Draw(t, label))
		case *[]InputShape:
			*f = notEmpty(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) InputShape {
				return InputShape{name.Draw(t, "name"), notEmpty(rapid.SliceOfN(drawRange(), 0, 4).Draw(t, "axes"))}
			}), 0, 3).Draw(t, label))
		case *Gears:
			*f = drawGears(t)
		default:
			t.Fatalf("a field of a new type: %s", label)
		}
	}
	return o
}

func notEmpty[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

func drawRange() *rapid.Generator[Range] {
	return rapid.Custom(func(t *rapid.T) Range {
		low := rapid.Int64Range(1, 1000).Draw(t, "low")
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			return AnySize()
		case 1:
			return Fixed(low)
		}
		return Range{low, low + rapid.Int64Range(1, 9).Draw(t, "more")}
	})
}

func drawGears(t *rapid.T) Gears {
	g := Gears{Kind: GearKind(rapid.IntRange(0, 3).Draw(t, "kind"))}
	width := map[GearKind]int{NoGears: 0, BatchGears: 1, ImageGears: 2, DimsGears: rapid.IntRange(1, 4).Draw(t, "width")}[g.Kind]
	if width > 0 {
		g.Rows = rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(0, 4096), width, width), 1, 5).Draw(t, "rows")
	}
	return g
}
