package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds text against testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update makes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func exampleTable() Table {
	on := Palette{on: true}
	return Table{
		Header: []string{"operator", "before", "after", ""},
		Right:  []int{1, 2},
		Rows: [][]string{
			{"Add", Count(1234567), "3", ""},
			{"矩阵乘法", "2", "1", on.Good("-1")},
			{"  indented", "", "0", ""},
			{"naïve é", "1", "1", ""},
		},
		Footer: [][]string{{"nodes", "1,234", "5", ""}, {"size", "1.6 MB", "12 kB", ""}},
	}
}

func TestTable(t *testing.T) {
	// The look must not follow the locale: some make box lines two columns wide.
	for _, locale := range []string{"C", "zh_CN.UTF-8", "ja_JP.eucJP"} {
		t.Setenv("LC_ALL", locale)
		var b strings.Builder
		if err := exampleTable().Write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, "table.txt", b.String())
	}
}

func TestTableWithoutRows(t *testing.T) {
	var b strings.Builder
	if err := (Table{Header: []string{"name", "type"}}).Write(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "empty.txt", b.String())
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 1024: "1.0 kB", 9949: "9.9 kB", 9950: "10 kB", 999_499: "999 kB", 999_500: "1.0 MB",
		1_600_000: "1.6 MB", 2_000_000_000: "2.0 GB", 1 << 62: "4.6 EB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	if got := Large(4_089_184_256); got != "4.1 G" {
		t.Errorf("Large = %q", got)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond: "12 ms", 1400 * time.Millisecond: "1.4 s", 42 * time.Second: "42 s", 125 * time.Second: "2 min 5 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestCleanAndShorten(t *testing.T) {
	for in, want := range map[string]string{"/a/b:0": "/a/b:0", "中文": "中文", "a\x1b[31mb": `a\x1b[31mb`, "a\nb": `a\nb`, "\xff": `\xff`, "\u202e": `\u202e`} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"short": "short", "exactly 10": "exactly 10", "longer than ten": "long…n ten"} {
		if got := Shorten(in, 10); got != want {
			t.Errorf("Shorten(%q) = %q, want %q", in, got, want)
		}
	}
}

// Nothing but a terminal gets colours; a file is none.
func TestPaletteOfAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := PaletteFor(f, func(string) string { return "" })
	if got := p.Good("x"); got != "x" {
		t.Errorf("a file gets %q", got)
	}
	if StartProgress(f) != nil {
		t.Error("a file gets progress")
	}
}

func TestPaletteColours(t *testing.T) {
	p := Palette{on: true}
	if got, want := p.Bad("x"), "\x1b[31mx\x1b["; !strings.HasPrefix(got, want) {
		t.Errorf("Bad gives %q, want it to begin with %q", got, want)
	}
	if got := p.Bad(""); got != "" {
		t.Errorf("colour around nothing: %q", got)
	}
}

func TestProgressShowsLongWorkAndCleansUp(t *testing.T) {
	var b strings.Builder
	p := startProgress(&b, time.Millisecond)
	p.Say("round %d: %s", 1, "fold\x1b")
	time.Sleep(50 * time.Millisecond)
	p.Stop()
	p.Stop()
	if got := b.String(); !strings.HasPrefix(got, "\r\x1b[Kround 1: fold\\x1b (") || !strings.HasSuffix(got, eraseLine) {
		t.Errorf("printed %q", got)
	}
}

func TestProgressIsSilentAboutShortWork(t *testing.T) {
	var b strings.Builder
	p := startProgress(&b, time.Hour)
	p.Say("busy")
	p.Stop()
	if b.Len() > 0 {
		t.Errorf("printed %q", b.String())
	}
	var nobody *Progress
	nobody.Say("busy")
	nobody.Stop()
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 inputs", 1: "1 input", 2: "2 inputs", 1234: "1,234 inputs"} {
		if got := Counted(n, "input"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Lines and tabs stay, all else that a terminal would obey does not.
func TestCleanLines(t *testing.T) {
	if got, want := CleanLines("a\tb\x1b[31m\r\n\xffc\rd\n"), "a\tb\\x1b[31m\n\\xffc\\rd\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
