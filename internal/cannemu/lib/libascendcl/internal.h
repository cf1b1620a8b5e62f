// What the sources of libascendcl.so share.
//
// One lock guards all state: `emulator_lock`. Functions whose name ends in _locked expect the caller to hold
// it; it is never held while something is copied, computed, or waited for without a condition variable.
// Handles that clients hold are looked up in one table before they are followed (handles.c), so a stale one
// is an error code and not a crash.

#ifndef NPUCTL_INTERNAL_H
#define NPUCTL_INTERNAL_H

#include <pthread.h>

#include "emulator.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Takes an item out of a list that is linked by `next`; nothing happens when it is not in it.
#define LIST_REMOVE(list, item)                                         \
  do {                                                                  \
    __typeof__(list) *at_ = &(list);                                    \
    while (*at_ != NULL && *at_ != (item)) at_ = &(*at_)->next;         \
    if (*at_ != NULL) *at_ = (*at_)->next;                              \
  } while (0)

// ---- errors.c: texts of errors, and what each thread remembers ----

struct context;
struct stream;

struct thread_state {
  const char *function;   // that the client called last
  int last_error;         // for aclrtPeekAtLastError
  char message[1024];     // not yet fetched; "" when there is none
  char fetched[1024];     // what aclGetRecentErrMsg returned
  struct context *context;       // bound by aclrtSetDevice and the like; check before use
  uint64_t context_serial;       // tells a new context at an old address from the old one
  struct stream *limits_stream;  // of aclrtUseStreamResInCurrentThread
};

struct thread_state *this_thread(void);
void use_message_per_process(bool per_process);

// ---- report.c: misuse, leaks and counters ----

// Records what a real card would answer with undefined behaviour. It returns, but under
// NPUCTL_EMULATOR_STRICT=abort.
void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned long misuse_count(void);
bool strict(void);  // NPUCTL_EMULATOR_STRICT=1

// Counted things. The first group are objects that must be gone at the end, or they leaked.
enum counter {
  LIVE_DATA_BUFFER,
  LIVE_DATASET,
  LIVE_TENSOR_DESC,
  LIVE_MODEL_DESC,
  LIVE_CONFIG,
  LIVE_AIPP,
  LIVE_OPERATOR_ATTRIBUTES,
  LIVE_CONTEXT,
  LIVE_STREAM,
  LIVE_EVENT,
  LIVE_MODEL,
  LIVE_DEVICE_MEMORY,
  LIVE_HOST_MEMORY,
  LIVE_COUNTERS,
  COUNT_MALLOC = LIVE_COUNTERS,
  COUNT_COPY,
  COUNT_COPY_BYTES,
  COUNT_PAGEABLE_ASYNC_COPY,
  COUNT_MODEL_LOAD,
  COUNT_MODEL_EXECUTE,
  COUNT_OPERATOR_EXECUTE,
  COUNT_STREAM_TASK,
  COUNT_CALLBACK,
  COUNT_INJECTED_FAULT,
  COUNT_FORGOTTEN,  // leaks that were told before the end
  COUNTERS,
};

void count(enum counter counter, long long change);
long long counted(enum counter counter);
// Writes the lines of the end: leaks, then counters. Returns how many leaks there were.
int report_end(const char *moment);
void report_leak(const char *what, unsigned long long objects, unsigned long long bytes, int device);

// ---- settings.c: the environment variables ----

unsigned long long setting_number(const char *variable, unsigned long long fallback);  // takes K, M, G
double monotonic_seconds(void);
// The moment so many milliseconds from now, on the clock of the condition variables.
struct timespec deadline_after(int milliseconds);
void condition_init(pthread_cond_t *condition);

// ---- faults.c: what NPUCTL_EMULATOR_FAULT asks for ----

enum fault_point { AT_MALLOC, AT_LOAD, AT_COPY, AT_TASK, AT_COMPUTE, AT_ANY_DEVICE_CALL, FAULT_POINTS };
// Returns the error that is due at this point, with its text set, or 0. A slow-stream fault sleeps here.
int injected_fault(enum fault_point point);
bool device_is_lost(void);

// ---- json.c ----

// Finds the value of a key of the outermost object. Returns false when text is not one valid JSON object;
// *value is NULL when it has no such key. The value is the raw text.
bool json_member(const char *text, size_t size, const char *key, const char **value, size_t *value_size);
bool json_string(const char *value, size_t size, char *out, size_t out_size);
// Visits the elements of an array of strings; returns their number, or -1.
int json_strings(const char *value, size_t size, char out[][512], int limit);

