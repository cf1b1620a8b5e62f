package configgen

// Config is a config.pbtxt as plain values. Field names are those of the format;
// sizes and defaults mean what they mean to the server: 0, "" and nil are "not set".
//
// A Config that [Document.Config] gives knows where its parts stand: see [Node].
type Config struct {
	Node
	Name                 string                     `pb:"name"`
	Platform             string                     `pb:"platform"`
	Backend              string                     `pb:"backend"`
	Runtime              string                     `pb:"runtime"`
	MaxBatchSize         int32                      `pb:"max_batch_size"`
	Input                []Input                    `pb:"input"`
	Output               []Output                   `pb:"output"`
	BatchInput           []BatchInput               `pb:"batch_input"`
	BatchOutput          []BatchOutput              `pb:"batch_output"`
	InstanceGroup        []InstanceGroup            `pb:"instance_group"`
	DynamicBatching      *DynamicBatching           `pb:"dynamic_batching"`
	SequenceBatching     *SequenceBatching          `pb:"sequence_batching"`
	Ensemble             *Ensemble                  `pb:"ensemble_scheduling"`
	VersionPolicy        *VersionPolicy             `pb:"version_policy"`
	DefaultModelFilename string                     `pb:"default_model_filename"`
	CCModelFilenames     []Entry[string, string]    `pb:"cc_model_filenames"`
	TransactionPolicy    *TransactionPolicy         `pb:"model_transaction_policy"`
	ResponseCache        *Switch                    `pb:"response_cache"`
	Optimization         *Optimization              `pb:"optimization"`
	Warmup               []Warmup                   `pb:"model_warmup"`
	Operations           *Operations                `pb:"model_operations"`
	RepositoryAgents     *RepositoryAgents          `pb:"model_repository_agents"`
	MetricTags           []Entry[string, string]    `pb:"metric_tags"`
	Metrics              *Metrics                   `pb:"model_metrics"`
	Parameters           []Entry[string, Parameter] `pb:"parameters"`
}

// Entry is one entry of a map. Of entries with one key the last one counts, and is
// the only one that is given.
type Entry[K comparable, V any] struct {
	Node
	Key   K `pb:"key"`
	Value V `pb:"value"`
}

// Input is an input tensor. Dims leave the batch axis out where max_batch_size is
// above 0; -1 is an open dim.
type Input struct {
	Node
	Name                string   `pb:"name"`
	DataType            DataType `pb:"data_type"`
	Format              Format   `pb:"format"`
	Dims                []int64  `pb:"dims"`
	Reshape             *Reshape `pb:"reshape"`
	IsShapeTensor       bool     `pb:"is_shape_tensor"`
	AllowRaggedBatch    bool     `pb:"allow_ragged_batch"`
	Optional            bool     `pb:"optional"`
	IsNonLinearFormatIO bool     `pb:"is_non_linear_format_io"`
}

// Output is an output tensor.
type Output struct {
	Node
	Name                string   `pb:"name"`
	DataType            DataType `pb:"data_type"`
	Dims                []int64  `pb:"dims"`
	Reshape             *Reshape `pb:"reshape"`
	LabelFilename       string   `pb:"label_filename"`
	IsShapeTensor       bool     `pb:"is_shape_tensor"`
	IsNonLinearFormatIO bool     `pb:"is_non_linear_format_io"`
}

// Reshape is the shape that the model sees instead of dims.
type Reshape struct {
	Node
	Shape []int64 `pb:"shape"`
}

// DataType is the type of a tensor's elements.
type DataType int32

// The data types.
const (
	TypeInvalid DataType = iota
	TypeBool
	TypeUint8
	TypeUint16
	TypeUint32
	TypeUint64
	TypeInt8
	TypeInt16
	TypeInt32
	TypeInt64
	TypeFP16
	TypeFP32
	TypeFP64
	TypeString
	TypeBF16
)

// String is the name in the format, TYPE_FP32, or the number where there is none.
func (t DataType) String() string { return enumText("DataType", int32(t)) }

// Bytes is the size of one element; 0 for strings, which have none, and for numbers
// that are no type.
func (t DataType) Bytes() int64 {
	if t < 0 || int(t) >= len(typeBytes) {
		return 0
	}
	return typeBytes[t]
}

