// Call sequences as the vendor's samples and real programs make them, and the mistakes that the emulator is
// there to catch. Run as: scenarios NAME MODELS.

#include "client.h"

#include <signal.h>
#include <sys/wait.h>

// ---- as the samples do ----

static void static_sync(void) {
  aclrtContext context;
  aclrtStream stream;
  aclrtRunMode mode;
  size_t work, weight;
  uint32_t id;
  begin();
  OK(aclrtCreateContext(&context, 0));
  OK(aclrtCreateStream(&stream));
  OK(aclrtGetRunMode(&mode));
  CHECK(mode == ACL_HOST);
  OK(aclmdlQuerySize(model_path("static"), &work, &weight));
  void *work_memory = device_memory(work), *weight_memory = device_memory(weight), *host;
  OK(aclmdlLoadFromFileWithMem(model_path("static"), &id, work_memory, work, weight_memory, weight));
  struct loaded m = with_datasets(id);
  feed(&m, 5, 24);
  OK(aclmdlExecute(m.id, m.in, m.out));
  OK(aclrtMallocHost(&host, 96));
  OK(aclrtMemcpy(host, 96, buffer_address(m.out, 0), 96, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(doubled(host, 5, 24));
  OK(aclrtFreeHost(host));
  unload(&m);
  OK(aclrtFree(work_memory));
  OK(aclrtFree(weight_memory));
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyContext(context));
  end();
}

// A thread lends itself to callbacks; every few runs a callback frees the datasets of the runs before.
enum { POOL = 100, EVERY = 10 };

struct reporter {
  aclrtContext context;
  volatile int stop, freed;
};

static struct reporter reporter;

static void *process_reports(void *argument) {
  struct reporter *r = argument;
  OK(aclrtSetCurrentContext(r->context));
  while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) aclrtProcessReport(50);
  return NULL;
}

static void free_pair(void *argument) {
  aclmdlDataset **pair = argument;
  for (int i = 0; i < 2 * EVERY; i++) destroy_dataset(pair[i]);
  __atomic_add_fetch(&reporter.freed, EVERY, __ATOMIC_RELAXED);
}

