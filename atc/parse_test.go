package atc

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		args     string
		want     string // settings, as name=value
		problems string // codes and first names
	}{
		{"--model=a.onnx --framework 5", "model=a.onnx framework=5", ""},
		{"-model=a.onnx -input-shape x:1", "model=a.onnx input_shape=x:1", ""},
		{"--input_form=ND", "input_format=ND", ""},                       // a prefix of one flag
		{"--deterministic=1", "deterministic=1", ""},                     // a whole name, though another begins with it
		{"--dynamic_d=1", "dynamic_dims=1", ""},                          //
		{"--dynamic=1", "", "stderr --dynamic"},                          // a prefix of three
		{"--output --framework=5", "output=--framework=5", ""},           // any word is an argument
		{"--input_shape -1,2", "input_shape=-1,2", ""},                   //
		{"--output -ab-c", "output=--ab_c", ""},                          // folded like a flag
		{"--model=a-b --log=-x-y", "model=a-b log=-x-y", "E10010 --log"}, // a value behind = is not
		{"word --model=a", "model=a", "stderr word"},
		{"--nothing x --model=a", "model=a", "stderr --nothing"}, // its value is not told again
		{"--nothing=x y", "", "stderr --nothing, stderr y"},
		{"--model", "", "stderr --model"},
		{"--raw_ge_options_ignore_unsupported true", "raw_ge_options_ignore_unsupported=", "stderr true"},
		{"--mode=0 --mode=x --mode=1", "mode=0 mode=x mode=1", "E10001 --mode"},
		{"- --model=a", "model=a", "stderr -"},
		{"-- --model=a", "", "stderr --model=a"},
		{"-zz=1", "", "stderr --zz"},
		{"-z", "", "stderr --z"},
	} {
		line, problems := Parse(strings.Fields(row.args))
		var got, codes []string
		for _, s := range line.Settings {
			got = append(got, s.Flag.Name+"="+s.Value)
		}
		for _, d := range problems {
			codes = append(codes, d.Code+" "+d.Names[0])
		}
		if strings.Join(got, " ") != row.want || strings.Join(codes, ", ") != row.problems {
			t.Errorf("%s: %v with %v", row.args, got, codes)
		}
	}
}

func TestValueOfRepeatedFlags(t *testing.T) {
	line, _ := Parse(strings.Fields("--mode=1 --mode=3 --mode=x --log=info"))
	for flag, want := range map[string]string{"mode": "3", "log": "info", "framework": "-1", "output": "", "nothing": ""} {
		if got := line.Value(flag); got != want {
			t.Errorf("%s: %q, not %q", flag, got, want)
		}
	}
	if line.IsSet("framework") || !line.IsSet("mode") {
		t.Error("IsSet")
	}
}

// The table holds together: names are unique, what a flag takes and its default
// pass its own check, anything else gives its code.
func TestFlags(t *testing.T) {
	names := flagNames()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("a flag occurs twice")
	}
	for _, f := range Flags() {
		if (f.Values == nil) != (f.Code == "") {
			t.Errorf("--%s has values or a code, not both", f.Name)
		}
		for _, v := range f.Values {
			if d := f.check(v); d != nil {
				t.Errorf("--%s=%s: %v", f.Name, v, d)
			}
		}
		if d := f.check(f.Default); d != nil && f.Default != "" && f.Default != "-1" {
			t.Errorf("default of --%s: %v", f.Name, d)
		}
		for _, wrong := range []string{"", "nonsense", "00", " "} {
			d := f.check(wrong)
			switch {
			case f.Values != nil && (d == nil || d.Code != f.Code || !strings.Contains(d.Message, "--"+f.Name)):
				t.Errorf("--%s=%q: %v, not %s", f.Name, wrong, d, f.Code)
			case f.Kind == Text && f.Values == nil && d != nil:
				t.Errorf("--%s=%q: %v", f.Name, wrong, d)
			}
		}
	}
}

func TestRawOptionsAreFlags(t *testing.T) {
	for key, flag := range rawOptionFlags {
		if findFlag(flag) == nil {
			t.Errorf("%s is for --%s, which is no flag", key, flag)
		}
	}
	for flag := range lateValues {
		if findFlag(flag) == nil {
			t.Errorf("--%s is no flag", flag)
		}
	}
}

// Whatever the words are, reading them ends, tells of what it left out, and reads
// what it understood again as the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"--model=a --framework 5", "-input-shape=x:1 -h", "--he --nothing", "-- a b", "--mode", "--dynamic_dims=1;2 --log=x", "--=", "-", "--h=no",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line, problems := Parse(strings.Split(text, " "))
		if len(problems) == 0 && len(line.Stray) > 0 {
			t.Errorf("%q: %v is not told", text, line.Stray)
		}
		var args []string
		for _, s := range line.Settings {
			args = append(args, "--"+s.Flag.Name+"="+s.Value)
		}
		again, _ := Parse(args)
		if !reflect.DeepEqual(again.Settings, line.Settings) {
			t.Errorf("%q: %v, then %v", text, line.Settings, again.Settings)
		}
		for _, d := range problems {
			if d.Code == "" || d.Message == "" || len(d.Names) == 0 {
				t.Errorf("%q: %+v", text, d)
			}
		}
	})
}
