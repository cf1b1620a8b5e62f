package soc_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/soc"
)

func TestLookupTakesWhatPeopleWrite(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"Ascend910B3", "Ascend910B3"},
		{"910B3", "Ascend910B3"}, // the Name column of npu-smi
		{"ascend910b3", "Ascend910B3"},
		{" Ascend 910 B3", "Ascend910B3"},
		{"310P3", "Ascend310P3"},
		{"310p3", "Ascend310P3"},
		{"910B4-1", "Ascend910B4-1"},
		{"910b4_1", "Ascend910B4-1"},
		{"910_9391", "Ascend910_9391"},
		{"Ascend950PR_957bx", "Ascend950PR_957bx"},
		{"ascend950dt_95a1", "Ascend950DT_95A1"},
		{"Atlas 300I Duo", "Ascend310P3"},
		{"atlas-300i-duo", "Ascend310P3"},
		{"Huawei Atlas 200I DK A2", "Ascend310B4"},
		{"Ascend310", "Ascend310"},
		{"035", "Ascend035"},
		// Written in full it is the chip of the first generation, with a caution.
		{"Ascend910B", "Ascend910B"},
	} {
		c, err := soc.Lookup(test.name)
		if err != nil || c.Name != test.want {
			t.Errorf("Lookup(%q) = %q, %v, want %q", test.name, c.Name, err, test.want)
		}
	}
}

func TestLookupExplainsOtherNames(t *testing.T) {
	for _, test := range []struct {
		name, family, nearest, says string
	}{
		{name: "310p", family: "Ascend310P", says: "Ascend310P1, Ascend310P3, Ascend310P5, Ascend310P7"},
		{name: "Ascend310P", family: "Ascend310P", says: "npu-smi info"},
		{name: "910B", family: "Ascend910B", says: "Ascend910B4-1"},
		{name: "ascend910b", family: "Ascend910B", says: "Ascend910B1"},
		{name: "910", family: "Ascend910", says: "Ascend910ProA"},
		{name: "910C", family: "Ascend910_93", says: "Ascend910_9391"},
		{name: "Atlas 800I A2", family: "Ascend910B", says: "Ascend910B4"},
		{name: "Ascend910B5", nearest: "Ascend910B1", says: "did you mean"},
		{name: "Ascned310P3", nearest: "Ascend310P3", says: "did you mean"},
		{name: "Atlas 300I Dou", nearest: "Atlas 300I Duo", says: "did you mean"},
		{name: "H100", says: "is no Ascend chip"},
		{name: "", says: "is no Ascend chip"},
	} {
		_, err := soc.Lookup(test.name)
		var e *soc.NameError
		if !errors.As(err, &e) {
			t.Errorf("Lookup(%q) gives %v", test.name, err)
			continue
		}
		if string(e.Family) != test.family || e.Nearest != test.nearest || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Lookup(%q): family %q, nearest %q, %v; want %q, %q, … %s", test.name, e.Family, e.Nearest, err, test.family, test.nearest, test.says)
		}
	}
}

func TestLookupFamily(t *testing.T) {
	for name, want := range map[string]soc.FamilyName{
		"310p": soc.Family310P, "910B": soc.Family910B, "Ascend910B": soc.Family910, "910B3": soc.Family910B,
		"A3": soc.FamilyA3, "Atlas 300I Duo": soc.Family310P, "950": soc.Family950,
	} {
		if f, err := soc.LookupFamily(name); err != nil || f.Name != want {
			t.Errorf("LookupFamily(%q) = %q, %v, want %q", name, f.Name, err, want)
		}
	}
	if _, err := soc.LookupFamily("TPU"); err == nil {
		t.Error("TPU is a family")
	}
}

func TestWhatChipsShare(t *testing.T) {
	for _, test := range []struct {
		chip          string
		memory        soc.MemoryKind
		gears         int
		streams       int
		grammar       soc.CoreNumber
		first, second int
		modes         string // allowed of bf16 and hif8
	}{
		{"Ascend310P1", soc.DDR, 100, 1024, soc.SingleNumber, 10, 0, ""},
		{"Ascend310B4", soc.DDR, 100, 512, soc.SingleNumber, 1, 0, "bf16"},
		{"Ascend910A", soc.HBM, 100, 2048, soc.SingleNumber, 32, 0, ""},
		{"Ascend910B4", soc.HBM, 100, 1984, soc.CubeAndVector, 20, 40, "bf16"},
		{"Ascend910_9392", soc.HBM, 100, 1984, soc.CubeAndVector, 24, 48, "bf16"},
		{"Ascend950PR_9599", soc.HBM, 128, 1984, soc.CubeAndVector, 36, 72, "bf16 hif8"},
	} {
		c, err := soc.Lookup(test.chip)
		if err != nil {
			t.Fatal(err)
		}
		f := c.Shared()
		first, second := c.MaxCores()
		if f.Memory != test.memory || f.Gears() != test.gears || f.Streams != test.streams || f.CoreNumber != test.grammar || first != test.first || second != test.second {
			t.Errorf("%s: %+v, cores %d and %d", test.chip, f, first, second)
		}
		for mode, word := range map[string]string{"mixed_bfloat16": "bf16", "allow_fp32_to_bf16": "bf16", "cube_hif8": "hif8", "mixed_hif8": "hif8"} {
			if f.AllowsPrecision(mode) != strings.Contains(test.modes, word) {
				t.Errorf("%s: %s allowed is %v", test.chip, mode, f.AllowsPrecision(mode))
			}
		}
		if !f.AllowsPrecision("fp16") || !f.AllowsPrecision("must_keep_origin_dtype") {
			t.Errorf("%s refuses modes that all chips have", test.chip)
		}
	}
}

