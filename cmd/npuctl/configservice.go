package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/npuctl/npuctl/configgen/deployment"
	"github.com/npuctl/npuctl/configgen/generate"
	"github.com/npuctl/npuctl/internal/atomicfile"
	"github.com/npuctl/npuctl/internal/fault"
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
	if cmd.Flags().Changed("npus") && f.npus < 1 {
		return fault.New(fault.Usage, "--npus %d: give 1 or more", f.npus)
	}
	f.service.Protocol = deployment.Protocol(f.protocol)
	if f.service.Resource == "" && job.Chip != nil {
		f.service.Resource = deployment.Resource(job.Chip.Family)
	}
	for i, p := range wanted {
		for _, other := range wanted[:i] {
			if filepath.Clean(other.path) == filepath.Clean(p.path) {
				return fault.New(fault.Usage, "%s is to hold two things: give each a file of its own", p.path)
			}
		}
		trial := f.service
		trial.Repository = &deployment.Repository{UsesNPU: job.Backend != generate.ONNXRuntime, NPUs: 1}
		if _, err := p.text(&trial); err != nil {
			return err
		}
	}
	return nil
}

// write writes the files of the platforms for the repository as it is now.
func (f *serviceFlags) write(job generate.Job, r *generate.Result) error {
	wanted := f.platforms()
	if len(wanted) == 0 {
		return nil
	}
	repository, err := deployment.Read(job.Repository)
	if err != nil {
		return err
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
			return err
		}
		how, err := writeService(p.path, text, job.Force)
		if err != nil {
			return err
		}
		r.Services = append(r.Services, generate.File{Path: p.path, Bytes: int64(len(text)), How: how})
		r.Written = r.Written || how == "written"
	}
	r.Notes = append(r.Notes, s.Notes()...)
	return nil
}

// writeService writes a file, but for one that is there and says something else.
func writeService(path string, text []byte, force bool) (how string, err error) {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, text):
		return "kept", nil
	case err == nil && !force:
		return "", fault.New(fault.Usage, "%s is there and says something else", path).With("--force replaces it; the repository has been written")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fault.New(fault.Input, "%w", err)
	}
	err = atomicfile.Write(path, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
	if err != nil {
		return "", fault.New(fault.Missing, "write %s: %w", path, err)
	}
	return "written", nil
}
