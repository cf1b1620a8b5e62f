// What the test programs call of AscendCL, declared as their own compiler would see it in the real headers.

#ifndef NPUCTL_TEST_CLIENT_H
#define NPUCTL_TEST_CLIENT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acl_abi.h"

aclError aclInit(const char *path);
aclError aclFinalize(void);
const char *aclGetRecentErrMsg(void);
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
const char *aclrtGetSocName(void);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtGetDeviceInfo(uint32_t id, aclrtDevAttr attribute, int64_t *value);
aclError aclrtGetRunMode(aclrtRunMode *mode);
aclError aclrtSetDevice(int32_t id);
aclError aclrtResetDevice(int32_t id);
aclError aclrtCheckArchCompatibility(const char *compiled_for, int32_t *compatible);
aclError aclrtGetDevice(int32_t *id);
aclError aclrtCreateContext(aclrtContext *context, int32_t id);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtQueryDeviceStatus(int32_t id, aclrtDeviceStatus *status);
aclError aclrtSynchronizeDevice(void);
aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds);
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info);

aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds);
aclError aclrtStreamAbort(aclrtStream stream);
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtGetStreamAvailableNum(uint32_t *number);
aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flags);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t milliseconds);
aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start, aclrtEvent end);
aclError aclrtSubscribeReport(uint64_t thread, aclrtStream stream);
aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream stream);
aclError aclrtProcessReport(int32_t milliseconds);
aclError aclrtLaunchCallback(aclrtCallback function, void *argument, aclrtCallbackBlockType block, aclrtStream stream);
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *argument);

aclError aclrtMalloc(void **address, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *address);
aclError aclrtMallocHost(void **address, size_t size);
aclError aclrtFreeHost(void *address);
aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemset(void *to, size_t to_size, int32_t value, size_t size);
aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free_bytes, size_t *total);

aclError aclrtSetDeviceResLimit(int32_t id, aclrtDevResLimitType type, uint32_t value);
aclError aclrtResetDeviceResLimit(int32_t id);
aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value);
aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value);

size_t aclDataTypeSize(aclDataType type);
aclFloat16 aclFloatToFloat16(float value);
float aclFloat16ToFloat(aclFloat16 value);
aclDataBuffer *aclCreateDataBuffer(void *address, size_t size);
aclError aclDestroyDataBuffer(const aclDataBuffer *buffer);
aclError aclUpdateDataBuffer(aclDataBuffer *buffer, void *address, size_t size);
void *aclGetDataBufferAddr(const aclDataBuffer *buffer);
size_t aclGetDataBufferSizeV2(const aclDataBuffer *buffer);
uint32_t aclGetDataBufferSize(const aclDataBuffer *buffer);
aclTensorDesc *aclCreateTensorDesc(aclDataType type, int rank, const int64_t *dims, aclFormat format);
void aclDestroyTensorDesc(const aclTensorDesc *desc);
size_t aclGetTensorDescSize(const aclTensorDesc *desc);
size_t aclGetTensorDescNumDims(const aclTensorDesc *desc);
aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dim);
aclmdlDataset *aclmdlCreateDataset(void);
aclError aclmdlDestroyDataset(const aclmdlDataset *dataset);
aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *buffer);
aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index);
size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset);
aclError aclmdlSetDatasetTensorDesc(aclmdlDataset *dataset, aclTensorDesc *desc, size_t index);
aclTensorDesc *aclmdlGetDatasetTensorDesc(const aclmdlDataset *dataset, size_t index);

