// Package tritontest gives tests the real Triton server.
package tritontest

import (
	"context"
	"os"
	"testing"

	"github.com/npuctl/npuctl/internal/tritonserver"
)

// RequiredVariable, set to anything, makes tests fail where there is no server.
const RequiredVariable = "NPUCTL_REQUIRE_TRITON"

// Find gives the server of this machine: .ci/fetch-triton brings one. Where there is
// none the test is skipped and says so.
func Find(t testing.TB) tritonserver.Installation {
	t.Helper()
	i, err := tritonserver.Find(context.Background())
	if err == nil {
		return i
	}
	if os.Getenv(RequiredVariable) != "" {
		t.Fatalf("no Triton server: %v", err)
	}
	t.Skipf("NOT TESTED against the real Triton server; run .ci/fetch-triton first. %v", err)
	return i
}

// Start runs it over a repository until the test ends, with a stand-in for npu_ge.
func Start(t testing.TB, repository string, o tritonserver.Options) *tritonserver.Server {
	t.Helper()
	if o.StandIns == nil {
		o.StandIns = []string{"npu_ge"}
	}
	s, err := Find(t).Start(context.Background(), repository, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