// ---- chips.c: what a device of the emulated kind has ----

struct chip {
  const char *name;     // a prefix of the SoC name
  const char *arch;     // the architecture of its cores, which says what code it runs
  unsigned cube_cores;  // AI cores where cube and vector cores are one
  unsigned vector_cores;
  unsigned ai_cpus;
  bool hbm;             // or DDR
  uint64_t memory;      // bytes
  uint64_t l2;          // bytes
  unsigned streams;     // a device's limit
};

const char *soc_name(void);
const struct chip *emulated_chip(void);
// What NPUCTL_EMULATOR_SOC says; NULL when nobody chose a chip.
const char *chosen_soc(void);
// Whether chips of the one name run what was compiled for the other: their cores have the same architecture.
bool runs_code_of(const char *soc, const char *compiled_for);

// ---- handles.c ----

extern pthread_mutex_t emulator_lock;

enum handle_kind { HANDLE_CONTEXT = 1, HANDLE_STREAM, HANDLE_EVENT };
void handle_add_locked(enum handle_kind kind, void *handle);
void handle_remove_locked(void *handle);
bool handle_is_locked(enum handle_kind kind, const void *handle);
void *handle_any_locked(enum handle_kind kind);  // one of that kind, or NULL

// ---- memory.c and arena.c ----

struct device;

struct allocation {
  struct device *device;
  uint64_t offset;   // of the device's range
  uint64_t size;     // as asked for
  uint64_t space;    // as taken: rounded up, with the reserve
  unsigned uses;     // by tasks, models and copies under way
  bool live;         // not freed by its owner
  bool of_model;     // taken by the runtime, not by the program
};

// A range of memory that the library may touch, and keeps alive while it does.
struct span {
  unsigned char *bytes;            // where the library reads and writes it
  size_t size;
  struct allocation *allocation;   // NULL for host memory
};

struct arena;
struct arena *arena_open(struct device *device, uint64_t size);
uint64_t arena_free_bytes_locked(const struct arena *arena);
uint64_t arena_size(const struct arena *arena);
bool arena_holds(const struct arena *arena, const void *address);
struct allocation *arena_take_locked(struct arena *arena, uint64_t size, uint64_t space, bool of_model);
struct allocation *arena_find_locked(const struct arena *arena, const void *address);
void arena_free_locked(struct arena *arena, struct allocation *allocation);
void arena_unuse_locked(struct arena *arena, struct allocation *allocation);
void *arena_address(const struct arena *arena, const struct allocation *allocation);
unsigned char *arena_bytes(const struct arena *arena, const struct allocation *allocation);
// Calls visit for every live allocation.
void arena_each_locked(const struct arena *arena, void (*visit)(struct allocation *, void *), void *argument);
struct allocation *arena_first_of_program_locked(const struct arena *arena);  // a live one, or NULL

int device_malloc(struct device *device, uint64_t size, bool of_model, struct allocation **out);
void device_release(struct allocation *allocation);
bool is_device_address(const void *address);
// Takes a range of device memory; the error is set when it is not inside one live allocation.
int span_device(const void *address, size_t size, const char *what, struct span *out);
int span_host(const void *address, size_t size, const char *what, struct span *out);
bool span_is_dead(const struct span *span);
void span_release(struct span *span);
bool host_is_pinned(const void *address, size_t size);
void release_host_memory(void);
void report_memory_leaks_locked(struct device *device);

// ---- process.c ----

bool initialized(void);

// ---- device.c and context.c ----

enum { MAX_DEVICES = 64 };

struct device {
  int id;
  unsigned set_count;       // aclrtSetDevice minus aclrtResetDevice
  struct context *primary;  // the default context, or NULL
  unsigned contexts;
  unsigned streams;         // in use, with those of models
  struct arena *arena;      // opened at first use
  unsigned limits[ACL_RES_TYPES];
};

struct context {
  struct device *device;
  uint64_t serial;
  struct stream *streams;         // all, the default one as well
  struct stream *default_stream;
};

unsigned device_count(void);
struct device *device_at(int id);  // NULL when there is no such device
int device_arena(struct device *device, struct arena **out);
unsigned hardware_limit(int type);
// The context of the calling thread; 107002 when there is none.
int current_context(struct context **out);
int current_context_locked(struct context **out);
void destroy_all_contexts(void);

// ---- stream.c ----

struct task;
struct awaited;

