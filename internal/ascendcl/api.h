// AscendCL as npuctl uses it: the functions by name, looked up in the libraries of the
// machine, and the jobs that are made of them. The types are restated here, so that no
// header of CANN is needed.
#ifndef NPUCTL_ASCENDCL_API_H
#define NPUCTL_ASCENDCL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACL_MOST_DIMS = 128, ACL_NAME_BYTES = 128 };

typedef struct {
  char name[ACL_NAME_BYTES];
  size_t dim_count;
  int64_t dims[ACL_MOST_DIMS];
} acl_dims;
_Static_assert(sizeof(acl_dims) == 1160, "aclmdlIODims");

// Every function: result, name, parameters. All of them have been there since CANN 8.0; a library without one
// of them is not opened.
#define ACL_FUNCTIONS(f)                                                                          \
  f(int, aclInit, (const char *config))                                                           \
  f(int, aclFinalize, (void))                                                                     \
  f(const char *, aclGetRecentErrMsg, (void))                                                     \
  f(int, aclrtGetVersion, (int32_t *major, int32_t *minor, int32_t *patch))                       \
  f(const char *, aclrtGetSocName, (void))                                                        \
  f(int, aclrtGetDeviceCount, (uint32_t *count))                                                  \
  f(int, aclrtSetDevice, (int32_t device))                                                        \
  f(int, aclrtResetDevice, (int32_t device))                                                      \
  f(int, aclrtGetRunMode, (int *mode))                                                            \
  f(int, aclGetDeviceCapability, (uint32_t device, int what, int64_t *value))                     \
  f(int, aclrtCreateContext, (void **context, int32_t device))                                    \
  f(int, aclrtDestroyContext, (void *context))                                                    \
  f(int, aclrtSetCurrentContext, (void *context))                                                 \
  f(int, aclrtCreateStream, (void **stream))                                                      \
  f(int, aclrtDestroyStream, (void *stream))                                                      \
  f(int, aclrtSynchronizeStream, (void *stream))                                                  \
  f(int, aclrtSynchronizeStreamWithTimeout, (void *stream, int32_t milliseconds))                 \
  f(int, aclrtCreateEventExWithFlag, (void **event, uint32_t flags))                              \
  f(int, aclrtDestroyEvent, (void *event))                                                        \
  f(int, aclrtRecordEvent, (void *event, void *stream))                                           \
  f(int, aclrtEventElapsedTime, (float *milliseconds, void *from, void *to))                      \
  f(int, aclrtMalloc, (void **memory, size_t bytes, int policy))                                  \
  f(int, aclrtFree, (void *memory))                                                               \
  f(int, aclrtMallocHost, (void **memory, size_t bytes))                                          \
  f(int, aclrtFreeHost, (void *memory))                                                           \
  f(int, aclrtMemcpyAsync, (void *to, size_t most, const void *from, size_t bytes, int kind, void *stream)) \
  f(int, aclmdlQuerySize, (const char *path, size_t *work, size_t *weights))                      \
  f(int, aclmdlLoadFromFileWithMem, (const char *path, uint32_t *model, void *work, size_t work_bytes, void *weights, size_t weight_bytes)) \
  f(int, aclmdlLoadFromFile, (const char *path, uint32_t *model))                                 \
  f(int, aclmdlUnload, (uint32_t model))                                                          \
  f(void *, aclmdlCreateDesc, (void))                                                             \
  f(int, aclmdlDestroyDesc, (void *description))                                                  \
  f(int, aclmdlGetDesc, (void *description, uint32_t model))                                      \
  f(size_t, aclmdlGetNumInputs, (void *description))                                              \
  f(size_t, aclmdlGetNumOutputs, (void *description))                                             \
  f(size_t, aclmdlGetInputSizeByIndex, (void *description, size_t index))                         \
  f(size_t, aclmdlGetOutputSizeByIndex, (void *description, size_t index))                        \
  f(const char *, aclmdlGetInputNameByIndex, (const void *description, size_t index))             \
  f(const char *, aclmdlGetOutputNameByIndex, (const void *description, size_t index))            \
  f(int, aclmdlGetInputDataType, (const void *description, size_t index))                         \
  f(int, aclmdlGetOutputDataType, (const void *description, size_t index))                        \
  f(int, aclmdlGetInputDims, (const void *description, size_t index, acl_dims *dims))             \
  f(int, aclmdlGetOutputDims, (const void *description, size_t index, acl_dims *dims))            \
  f(int, aclmdlGetCurOutputDims, (const void *description, size_t index, acl_dims *dims))         \
  f(void *, aclmdlCreateDataset, (void))                                                          \
  f(int, aclmdlDestroyDataset, (const void *dataset))                                             \
  f(int, aclmdlAddDatasetBuffer, (void *dataset, void *buffer))                                   \
  f(int, aclmdlSetDatasetTensorDesc, (void *dataset, void *tensor, size_t index))                 \
  f(void *, aclmdlGetDatasetTensorDesc, (const void *dataset, size_t index))                      \
  f(void *, aclCreateDataBuffer, (void *memory, size_t bytes))                                    \
  f(int, aclDestroyDataBuffer, (const void *buffer))                                              \
  f(int, aclUpdateDataBuffer, (void *buffer, void *memory, size_t bytes))                         \
  f(void *, aclGetDataBufferAddr, (const void *buffer))                                           \
  f(void *, aclCreateTensorDesc, (int type, int rank, const int64_t *dims, int format))           \
  f(void, aclDestroyTensorDesc, (const void *tensor))                                             \
  f(size_t, aclGetTensorDescNumDims, (const void *tensor))                                        \
  f(int, aclGetTensorDescDimV2, (const void *tensor, size_t axis, int64_t *size))                 \
  f(size_t, aclGetTensorDescSize, (const void *tensor))                                           \
  f(int, aclmdlExecute, (uint32_t model, const void *inputs, void *outputs))                      \
  f(int, aclmdlExecuteAsync, (uint32_t model, const void *inputs, void *outputs, void *stream))   \
  f(int, aclmdlSetDynamicBatchSize, (uint32_t model, void *inputs, size_t index, uint64_t batch)) \
  f(int, aclmdlSetDynamicHWSize, (uint32_t model, void *inputs, size_t index, uint64_t height, uint64_t width)) \
  f(int, aclmdlSetInputDynamicDims, (uint32_t model, void *inputs, size_t index, const acl_dims *dims))