var typeBytes = [...]int64{0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2}

// Format is the layout of an image tensor.
type Format int32

// The formats.
const (
	FormatNone Format = iota
	FormatNHWC
	FormatNCHW
)

// BatchInput is a tensor that the server computes from the batch.
type BatchInput struct {
	Node
	Kind        BatchInputKind `pb:"kind"`
	TargetName  []string       `pb:"target_name"`
	DataType    DataType       `pb:"data_type"`
	SourceInput []string       `pb:"source_input"`
}

// BatchInputKind says what a batch input holds.
type BatchInputKind int32

func (k BatchInputKind) String() string { return enumText("BatchInput.Kind", int32(k)) }

// BatchOutput is an output that is scattered over the requests of a batch.
type BatchOutput struct {
	Node
	TargetName  []string        `pb:"target_name"`
	Kind        BatchOutputKind `pb:"kind"`
	SourceInput []string        `pb:"source_input"`
}

// BatchOutputKind says how a batch output is scattered.
type BatchOutputKind int32

func (k BatchOutputKind) String() string { return enumText("BatchOutput.Kind", int32(k)) }

// InstanceGroup is a group of like instances.
type InstanceGroup struct {
	Node
	Name             string            `pb:"name"`
	Kind             InstanceKind      `pb:"kind"`
	Count            int32             `pb:"count"`
	GPUs             []int32           `pb:"gpus"`
	SecondaryDevices []SecondaryDevice `pb:"secondary_devices"`
	Profile          []string          `pb:"profile"`
	RateLimiter      *RateLimiter      `pb:"rate_limiter"`
	Passive          bool              `pb:"passive"`
	HostPolicy       string            `pb:"host_policy"`
}

// InstanceKind is where instances run.
type InstanceKind int32

// The instance kinds.
const (
	KindAuto InstanceKind = iota
	KindGPU
	KindCPU
	KindModel
)

func (k InstanceKind) String() string { return enumText("ModelInstanceGroup.Kind", int32(k)) }

// SecondaryDevice is a further device of an instance.
type SecondaryDevice struct {
	Node
	Kind     SecondaryDeviceKind `pb:"kind"`
	DeviceID int64               `pb:"device_id"`
}

// SecondaryDeviceKind is the kind of a secondary device.
type SecondaryDeviceKind int32

// RateLimiter says what an instance needs before it may run.
type RateLimiter struct {
	Node
	Resources []Resource `pb:"resources"`
	Priority  uint32     `pb:"priority"`
}

// Resource is a resource of the rate limiter.
type Resource struct {
	Node
	Name   string `pb:"name"`
	Global bool   `pb:"global"`
	Count  uint32 `pb:"count"`
}

// DynamicBatching has requests grouped.
type DynamicBatching struct {
	Node
	PreferredBatchSize  []int32                      `pb:"preferred_batch_size"`
	MaxQueueDelay       uint64                       `pb:"max_queue_delay_microseconds"`
	PreserveOrdering    bool                         `pb:"preserve_ordering"`
	PriorityLevels      uint64                       `pb:"priority_levels"`
	DefaultPriority     uint64                       `pb:"default_priority_level"`
	DefaultQueuePolicy  *QueuePolicy                 `pb:"default_queue_policy"`
	PriorityQueuePolicy []Entry[uint64, QueuePolicy] `pb:"priority_queue_policy"`
}

// QueuePolicy is what happens to requests that wait.
type QueuePolicy struct {
	Node
	TimeoutAction        TimeoutAction `pb:"timeout_action"`
	DefaultTimeout       uint64        `pb:"default_timeout_microseconds"`
	AllowTimeoutOverride bool          `pb:"allow_timeout_override"`
	MaxQueueSize         uint32        `pb:"max_queue_size"`
}

// TimeoutAction is what happens to a request that has waited too long.
type TimeoutAction int32

// The timeout actions.
const (
	TimeoutReject TimeoutAction = iota
	TimeoutDelay
)

// SequenceBatching has the requests of a sequence go to one place.
type SequenceBatching struct {
	Node
	MaxSequenceIdle   uint64         `pb:"max_sequence_idle_microseconds"`
	Direct            *Direct        `pb:"direct"`
	Oldest            *Oldest        `pb:"oldest"`
	ControlInput      []ControlInput `pb:"control_input"`
	State             []State        `pb:"state"`
	IterativeSequence bool           `pb:"iterative_sequence"`
}

