package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/fault"
)

// standing is a config that stands in the place of the one to be written.
type standing struct {
	path   string
	doc    *configgen.Document
	config *configgen.Config
	// adopted names the settings that the plan takes over from it.
	adopted []string
}

// largestConfig bounds what is read of a config that is there.
const largestConfig = 1 << 20

// standing reads the config that is there, and takes over what it decides and nobody
// asks for otherwise. It is nil where there is none, and with Force, which replaces it.
func (j *Job) standing() (*standing, error) {
	if checkName(j.Name) != nil {
		return nil, nil // which is told later
	}
	if err := j.checkFolders(); err != nil || j.Force {
		return nil, err
	}
	path := filepath.Join(j.Repository, j.Name, configFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Input, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > largestConfig:
		return nil, fault.New(fault.Input, "%s is there and is no file of at most 1 MiB", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err)
	}
	doc, err := configgen.ParseLenient(path, data)
	if err != nil {
		return nil, fault.New(fault.Input, "%w", err).With("correct it; --force replaces it, and says what it had")
	}
	s := &standing{path: path, doc: doc, config: doc.Config()}
	return s, s.adopt(j)
}

// place writes where something of the config stands.
func (s *standing) place(offset int) string {
	line, column := s.doc.Place(offset)
	return fmt.Sprintf("%s:%d:%d", s.path, line, column)
}

// conflict is the failure of something that npuctl neither keeps nor changes.
func (s *standing) conflict(offset int, format string, args ...any) *fault.Error {
	f := fault.New(fault.Usage, "%s: "+format, append([]any{s.place(offset)}, args...)...)
	f.Err = fmt.Errorf("%w; nothing was written", f.Err)
	return f.With("change it there; --diff --force shows a config made anew, --force writes it")
}

// blame adds to a failure what of the plan was the standing config's idea.
//
// alone is the failure without it: where that is the same, the config has no part in it.
func (s *standing) blame(err, alone error) error {
	if s == nil || err == nil || len(s.adopted) == 0 || alone != nil && alone.Error() == err.Error() {
		return err
	}
	f := fault.New(fault.FamilyOf(err), "%w", err)
	var inner *fault.Error
	if errors.As(err, &inner) {
		f = fault.New(inner.Family, "%w", inner.Err)
		f.Remedy = inner.Remedy
	}
	f.Err = fmt.Errorf("%w (taken over from the config that is there: %s; --force makes one anew)", f.Err, strings.Join(s.adopted, ", "))
	return f
}

// took notes a setting that the plan takes over.
func (s *standing) took(offset int, setting string) {
	line, _ := s.doc.Place(offset)
	s.adopted = append(s.adopted, fmt.Sprintf("%s in line %d", setting, line))
}

// platforms are what configs of old call the backends.
var platforms = map[string]string{"onnxruntime_onnx": ONNXRuntime}

// adopt takes over what the config decides: the backend, the largest batch and the
// form of the graph.
func (s *standing) adopt(j *Job) error {
	c := s.config
	if c.Ensemble != nil {
		return s.conflict(c.At("ensemble_scheduling"), "it is an ensemble, not the config of a model")
	}
	if err := s.adoptBackend(j); err != nil {
		return err
	}
	s.adoptLoad(j)
	if c.DynamicBatching != nil && j.asked.batching && !j.NoBatching {
		j.adoptQueue(c.DynamicBatching)
	}
	if j.Static || j.Dynamic || j.Gears != "" {
		return nil
	}
	if j.MaxBatch == nil && c.Has("max_batch_size") {
		size := c.MaxBatchSize
		j.MaxBatch = &size
		s.took(c.At("max_batch_size"), fmt.Sprintf("max_batch_size %d", size))
	}
	if j.Backend != GE && j.Backend != "" {
		return nil
	}
	if list, ok := c.Parameter("graph.ge.dynamicDims"); ok && strings.TrimSpace(list) != "" {
		j.Gears = list
		s.took(s.entryAt("graph.ge.dynamicDims"), "gears "+list)
	} else if value, _ := c.Parameter("static_model"); strings.TrimSpace(value) == "1" {
		j.Static = true
		s.took(s.entryAt("static_model"), "static_model")
	}
	return nil
}

func (s *standing) adoptBackend(j *Job) error {
	c := s.config
	backend, field := c.Backend, "backend"
	if backend == "" && c.Platform != "" {
		backend, field = platforms[c.Platform], "platform"
		if backend == "" {
			backend = c.Platform
		}
	}
	switch {
	case backend == "" || backend == j.Backend:
		return nil
	case j.Backend == "" && (backend == GE || backend == ONNXRuntime):
		j.Backend = backend
		if backend != GE {
			s.took(c.At(field), "backend "+backend)
		}
		return nil
	}
	want := j.Backend
	if want == "" {
		want = GE
	}
	return s.conflict(c.At(field), "the backend is %q here, and this is for %s", backend, want)
}

// adoptLoad takes over instances, devices, streams and precision: they stay as they are,
// and what is told of memory counts them.
func (s *standing) adoptLoad(j *Job) {
	if j.Instances == 0 {
		for _, g := range s.config.InstanceGroup {
			j.Instances += int(max(1, g.Count))
		}
		j.Instances = min(j.Instances, mostInstances)
	}
	if j.Backend != "" && j.Backend != GE {
		return
	}
	if value, ok := s.config.Parameter("device_ids"); ok && len(j.Devices) == 0 {
		for word := range strings.SplitSeq(value, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && n >= 0 && !slices.Contains(j.Devices, n) {
				j.Devices = append(j.Devices, n)
			}
		}
	}
	if value, ok := s.config.Parameter("device_exec_blocks"); ok && j.Streams == 0 {
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && n > 0 && n <= mostStreams {
			j.Streams = n
		}
	}
	if j.Precision == "" {
		for _, option := range precisionKeys {
			value, _ := s.config.Parameter(precisionPrefix + option)
			if key, err := precisionKey(value); value != "" && err == nil && key == precisionPrefix+option {
				j.Precision = value
				return
			}
		}
	}
}

// entryAt is where a parameter stands.
func (s *standing) entryAt(key string) int {
	for i := range s.config.Parameters {
		if e := &s.config.Parameters[i]; e.Key == key {
			return e.At("key")
		}
	}
	return 0
}