static void static_async_callbacks(void) {
  static aclmdlDataset *pool[2 * POOL];
  pthread_t thread;
  aclrtStream stream;
  begin();
  OK(aclrtGetCurrentContext(&reporter.context));
  OK(aclrtCreateStream(&stream));
  pthread_create(&thread, NULL, process_reports, &reporter);
  OK(aclrtSubscribeReport((uint64_t)thread, stream));
  struct loaded m = load("static");
  for (int i = 0; i < POOL; i++) {
    struct loaded one = {.id = m.id};
    one.in = pool[2 * i] = dataset_of(m.desc, 1, aclmdlGetInputSizeByIndex);
    pool[2 * i + 1] = dataset_of(m.desc, 1, aclmdlGetOutputSizeByIndex);
    feed(&one, (float)i, 24);
    OK(aclmdlExecuteAsync(m.id, pool[2 * i], pool[2 * i + 1], stream));
    if (i % EVERY == EVERY - 1) OK(aclrtLaunchCallback(free_pair, &pool[2 * (i - EVERY + 1)], ACL_CALLBACK_BLOCK, stream));
  }
  OK(aclrtSynchronizeStream(stream));
  CHECK(reporter.freed == POOL);
  OK(aclrtUnSubscribeReport((uint64_t)thread, stream));
  __atomic_store_n(&reporter.stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  unload(&m);
  OK(aclrtDestroyStream(stream));
  end();
}

static size_t hidden_input(aclmdlDesc *desc) {
  size_t index;
  OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
  CHECK(strcmp(aclmdlGetInputNameByIndex(desc, index), ACL_DYNAMIC_TENSOR_NAME) == 0);
  return index;
}

static void dynamic_batch(void) {
  aclmdlBatch batch;
  aclmdlHW image;
  aclmdlIODims dims;
  size_t number;
  begin();
  struct loaded m = load("batch");
  size_t hidden = hidden_input(m.desc);
  // The order in which tools find out what a model is.
  OK(aclmdlGetInputDynamicGearCount(m.desc, SIZE_MAX, &number));
  CHECK(number == 0);
  OK(aclmdlGetDynamicHW(m.desc, SIZE_MAX, &image));
  CHECK(image.hwCount == 0);
  OK(aclmdlGetDynamicBatch(m.desc, &batch));
  CHECK(batch.batchCount == 3);
  for (size_t i = 0; i < batch.batchCount; i++) {
    OK(aclmdlSetDynamicBatchSize(m.id, m.in, hidden, batch.batch[i]));
    feed(&m, (float)i, 6 * batch.batch[i]);
    OK(aclmdlExecute(m.id, m.in, m.out));
    OK(aclmdlGetCurOutputDims(m.desc, 0, &dims));
    CHECK(dims.dims[0] == (int64_t)batch.batch[i] && dims.dims[1] == 6);
    expect(&m, (float)i, 6 * batch.batch[i]);
  }
  GIVES(145000, aclmdlSetDynamicHWSize(m.id, m.in, hidden, 2, 4));
  unload(&m);
  end();
}

static void dynamic_image(void) {
  aclmdlHW image;
  aclmdlIODims dims;
  begin();
  struct loaded m = load("hw");
  size_t hidden = hidden_input(m.desc);
  OK(aclmdlGetDynamicHW(m.desc, SIZE_MAX, &image));
  for (size_t i = 0; i < image.hwCount; i++) {
    size_t pixels = image.hw[i][0] * image.hw[i][1];
    OK(aclmdlSetDynamicHWSize(m.id, m.in, hidden, image.hw[i][0], image.hw[i][1]));
    feed(&m, 1, pixels);
    OK(aclmdlExecute(m.id, m.in, m.out));
    OK(aclmdlGetCurOutputDims(m.desc, 0, &dims));
    CHECK(dims.dims[2] == (int64_t)image.hw[i][0] && dims.dims[3] == (int64_t)image.hw[i][1]);
    expect(&m, 1, pixels);
  }
  unload(&m);
  end();
}

static void dynamic_dims(void) {
  aclmdlIODims gears[8], dims;
  size_t number;
  begin();
  struct loaded m = load("dims");
  size_t hidden = hidden_input(m.desc);
  OK(aclmdlGetInputDynamicGearCount(m.desc, SIZE_MAX, &number));
  CHECK(number == 3);
  OK(aclmdlGetInputDynamicDims(m.desc, SIZE_MAX, gears, number));
  size_t size = aclmdlGetInputSizeByIndex(m.desc, hidden);
  OK(aclrtMemset(buffer_address(m.in, hidden), size, 0, size));
  for (size_t i = 0; i < number; i++) {
    size_t elements = (size_t)(gears[i].dims[0] * gears[i].dims[1] * gears[i].dims[2]);
    OK(aclmdlSetInputDynamicDims(m.id, m.in, hidden, &gears[i]));
    feed(&m, 7, elements);
    OK(aclmdlExecute(m.id, m.in, m.out));
    OK(aclmdlGetCurOutputDims(m.desc, 0, &dims));
    CHECK(memcmp(dims.dims, gears[i].dims, 3 * sizeof dims.dims[0]) == 0);
    expect(&m, 7, elements);
  }
  unload(&m);
  end();
}

static void dynamic_aipp(void) {
  begin();
  struct loaded m = load("static");
  aclmdlAIPP *aipp = aclmdlCreateAIPP(1);
  OK(aclmdlSetAIPPSrcImageSize(aipp, 224, 224));
  GIVES(145015, aclmdlSetInputAIPP(m.id, m.in, 0, aipp));  // the model has none
  OK(aclmdlDestroyAIPP(aipp));
  unload(&m);
  end();
}

// As ais_bench does: the description is destroyed before the execution, the output's memory comes from the
// runtime or from the program.
static void dynamic_shape(void) {
  begin();
  struct loaded m = load("dynamic");
  for (int rows = 1; rows <= 5; rows += 2) {
    for (int own = 0; own < 2; own++) {
      int64_t shape[2] = {rows, 4}, dim;
      size_t bytes = (size_t)rows * 16;
      float values[64];
      aclTensorDesc *desc = aclCreateTensorDesc(ACL_FLOAT, 2, shape, ACL_FORMAT_ND);
      OK(aclmdlSetDatasetTensorDesc(m.in, desc, 0));
      aclDestroyTensorDesc(desc);
      aclDataBuffer *in = aclmdlGetDatasetBuffer(m.in, 0), *out = aclmdlGetDatasetBuffer(m.out, 0);
      OK(aclrtFree(aclGetDataBufferAddr(in)));
      OK(aclUpdateDataBuffer(in, device_memory(bytes), bytes));
      if (aclGetDataBufferAddr(out) != NULL) OK(aclrtFree(aclGetDataBufferAddr(out)));
      OK(aclUpdateDataBuffer(out, own ? device_memory(256) : NULL, own ? 256 : 0));
      feed(&m, 3, (size_t)rows * 4);
      OK(aclmdlExecute(m.id, m.in, m.out));
      aclTensorDesc *result = aclmdlGetDatasetTensorDesc(m.out, 0);
      CHECK(aclGetTensorDescNumDims(result) == 2 && aclGetTensorDescSize(result) == bytes);
      OK(aclGetTensorDescDimV2(result, 0, &dim));
      CHECK(dim == rows);
      OK(aclrtMemcpy(values, sizeof values, aclGetDataBufferAddr(out), bytes, ACL_MEMCPY_DEVICE_TO_HOST));
      CHECK(doubled(values, 3, (size_t)rows * 4));
    }
  }
  unload(&m);
  end();
}

// One context shared by all threads, or one each; one load each.
struct worker {
  aclrtContext context;
  int number;
};

static void *work(void *argument) {
  struct worker *w = argument;
  aclrtContext own = NULL;
  if (w->context != NULL) OK(aclrtSetCurrentContext(w->context));
  else OK(aclrtCreateContext(&own, 0));
  struct loaded m = load("static");
  for (int i = 0; i < 50; i++) {
    feed(&m, (float)(1000 * w->number + i), 24);
    OK(aclmdlExecute(m.id, m.in, m.out));
    expect(&m, (float)(1000 * w->number + i), 24);
  }
  unload(&m);
  if (own != NULL) OK(aclrtDestroyContext(own));
  return NULL;
}

static void several_threads(void) {
  aclrtContext shared;
  begin();
  OK(aclrtGetCurrentContext(&shared));
  for (int round = 0; round < 2; round++) {
    pthread_t threads[4];
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
      workers[i] = (struct worker){round ? NULL : shared, i};
      pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  }
  end();
}

static void descriptions(void) {
  static const char *const names[] = {"static", "batch", "hw", "dims", "dynamic"};
  begin();
  for (size_t k = 0; k < 5; k++) {
    struct loaded m = load(names[k]);
    for (size_t i = 0; i < aclmdlGetNumInputs(m.desc); i++) {
      aclmdlIODims dims;
      OK(aclmdlGetInputDims(m.desc, i, &dims));
      CHECK(strcmp(dims.name, aclmdlGetInputNameByIndex(m.desc, i)) == 0);
      size_t size = aclDataTypeSize(aclmdlGetInputDataType(m.desc, i));
      bool known = true;
      for (size_t d = 0; d < dims.dimCount; d++) {
        known &= dims.dims[d] >= 0;
        size *= (size_t)dims.dims[d];
      }
      if (known) CHECK(size == aclmdlGetInputSizeByIndex(m.desc, i));
    }
    const char *colon = strrchr(aclmdlGetOutputNameByIndex(m.desc, 0), ':');
    CHECK(colon != NULL && strcmp(colon, ":y") == 0);
    unload(&m);
  }
  end();
}

// ---- single operators ----

struct tensor {
  aclTensorDesc *desc;
  aclDataBuffer *buffer;
  void *memory;
};

static struct tensor tensor_of(int rank, const int64_t *dims, const float *values, bool on_host) {
  struct tensor t = {.desc = aclCreateTensorDesc(ACL_FLOAT, rank, dims, ACL_FORMAT_ND)};
  size_t size = aclGetTensorDescSize(t.desc);
  if (!on_host) t.memory = device_memory(size);
  if (!on_host && values != NULL) OK(aclrtMemcpy(t.memory, size, values, size, ACL_MEMCPY_HOST_TO_DEVICE));
  t.buffer = aclCreateDataBuffer(on_host ? (void *)(uintptr_t)values : t.memory, size);
  return t;
}

static void forget(struct tensor *t) {
  aclDestroyTensorDesc(t->desc);
  OK(aclDestroyDataBuffer(t->buffer));
}

// Launches one operator, throws everything away, and only then waits.
static void operate(const char *type, int inputs, struct tensor *in, struct tensor *out, aclopAttr *attributes, float *result, size_t number) {
  const aclTensorDesc *descs[8];
  const aclDataBuffer *buffers[8];
  aclrtStream stream;
  void *memory = out->memory;
  for (int i = 0; i < inputs; i++) {
    descs[i] = in[i].desc;
    buffers[i] = in[i].buffer;
  }
  OK(aclrtCreateStream(&stream));
  OK(aclopCompileAndExecute(type, inputs, descs, buffers, 1, (const aclTensorDesc *const *)&out->desc, &out->buffer, attributes, 0, 0, NULL, stream));
  for (int i = 0; i < inputs; i++) forget(&in[i]);
  forget(out);
  aclopDestroyAttr(attributes);
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtMemcpy(result, number * 4, memory, number * 4, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < inputs; i++) {
    if (in[i].memory != NULL) OK(aclrtFree(in[i].memory));
  }
  OK(aclrtFree(memory));
  OK(aclrtDestroyStream(stream));
}

static void single_operators(void) {
  const float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, image[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, alpha = 2, beta = 1;
  const int64_t square[2] = {2, 2}, one[1] = {1}, picture[4] = {1, 1, 4, 4}, small[4] = {1, 1, 2, 2}, kernel[4] = {1, 1, 2, 2}, pads[4] = {0};
  float got[16];
  begin();
  operate("Add", 2, (struct tensor[]){tensor_of(2, square, a, false), tensor_of(2, square, b, false)}, (struct tensor[]){tensor_of(2, square, NULL, false)},
          aclopCreateAttr(), got, 4);
  CHECK(got[0] == 11 && got[3] == 44);

  aclopAttr *attributes = aclopCreateAttr();
  OK(aclopSetAttrBool(attributes, "adj_x1", 0));
  OK(aclopSetAttrBool(attributes, "adj_x2", 0));
  operate("BatchMatMul", 2, (struct tensor[]){tensor_of(2, square, a, false), tensor_of(2, square, b, false)},
          (struct tensor[]){tensor_of(2, square, NULL, false)}, attributes, got, 4);
  CHECK(got[0] == 70 && got[1] == 100 && got[2] == 150 && got[3] == 220);

  // alpha and beta are inputs in host memory.
  attributes = aclopCreateAttr();
  OK(aclopSetAttrBool(attributes, "transpose_a", 0));
  OK(aclopSetAttrBool(attributes, "transpose_b", 1));
  operate("GEMM", 5,
          (struct tensor[]){tensor_of(2, square, a, false), tensor_of(2, square, b, false), tensor_of(2, square, a, false), tensor_of(1, one, &alpha, true),
                            tensor_of(1, one, &beta, true)},
          (struct tensor[]){tensor_of(2, square, NULL, false)}, attributes, got, 4);
  CHECK(got[0] == 2 * 50 + 1 && got[1] == 2 * 110 + 2 && got[2] == 2 * 110 + 3 && got[3] == 2 * 250 + 4);

  attributes = aclopCreateAttr();
  OK(aclopSetAttrListInt(attributes, "ksize", 4, kernel));
  OK(aclopSetAttrListInt(attributes, "strides", 4, kernel));
  OK(aclopSetAttrListInt(attributes, "pads", 4, pads));
  OK(aclopSetAttrString(attributes, "padding_mode", "CALCULATED"));
  OK(aclopSetAttrBool(attributes, "global_pooling", 0));
  operate("MaxPoolV3", 1, (struct tensor[]){tensor_of(4, picture, image, false)}, (struct tensor[]){tensor_of(4, small, NULL, false)}, attributes, got, 4);
  CHECK(got[0] == 5 && got[1] == 7 && got[2] == 13 && got[3] == 15);

  attributes = aclopCreateAttr();
  OK(aclopSetAttrListInt(attributes, "perm", 2, (const int64_t[]){1, 0}));
  operate("TransposeD", 1, (struct tensor[]){tensor_of(2, square, a, false)}, (struct tensor[]){tensor_of(2, square, NULL, false)}, attributes, got, 4);
  CHECK(got[1] == 3 && got[2] == 2);

  struct tensor x = tensor_of(2, square, a, false), y = tensor_of(2, square, NULL, false);
  GIVES(100024, aclopCompileAndExecute("FlashAttentionScore", 1, (const aclTensorDesc *const *)&x.desc, (const aclDataBuffer *const *)&x.buffer, 1,
                                       (const aclTensorDesc *const *)&y.desc, &y.buffer, NULL, 0, 0, NULL, NULL));
  CHECK(strstr(aclGetRecentErrMsg(), "FlashAttentionScore") != NULL);
  forget(&x);
  forget(&y);
  OK(aclrtFree(x.memory));
  OK(aclrtFree(y.memory));
  end();
}

// ---- devices, limits, streams, errors ----

static void several_devices(void) {  // with NPUCTL_EMULATOR_DEVICES=3
  uint32_t number;
  int32_t id;
  float values[4] = {1, 2, 3, 4}, back[4];
  void *memory[3];
  OK(aclInit(NULL));
  OK(aclrtGetDeviceCount(&number));
  CHECK(number == 3);
  for (int i = 0; i < 3; i++) {
    OK(aclrtSetDevice(i));
    memory[i] = device_memory(16);
  }
  OK(aclrtGetDevice(&id));
  CHECK(id == 2);
  OK(aclrtMemcpy(memory[0], 16, values, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpy(memory[2], 16, memory[0], 16, ACL_MEMCPY_DEVICE_TO_DEVICE));
  OK(aclrtMemcpy(back, 16, memory[2], 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(memcmp(values, back, 16) == 0);
  GIVES(107001, aclrtSetDevice(3));
  for (int i = 0; i < 3; i++) OK(aclrtFree(memory[i]));
  for (int i = 0; i < 3; i++) OK(aclrtResetDevice(i));
  GIVES(107002, aclrtGetDevice(&id));  // its context went with the device
  OK(aclFinalize());
}

// Prints what a program can find out about the chip; the numbers are compared where they are kept.
static void chip(void) {
  int64_t cores, vector_cores, cpus, l2, memory;
  size_t free_bytes, total;
  uint32_t streams;
  begin();
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &vector_cores));
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICPU_CORE_NUM, &cpus));
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, &l2));
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &memory));
  OK(aclrtGetStreamAvailableNum(&streams));
  bool hbm = aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total) == 0;
  if (!hbm) OK(aclrtGetMemInfo(ACL_DDR_MEM, &free_bytes, &total));
  printf("%s cores=%lld vector=%lld cpus=%lld l2=%lld memory=%lld streams=%u kind=%s\n", aclrtGetSocName(), (long long)cores, (long long)vector_cores,
         (long long)cpus, (long long)l2, (long long)memory, streams + 1, hbm ? "HBM" : "DDR");
  end();
}

