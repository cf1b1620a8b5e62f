package validation

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
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

// modelFolders are the folders of models that a path names: the one of a config, the folder
// itself, or those in a repository.
func modelFolders(path string) (folders []string) {
	const config = "config.pbtxt"
	if filepath.Base(path) == config {
		return []string{filepath.Dir(path)}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // a file, or one that is not there: the rules say so
	}
	if exists(filepath.Join(path, config)) {
		return []string{path}
	}
	for _, e := range entries {
		if folder := filepath.Join(path, e.Name()); e.IsDir() && exists(filepath.Join(folder, config)) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// checkVersions looks for compiled models in the versions of a model of a repository that
// no device runs.
func (j Job) checkVersions(folder string) (found []findings.Finding) {
	versions, err := os.ReadDir(folder)
	if err != nil {
		return nil // the rules say so
	}
	for _, version := range versions {
		if _, err := strconv.ParseUint(version.Name(), 10, 63); err != nil || !version.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(folder, version.Name()))
		if err != nil {
			continue
		}
		for _, file := range files {
			path := filepath.Join(folder, version.Name(), file.Name())
			if strings.EqualFold(filepath.Ext(path), ".om") && file.Type().IsRegular() && isEmulated(path) {
				found = append(found, rules.Find("om-emulated", j.Language, path, path))
			}
		}
	}
	return found
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
