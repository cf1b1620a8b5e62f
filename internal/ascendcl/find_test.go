package ascendcl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// install puts empty files where CANN has its libraries.
func install(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	root, home, own := t.TempDir(), t.TempDir(), t.TempDir()
	system := filepath.Join(root, "usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so")
	users := filepath.Join(home, "Ascend/cann/lib64/libascendcl.so")
	splitRT, splitMDL := filepath.Join(own, "new/lib64/libacl_rt.so"), filepath.Join(own, "new/lib64/libacl_mdl.so")
	listed := filepath.Join(own, "listed/libascendcl.so")
	install(t, system, users, splitRT, splitMDL, listed)
	for _, test := range []struct {
		name        string
		explicit    string
		environment map[string]string
		root        string
		want        []string
	}{
		{"a file by flag", listed, map[string]string{HomeVariable: "/nowhere"}, root, []string{listed}},
		{"a folder by flag", filepath.Dir(listed), nil, root, []string{listed}},
		{"the environment, with split libraries", "", map[string]string{HomeVariable: filepath.Join(own, "new")}, root, []string{splitRT, splitMDL}},
		{"LD_LIBRARY_PATH, but not what hangs on the working directory", "", map[string]string{"LD_LIBRARY_PATH": "lib64:" + filepath.Dir(listed)}, root, []string{listed}},
		{"the system", "", nil, root, []string{system}},
		{"the user's own", "", nil, own, []string{users}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := find(test.explicit, func(name string) string { return test.environment[name] }, test.root, home)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingFound(t *testing.T) {
	empty := t.TempDir()
	for _, test := range []struct {
		name, explicit string
		environment    map[string]string
		want           string
	}{
		{"by the flag", filepath.Join(empty, "lib64"), nil, "that the flag names"},
		{"by the environment", "", map[string]string{"ASCEND_TOOLKIT_HOME": empty}, "that ASCEND_TOOLKIT_HOME names"},
		{"anywhere", "", nil, "/usr/local/Ascend/cann/lib64"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, tried, err := find(test.explicit, func(name string) string { return test.environment[name] }, empty, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "npuctl emulator env") || len(tried) == 0 {
				t.Errorf("error %v, tried %v", err, tried)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for _, test := range []struct {
		err  Error
		want string
	}{
		{Error{"aclmdlLoadFromFile", 145006, ""}, "aclmdlLoadFromFile failed with 145006, this is no .om file, or it is cut short"},
		{Error{"aclrtMalloc", 207001, "\n[PID: 1] EL0004: no memory\n  traceback\n"}, "aclrtMalloc failed with 207001, the device is out of memory: [PID: 1] EL0004: no memory"},
		{Error{"aclrtFoo", 1, "x"}, "aclrtFoo failed with 1: x"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
	if (&Error{Code: 145013}).Device() || !(&Error{Code: 507015}).Device() {
		t.Error("whose failure it is")
	}
}