aclError aclmdlQuerySize(const char *path, size_t *work, size_t *weight);
aclError aclmdlLoadFromFile(const char *path, uint32_t *id);
aclError aclmdlLoadFromMem(const void *bytes, size_t size, uint32_t *id);
aclError aclmdlLoadFromFileWithMem(const char *path, uint32_t *id, void *work, size_t work_size, void *weight, size_t weight_size);
aclError aclmdlUnload(uint32_t id);
aclmdlDesc *aclmdlCreateDesc(void);
aclError aclmdlDestroyDesc(aclmdlDesc *desc);
aclError aclmdlGetDesc(aclmdlDesc *desc, uint32_t id);
size_t aclmdlGetNumInputs(aclmdlDesc *desc);
size_t aclmdlGetNumOutputs(aclmdlDesc *desc);
size_t aclmdlGetInputSizeByIndex(aclmdlDesc *desc, size_t index);
size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *desc, size_t index);
const char *aclmdlGetInputNameByIndex(const aclmdlDesc *desc, size_t index);
const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *desc, size_t index);
aclDataType aclmdlGetInputDataType(const aclmdlDesc *desc, size_t index);
aclDataType aclmdlGetOutputDataType(const aclmdlDesc *desc, size_t index);
aclFormat aclmdlGetInputFormat(const aclmdlDesc *desc, size_t index);
aclFormat aclmdlGetOutputFormat(const aclmdlDesc *desc, size_t index);
aclError aclmdlGetInputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims);
aclError aclmdlGetOutputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims);
aclError aclmdlGetCurOutputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims);
aclError aclmdlGetInputIndexByName(const aclmdlDesc *desc, const char *name, size_t *index);
aclError aclmdlGetDynamicBatch(const aclmdlDesc *desc, aclmdlBatch *batch);
aclError aclmdlGetDynamicHW(const aclmdlDesc *desc, size_t index, aclmdlHW *image);
aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc *desc, size_t index, size_t *number);
aclError aclmdlGetInputDynamicDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims, size_t number);
aclError aclmdlSetDynamicBatchSize(uint32_t id, aclmdlDataset *dataset, size_t index, uint64_t batch);
aclError aclmdlSetDynamicHWSize(uint32_t id, aclmdlDataset *dataset, size_t index, uint64_t height, uint64_t width);
aclError aclmdlSetInputDynamicDims(uint32_t id, aclmdlDataset *dataset, size_t index, const aclmdlIODims *dims);
aclError aclmdlExecute(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out);
aclError aclmdlExecuteAsync(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, aclrtStream stream);
aclmdlAIPP *aclmdlCreateAIPP(uint64_t batch);
aclError aclmdlDestroyAIPP(const aclmdlAIPP *aipp);
aclError aclmdlGetAippDataSize(uint64_t batch, size_t *size);
aclError aclmdlGetAippType(uint32_t id, size_t index, aclmdlInputAippType *type, size_t *attached);
aclError aclmdlSetAIPPInputFormat(aclmdlAIPP *aipp, aclAippInputFormat format);
aclError aclmdlSetAIPPSrcImageSize(aclmdlAIPP *aipp, int32_t width, int32_t height);
aclError aclmdlSetAIPPRbuvSwapSwitch(aclmdlAIPP *aipp, int8_t on);
aclError aclmdlSetAIPPAxSwapSwitch(aclmdlAIPP *aipp, int8_t on);
aclError aclmdlSetAIPPCscParams(aclmdlAIPP *aipp, int8_t on, int16_t m00, int16_t m01, int16_t m02, int16_t m10, int16_t m11, int16_t m12, int16_t m20,
                                int16_t m21, int16_t m22, uint8_t out0, uint8_t out1, uint8_t out2, uint8_t in0, uint8_t in1, uint8_t in2);
aclError aclmdlSetAIPPCropParams(aclmdlAIPP *aipp, int8_t on, int32_t left, int32_t top, int32_t width, int32_t height, uint64_t image);
aclError aclmdlSetAIPPScfParams(aclmdlAIPP *aipp, int8_t on, int32_t from_width, int32_t from_height, int32_t to_width, int32_t to_height, uint64_t image);
aclError aclmdlSetAIPPPaddingParams(aclmdlAIPP *aipp, int8_t on, int32_t top, int32_t bottom, int32_t left, int32_t right, uint64_t image);
aclError aclmdlSetAIPPDtcPixelMean(aclmdlAIPP *aipp, int16_t c0, int16_t c1, int16_t c2, int16_t c3, uint64_t image);
aclError aclmdlSetAIPPDtcPixelMin(aclmdlAIPP *aipp, float c0, float c1, float c2, float c3, uint64_t image);
aclError aclmdlSetAIPPPixelVarReci(aclmdlAIPP *aipp, float c0, float c1, float c2, float c3, uint64_t image);
aclError aclmdlSetInputAIPP(uint32_t id, aclmdlDataset *dataset, size_t index, const aclmdlAIPP *aipp);
aclError aclmdlSetAIPPByInputIndex(uint32_t id, aclmdlDataset *dataset, size_t index, const aclmdlAIPP *aipp);

aclopAttr *aclopCreateAttr(void);
void aclopDestroyAttr(const aclopAttr *attributes);
aclError aclopSetAttrBool(aclopAttr *attributes, const char *name, uint8_t value);
aclError aclopSetAttrInt(aclopAttr *attributes, const char *name, int64_t value);
aclError aclopSetAttrFloat(aclopAttr *attributes, const char *name, float value);
aclError aclopSetAttrString(aclopAttr *attributes, const char *name, const char *value);
aclError aclopSetAttrListInt(aclopAttr *attributes, const char *name, int number, const int64_t *values);
aclError aclopSetModelDir(const char *folder);
aclError aclopExecuteV2(const char *type, int inputs, aclTensorDesc *input_descs[], aclDataBuffer *input_buffers[], int outputs,
                        aclTensorDesc *output_descs[], aclDataBuffer *output_buffers[], aclopAttr *attributes, aclrtStream stream);