// Direct gives each sequence a slot of its own.
type Direct struct {
	Node
	MaxQueueDelay          uint64  `pb:"max_queue_delay_microseconds"`
	MinimumSlotUtilization float32 `pb:"minimum_slot_utilization"`
}

// Oldest batches the oldest requests of candidate sequences.
type Oldest struct {
	Node
	MaxCandidateSequences int32   `pb:"max_candidate_sequences"`
	PreferredBatchSize    []int32 `pb:"preferred_batch_size"`
	MaxQueueDelay         uint64  `pb:"max_queue_delay_microseconds"`
	PreserveOrdering      bool    `pb:"preserve_ordering"`
}

// ControlInput is a tensor with which the server tells the model of sequences.
type ControlInput struct {
	Node
	Name    string    `pb:"name"`
	Control []Control `pb:"control"`
}

// Control is one thing that a control tensor tells.
type Control struct {
	Node
	Kind           ControlKind `pb:"kind"`
	Int32FalseTrue []int32     `pb:"int32_false_true"`
	FP32FalseTrue  []float32   `pb:"fp32_false_true"`
	BoolFalseTrue  []bool      `pb:"bool_false_true"`
	DataType       DataType    `pb:"data_type"`
}

// ControlKind is what a control tells.
type ControlKind int32

// The control kinds.
const (
	ControlStart ControlKind = iota
	ControlReady
	ControlEnd
	ControlCorrID
)

func (k ControlKind) String() string { return enumText("ModelSequenceBatching.Control.Kind", int32(k)) }

// State is a tensor that the server keeps between the requests of a sequence.
type State struct {
	Node
	InputName         string         `pb:"input_name"`
	OutputName        string         `pb:"output_name"`
	DataType          DataType       `pb:"data_type"`
	Dims              []int64        `pb:"dims"`
	InitialState      []InitialState `pb:"initial_state"`
	UseSameBuffer     bool           `pb:"use_same_buffer_for_input_output"`
	UseGrowableMemory bool           `pb:"use_growable_memory"`
}

// InitialState is what a state holds at the beginning.
type InitialState struct {
	Node
	Name     string   `pb:"name"`
	DataType DataType `pb:"data_type"`
	Dims     []int64  `pb:"dims"`
	ZeroData *bool    `pb:"zero_data"`
	DataFile *string  `pb:"data_file"`
}

// Ensemble is a graph of models.
type Ensemble struct {
	Node
	MaxInflightRequests uint32 `pb:"max_inflight_requests"`
	Step                []Step `pb:"step"`
}

// Step is one model of an ensemble. Maps go from the model's tensors to the
// ensemble's.
type Step struct {
	Node
	ModelName      string                  `pb:"model_name"`
	ModelVersion   int64                   `pb:"model_version"`
	ModelNamespace string                  `pb:"model_namespace"`
	InputMap       []Entry[string, string] `pb:"input_map"`
	OutputMap      []Entry[string, string] `pb:"output_map"`
}

// VersionPolicy says which versions are served.
type VersionPolicy struct {
	Node
	Latest   *Latest   `pb:"latest"`
	All      *All      `pb:"all"`
	Specific *Specific `pb:"specific"`
}

// Latest serves the highest versions.
type Latest struct {
	Node
	NumVersions uint32 `pb:"num_versions"`
}

// All serves every version.
type All struct{ Node }

// Specific serves the versions it names.
type Specific struct {
	Node
	Versions []int64 `pb:"versions"`
}

// TransactionPolicy says how many answers a request has.
type TransactionPolicy struct {
	Node
	Decoupled bool `pb:"decoupled"`
}

// Switch turns something on: the response cache, pinned memory.
type Switch struct {
	Node
	Enable bool `pb:"enable"`
}

// Optimization is advice to the backend.
type Optimization struct {
	Node
	Graph                       *Graph        `pb:"graph"`
	Priority                    ModelPriority `pb:"priority"`
	Cuda                        *Cuda         `pb:"cuda"`
	ExecutionAccelerators       *Accelerators `pb:"execution_accelerators"`
	InputPinnedMemory           *Switch       `pb:"input_pinned_memory"`
	OutputPinnedMemory          *Switch       `pb:"output_pinned_memory"`
	GatherKernelBufferThreshold uint32        `pb:"gather_kernel_buffer_threshold"`
	EagerBatching               bool          `pb:"eager_batching"`
}