// Every chip stands for itself, by its name and by its short name, and belongs to a
// family; two thirds of the mistakes one makes in such a table show here.
func TestChipsAreConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range soc.Chips() {
		if seen[c.Name] || !strings.HasPrefix(c.Name, "Ascend") {
			t.Errorf("chip %q is there twice or oddly named", c.Name)
		}
		seen[c.Name] = true
		if c.Shared().Name != c.Family {
			t.Errorf("%s is of family %q, which is none", c.Name, c.Family)
		}
		if got, err := soc.Lookup(c.Name); err != nil || got.Name != c.Name {
			t.Errorf("Lookup(%q) = %v, %v", c.Name, got.Name, err)
		}
		if short := strings.TrimPrefix(c.Name, "Ascend"); short != "910B" {
			if got, err := soc.Lookup(short); err != nil || got.Name != c.Name {
				t.Errorf("Lookup(%q) = %v, %v", short, got.Name, err)
			}
		}
		if c.Shared().CoreNumber == soc.CubeAndVector && c.VectorCores != 2*c.CubeCores {
			t.Errorf("%s has %d cube and %d vector cores", c.Name, c.CubeCores, c.VectorCores)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d chips", len(seen))
	}
}

func TestOperators(t *testing.T) {
	for _, test := range []struct {
		domain, name string
		opsets       string
		a2, duo      soc.Engine
		known        bool // whether the AI Core's list on Ascend910B has float32
	}{
		{"", "Abs", "8-18", soc.CoreOr, soc.CoreOr, true},
		{"ai.onnx", "Reshape", "8-18", soc.Host, soc.Host, false},
		{"", "Gelu", "", soc.NoEngine, soc.NoEngine, false},
		{"", "GridSample", "11,16-18", soc.CoreOr, soc.Unknown, false},
		{"", "ScatterElements", "11-18", soc.CoreOr, soc.CPUOnly, true},
		{"", "Constant", "1 and up", soc.Host, soc.Host, false},
		{"npu", "NPURmsNorm", "1", soc.CoreOnly, soc.Unknown, true},
	} {
		o, err := soc.LookupOperator(test.domain, test.name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		has, known := o.CoreTypes(soc.Family910B).Has("float32")
		if o.Opsets.String() != test.opsets || o.Engine(soc.Family910B) != test.a2 || o.Engine(soc.Family310P) != test.duo || known != test.known || has != known {
			t.Errorf("%s: opsets %v, engines %s and %s, float32 %v, %v", test.name, o.Opsets, o.Engine(soc.Family910B), o.Engine(soc.Family310P), has, known)
		}
	}
}

func TestCoreTypes(t *testing.T) {
	abs, err := soc.LookupOperator("", "Abs")
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[soc.FamilyName]bool{soc.Family910B: true, soc.FamilyA3: true, soc.Family310P: false, soc.Family910: false} {
		if has, known := abs.CoreTypes(family).Has("int64"); has != want || !known {
			t.Errorf("Abs of int64 on %s: %v, %v", family, has, known)
		}
	}
	if _, known := abs.CoreTypes(soc.Family950).Has("int64"); known {
		t.Error("types are told of a family that has no column")
	}
	if e := abs.Engine(soc.Family950); e != soc.Unknown {
		t.Errorf("on a family without a column the engine is %s", e)
	}
}

func TestLookupOperatorSuggests(t *testing.T) {
	for _, test := range []struct{ domain, name, says string }{
		{"", "Reshap", `"Reshape"`},
		{"", "SomethingElseEntirely", "ai.onnx::SomethingElseEntirely"},
		{"com.microsoft", "Gelu", "com.microsoft"},
		{"ai.onnx.ml", "TreeEnsemble", "ai.onnx.ml"},
	} {
		if _, err := soc.LookupOperator(test.domain, test.name); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s::%s: %v", test.domain, test.name, err)
		}
	}
}

