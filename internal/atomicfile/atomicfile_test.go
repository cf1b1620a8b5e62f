package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func put(content string) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.WriteString(content)
		return err
	}
}

// holds checks what a file contains, and that nothing else lies beside those named.
func holds(t *testing.T, path, content string, beside ...string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != content {
		t.Errorf("%s holds %q, %v, want %q", path, b, err, content)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(beside)+1 {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, put("first")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "first")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, put("second")); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "second")
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("permissions are %v now", info.Mode())
	}
}

func TestWriteThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, put("first")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	err := Write(path, func(f *os.File) error {
		_ = put("half of the sec")(f)
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	holds(t, path, "first")
}

func TestWriteFollowsALink(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := Write(file, put("first")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := Write(link, put("second")); err != nil {
		t.Fatal(err)
	}
	holds(t, file, "second", "link")
	if to, err := os.Readlink(link); to != "file" {
		t.Errorf("the link points to %q, %v", to, err)
	}
}

// Replace leaves alone what a link points to, whether there is anything or not, and a
// commit that fails brings the link back.
func TestReplaceTakesThePlaceOfALink(t *testing.T) {
	for _, isThere := range []bool{true, false} {
		folder, other := t.TempDir(), t.TempDir()
		link, file := filepath.Join(folder, "link"), filepath.Join(other, "file")
		if isThere {
			if err := Write(file, put("theirs")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(file, link); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
		replace := func(paths ...string) error {
			var files []*File
			for _, path := range paths {
				f, err := Replace(path)
				if err != nil {
					return err
				}
				defer f.Abort()
				files = append(files, f)
			}
			if err := put("ours")(files[0].File); err != nil {
				return err
			}
			blocked := filepath.Join(folder, "blocked")
			if len(paths) > 1 {
				if err := os.MkdirAll(filepath.Join(blocked, "by a folder"), 0o755); err != nil {
					return err
				}
				defer os.RemoveAll(blocked)
			}
			return Commit(files...)
		}
		if err := replace(link, filepath.Join(folder, "blocked")); err == nil {
			t.Error("a file took the place of a folder")
		}
		if to, err := os.Readlink(link); to != file {
			t.Errorf("the link points to %q, %v", to, err)
		}
		if err := replace(link); err != nil {
			t.Fatal(err)
		}
		holds(t, link, "ours")
		if to, err := os.Readlink(link); err == nil {
			t.Errorf("it is still a link to %s", to)
		}
		if b, err := os.ReadFile(file); isThere != (err == nil) || isThere && string(b) != "theirs" {
			t.Errorf("what it pointed to holds %q, %v", b, err)
		}
	}
}

// A link that points to nothing yet stays a link, and what it points to is made.
func TestWriteMakesWhatALinkPointsTo(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := Write(link, put("first")); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(folder, "file"), "first", "link")
	if to, err := os.Readlink(link); to != "file" {
		t.Errorf("the link points to %q, %v", to, err)
	}
	circle := filepath.Join(folder, "circle")
	if err := os.Symlink("circle", circle); err != nil {
		t.Fatal(err)
	}
	if got := Resolve(circle); got != circle {
		t.Errorf("a link to itself resolves to %s", got)
	}
}

func TestWriteSaysWhichFolderIsMissing(t *testing.T) {
	folder := t.TempDir()
	if err := Write(filepath.Join(folder, "file"), put("x")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "none", "x"): "there is no folder " + filepath.Join(folder, "none"),
		filepath.Join(folder, "file", "x"): filepath.Join(folder, "file") + " is a file, not a folder",
	} {
		if err := Write(path, put("x")); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestWriteRefusesWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	if err := Write(folder, put("x")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
	if err := Write(filepath.Join(folder, "none", "file"), put("x")); err == nil {
		t.Error("a file was written into a folder that is not there")
	}
}

// When the second of two files cannot be placed, the first is taken back: the old
// one if there was one, else none.
func TestCommitOfTwoTakesBack(t *testing.T) {
	for _, old := range []bool{true, false} {
		folder := t.TempDir()
		first, second := filepath.Join(folder, "first"), filepath.Join(folder, "second")
		if old {
			if err := Write(first, put("old")); err != nil {
				t.Fatal(err)
			}
		}
		var files []*File
		for _, path := range []string{first, second} {
			f, err := Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Abort()
			if err := put("new")(f.File); err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if err := os.MkdirAll(filepath.Join(second, "in the way"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := Commit(files...); err == nil {
			t.Fatal("a file took the place of a folder")
		}
		files[1].Abort()
		if old {
			holds(t, first, "old", "second")
		} else if _, err := os.Stat(first); err == nil {
			t.Error("the first file has stayed")
		}
	}
}

func TestCommitOfTwo(t *testing.T) {
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first"), filepath.Join(folder, "second")
	for _, content := range []string{"one", "two"} {
		var files []*File
		for _, path := range []string{first, second} {
			f, err := Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(content)(f.File); err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if err := Commit(files...); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			f.Abort() // nothing any more
		}
		holds(t, first, content, "second")
		holds(t, second, content, "first")
	}
}

// A failure names the file that was asked for, not the one that stood in for it.
func TestFailuresNameTheTarget(t *testing.T) {
	target := filepath.Join(t.TempDir(), "model.onnx")
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name string
		fail func(f *os.File) error
		want string
	}{
		{"of writing", func(f *os.File) error { return &fs.PathError{Op: "write", Path: f.Name(), Err: full} }, "no space left on device"},
		{"of something else", func(f *os.File) error { return &fs.PathError{Op: "sync", Path: f.Name(), Err: full} }, "sync " + target + ": no space left on device"},
		{"wrapped", func(f *os.File) error {
			return fmt.Errorf("tensor 3: %w", &fs.PathError{Op: "write", Path: f.Name(), Err: full})
		}, "tensor 3: no space left on device"},
		{"of the content", func(*os.File) error { return full }, "no space left on device"},
	} {
		err := Write(target, c.fail)
		if !errors.Is(err, full) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