// One piece of work in a stream. Tasks are allocated by whoever launches them, with what they need behind it.
struct task {
  struct task *next;
  const char *function;                 // the call that launched it
  uint64_t sequence;                    // in its stream
  bool on_device;                       // faults of the device strike it
  int (*run)(struct task *task);        // without the lock; may wait
  void (*release)(struct task *task);   // frees the task and what it holds, without the lock
  struct stream *stream;
  struct context *context;
  struct awaited *awaited;              // of a call that waits for this task, or NULL
};

struct subscription;

struct stream {
  struct stream *next;              // of the context
  struct context *context;
  int id;
  uint32_t priority, flags;
  bool is_default;
  pthread_t thread;
  bool started;
  pthread_cond_t work, progress;
  struct task *head, *tail, *running;
  uint64_t launched, completed;     // sequences
  bool stopping;                    // the thread ends when the queue is empty
  bool aborting;                    // waits inside tasks give up
  bool stop_on_failure;
  int failure;                      // of a task, until it has been told
  char failure_text[1024];
  unsigned users;                   // calls that wait on it
  unsigned limits[ACL_RES_TYPES];   // 0: not set
  struct subscription *subscription;
};

// Finds the stream that a call means. NULL means the default stream of the current context. With the lock.
int stream_find_locked(aclrtStream handle, bool of_any_context, struct stream **out);
// The same for a call that does not hold the lock yet: on success, the lock stays with it.
int stream_lock(aclrtStream handle, bool of_any_context, struct stream **out);
// Adds a task to its stream, or releases it and returns the error. When wait is set, it returns after the
// task has run, with the task's own error.
int stream_launch(aclrtStream handle, struct task *task, bool wait);
// With a stream that stream_find_locked gave; takes the lock over and returns without it.
int stream_launch_unlock(struct stream *stream, struct task *task, bool wait);
struct stream *stream_open_locked(struct context *context, uint32_t priority, uint32_t flags, bool is_default);
// Runs out the queue, or drops it, and ends the stream's thread. The lock is given up meanwhile.
void stream_close_locked(struct stream *stream, bool drop);
// Waits until everything launched so far has run. The lock is given up meanwhile.
int stream_wait_locked(struct stream *stream, int milliseconds);

// ---- event.c, callback.c, exception.c ----

void destroy_all_events(void);
// Wakes the tasks that wait for events or for callbacks, to see whether they should give up.
void wake_waiting_tasks_locked(void);
void wake_callbacks_locked(void);
void subscriptions_forget_stream_locked(struct stream *stream);
void report_exception(const struct task *task, int code);

// ---- container.c: an .om file ----

enum gear_kind { GEAR_NONE, GEAR_BATCH, GEAR_IMAGE, GEAR_DIMS };

struct om_tensor {
  char *name;
  int format, type;  // acl numbering
  uint64_t size;
  size_t rank;
  int64_t dims[ACL_MAX_DIM_CNT];
  size_t rank_before_aipp;  // 0: no static AIPP
  int64_t dims_before_aipp[ACL_MAX_DIM_CNT];
  size_t ranges;            // 0 or rank
  int64_t range[ACL_MAX_DIM_CNT][2];
};

struct om_output_shape {
  int64_t gear;  // -1: for every gear
  size_t output;
  size_t rank;
  int64_t dims[ACL_MAX_DIM_CNT];
};

// A file's description. It does not change after it has been read, and is shared by reference count.
struct om {
  unsigned references;
  bool dynamic_shape;
  char soc[64];
  uint64_t work_size, weight_size;
  unsigned streams;
  size_t input_count, output_count;
  struct om_tensor *inputs, *outputs;
  size_t hidden;                 // index of the gear input, or SIZE_MAX
  size_t aipp_input;             // index of the input for the settings of dynamic AIPP, or SIZE_MAX
  enum gear_kind gear_kind;
  size_t gear_count, gear_length;
  uint64_t *gears;               // gear_count rows of gear_length values
  size_t output_shape_count;
  struct om_output_shape *output_shapes;
  size_t order_count;
  char **order;                  // input names in the order of the gears' values
  const void *model;             // the ONNX bytes inside the file, only while it is open
  size_t model_size;
};

// Reads a description out of the bytes of a file. The error is set on failure.
int om_read(const void *bytes, size_t size, struct om **out);
struct om *om_share(struct om *om);
void om_release(struct om *om);
// Reads a whole file; the caller frees it.
int read_file(const char *path, void **bytes, size_t *size);
uint64_t om_tensor_bytes(const struct om_tensor *tensor);
size_t element_bits(int type);
uint64_t shape_bytes(int type, size_t rank, const int64_t *dims);
// Writes the dims of an input under a gear; gear SIZE_MAX means the largest.
void om_input_dims(const struct om *om, size_t input, size_t gear, int64_t *dims);
size_t om_largest_gear(const struct om *om);
size_t om_find_gear(const struct om *om, const uint64_t *values, size_t count);
// Writes the dims of an output under a gear; false when the file does not say them.
bool om_output_dims(const struct om *om, size_t output, size_t gear, size_t *rank, int64_t *dims);

