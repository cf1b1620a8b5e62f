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
  f(int, aclrtCreateContext, (void **context, int32_t device))                                    \
  f(int, aclrtDestroyContext, (void *context))                                                    \
  f(int, aclrtSetCurrentContext, (void *context))                                                 \
  f(int, aclrtCreateStream, (void **stream))                                                      \
  f(int, aclrtDestroyStream, (void *stream))                                                      \
  f(int, aclrtSynchronizeStream, (void *stream))                                                  \
  f(int, aclrtSynchronizeStreamWithTimeout, (void *stream, int32_t milliseconds))                 \
  f(int, aclrtMalloc, (void **memory, size_t bytes, int policy))                                  \
  f(int, aclrtFree, (void *memory))                                                               \
  f(int, aclrtMemcpy, (void *to, size_t most, const void *from, size_t bytes, int kind))          \
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

#define ACL_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct {
  ACL_FUNCTIONS(ACL_MEMBER)
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
void acl_device_close(const acl_library *library, acl_device *device);

// One input or output: what the model says of it, and its buffer on the device.
typedef struct {
  char *name;  // to be freed
  int type;    // aclDataType
  size_t bytes;  // of the largest gear; 0 when open
  acl_dims dims;
  void *memory;
} acl_port;

typedef struct {
  const acl_library *library;
  const acl_device *device;
  uint32_t id;
  bool loaded;
  bool abandoned;  // a run was given up while the device had not ended it
  int stop;        // set from another thread, to give the run up
  void *description, *stream;
  size_t input_count, output_count;
  acl_port *inputs, *outputs;
} acl_model;

bool acl_model_load(acl_model *model, const acl_library *library, const acl_device *device, const char *path, acl_failure *failure);
void acl_model_close(acl_model *model);

// How to choose a gear; the numbers in `dims` are a batch, height and width, or every
// dim of every input.
enum { ACL_NO_GEAR, ACL_BATCH_GEAR, ACL_IMAGE_GEAR, ACL_DIMS_GEAR, ACL_OPEN_SHAPE };

// An array in the memory of the host.
typedef struct {
  void *data;
  size_t bytes;
  acl_dims dims;
} acl_array;

// acl_model_run copies the inputs to the device, runs, and says which dims the outputs
// have. What they hold is fetched by acl_model_fetch, or dropped by the next run.
// `inputs` has an array for every input of the model; that of the hidden one, which
// takes the gear, is empty. A run that acl_model_stop asks to be given up ends with the
// code 0; the model then is of no more use, and what it holds is not given back, since
// the device may still write to it.
bool acl_model_run(acl_model *model, int gear, const acl_dims *gear_dims, size_t hidden, const acl_array *inputs, acl_array *outputs, acl_failure *failure);
void acl_model_stop(acl_model *model);
bool acl_model_fetch(acl_model *model, size_t output, void *to, size_t bytes, acl_failure *failure);

#endif
