package elementary_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestNothingIsFused compiles the package for an architecture whose compiler does
// fuse products and sums, and looks for such instructions.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package for another architecture")
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	build := exec.Command(compiler, "build", "-gcflags=-S", ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	listing, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, listing)
	}
	if !regexp.MustCompile(`FADDD`).Match(listing) {
		t.Fatal("the listing shows no addition: is it a listing?")
	}
	for _, line := range regexp.MustCompile(`.*\bFN?M(ADD|SUB)[SD]\b.*`).FindAll(listing, -1) {
		t.Errorf("fused: %s", line)
	}
}
