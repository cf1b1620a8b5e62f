package files_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/npuctl/npuctl/internal/files"
)

func TestSame(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"a", "ab", false}, {long, long, true}, {long, long + "y", false}, {long + "y", long + "z", false},
	} {
		if got, err := files.Same(strings.NewReader(test.a), iotest.HalfReader(strings.NewReader(test.b))); err != nil || got != test.want {
			t.Errorf("%d bytes and %d: %t, %v", len(test.a), len(test.b), got, err)
		}
	}
	broken := errors.New("broken")
	if _, err := files.Same(strings.NewReader(""), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestMakeFolder(t *testing.T) {
	root := t.TempDir()
	want := []string{filepath.Join(root, "a"), filepath.Join(root, "a", "b")}
	made, err := files.MakeFolder(want[1])
	if err != nil || !slices.Equal(made, want) {
		t.Errorf("made %v, %v", made, err)
	}
	if made, err = files.MakeFolder(want[1]); err != nil || made != nil {
		t.Errorf("again: made %v, %v", made, err)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if made, err = files.MakeFolder(filepath.Join(file, "c")); err == nil {
		t.Errorf("below a file: made %v", made)
	}
}

func TestCopy(t *testing.T) {
	var into bytes.Buffer
	if err := files.Copy(t.Context(), &into, strings.NewReader("all of it")); err != nil || into.String() != "all of it" {
		t.Errorf("%q, %v", into.String(), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := files.Copy(ended, &into, strings.NewReader("more")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := os.WriteFile(path, []byte("four"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := files.Read(path, 4); err != nil || string(data) != "four" {
		t.Errorf("%q, %v", data, err)
	}
	for _, test := range []struct {
		path  string
		limit int64
		want  string
	}{
		{path, 3, "has more than 3 bytes"}, {folder, 4, "is no regular file"}, {os.DevNull, 4, "is no regular file"}, {path + "2", 4, "open "},
	} {
		if _, err := files.Read(test.path, test.limit); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %d bytes: %v", test.path, test.limit, err)
		}
	}
}
