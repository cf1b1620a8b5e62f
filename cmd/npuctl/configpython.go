package main

import (
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/npuctl/npuctl/configgen/pipeline"
	"github.com/npuctl/npuctl/internal/fault"
)

// pythonFlags are the flags of `npuctl config python`.
type pythonFlags struct {
	pipelineFlags
	job      pipeline.PythonJob
	sizes    sizeFlags
	maxBatch int64
	devices  []int
}

func newConfigPythonCommand(a *app) *cobra.Command {
	f := &pythonFlags{}
	cmd := &cobra.Command{
		Use:   "python MODEL.onnx|MODEL.om|SPEECH.yaml [-o REPOSITORY]",
		Short: "Make a model for Triton's Python backend",
		Long: "Writes a model that runs inside Triton's Python backend: an .onnx on ONNX Runtime, for\n" +
			"servers that have neither npu_ge nor the onnxruntime backend; an .om on an NPU through\n" +
			"ais_bench, since npu_ge does not load compiled models; or speech recognition with an\n" +
			"encoder and a decoder, which a file with a speech section describes. Requests are\n" +
			"filled up to a gear and cut back.",
		Example: "  npuctl config python model.onnx -o models --environment /opt/vision\n" +
			"  npuctl config python model.om -o models --devices 0,1 --instances 4\n" +
			"  npuctl config python speech.yaml -o models",
		Args:              takes("MODEL"),
		ValidArgsFunction: completeModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := f.complete(cmd, args[0])
			if err != nil {
				return err
			}
			say, stop := a.progress()
			say("reading " + filepath.Base(args[0]))
			r, err := job.Run(cmd.Context())
			stop()
			return a.pipelineMade(r, err, f.Preview)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.pipelineFlags.add(cmd)
	flags.StringVar(&f.job.Name, "name", "", "`name` of the model in the server (default that of the file)")
	flags.Int64Var(&f.job.Version, "version", 1, "`number` of the version folder")
	flags.IntVar(&f.job.Instances, "instances", 1, "how many processes run it (`N`)")
	flags.IntSliceVar(&f.devices, "devices", nil, "NPUs of an .om, which instances take in turn: `0,1` (default 0)")
	flags.StringSliceVar(&f.job.Providers, "providers", nil, "ONNX Runtime's `providers` for an .onnx, in order (default CPUExecutionProvider)")
	f.sizes.add(flags)
	flags.Int64Var(&f.maxBatch, "max-batch-size", 0, "largest batch of an .onnx (`N`); 0 writes the batch into the dims (default 8, where the model has a batch)")
	return cmd
}

func (f *pythonFlags) complete(cmd *cobra.Command, model string) (job pipeline.PythonJob, err error) {
	job = f.job
	job.Options, job.Model, job.Devices = f.Options, model, f.devices
	if job.Version < 1 {
		return job, fault.New(fault.Usage, "--version %d: versions count from 1", job.Version)
	}
	if job.Instances < 1 {
		return job, fault.New(fault.Usage, "--instances %d: give 1 or more", job.Instances)
	}
	if cmd.Flags().Changed("max-batch-size") {
		if f.maxBatch < 0 || f.maxBatch > math.MaxInt32 {
			return job, fault.New(fault.Usage, "--max-batch-size %d: give 0 to %d", f.maxBatch, math.MaxInt32)
		}
		size := int32(f.maxBatch)
		job.MaxBatch = &size
	}
	job.Sizes, err = f.sizes.specialization()
	return job, err
}
