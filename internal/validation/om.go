package validation

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/npuctl/npuctl/configgen/rules"
	"github.com/npuctl/npuctl/internal/compilation"
	"github.com/npuctl/npuctl/internal/findings"
	"github.com/npuctl/npuctl/om"
)

// checkBuild holds an .om against the build record beside it, and the record's sources
// against what they are now. What the file itself says of its chip is the rules' to say.
func (j Job) checkBuild(path string) (found []findings.Finding) {
	if _, err := os.Stat(path); err != nil {
		return nil // the rules say so
	}
	tell := func(id string, args ...any) {
		found = append(found, rules.Find(id, j.Language, path, args...))
	}
	if isEmulated(path) {
		tell("om-emulated", path)
	}
	record := path + ".json"
	r, err := compilation.ReadRecord(record)
	switch {
	case err != nil && !exists(record):
		tell("om-no-record", path, record)
		return found
	case err != nil:
		tell("om-changed", path, record, err)
		return found
	}
	if trouble := j.unlike(path, r); trouble != "" {
		tell("om-changed", path, record, trouble)
		return found
	}
	for i, source := range r.Input {
		file := filepath.Join(filepath.Dir(path), filepath.FromSlash(source.Path))
		sum, err := sumOf(file)
		what := rules.Text{"model", "模型"}
		if i > 0 {
			what = rules.Text{"file of weights", "权重文件"}
		}
		switch {
		case err != nil:
			tell("om-source-missing", path, source.Path)
		case sum != source.SHA256:
			tell("om-stale", path, what.In(j.Language)+" "+source.Path)
		}
	}
	return found
}

// What can differ between an .om and its record.
var (
	notInRecord = rules.Text{"it does not list this file", "其中没有列出该文件"}
	otherBytes  = rules.Text{"the file has other contents", "文件内容不同"}
	otherChip   = rules.Text{"the record is of %s", "记录的芯片是 %s"}
)

// unlike says what an .om has that its record does not tell of; "" when nothing.
func (j Job) unlike(path string, r *compilation.Record) string {
	for _, output := range r.Outputs {
		if filepath.Base(filepath.FromSlash(output.Path)) != filepath.Base(path) {
			continue
		}
		sum, err := sumOf(path)
		if err == nil && sum != output.SHA256 {
			return otherBytes.In(j.Language)
		}
		if chip := chipOf(path); err == nil && chip != "" && r.SoC != "" && chip != r.SoC {
			return strings.ReplaceAll(otherChip.In(j.Language), "%s", r.SoC)
		}
		return ""
	}
	return notInRecord.In(j.Language)
}

func isEmulated(path string) bool {
	f, err := om.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, isThere := f.Partition(0, om.EmulatedModel)
	return isThere
}

// chipOf is the chip that an .om was compiled for; "" when it does not say.
func chipOf(path string) string {
	f, err := om.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	p, err := f.Provenance()
	if err != nil {
		return ""
	}
	return p.SoC
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sumOf is the SHA-256 of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