// ---- dataset.c and tensor.c ----

struct aclDataBuffer {
  void *address;
  size_t size;
};

struct aclTensorDesc {
  char name[ACL_MAX_TENSOR_NAME_LEN];
  aclDataType type;
  aclFormat format;
  int rank;
  int64_t dims[ACL_MAX_DIM_CNT];
  size_t ranges;
  int64_t range[ACL_MAX_DIM_CNT][2];
  aclMemType placement;
  void *constant;  // of aclSetTensorConst; a copy
  size_t constant_size;
};

struct aclmdlDataset {
  size_t count, space;
  struct dataset_entry {
    aclDataBuffer *buffer;
    aclTensorDesc *desc;  // owned, may be NULL
  } *entries;
  enum gear_kind gear_kind;  // of the last setter
  size_t gear;               // index in the model's list
  uint32_t gear_model;       // whose list
};

ACL_API float aclFloat16ToFloat(aclFloat16 half);
aclTensorDesc *tensor_desc_copy(const aclTensorDesc *desc);
void free_tensor_desc(aclTensorDesc *desc);

// ---- compute.c ----

struct compute;

struct compute_tensor {
  const char *name;
  int type;  // acl numbering
  size_t rank;
  const int64_t *dims;
  void *bytes;
  size_t size;
};

// Takes one result; they come in the graph's order. A code other than 0 ends the run.
typedef int (*compute_sink)(void *receiver, size_t index, const struct compute_tensor *value);

// Opens an ONNX model, or shares the one with the same bytes.
int compute_open(const void *model, size_t size, struct compute **out);
void compute_close(struct compute *compute);
int compute_run(struct compute *compute, const struct compute_tensor *inputs, size_t input_count, compute_sink sink, void *receiver);

// One way to compute. Functions return NULL, or a message that the caller frees.
struct compute_engine {
  const char *name;
  char *(*start)(void);  // once
  char *(*open)(const void *model, size_t size, void **out);
  void (*close)(void *model);
  // *code is set by the sink, when it was the sink that ended the run.
  char *(*run)(void *model, const struct compute_tensor *inputs, size_t input_count, compute_sink sink, void *receiver, int *code);
};

extern const struct compute_engine onnxruntime_engine, interpreter_engine;
// The element types of ONNX by those of AscendCL; -1 when there is none.
int onnx_type_of(int acl_type);
int acl_type_of(int onnx_type);

// ---- model.c, execute.c and description.c ----

// A loaded model. What may change is guarded by the lock.
struct model {
  struct model *next;
  uint32_t id;
  struct context *context;
  struct device *device;
  struct om *om;
  struct compute *compute;        // NULL: the file is not of the emulator's compiler
  struct allocation *own[2];      // work and weight memory that the runtime took
  struct span lent[2];            // or that the program lent
  unsigned streams;               // of the device, that the model takes
  unsigned in_flight;             // executions launched and not done
  const void *in_flight_on;       // the stream, or the thread's state for calls without one
  bool computing;                 // one execution at a time
  size_t gear;                    // of the last setter, SIZE_MAX before
};

ACL_API aclError aclmdlLoadFromFile(const char *path, uint32_t *id);
ACL_API aclError aclmdlLoadFromMem(const void *bytes, size_t size, uint32_t *id);
ACL_API aclError aclmdlLoadFromFileWithMem(const char *path, uint32_t *id, void *work, size_t work_size, void *weight, size_t weight_size);
ACL_API aclError aclmdlLoadFromMemWithMem(const void *bytes, size_t size, uint32_t *id, void *work, size_t work_size, void *weight, size_t weight_size);

struct model *model_find_locked(uint32_t id);
struct model *model_next_locked(const struct model *model);  // the first after NULL
// As above, for a call: wants the model's context to be current.
int model_for_call_locked(uint32_t id, struct model **out);
void forget_models_locked(struct context *context);
void unload_all_models(void);

// Fills what a setter of gears, or a launch, needs to know of the dims in the designated order.
size_t om_ordered_inputs(const struct om *om, size_t *inputs, size_t limit);

struct aclmdlDesc {
  struct om *om;
  uint32_t id;                            // 0: read from a file
  char shown[ACL_MAX_TENSOR_NAME_LEN];    // what the last name getter made up
};

#endif