// ModelPriority is the priority of a model's work.
type ModelPriority int32

// Graph is the level of graph optimisation.
type Graph struct {
	Node
	Level int32 `pb:"level"`
}

// Cuda is advice for CUDA.
type Cuda struct {
	Node
	Graphs           bool        `pb:"graphs"`
	BusyWaitEvents   bool        `pb:"busy_wait_events"`
	GraphSpec        []GraphSpec `pb:"graph_spec"`
	OutputCopyStream bool        `pb:"output_copy_stream"`
}

// GraphSpec is a CUDA graph to capture.
type GraphSpec struct {
	Node
	BatchSize       int32                       `pb:"batch_size"`
	Input           []Entry[string, GraphShape] `pb:"input"`
	GraphLowerBound *GraphLowerBound            `pb:"graph_lower_bound"`
}

// GraphShape is the shape of a tensor of a CUDA graph.
type GraphShape struct {
	Node
	Dim []int64 `pb:"dim"`
}

// GraphLowerBound is the smallest shape that a CUDA graph serves.
type GraphLowerBound struct {
	Node
	BatchSize int32                       `pb:"batch_size"`
	Input     []Entry[string, GraphShape] `pb:"input"`
}

// Accelerators are execution accelerators.
type Accelerators struct {
	Node
	GPU []Plugin `pb:"gpu_execution_accelerator"`
	CPU []Plugin `pb:"cpu_execution_accelerator"`
}

// Plugin is something that the server loads by its name, with settings of its own: an
// execution accelerator, a repository agent.
type Plugin struct {
	Node
	Name       string                  `pb:"name"`
	Parameters []Entry[string, string] `pb:"parameters"`
}

// Warmup is a request that each instance runs before the model is ready.
type Warmup struct {
	Node
	Name      string                       `pb:"name"`
	BatchSize uint32                       `pb:"batch_size"`
	Inputs    []Entry[string, WarmupInput] `pb:"inputs"`
	Count     uint32                       `pb:"count"`
}

// WarmupInput is an input of a warm-up request.
type WarmupInput struct {
	Node
	DataType      DataType `pb:"data_type"`
	Dims          []int64  `pb:"dims"`
	ZeroData      *bool    `pb:"zero_data"`
	RandomData    *bool    `pb:"random_data"`
	InputDataFile *string  `pb:"input_data_file"`
}

// Operations are libraries of operators.
type Operations struct {
	Node
	OpLibraryFilename []string `pb:"op_library_filename"`
}

// RepositoryAgents are run before a model is loaded.
type RepositoryAgents struct {
	Node
	Agents []Plugin `pb:"agents"`
}

// Metrics sets up the model's metrics.
type Metrics struct {
	Node
	MetricControl []MetricControl `pb:"metric_control"`
}

// MetricControl sets up one metric.
type MetricControl struct {
	Node
	MetricIdentifier *MetricIdentifier `pb:"metric_identifier"`
	HistogramOptions *HistogramOptions `pb:"histogram_options"`
}

// MetricIdentifier names a metric.
type MetricIdentifier struct {
	Node
	Family string `pb:"family"`
}

// HistogramOptions are the buckets of a histogram.
type HistogramOptions struct {
	Node
	Buckets []float64 `pb:"buckets"`
}

// Parameter is a parameter of the backend.
type Parameter struct {
	Node
	StringValue string `pb:"string_value"`
}

// Parameter gives the value of a parameter and whether it is there.
func (c *Config) Parameter(key string) (value string, ok bool) {
	for i := range c.Parameters {
		if c.Parameters[i].Key == key {
			return c.Parameters[i].Value.StringValue, true
		}
	}
	return "", false
}

// Decoupled says whether requests may have any number of answers.
func (c *Config) Decoupled() bool { return c.TransactionPolicy != nil && c.TransactionPolicy.Decoupled }

// Cached says whether answers are asked to be kept.
func (c *Config) Cached() bool { return c.ResponseCache != nil && c.ResponseCache.Enable }