// The rows are ours; this holds them to the words that the reader knows.
func TestOperatorRowsAreWellFormed(t *testing.T) {
	engines := []soc.Engine{soc.CoreOnly, soc.CoreOr, soc.CPUOnly, soc.Host, soc.NoEngine, soc.Unknown}
	all := soc.Operators()
	if len(all) < 340 {
		t.Errorf("only %d operators", len(all))
	}
	for _, o := range all {
		if !slices.Contains([]soc.Confidence{soc.High, soc.Medium, soc.Low}, o.Confidence) {
			t.Errorf("%s: confidence %q", o.Name, o.Confidence)
		}
		for _, f := range []soc.FamilyName{soc.Family310P, soc.Family910, soc.Family910B, soc.FamilyA3} {
			e := o.Engine(f)
			if !slices.Contains(engines, e) || (e == soc.NoEngine) != (len(o.Opsets) == 0) {
				t.Errorf("%s on %s: engine %q, opsets %v", o.Name, f, e, o.Opsets)
			}
		}
		for _, r := range o.Opsets {
			if r.First < 1 || r.Last < r.First {
				t.Errorf("%s: opsets %v", o.Name, o.Opsets)
			}
		}
		if len(o.Opsets) == 0 && o.Domain != "ai.onnx" {
			t.Errorf("%s::%s has no opset", o.Domain, o.Name)
		}
	}
}

func TestExamine(t *testing.T) {
	nodes := []soc.Node{
		0: {Name: "conv", Type: "Conv", Opset: 17},
		1: {Name: "gelu", Type: "Gelu", Opset: 20},
		2: {Name: "add", Type: "Add", Opset: 20},
		3: {Name: "norm", Type: "ReduceL2", Opset: 18},
		4: {Name: "fused", Domain: "com.microsoft", Type: "FusedConv", Opset: 1},
		5: {Name: "nonzero", Type: "NonZero", Opset: 17},
		6: {Name: "hard", Type: "Hardmax", Opset: 13},
		7: {Name: "old", Type: "Relu", Opset: 7},
		8: {Name: "constant", Type: "Constant", Opset: 19},
		9: {Name: "mish", Type: "Mish", Opset: 19},
	}
	want := []struct {
		node                int
		kind                soc.Kind
		code, reason, remed string
	}{
		{1, soc.Refused, "E13010", "does not know Gelu", "Erf"},
		{2, soc.Refused, "E13010", "imports opset 20", "opset 17"},
		{3, soc.Refused, "E13010", "8-17, not at 18", "opset 17"},
		{4, soc.Refused, "E13010", "com.microsoft", "expand the function"},
		{5, soc.OffCore, "", "AI CPU only on Ascend310P", "mask"},
		{5, soc.DataSize, "", "not static", "mask"},
		{6, soc.Unproven, "EZ3003", "no kernel", "OneHot"},
		{7, soc.Refused, "E13010", "begins at 8", "opset 17"},
		{9, soc.Refused, "E13010", "imports opset 19", "opset 18"},
	}
	got := soc.Examine(soc.Family310P, nodes)
	if len(got) != len(want) {
		t.Fatalf("%d findings, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.Node != w.node || g.Kind != w.kind || g.Code != w.code || !strings.Contains(g.Reason, w.reason) || !strings.Contains(g.Remedy, w.remed) {
			t.Errorf("finding %d is %+v, want %+v", i, g, w)
		}
	}
	refusals := soc.Refusals(nodes)
	for _, f := range refusals {
		if f.Kind != soc.Refused {
			t.Errorf("%+v is no refusal", f)
		}
	}
	if len(refusals) != 6 {
		t.Errorf("%d refusals", len(refusals))
	}
	// A chip without rows on engines refuses the same and is silent on the rest.
	if n := len(soc.Examine(soc.Family950, nodes)); n != len(refusals) {
		t.Errorf("%d findings on Ascend950", n)
	}
}

func FuzzLookup(f *testing.F) {
	for _, name := range []string{"Ascend910B3", "910b", "Atlas 300I Duo", "", "ascend", "__", "Ascend910_9391", "310P\x00", "昇腾910B"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, err := soc.Lookup(name)
		var e *soc.NameError
		switch {
		case err == nil && c.Name == "":
			t.Fatal("neither chip nor error")
		case err != nil && !errors.As(err, &e):
			t.Fatalf("an error of type %T", err)
		case err == nil:
			if again, err := soc.Lookup(c.Name); err != nil || again.Name != c.Name {
				t.Fatalf("%q gives %q, which gives %v", name, c.Name, err)
			}
		case e.Nearest != "":
			if _, err := soc.LookupFamily(e.Nearest); err != nil {
				t.Fatalf("%q suggests %q: %v", name, e.Nearest, err)
			}
		}
	})
}

func FuzzLookupOperator(f *testing.F) {
	f.Add("", "Conv", 17)
	f.Add("npu", "NPUMish", 1)
	f.Add("com.microsoft", "Gelu", 1)
	f.Add("ai.onnx", "Convv", -1)
	f.Fuzz(func(t *testing.T, domain, name string, opset int) {
		_, err := soc.LookupOperator(domain, name)
		findings := soc.Examine(soc.Family910B, []soc.Node{{Domain: domain, Type: name, Opset: opset}})
		if err != nil && (len(findings) != 1 || findings[0].Kind != soc.Refused) {
			t.Fatalf("%v, but %+v", err, findings)
		}
	})
}
