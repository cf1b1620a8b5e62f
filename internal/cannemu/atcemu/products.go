package atcemu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/cannemu/omwriter"
)

// noisy marks a run that a fault made to end in noise.
type noisy struct{}

func (*noisy) Error() string { return "noise" }

// save writes the result and what goes with it. Of files that cannot be written nothing
// is left; constants that were written before them stay, as other models may share them.
func (r *run) save(q *request, p *product) error {
	if r.faults.garbage {
		return r.saveGarbage(p)
	}
	for _, f := range p.constants {
		path := filepath.Join(filepath.Dir(p.path), f.path)
		if err := r.writeFile(path, f.data); err != nil {
			return err
		}
	}
	if p.original != nil {
		if err := r.writeModel(q.output+"_original.om", p.original); err != nil {
			return err
		}
	}
	if err := r.writeResult(p); err != nil {
		return err
	}
	r.writeCache(q, p)
	if r.line.Value("export_compile_stat") != "0" {
		if err := r.writeSide("fusion_result.json", []byte("[]\n")); err != nil {
			return err
		}
	}
	if q.showInfo {
		return printInfo(r.out, p.path)
	}
	return nil
}

func (r *run) writeResult(p *product) error {
	if p.archive == nil {
		return r.writeModel(p.path, p.file)
	}
	if r.faults.diskFull {
		return writeFailure(p.path, errDiskFull)
	}
	return r.writeFile(p.path, p.archive)
}

func (r *run) writeModel(path string, f *omwriter.File) error {
	if r.faults.diskFull {
		return writeFailure(path, errDiskFull)
	}
	if err := f.Save(path); err != nil {
		return writeFailure(path, err)
	}
	return nil
}

func (r *run) writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeFailure(path, err)
	}
	err := atomicfile.Write(path, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return writeFailure(path, err)
	}
	return nil
}

func writeFailure(path string, err error) error {
	return &failure{code: "E13004", message: fmt.Sprintf("Failed to write file %s. Reason: %v", path, err)}
}

func (r *run) saveGarbage(p *product) error {
	var whole bytes.Buffer
	if err := p.file.Write(&whole); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return writeFailure(p.path, err)
	}
	if err := writeGarbage(r.out, p.path, whole.Bytes()); err != nil {
		return writeFailure(p.path, err)
	}
	return &noisy{}
}

// writeSide writes a file to where side products go: $ASCEND_WORK_PATH, or here.
func (r *run) writeSide(name string, data []byte) error {
	if filepath.IsAbs(name) {
		return r.writeFile(name, data)
	}
	return r.writeFile(filepath.Join(r.Getenv("ASCEND_WORK_PATH"), name), data)
}

// writeReport writes check_result.json: to where --check_report says, or beside the
// other side products.
func (r *run) writeReport(report checkReport) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(report); err != nil {
		return err
	}
	if r.line.IsSet("check_report") {
		return r.writeFile(r.line.Value("check_report"), b.Bytes())
	}
	return r.writeSide("check_result.json", b.Bytes())
}

// writeCache keeps a stand-in for every compiled operator where the cache is switched
// on. Caches are no reason to fail.
func (r *run) writeCache(q *request, p *product) {
	mode := r.line.Value("op_compiler_cache_mode")
	root := r.line.Value("op_compiler_cache_dir")
	if root == "" {
		root = r.Getenv("ASCEND_CACHE_PATH")
	}
	if home := r.Getenv("HOME"); root == "" && home != "" {
		root = filepath.Join(home, "atc_data")
	}
	if mode != "enable" && mode != "force" || root == "" {
		return
	}
	for _, name := range p.kernels {
		path := filepath.Join(root, "kernel_cache", q.chip, name)
		_ = r.writeFile(path+".json", []byte(`{"emulated": true}`+"\n"))
		_ = r.writeFile(path+".o", elfStub)
	}
}

// log writes a line of the process log, to its folder or, when the environment says
// so, to the screen. That a log cannot be written is no failure.
func (r *run) log(level, text string) {
	text = strings.ReplaceAll(text, "\n", " ")
	line := fmt.Sprintf("[%s] GE(%d,atc.bin):%s [main_impl.cc:1]%d Main: %s\n", level, r.PID, stamp(r.Now()), r.PID, text)
	for _, name := range []string{"ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_LOG_PRINT_TO_STDOUT"} {
		if r.Getenv(name) == "1" {
			fmt.Fprint(r.out, line)
			return
		}
	}
	root := r.logRoot()
	if root == "" {
		return
	}
	kind := "run"
	if level == "ERROR" {
		kind = "debug"
	}
	name := fmt.Sprintf("plog-%d_%s%03d.log", r.PID, r.Now().Format("20060102150405"), r.Now().Nanosecond()/1e6)
	_ = r.writeFile(filepath.Join(root, kind, "plog", name), []byte(line))
}

// logRoot is the folder of process logs: ASCEND_PROCESS_LOG_PATH, else one in
// ASCEND_WORK_PATH, else one in the home folder.
func (r *run) logRoot() string {
	if root := r.Getenv("ASCEND_PROCESS_LOG_PATH"); root != "" {
		return root
	}
	if root := r.Getenv("ASCEND_WORK_PATH"); root != "" {
		return filepath.Join(root, "log")
	}
	if home := r.Getenv("HOME"); home != "" {
		return filepath.Join(home, "ascend", "log")
	}
	return ""
}
