package compiler

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/npuctl/npuctl/internal/fault"
)

func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are made by their mode here")
	}
	folder := t.TempDir()
	for _, name := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	for _, test := range []struct {
		given string
		names []string
		want  []string // nil where there is none
	}{
		{"", []string{"none", "", "second", "first"}, []string{"second"}},
		{"first -m64", []string{"second"}, []string{"first", "-m64"}},
		{" ", []string{"second"}, []string{"second"}},
		{"none", []string{"second"}, nil},
		{"", []string{"none"}, nil},
	} {
		got, err := Find(test.given, "CC", test.names...)
		if !slices.Equal(got, test.want) {
			t.Errorf("%q %q: %q, want %q", test.given, test.names, got, test.want)
		}
		if test.want == nil && (fault.FamilyOf(err) != fault.Missing || !strings.Contains(err.Error(), "looked for none") || !strings.Contains(err.Error(), "CC")) {
			t.Errorf("%q: %v", test.given, err)
		}
	}
}