// Functions that newer releases have. Where a library lacks one, its member is NULL, and what needs it says so.
#define ACL_LATER_FUNCTIONS(f)                                             \
  f(int, aclrtSetStreamResLimit, (void *stream, int kind, uint32_t cores)) \
  f(int, aclrtUseStreamResInCurrentThread, (void *stream))                 \
  f(int, aclrtUnuseStreamResInCurrentThread, (void *stream))

#define ACL_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  ACL_FUNCTIONS(ACL_MEMBER)
  ACL_LATER_FUNCTIONS(ACL_MEMBER)
  bool emulated;
} acl_library;
#undef ACL_MEMBER

// What went wrong, and in which call.
typedef struct {
  int code;
  const char *call;  // a name that lives for ever
  char text[2048];   // what AscendCL said; cut when longer
} acl_failure;

// acl_open maps the libraries, in the order given, and looks every function up in them.
// It returns NULL, or what is wrong, to be freed.
char *acl_open(acl_library *library, const char *const *paths, int count);

// acl_version is 0 when the library says which version of the interface it has.
int acl_version(const acl_library *library, int32_t *major, int32_t *minor, int32_t *patch);

// acl_start initialises the runtime; *began says whether acl_stop has to end it.
bool acl_start(const acl_library *library, bool *began, acl_failure *failure);
void acl_stop(const acl_library *library);
bool acl_devices(const acl_library *library, uint32_t *count, acl_failure *failure);

typedef struct {
  int32_t number;
  bool on_host;  // false where this very process runs on the device
  void *context;
} acl_device;

