package onnxpass

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/npuctl/npuctl/onnx/text"
)

var update = flag.Bool("update", false, "rewrite the graphs after each pass in testdata")

// TestPasses runs each pass alone on tiny graphs. A file of testdata is named
// after the pass; it holds pairs of a graph before and the graph after, and
// dead-code cleans up behind the pass so that only what matters is left.
func TestPasses(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pass := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(pass, func(t *testing.T) { testPass(t, pass, archive) })
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func testPass(t *testing.T, pass string, archive *txtar.Archive) {
	if len(archive.Files)%2 != 0 {
		t.Fatalf("%q has no graph after it", archive.Files[len(archive.Files)-1].Name)
	}
	for i := 0; i < len(archive.Files); i += 2 {
		before, after := &archive.Files[i], &archive.Files[i+1]
		t.Run(before.Name, func(t *testing.T) {
			if after.Name != "after" {
				t.Fatalf("%q stands where the graph after %q should", after.Name, before.Name)
			}
			m := text.MustParse(t, string(before.Data))
			if _, err := Optimize(context.Background(), m, Options{Only: []string{pass, "dead-code"}, Verify: true}); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := text.Print(&got, m, text.Options{OmitTypes: true}); err != nil {
				t.Fatal(err)
			}
			if *update {
				after.Data = got.Bytes()
				return
			}
			if diff := cmp.Diff(string(after.Data), got.String()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", pass, diff)
			}
		})
	}
}

func TestEveryPassHasCases(t *testing.T) {
	for _, p := range Passes() {
		if _, err := os.Stat(filepath.Join("testdata", p.Name+".txtar")); err != nil {
			t.Errorf("pass %s has no cases: %v", p.Name, err)
		}
	}
}

func TestOrderIsKept(t *testing.T) {
	if err := checkOrder(passes()); err != nil {
		t.Error(err)
	}
	table := passes()
	table[0], table[len(table)-1] = table[len(table)-1], table[0]
	if err := checkOrder(table); err == nil {
		t.Error("a table in the wrong order is accepted")
	}
}