aclError aclblasGemmEx(aclTransType transposed_a, aclTransType transposed_b, aclTransType transposed_c, int m, int n, int k, const void *alpha,
                       const void *a, int lda, aclDataType type_a, const void *b, int ldb, aclDataType type_b, const void *beta, void *c, int ldc,
                       aclDataType type_c, aclComputeType precision, aclrtStream stream);
aclError aclopCompileAndExecute(const char *type, int inputs, const aclTensorDesc *const input_descs[], const aclDataBuffer *const input_buffers[],
                                int outputs, const aclTensorDesc *const output_descs[], aclDataBuffer *const output_buffers[],
                                const aclopAttr *attributes, aclopEngineType engine, aclopCompileType compile, const char *path, aclrtStream stream);

// ---- small helpers ----

static const char *models;  // folder of the .om files

#define CHECK(condition)                                                                                              \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      const char *text_ = aclGetRecentErrMsg();                                                                       \
      fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #condition, text_ ? text_ : "none"); \
      exit(1);                                                                                                        \
    }                                                                                                                 \
  } while (0)

#define GIVES(code, call)                                                                                              \
  do {                                                                                                                 \
    int got_ = (call);                                                                                                 \
    if (got_ != (code)) {                                                                                              \
      const char *text_ = aclGetRecentErrMsg();                                                                        \
      fprintf(stderr, "%s:%d: %s gave %d, not %d: %s\n", __FILE__, __LINE__, #call, got_, (int)(code), text_ ? text_ : "none"); \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

#define OK(call) GIVES(0, call)

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void nap(void *milliseconds) { usleep((useconds_t)(intptr_t)milliseconds * 1000); }

static inline const char *model_path(const char *name) {
  static __thread char path[4096];
  snprintf(path, sizeof path, "%s/%s.om", models, name);
  return path;
}

static inline void *device_memory(size_t size) {
  void *address = NULL;
  OK(aclrtMalloc(&address, size ? size : 64, 0));
  return address;
}

static inline void begin(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
}

static inline void end(void) {
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
}

// A loaded model with datasets over device memory of the sizes it asks for.
struct loaded {
  uint32_t id;
  aclmdlDesc *desc;
  aclmdlDataset *in, *out;
};

static inline aclmdlDataset *dataset_of(aclmdlDesc *desc, size_t number, size_t (*size_of)(aclmdlDesc *, size_t)) {
  aclmdlDataset *dataset = aclmdlCreateDataset();
  for (size_t i = 0; i < number; i++) {
    size_t size = size_of(desc, i);
    OK(aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(device_memory(size), size)));
  }
  return dataset;
}

static inline struct loaded with_datasets(uint32_t id) {
  struct loaded m = {.id = id, .desc = aclmdlCreateDesc()};
  OK(aclmdlGetDesc(m.desc, id));
  m.in = dataset_of(m.desc, aclmdlGetNumInputs(m.desc), aclmdlGetInputSizeByIndex);
  m.out = dataset_of(m.desc, aclmdlGetNumOutputs(m.desc), aclmdlGetOutputSizeByIndex);
  return m;
}

static inline struct loaded load(const char *name) {
  uint32_t id;
  OK(aclmdlLoadFromFile(model_path(name), &id));
  return with_datasets(id);
}

static inline void *buffer_address(aclmdlDataset *dataset, size_t index) { return aclGetDataBufferAddr(aclmdlGetDatasetBuffer(dataset, index)); }

static inline void destroy_dataset(aclmdlDataset *dataset) {
  for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(dataset); i++) {
    aclDataBuffer *buffer = aclmdlGetDatasetBuffer(dataset, i);
    if (aclGetDataBufferAddr(buffer) != NULL) OK(aclrtFree(aclGetDataBufferAddr(buffer)));
    OK(aclDestroyDataBuffer(buffer));
  }
  OK(aclmdlDestroyDataset(dataset));
}

static inline void unload(struct loaded *m) {
  OK(aclmdlUnload(m->id));
  OK(aclmdlDestroyDesc(m->desc));
  destroy_dataset(m->in);
  destroy_dataset(m->out);
}

// Every test model doubles its input, so a number tells whose result it is.
static inline void feed(struct loaded *m, float first, size_t number) {
  float values[4096];
  for (size_t i = 0; i < number; i++) values[i] = first + (float)i;
  OK(aclrtMemcpy(buffer_address(m->in, 0), number * 4, values, number * 4, ACL_MEMCPY_HOST_TO_DEVICE));
}

static inline bool doubled(const float *values, float first, size_t number) {
  for (size_t i = 0; i < number; i++) {
    if (values[i] != 2 * (first + (float)i)) return false;
  }
  return true;
}

static inline void expect(struct loaded *m, float first, size_t number) {
  float values[4096] = {0};
  OK(aclrtMemcpy(values, number * 4, buffer_address(m->out, 0), number * 4, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(doubled(values, first, number));
}

#endif
