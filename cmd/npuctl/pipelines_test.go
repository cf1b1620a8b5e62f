package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/onnx"
	"github.com/npuctl/npuctl/onnx/text"
)

// The pipelines in examples/ci run as they stand: their commands are taken out of them
// and executed over a repository that is fine, and over one that is not.

const (
	fineServing = `backend: "npu_ge"
max_batch_size: 8
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 16, 16 ] } ]
output [ { name: "feat" data_type: TYPE_FP32 dims: [ 10 ] } ]
`
	brokenServing = fineServing + "dynamic_batching { preferred_batch_size: [ 16 ] }\n"
)

// commandsOf takes the commands out of a pipeline.
var commandsOf = map[string]func(t *testing.T, data []byte) []string{
	"github-actions.yml":     func(t *testing.T, data []byte) []string { return yamlCommands(t, data, "run") },
	"gitlab-ci.yml":          func(t *testing.T, data []byte) []string { return yamlCommands(t, data, "script") },
	"pre-commit-config.yaml": func(t *testing.T, data []byte) []string { return yamlCommands(t, data, "entry") },
	"Jenkinsfile": func(_ *testing.T, data []byte) (out []string) {
		for _, m := range regexp.MustCompile(`\bsh '([^']*)'`).FindAllStringSubmatch(string(data), -1) {
			out = append(out, m[1])
		}
		return out
	},
}

// yamlCommands gives the texts under a key, wherever it stands.
func yamlCommands(t *testing.T, data []byte, key string) (out []string) {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == key {
				if child.Kind == yaml.ScalarNode {
					out = append(out, child.Value)
				}
				for _, item := range child.Content {
					out = append(out, item.Value)
				}
			}
			visit(child)
		}
	}
	visit(&root)
	return out
}

// machine is a folder with models, and programs of its own on the path.
type pipelineMachine struct {
	folder string
	path   string
}

func newPipelineMachine(t *testing.T, config string) pipelineMachine {
	t.Helper()
	for _, program := range []string{"sh", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: there is no %s", program)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "npuctl")); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	// What is installed is the program under test; anything else would be a mistake.
	install := "#!/bin/sh\n[ \"$*\" = 'install github.com/npuctl/npuctl/cmd/npuctl@latest' ]\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(install), 0o755); err != nil {
		t.Fatal(err)
	}
	m := pipelineMachine{t.TempDir(), bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	m.write(t, "models/net/config.pbtxt", config)
	m.model(t, "models/net/1/model.onnx")
	return m
}

func (m pipelineMachine) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the folder; a shell's exit code and what it printed.
func (m pipelineMachine) run(command string) (code int, output string) {
	cmd := exec.Command("sh", "-e", "-c", command)
	cmd.Dir = m.folder
	cmd.Env = append(os.Environ(), "PATH="+m.path, "LANG=C", "LC_ALL=", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, _ := cmd.CombinedOutput() // the exit code says it
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestPipelines(t *testing.T) {
	entries, err := os.ReadDir("../../examples/ci")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		commands, isPipeline := commandsOf[e.Name()]
		if !isPipeline {
			if e.Name() != "README.md" && e.Name() != "pre-commit" {
				t.Errorf("%s has no test", e.Name())
			}
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../../examples/ci", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			list := commands(t, data)
			if len(list) == 0 || !strings.Contains(strings.Join(list, "\n"), "npuctl validate models") {
				t.Fatalf("its commands are %q", list)
			}
			for config, want := range map[string]int{fineServing: 0, brokenServing: 4} {
				m := newPipelineMachine(t, config)
				code, output := 0, ""
				for _, command := range list {
					if code, output = m.run(command); code != 0 {
						break
					}
				}
				if code != want {
					t.Errorf("exit %d, want %d: %s", code, want, output)
				}
				for _, report := range []string{"npuctl.sarif", "npuctl.xml"} {
					if !strings.Contains(string(data), report) {
						continue
					}
					if text, err := os.ReadFile(filepath.Join(m.folder, report)); err != nil || want == 4 && !strings.Contains(string(text), "preferred-over-max") {
						t.Errorf("%s: %v\n%s", report, err, text)
					}
				}
			}
		})
	}
}

// The hook of git looks at the models that a commit touches, and at no others.
func TestPreCommitHook(t *testing.T) {
	hook, err := filepath.Abs("../../examples/ci/pre-commit")
	if err != nil {
		t.Fatal(err)
	}
	m := newPipelineMachine(t, fineServing)
	m.write(t, "models/old/config.pbtxt", brokenServing)
	m.model(t, "models/old/1/model.onnx")
	do := func(command string) (int, string) { return m.run(command) }
	if code, output := do("git init -q . && git add -A && git commit -qm all && cp " + hook + " .git/hooks/pre-commit"); code != 0 {
		t.Fatal(output)
	}
	for _, test := range []struct {
		name, command string
		code          int
		say           string
	}{
		{"a model that is fine, beside one that is not", "echo '# more' >> models/net/config.pbtxt && git commit -qam fine", 0, ""},
		{"a file outside", "echo x > notes && git add notes && git commit -qm notes", 0, ""},
		{"a model that is not fine", "echo '# more' >> models/old/config.pbtxt && git commit -qam broken", 1, "preferred-over-max"},
		{"a model that goes away", "git checkout -q . && git rm -rqf models/old && git commit -qm gone", 0, ""},
		{"another folder", "mkdir -p serving && git mv models/net serving/net && echo 'max_batch_size: 9' >> serving/net/config.pbtxt && git add -A && NPUCTL_MODELS=serving git commit -qm moved", 1, "syntax-duplicate"},
	} {
		code, output := do(test.command)
		if code != test.code || !strings.Contains(output, test.say) {
			t.Errorf("%s: exit %d: %s", test.name, code, output)
		}
		do("git reset -q")
	}
}

// model writes the model that the configs are of.
func (m pipelineMachine) model(t *testing.T, name string) {
	t.Helper()
	model, err := text.Parse(`<ir_version: 10, opset_import: ["": 13]>
net (float[N,3,16,16] image) => (float[N,10] feat)
<int64[2] size = {768, 10}, int64[2] shape = {-1, 768}> {
  flat = Reshape (image, shape)
  w = ConstantOfShape (size)
  feat = MatMul (flat, w)
}`)
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, name, "")
	if err := model.Save(filepath.Join(m.folder, filepath.FromSlash(name)), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
}
