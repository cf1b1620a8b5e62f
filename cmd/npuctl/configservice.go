package main

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/configgen/deployment"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
	"github.com/npuctl/npuctl/internal/files"
	"github.com/npuctl/npuctl/internal/project"
)

// serviceFlags are the flags of `npuctl config` that write what a cluster is told.
type serviceFlags struct {
	eas, kserve, k8s string
	service          deployment.Service
	protocol         string
	npus             int
}

func (f *serviceFlags) add(flags *pflag.FlagSet) {
	s := &f.service
	flags.StringVar(&f.eas, "eas", "", "write the JSON of a PAI-EAS service to this `file`")
	flags.StringVar(&f.kserve, "kserve", "", "write an InferenceService and a ServingRuntime of KServe to this `file`")
	flags.StringVar(&f.k8s, "k8s", "", "write a Deployment and a Service of Kubernetes to this `file`")
	flags.StringVar(&s.Image, "image", "", "container `image` that holds tritonserver and its backends")
	flags.StringVar(&s.Storage, "storage", "", "where the repository lies for the cluster (`URI`): oss://bucket/models/, nfs://server/models, pvc://claim/models")
	flags.StringVar(&f.protocol, "protocol", "", "what clients speak: http (default) or grpc (`word`)")
	flags.StringVar(&s.Name, "service", "", "`name` of the service (default that of the model)")
	flags.StringVar(&s.Resource, "npu-resource", "", "`name` by which pods ask for NPUs (default that of Huawei's device plugin for --soc)")
	flags.IntVar(&f.npus, "npus", 0, "NPUs of each server (`N`; default the most that a config names, or 1)")
	flags.IntVar(&s.Replicas, "replicas", 0, "how many servers run (`N`; default 1)")
	flags.IntVar(&s.SharedMemoryGiB, "shared-memory", 0, "GiB that Python models share with the server (`N`; default 1)")
}

// platform is one kind of file for clusters.
type platform struct {
	path string
	text func(*deployment.Service) ([]byte, error)
}

func (f *serviceFlags) platforms() (out []platform) {
	for _, p := range []platform{
		{f.eas, (*deployment.Service).EAS}, {f.kserve, (*deployment.Service).KServe}, {f.k8s, (*deployment.Service).Kubernetes},
	} {
		if p.path != "" {
			out = append(out, p)
		}
	}
	return out
}

// mostNPUs is more than any server has; pods do not span servers.
const mostNPUs = 1024

// check refuses, before anything is written, what no platform takes.
func (f *serviceFlags) check(cmd *cobra.Command, job generate.Job) error {
	wanted := f.platforms()
	var needs []need
	for _, flag := range []string{"image", "storage", "protocol", "service", "npu-resource", "npus", "replicas", "shared-memory"} {
		needs = append(needs, need{flag, len(wanted) > 0, "nothing is written for a cluster: give --eas, --kserve or --k8s"})
	}
	if err := checkNeeds(cmd.Flags(), needs...); err != nil {
		return err
	}
	if cmd.Flags().Changed("npus") && (f.npus < 1 || f.npus > mostNPUs) {
		return fault.New(fault.Usage, "--npus %d: give 1 to %d", f.npus, mostNPUs)
	}
	for flag, n := range map[string]int{"replicas": f.service.Replicas, "shared-memory": f.service.SharedMemoryGiB} {
		if cmd.Flags().Changed(flag) && n < 1 {
			return fault.New(fault.Usage, "--%s %d: give 1 or more", flag, n)
		}
	}
	f.service.Protocol = deployment.Protocol(f.protocol)
	if f.service.Resource == "" && job.Chip != nil {
		f.service.Resource = deployment.Resource(job.Chip.Family)
	}
	for i, p := range wanted {
		for _, other := range wanted[:i] {
			if resolved(other.path) == resolved(p.path) {
				return fault.New(fault.Usage, "%s is to hold two things: give each a file of its own", p.path)
			}
		}
		if err := checkPlace(p.path, job); err != nil {
			return err
		}
		trial := f.service
		trial.Repository = &deployment.Repository{UsesNPU: job.Backend != generate.ONNXRuntime, NPUs: 1}
		if _, err := p.text(&trial); err != nil {
			return err
		}
	}
	return nil
}

// begin writes the files of the platforms for the repository as it will be. They take
// their places together with those of the repository.
func (f *serviceFlags) begin(job generate.Job, r *generate.Result) (files []*atomicfile.File, err error) {
	wanted := f.platforms()
	if len(wanted) == 0 {
		return nil, nil
	}
	repository, err := deployment.ReadWith(job.Repository, r.Name, []byte(r.Text))
	if err != nil {
		return nil, err
	}
	if f.npus > 0 {
		repository.NPUs = f.npus
	}
	s := f.service
	s.Repository = repository
	if s.Name == "" {
		s.Name = r.Name
	}
	for _, p := range wanted {
		text, err := p.text(&s)
		if err != nil {
			return files, err
		}
		file, err := beginService(p.path, text, job.Force)
		if err != nil {
			return files, err
		}
		how := "kept"
		if file != nil {
			how, files = "written", append(files, file)
		}
		r.Services = append(r.Services, generate.File{Path: p.path, Bytes: int64(len(text)), How: how})
	}
	r.Notes = append(r.Notes, s.Notes()...)
	return files, nil
}

// largestManifest bounds what is read of a file that is there.
const largestManifest = 16 << 20

// beginService begins a file, but for one that is there: nil where it says the same, and
// a failure where it says something else.
func beginService(path string, text []byte, force bool) (*atomicfile.File, error) {
	old, err := files.Read(path, largestManifest)
	switch {
	case err == nil && bytes.Equal(old, text):
		return nil, nil
	case err == nil && !force:
		return nil, fault.New(fault.Usage, "%s is there and says something else; nothing was written", path).With("--force replaces it")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Input, "%w", err)
	}
	file, err := atomicfile.Create(path)
	if err != nil {
		return nil, fault.New(fault.Missing, "write %s: %w", path, err)
	}
	if _, err := file.Write(text); err != nil {
		file.Abort()
		return nil, fault.New(fault.Missing, "write %s: %w", path, err)
	}
	return file, nil
}

// checkPlace refuses a file that would take the place of what is read, or of what belongs
// to a model of the repository. A link is followed: what it points to is replaced.
func checkPlace(path string, job generate.Job) error {
	real := resolved(path)
	for _, input := range slices.Concat(job.Inputs(), generate.SideFiles(job.Model), []string{project.FileName}) {
		if isSameFile(real, input) || real == resolved(input) {
			return fault.New(fault.Usage, "%s is what this is made of, and would be replaced", path).With("give the file another name")
		}
	}
	inside, err := filepath.Rel(resolved(job.Repository), real)
	if err != nil || !filepath.IsLocal(inside) {
		return nil
	}
	if model, _, isDeep := strings.Cut(filepath.ToSlash(inside), "/"); isDeep {
		return fault.New(fault.Usage, "%s lies in %s, which is a model's folder", path, filepath.Join(job.Repository, model)).With("give it a place beside the repository")
	}
	return nil
}

// resolved is the whole path without links, as far as it is there.
func resolved(path string) string {
	whole, err := filepath.Abs(atomicfile.Resolve(path))
	if err != nil {
		return path
	}
	for at, rest := whole, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return whole
		}
	}
}
