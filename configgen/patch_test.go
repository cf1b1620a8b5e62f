package configgen

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A patch replaces, adds and takes away fields, in every layout that files have, and
// leaves the rest byte for byte. npuctl's own comments, #: in front, go with the field.
func TestPatch(t *testing.T) {
	size := []*Value{{Scalar: int32(2)}}
	entry := func(key, value string) *Value {
		doc, err := Parse("", []byte(`parameters { key: "`+key+`" value { string_value: "`+value+`" } }`))
		if err != nil {
			t.Fatal(err)
		}
		return doc.Root.Values("parameters")[0]
	}
	for _, test := range []struct {
		name, text string
		change     func(*Patch)
		want       string
	}{
		{"a value", "# theirs\n#: ours\nmax_batch_size: 8 # why\nname: \"x\"\n", func(p *Patch) { p.Set("max_batch_size", size, []string{": new"}) },
			"# theirs\n#: new\nmax_batch_size: 2 # why\nname: \"x\"\n"},
		{"a value among others in a line", "name: \"x\"; max_batch_size: 8, backend: \"b\"\n", func(p *Patch) { p.Set("max_batch_size", size, []string{": new"}) },
			"name: \"x\"; max_batch_size: 2, backend: \"b\"\n"},
		{"a field that is not there", "name: \"x\" # the name\n\n# theirs\ninput { name: \"i\" }\n", func(p *Patch) { p.Set("max_batch_size", size, []string{": new"}) },
			"name: \"x\" # the name\n#: new\nmax_batch_size: 2\n\n# theirs\ninput { name: \"i\" }\n"},
		{"before all others", "input { name: \"i\" }\n", func(p *Patch) { p.Set("max_batch_size", size, nil) }, "max_batch_size: 2\ninput { name: \"i\" }\n"},
		{"at the end of a file without an end", "name: \"x\"", func(p *Patch) { p.Set("max_batch_size", size, nil) }, "name: \"x\"\nmax_batch_size: 2\n"},
		{"in an empty file", "# only a comment\n", func(p *Patch) { p.Set("max_batch_size", size, nil) }, "# only a comment\n\nmax_batch_size: 2\n"},
		{"between fields of one line", "name: \"x\" input { name: \"i\" }\n", func(p *Patch) { p.Set("max_batch_size", size, nil) }, "name: \"x\"\nmax_batch_size: 2\n input { name: \"i\" }\n"},
		{"gone", "name: \"x\"\n# theirs\n#: ours\nmax_batch_size: 8;\nbackend: \"b\"\n", func(p *Patch) { p.Set("max_batch_size", nil, nil) }, "name: \"x\"\n# theirs\nbackend: \"b\"\n"},
		{"several occurrences become one", "input { name: \"a\" }\nname: \"x\"\ninput { name: \"b\" }\n",
			func(p *Patch) { p.Set("input", p.doc.Root.Values("input"), nil) }, "input [ { name: \"a\" }, { name: \"b\" } ]\nname: \"x\"\n"},
		{"an entry", "#: ours\nparameters { key: \"a\" value { string_value: \"1\" } }\n# theirs\nparameters { key: \"b\" value { string_value: \"2\" } }\n",
			func(p *Patch) { p.SetEntry("parameters", "b", entry("b", "3"), []string{": new"}) },
			"#: ours\nparameters { key: \"a\" value { string_value: \"1\" } }\n# theirs\n#: new\nparameters { key: \"b\" value { string_value: \"3\" } }\n"},
		{"an entry given twice", "parameters { key: \"a\" value { string_value: \"1\" } }\nparameters { key: \"a\" value { string_value: \"2\" } }\n",
			func(p *Patch) { p.SetEntry("parameters", "a", entry("a", "3"), nil) }, "parameters { key: \"a\" value { string_value: \"3\" } }\n"},
		{"an entry in a list", "parameters: [ { key: \"a\" value { string_value: \"1\" } }, { key: \"b\" value { string_value: \"2\" } } ]\n",
			func(p *Patch) { p.SetEntry("parameters", "a", entry("a", "3"), []string{": new"}) },
			"parameters: [ { key: \"a\" value { string_value: \"3\" } }, { key: \"b\" value { string_value: \"2\" } } ]\n"},
		{"an entry of a list is gone", "parameters: [\n  # theirs\n  #: ours\n  { key: \"a\" value { } },\n  { key: \"b\" value { } }\n]\n",
			func(p *Patch) { p.RemoveEntry("parameters", "a") }, "parameters: [\n  # theirs\n  { key: \"b\" value { } }\n]\n"},
		{"the last of a list is gone", "parameters: [\n  { key: \"a\" value { } },\n  { key: \"b\" value { } }\n]\n",
			func(p *Patch) { p.RemoveEntry("parameters", "b") }, "parameters: [\n  { key: \"a\" value { } }\n  \n]\n"},
		{"the only entry is gone", "name: \"x\"\nparameters { key: \"a\" value { } }\n", func(p *Patch) { p.RemoveEntry("parameters", "a") }, "name: \"x\"\n"},
	} {
		doc, err := ParseLenient("config.pbtxt", []byte(test.text))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		p := NewPatch(doc)
		test.change(p)
		got, err := p.Text()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, d)
		}
		if _, err := ParseLenient("", []byte(got)); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Whatever the file: what is set is what is read afterwards, and everything else says
// what it said.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{example, "", "name: \"x\"", "max_batch_size: 1 max_batch_size: 0", "parameters: [ { key: \"a\" value { } }, { key: \"a\" } ]",
		"parameters { key: \"a\" }, parameters { key: \"b\" value { string_value: \"#: x\" } };", "dynamic_batching{}version_policy{}\n ", "#: a\n#: b\nunknown { x: [ 1, 2 ] } max_batch_size: 3 # c", "input <name: 'a'> parameters [ ]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := ParseLenient("", []byte(text))
		if err != nil {
			return
		}
		want := doc.Config()
		want.MaxBatchSize, want.VersionPolicy = 7, nil
		want.Parameters = slices.DeleteFunc(want.Parameters, func(e Entry[string, Parameter]) bool { return e.Key == "a" || e.Key == "b" })
		want.Parameters = append(want.Parameters, Entry[string, Parameter]{Key: "a", Value: Parameter{StringValue: "new"}})
		wanted := NewDocument("", want).Root

		p := NewPatch(doc)
		p.Set("max_batch_size", wanted.Values("max_batch_size"), []string{": a reason"})
		p.Set("version_policy", nil, nil)
		p.RemoveEntry("parameters", "b")
		values := wanted.Values("parameters")
		p.SetEntry("parameters", "a", values[len(values)-1], []string{": another"})
		changed, err := p.Text()
		if err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		again, err := ParseLenient("", []byte(changed))
		if err != nil {
			t.Fatalf("%v\n%q became\n%q", err, text, changed)
		}
		got := again.Config()
		less := func(a, b Entry[string, Parameter]) bool { return a.Key < b.Key }
		if d := cmp.Diff(want, got, cmpopts.IgnoreTypes(Node{}), cmpopts.EquateNaNs(), cmpopts.SortSlices(less), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q became\n%q\n(-want +got)\n%s", text, changed, d)
		}
		var before, after []string
		for _, u := range doc.Unknown() {
			before = append(before, u.Raw)
		}
		for _, u := range again.Unknown() {
			after = append(after, u.Raw)
		}
		if len(after) < len(before) && !strings.Contains(text, "parameters") && !strings.Contains(text, "version_policy") {
			t.Errorf("unknown fields %q, before %q", after, before)
		}
	})
}