static void core_limits(void) {
  uint32_t cores;
  aclrtStream stream;
  begin();
  OK(aclrtCreateStream(&stream));
  OK(aclrtGetResInCurrentThread(ACL_RES_CUBE_CORE, &cores));
  CHECK(cores == 20);  // Ascend910B3
  OK(aclrtSetDeviceResLimit(0, ACL_RES_CUBE_CORE, 16));
  OK(aclrtGetResInCurrentThread(ACL_RES_CUBE_CORE, &cores));
  CHECK(cores == 16);
  OK(aclrtSetStreamResLimit(stream, ACL_RES_CUBE_CORE, 8));
  OK(aclrtGetResInCurrentThread(ACL_RES_CUBE_CORE, &cores));
  CHECK(cores == 16);  // not in use yet
  OK(aclrtUseStreamResInCurrentThread(stream));
  OK(aclrtGetResInCurrentThread(ACL_RES_CUBE_CORE, &cores));
  CHECK(cores == 8);
  OK(aclrtGetResInCurrentThread(ACL_RES_VECTOR_CORE, &cores));
  CHECK(cores == 40);
  OK(aclrtUnuseStreamResInCurrentThread(stream));
  OK(aclrtResetDeviceResLimit(0));
  OK(aclrtGetResInCurrentThread(ACL_RES_CUBE_CORE, &cores));
  CHECK(cores == 20);
  GIVES(107000, aclrtSetDeviceResLimit(0, ACL_RES_CUBE_CORE, 21));
  OK(aclrtDestroyStream(stream));
  end();
}

