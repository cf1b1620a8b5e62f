package omwriter

// Tasks is the content of TASK_INFO: domi.ModelTaskDef, as far as a reader counts
// kernels and streams. No device can run these tasks: they have no arguments.
type Tasks struct {
	// Version is the platform the tasks are for.
	Version string
	Tasks   []Task
	// MemorySize and WeightSize are bytes, StreamNum and EventNum counts.
	MemorySize, WeightSize uint64
	StreamNum, EventNum    uint32
}

// Task is one kernel to be launched on a stream.
type Task struct {
	Stream     uint32
	KernelName string
	Blocks     uint32 // of cores that work on it
}

// Field numbers of task.proto, and the type of a kernel's task.
const (
	tasksVersion, tasksTask, tasksMemory, tasksStreams, tasksEvents, tasksWeights = 1, 10, 11, 12, 13, 14
	taskID, taskType, taskStream, taskKernel                                      = 1, 2, 10, 20
	kernelStub, kernelBlocks, kernelName                                          = 10, 11, 17
)

func (t *Tasks) encode() (out []byte) {
	out = appendText(out, tasksVersion, t.Version)
	for i, task := range t.Tasks {
		kernel := appendText(nil, kernelStub, task.KernelName)
		kernel = appendInt(kernel, kernelBlocks, int64(task.Blocks))
		kernel = appendText(kernel, kernelName, task.KernelName)
		body := appendInt(nil, taskID, int64(i))
		body = appendInt(body, taskType, 0)
		body = appendInt(body, taskStream, int64(task.Stream))
		out = appendBytes(out, tasksTask, appendBytes(body, taskKernel, kernel))
	}
	out = appendInt(out, tasksMemory, int64(t.MemorySize))
	out = appendInt(out, tasksStreams, int64(t.StreamNum))
	out = appendInt(out, tasksEvents, int64(t.EventNum))
	return appendInt(out, tasksWeights, int64(t.WeightSize))
}
