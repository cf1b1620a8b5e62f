// A library that answers at once and computes nothing: what is left of a run's time is the engine's own. It writes
// down which functions were called, when STUB_LOG names a file.
//
// It has one device, and one model: that of the benchmark, with gears of a batch. Compiled twice: with DEFAULTS for
// every function that the engine looks up, to do nothing and succeed, and without for those that have to do more.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

void stub_called(const char *name);

#ifdef DEFAULTS

#define DEFINE(result, name, parameters)           \
  __attribute__((weak)) result name parameters {   \
    stub_called(#name);                            \
    return (result)0;                              \
  }
ACL_FUNCTIONS(DEFINE)
ACL_LATER_FUNCTIONS(DEFINE)

#else

static FILE *calls;

void stub_called(const char *name) {
  if (calls != NULL) fprintf(calls, "%s\n", name);
}

int aclInit(const char *config) {
  (void)config;
  const char *path = getenv("STUB_LOG");
  if (path != NULL) calls = fopen(path, "w");
  return 0;
}

int aclFinalize(void) {
  stub_called("aclFinalize");
  if (calls != NULL) fclose(calls);
  calls = NULL;
  return 0;
}

static int make(const char *name, void **out, size_t bytes) {
  stub_called(name);
  *out = aligned_alloc(64, (bytes + 63) / 64 * 64);
  return 0;
}

int aclrtCreateContext(void **context, int32_t device) { return (void)device, make("aclrtCreateContext", context, 1); }
int aclrtCreateStream(void **stream) { return make("aclrtCreateStream", stream, 1); }
int aclrtCreateEventExWithFlag(void **event, uint32_t flags) { return (void)flags, make("aclrtCreateEventExWithFlag", event, 1); }
int aclrtMalloc(void **memory, size_t bytes, int policy) { return (void)policy, make("aclrtMalloc", memory, bytes); }
int aclrtMallocHost(void **memory, size_t bytes) { return make("aclrtMallocHost", memory, bytes); }

static int unmake(const char *name, void *object) {
  stub_called(name);
  free(object);
  return 0;
}

int aclrtDestroyContext(void *context) { return unmake("aclrtDestroyContext", context); }
int aclrtDestroyStream(void *stream) { return unmake("aclrtDestroyStream", stream); }
int aclrtDestroyEvent(void *event) { return unmake("aclrtDestroyEvent", event); }
int aclrtFree(void *memory) { return unmake("aclrtFree", memory); }
int aclrtFreeHost(void *memory) { return unmake("aclrtFreeHost", memory); }
int aclmdlDestroyDesc(void *description) { return unmake("aclmdlDestroyDesc", description); }
int aclmdlDestroyDataset(const void *dataset) { return unmake("aclmdlDestroyDataset", (void *)(uintptr_t)dataset); }
int aclDestroyDataBuffer(const void *buffer) { return unmake("aclDestroyDataBuffer", (void *)(uintptr_t)buffer); }

static void *object(const char *name) {
  stub_called(name);
  return malloc(1);
}

void *aclmdlCreateDesc(void) { return object("aclmdlCreateDesc"); }
void *aclmdlCreateDataset(void) { return object("aclmdlCreateDataset"); }
void *aclCreateDataBuffer(void *memory, size_t bytes) { return (void)memory, (void)bytes, object("aclCreateDataBuffer"); }

int aclrtGetRunMode(int *mode) {
  *mode = 1;
  return 0;
}

int aclrtGetDeviceCount(uint32_t *count) {
  *count = 1;
  return 0;
}

int aclGetDeviceCapability(uint32_t device, int what, int64_t *value) {
  (void)device;
  *value = what == 0 ? 20 : 40;
  return 0;
}

int aclmdlQuerySize(const char *path, size_t *work, size_t *weights) {
  (void)path;
  *work = *weights = 64;
  return 0;
}

int aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t bytes, int kind, void *stream) {
  (void)most, (void)kind, (void)stream;
  stub_called("aclrtMemcpyAsync");
  memcpy(to, from, bytes);
  return 0;
}

static const struct {
  const char *name;
  int type;
  size_t bytes, rank;
  int64_t dims[2];
} ports[] = {{"x", 0, 48, 2, {-1, 3}}, {"k", 3, 20, 1, {5}}, {"ascend_mbatch_shape_data", 9, 8, 1, {1}}};

size_t aclmdlGetNumInputs(void *description) { return (void)description, 3; }
size_t aclmdlGetNumOutputs(void *description) { return (void)description, 2; }
size_t aclmdlGetInputSizeByIndex(void *description, size_t i) { return (void)description, ports[i].bytes; }
size_t aclmdlGetOutputSizeByIndex(void *description, size_t i) { return (void)description, ports[i].bytes; }
const char *aclmdlGetInputNameByIndex(const void *description, size_t i) { return (void)description, ports[i].name; }
int aclmdlGetInputDataType(const void *description, size_t i) { return (void)description, ports[i].type; }
int aclmdlGetOutputDataType(const void *description, size_t i) { return (void)description, ports[i].type; }

static int dims_of(size_t i, int64_t batch, acl_dims *dims) {
  dims->dim_count = ports[i].rank;
  for (size_t axis = 0; axis < ports[i].rank; axis++) dims->dims[axis] = ports[i].dims[axis] < 0 ? batch : ports[i].dims[axis];
  return 0;
}

int aclmdlGetInputDims(const void *description, size_t i, acl_dims *dims) { return (void)description, dims_of(i, -1, dims); }
int aclmdlGetOutputDims(const void *description, size_t i, acl_dims *dims) { return (void)description, dims_of(i, -1, dims); }

static int64_t batch;

int aclmdlSetDynamicBatchSize(uint32_t model, void *inputs, size_t index, uint64_t n) {
  (void)model, (void)inputs, (void)index;
  stub_called("aclmdlSetDynamicBatchSize");
  batch = (int64_t)n;
  return 0;
}

int aclmdlGetCurOutputDims(const void *description, size_t i, acl_dims *dims) {
  stub_called("aclmdlGetCurOutputDims");
  return (void)description, dims_of(i, batch, dims);
}

#endif