static void stream_limit(void) {
  static aclrtStream streams[4096];
  uint32_t left;
  begin();
  OK(aclrtGetStreamAvailableNum(&left));
  CHECK(left == 1983);  // 1984, less the default one
  for (uint32_t i = 0; i < left; i++) OK(aclrtCreateStream(&streams[i]));
  GIVES(207008, aclrtCreateStream(&streams[left]));
  for (uint32_t i = 0; i < left; i++) OK(aclrtDestroyStream(streams[i]));
  end();
}

static void stream_ends(void) {
  aclrtStream stream;
  aclrtEvent event;
  begin();
  OK(aclrtCreateEvent(&event));
  // Destroying waits for what was launched; forcing drops it.
  double start = seconds();
  OK(aclrtCreateStream(&stream));
  OK(aclrtLaunchHostFunc(stream, nap, (void *)100));
  OK(aclrtDestroyStream(stream));
  CHECK(seconds() - start >= 0.09);
  start = seconds();
  OK(aclrtCreateStream(&stream));
  OK(aclrtLaunchHostFunc(stream, nap, (void *)50));
  for (int i = 0; i < 100; i++) OK(aclrtLaunchHostFunc(stream, nap, (void *)100));
  OK(aclrtRecordEvent(event, stream));
  OK(aclrtDestroyStreamForce(stream));
  CHECK(seconds() - start < 1);
  OK(aclrtSynchronizeEventWithTimeout(event, 1000));  // a dropped mark keeps nobody waiting
  // Aborting leaves a stream that can be used again.
  OK(aclrtCreateStream(&stream));
  for (int i = 0; i < 100; i++) OK(aclrtLaunchHostFunc(stream, nap, (void *)50));
  GIVES(507046, aclrtSynchronizeStreamWithTimeout(stream, 20));
  GIVES(507046, aclrtSynchronizeDeviceWithTimeout(20));
  OK(aclrtStreamAbort(stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtLaunchHostFunc(stream, nap, (void *)1));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyEvent(event));
  end();
}