bool acl_device_open(const acl_library *library, acl_device *device, int32_t number, acl_failure *failure);
// acl_device_chip is the chip's name; NULL when the device does not say.
const char *acl_device_chip(const acl_library *library, const acl_device *device);
bool acl_device_cores(const acl_library *library, const acl_device *device, int64_t *cube, int64_t *vector, acl_failure *failure);
void acl_device_close(const acl_library *library, acl_device *device);

// A model of a file on a device. With `lends`, its weights lie in memory that all sessions of it share.
typedef struct {
  const acl_library *library;
  const acl_device *device;
  char *path;  // to be freed
  bool lends;
  size_t work_bytes, weight_bytes;
  void *weights;
} acl_shared;

bool acl_shared_open(acl_shared *shared, acl_failure *failure);
void acl_shared_close(acl_shared *shared);

#define ACL_NO_HIDDEN SIZE_MAX

// One input or output: what the model says of it, its memory, and its size in a run.
typedef struct {
  char *name;    // to be freed
  int type;      // aclDataType
  int bits;      // of an element; who loads the session fills it in
  size_t bytes;  // of the largest gear; 0 when open
  acl_dims dims;

  void *memory, *host;       // on the device, and pinned on the host
  size_t room, host_room;
  void *buffer;              // over memory, in the data set

  acl_dims now;
  size_t now_bytes;
  bool is_new;  // of open shape: the runtime has not been told the dims yet
} acl_port;

enum { ACL_MARKS = 4 };  // before the inputs are copied, after it, after the model, after the outputs are copied

// A loaded model with a context, a stream and memory of its own. All calls make the context current: any thread
// may make them, one at a time.
typedef struct {
  const acl_shared *shared;
  void *context, *stream, *marks[ACL_MARKS];
  void *work, *description, *input_set, *output_set;
  uint32_t id;
  bool loaded;
  bool limited;    // the stream has limits on cores
  bool in_flight;  // something was put into the stream, and its end was not seen
  bool failing;    // the run could not be launched whole
  size_t input_count, output_count, hidden;  // hidden: the input that takes the gear
  acl_port *inputs, *outputs;

  int gear;         // what the next run is to have; who starts it fills both in
  acl_dims values;
  bool gear_set;    // the runtime knows it already

  float h2d, compute, d2h;  // milliseconds of the last run
  acl_failure failure;
} acl_session;

// acl_session_load loads the model and describes it; acl_session_allocate makes its memory. When one of them fails,
// acl_session_close gives back what there is.
bool acl_session_load(acl_session *session, const acl_shared *shared);
bool acl_session_allocate(acl_session *session);
// acl_session_limit sets how many cores of a kind (ACL_CUBE_CORES, ACL_VECTOR_CORES) the model may use.
enum { ACL_CUBE_CORES, ACL_VECTOR_CORES };
bool acl_session_limit(acl_session *session, int kind, uint32_t cores);
// acl_session_close gives everything back. Nothing may be in flight.
void acl_session_close(acl_session *session);

// acl_session_reserve gives an input of open shape memory for so many bytes. What it held is lost when it grows.
bool acl_session_reserve(acl_session *session, size_t input, size_t bytes);

// How to choose a gear; the values are a batch, height and width, or every dim of every input.
enum { ACL_NO_GEAR, ACL_BATCH_GEAR, ACL_IMAGE_GEAR, ACL_DIMS_GEAR, ACL_OPEN_SHAPE };

// What became of a run.
enum { ACL_DONE, ACL_UNDER_WAY, ACL_FAILED };

// acl_session_start copies the inputs (host, now_bytes) to the device, runs, and copies the outputs back (host, now,
// now_bytes), all in one call. It waits for the end, but not long: acl_session_wait goes on with it.
int acl_session_start(acl_session *session);
int acl_session_wait(acl_session *session);
// acl_session_run_open does the same for a model of open shape, and waits as long as it takes. When it fails, in_flight
// tells of tasks that the device does not end.
int acl_session_run_open(acl_session *session);

#endif