// A ring of streams, each of which waits for the one before.
static void event_chain(void) {
  enum { LINKS = 16, ROUNDS = 50 };
  aclrtStream streams[LINKS];
  aclrtEvent events[LINKS];
  void *host, *memory[LINKS];
  begin();
  OK(aclrtMallocHost(&host, 64));
  for (int i = 0; i < LINKS; i++) {
    OK(aclrtCreateStream(&streams[i]));
    OK(aclrtCreateEventWithFlag(&events[i], ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    memory[i] = device_memory(64);
  }
  for (int round = 0; round < ROUNDS; round++) {
    memset(host, round, 64);
    OK(aclrtMemcpyAsync(memory[0], 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, streams[0]));
    OK(aclrtRecordEvent(events[0], streams[0]));
    for (int i = 1; i < LINKS; i++) {
      OK(aclrtStreamWaitEvent(streams[i], events[i - 1]));
      OK(aclrtMemcpyAsync(memory[i], 64, memory[i - 1], 64, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[i]));
      OK(aclrtRecordEvent(events[i], streams[i]));
    }
    OK(aclrtSynchronizeEvent(events[LINKS - 1]));
    unsigned char back[64];
    OK(aclrtMemcpy(back, 64, memory[LINKS - 1], 64, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(back[0] == round && back[63] == round);
  }
  OK(aclrtSynchronizeDevice());
  for (int i = 0; i < LINKS; i++) {
    OK(aclrtDestroyEvent(events[i]));
    OK(aclrtDestroyStream(streams[i]));
    OK(aclrtFree(memory[i]));
  }
  OK(aclrtFreeHost(host));
  end();
}

static void *fail_on_thread(void *argument) {
  void *memory;
  aclrtMalloc(&memory, 0, 0);
  return argument;
}

static void messages_of_process(void) {  // err_msg_mode 1
  char path[] = "/tmp/npuctl-acl-XXXXXX";
  pthread_t thread;
  FILE *file = fdopen(mkstemp(path), "w");
  fputs("{\"err_msg_mode\": \"1\", \"dump\": {\"dump_list\": [], \"x\": [1, 2.5e3, null, true]}}", file);
  fclose(file);
  OK(aclInit(path));
  unlink(path);
  OK(aclrtSetDevice(0));
  pthread_create(&thread, NULL, fail_on_thread, NULL);
  pthread_join(thread, NULL);
  CHECK(aclGetRecentErrMsg() != NULL);
  CHECK(aclGetRecentErrMsg() == NULL);
  end();
}

static void last_error(void) {
  void *memory;
  begin();
  CHECK(aclrtPeekAtLastError(0) == 0);
  aclrtMalloc(&memory, 0, 0);
  CHECK(aclrtPeekAtLastError(0) == 100000 && aclrtGetLastError(0) == 100000 && aclrtGetLastError(0) == 0);
  end();
}

static void half_precision(void) {
  for (uint32_t half = 0; half < 0x10000; half++) {
    float value = aclFloat16ToFloat((aclFloat16)half);
    if (value != value) continue;
    CHECK(aclFloatToFloat16(value) == half);
  }
  CHECK(aclFloatToFloat16(65520.0f) == 0x7c00 && aclFloatToFloat16(65519.0f) == 0x7bff);
  CHECK(aclFloatToFloat16(1.0f + 1.0f / 2048) == 0x3c00 && aclFloatToFloat16(1.0f + 3.0f / 2048) == 0x3c02);
}

// ---- mistakes ----

static void host_dereference(void) {
  begin();
  volatile char *memory = device_memory(64);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    *memory = 1;
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  OK(aclrtFree((void *)(uintptr_t)memory));
  end();
}

static void wrong_pointers(void) {
  char host[64] = {0};
  begin();
  char *memory = device_memory(256), *freed = device_memory(64);
  OK(aclrtFree(freed));
  OK(aclrtMemcpy(memory + 64, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));  // inside a block is fine
  GIVES(107000, aclrtMemcpy(memory, 512, memory, 512, ACL_MEMCPY_DEVICE_TO_DEVICE));
  GIVES(107000, aclrtMemcpy(memory + 224, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  GIVES(107000, aclrtMemcpy(host, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  GIVES(107000, aclrtMemcpy(host, 64, memory, 64, ACL_MEMCPY_HOST_TO_HOST));
  GIVES(107000, aclrtMemcpy(freed, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  GIVES(107000, aclrtFree(freed));
  GIVES(107000, aclrtFree(memory + 64));
  GIVES(107000, aclrtFree(host));
  OK(aclrtFree(memory));
  end();
}

// Memory is freed while a stream is still to use it: the task must fail, not read what others wrote there.
static void freed_too_early(void) {
  void *host;
  aclrtStream stream;
  begin();
  OK(aclrtMallocHost(&host, 64));
  OK(aclrtCreateStream(&stream));
  void *memory = device_memory(64);
  OK(aclrtLaunchHostFunc(stream, nap, (void *)100));
  OK(aclrtMemcpyAsync(memory, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  OK(aclrtFree(memory));
  void *other = device_memory(64);
  CHECK(other != memory);
  GIVES(507013, aclrtSynchronizeStream(stream));
  OK(aclrtSynchronizeStream(stream));  // told once
  OK(aclrtFree(other));
  OK(aclrtFreeHost(host));
  OK(aclrtDestroyStream(stream));
  end();
}

static void two_streams_one_model(void) {  // with NPUCTL_EMULATOR_STRICT=1
  aclrtStream a, b;
  begin();
  struct loaded m = load("static");
  OK(aclrtCreateStream(&a));
  OK(aclrtCreateStream(&b));
  feed(&m, 0, 24);
  OK(aclrtLaunchHostFunc(a, nap, (void *)100));
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, a));
  GIVES(500002, aclmdlExecuteAsync(m.id, m.in, m.out, b));
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, a));  // the same stream may
  OK(aclrtSynchronizeStream(a));
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, b));  // and the other one, afterwards
  OK(aclrtSynchronizeStream(b));
  unload(&m);
  OK(aclrtDestroyStream(a));
  OK(aclrtDestroyStream(b));
  OK(aclrtResetDevice(0));
  GIVES(148051, aclFinalize());
}

static void leaks(void) {
  aclrtEvent event;
  uint32_t id;
  void *host;
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  device_memory(1000);
  OK(aclrtMallocHost(&host, 64));
  OK(aclrtCreateEvent(&event));
  OK(aclmdlLoadFromFile(model_path("static"), &id));
  aclmdlCreateDataset();
  OK(aclFinalize());
}

static void never_finalized(void) {
  begin();
  device_memory(1000);
}

// ---- faults on demand ----

static void out_of_memory(void) {  // oom@3x1
  void *memory[4];
  begin();
  OK(aclrtMalloc(&memory[0], 64, 0));
  OK(aclrtMalloc(&memory[1], 64, 0));
  GIVES(207001, aclrtMalloc(&memory[2], 64, 0));
  CHECK(strstr(aclGetRecentErrMsg(), "NPUCTL_EMULATOR_FAULT") != NULL);
  OK(aclrtMalloc(&memory[2], 64, 0));
  for (int i = 0; i < 3; i++) OK(aclrtFree(memory[i]));
  end();
}

static volatile uint32_t exception_code;

static void note_exception(aclrtExceptionInfo *info) { exception_code = aclrtGetErrorCodeFromExceptionInfo(info); }

static void operator_exception(void) {  // exception@2x1
  aclrtStream stream;
  begin();
  OK(aclrtSetExceptionInfoCallback(note_exception));
  struct loaded m = load("static");
  OK(aclrtCreateStream(&stream));
  feed(&m, 1, 24);
  for (int i = 0; i < 3; i++) OK(aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  GIVES(507015, aclrtSynchronizeStream(stream));
  CHECK(exception_code == 507015);
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  OK(aclrtSynchronizeStream(stream));
  expect(&m, 1, 24);
  unload(&m);
  OK(aclrtDestroyStream(stream));
  end();
}

static void failure_stops_stream(void) {  // exception@2x1
  aclrtStream stream;
  begin();
  struct loaded m = load("static");
  OK(aclrtCreateStream(&stream));
  OK(aclrtSetStreamFailureMode(stream, 1));
  feed(&m, 1, 24);
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  GIVES(507015, aclrtSynchronizeStream(stream));
  GIVES(507015, aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  GIVES(507015, aclrtSynchronizeStream(stream));
  unload(&m);
  OK(aclrtDestroyStream(stream));
  end();
}

static void device_lost(void) {  // device-lost@20
  aclrtDeviceStatus status;
  char host[64] = {0};
  int code = 0;
  begin();
  OK(aclrtQueryDeviceStatus(0, &status));
  CHECK(status == ACL_DEVICE_NORMAL);
  void *memory = device_memory(64);
  for (int i = 0; i < 40 && code == 0; i++) code = aclrtMemcpy(memory, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE);
  CHECK(code == 507010);
  OK(aclrtQueryDeviceStatus(0, &status));
  CHECK(status == ACL_DEVICE_ABNORMAL);
  GIVES(507010, aclrtSynchronizeDevice());
  OK(aclrtFree(memory));
  end();
}

static void slow_stream(void) {  // slow-stream=50
  aclrtStream stream;
  begin();
  struct loaded m = load("static");
  OK(aclrtCreateStream(&stream));
  feed(&m, 1, 24);
  double start = seconds();
  for (int i = 0; i < 3; i++) OK(aclmdlExecuteAsync(m.id, m.in, m.out, stream));
  CHECK(seconds() - start < 0.05);
  OK(aclrtSynchronizeStream(stream));
  CHECK(seconds() - start >= 0.15);
  unload(&m);
  OK(aclrtDestroyStream(stream));
  end();
}

static const struct {
  const char *name;
  void (*run)(void);
} scenarios[] = {
    {"static_sync", static_sync},
    {"static_async_callbacks", static_async_callbacks},
    {"dynamic_batch", dynamic_batch},
    {"dynamic_image", dynamic_image},
    {"dynamic_dims", dynamic_dims},
    {"dynamic_aipp", dynamic_aipp},
    {"dynamic_shape", dynamic_shape},
    {"several_threads", several_threads},
    {"descriptions", descriptions},
    {"single_operators", single_operators},
    {"several_devices", several_devices},
    {"chip", chip},
    {"core_limits", core_limits},
    {"stream_limit", stream_limit},
    {"stream_ends", stream_ends},
    {"event_chain", event_chain},
    {"messages_of_process", messages_of_process},
    {"last_error", last_error},
    {"half_precision", half_precision},
    {"host_dereference", host_dereference},
    {"wrong_pointers", wrong_pointers},
    {"freed_too_early", freed_too_early},
    {"two_streams_one_model", two_streams_one_model},
    {"leaks", leaks},
    {"never_finalized", never_finalized},
    {"out_of_memory", out_of_memory},
    {"operator_exception", operator_exception},
    {"failure_stops_stream", failure_stops_stream},
    {"device_lost", device_lost},
    {"slow_stream", slow_stream},
};

int main(int count, char **arguments) {
  if (count == 3) {
    models = arguments[2];
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
      if (strcmp(scenarios[i].name, arguments[1]) != 0) continue;
      scenarios[i].run();
      puts("reached the end");
      return 0;
    }
  }
  fprintf(stderr, "usage: %s NAME MODELS\n", arguments[0]);
  return 2;
}
