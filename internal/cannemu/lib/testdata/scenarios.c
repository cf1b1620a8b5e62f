// Call sequences as the vendor's samples and real programs make them, and the mistakes that the emulator is
// there to catch. Run as: scenarios NAME MODELS.

#include "client.h"

#include <signal.h>
#include <sys/wait.h>

static volatile uint32_t exception_code;

static void note_exception(aclrtExceptionInfo *info) { exception_code = aclrtGetErrorCodeFromExceptionInfo(info); }

// ---- as the samples do ----

static const char *write_configuration(const char *text) {
  static char path[32];
  snprintf(path, sizeof path, "/tmp/npuctl-acl-XXXXXX");
  FILE *file = fdopen(mkstemp(path), "w");
  fputs(text, file);
  fclose(file);
  return path;
}

static void static_sync(void) {
  aclrtContext context;
  aclrtStream stream;
  aclrtRunMode mode;
  size_t work, weight;
  uint32_t id;
  const char *configuration = write_configuration("{}");
  OK(aclInit(configuration));
  unlink(configuration);
  OK(aclrtSetDevice(0));
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
  OK(aclmdlUnload(m.id));
  OK(aclmdlDestroyDesc(m.desc));
  OK(aclrtFree(work_memory));
  OK(aclrtFree(weight_memory));
  destroy_dataset(m.in);
  destroy_dataset(m.out);
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

// Finds the input for the gear, as some programs do by comparing every name and others by asking for it.
static size_t hidden_input(aclmdlDesc *desc) {
  size_t index, found = SIZE_MAX;
  for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
    if (strcmp(aclmdlGetInputNameByIndex(desc, i), ACL_DYNAMIC_TENSOR_NAME) == 0) found = i;
  }
  OK(aclmdlGetInputIndexByName(desc, ACL_DYNAMIC_TENSOR_NAME, &index));
  CHECK(index == found);
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
    CHECK(aclGetDataBufferSize(aclmdlGetDatasetBuffer(m.in, 0)) == 4 * 4 * 8);  // the old getter, of 32 bits
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

static aclmdlAIPP *settings(uint64_t images) {
  aclmdlAIPP *aipp = aclmdlCreateAIPP(images);
  OK(aclmdlSetAIPPInputFormat(aipp, 1));  // YUV420SP_U8
  OK(aclmdlSetAIPPSrcImageSize(aipp, 416, 416));
  OK(aclmdlSetAIPPCscParams(aipp, 1, 256, 0, 359, 256, -88, -183, 256, 454, 0, 0, 0, 0, 0, 128, 128));
  OK(aclmdlSetAIPPRbuvSwapSwitch(aipp, 0));
  OK(aclmdlSetAIPPAxSwapSwitch(aipp, 0));
  for (uint64_t i = 0; i < images; i++) {
    OK(aclmdlSetAIPPDtcPixelMean(aipp, 0, 0, 0, 0, i));
    OK(aclmdlSetAIPPDtcPixelMin(aipp, 0, 0, 0, 0, i));
    OK(aclmdlSetAIPPPixelVarReci(aipp, 1.f / 255, 1.f / 255, 1.f / 255, 1.f / 255, i));
    OK(aclmdlSetAIPPCropParams(aipp, 1, 0, 0, 416, 416, i));
    OK(aclmdlSetAIPPScfParams(aipp, 0, 1, 1, 1, 1, i));
    OK(aclmdlSetAIPPPaddingParams(aipp, 0, 0, 0, 0, 0, i));
  }
  GIVES(100000, aclmdlSetAIPPCropParams(aipp, 1, 0, 0, 416, 416, images));
  return aipp;
}

// The emulator goes with it up to the execution, which it refuses.
static void dynamic_aipp(void) {
  size_t index, size, attached;
  aclmdlInputAippType type;
  begin();
  struct loaded m = load("aipp");
  OK(aclmdlGetInputIndexByName(m.desc, ACL_DYNAMIC_AIPP_NAME, &index));
  OK(aclmdlGetAippType(m.id, index, &type, &attached));
  CHECK(type == 3);
  OK(aclmdlGetAippDataSize(2, &size));
  CHECK(size <= aclmdlGetInputSizeByIndex(m.desc, index));
  aclmdlAIPP *aipp = settings(2);
  OK(aclmdlSetInputAIPP(m.id, m.in, index, aipp));
  OK(aclmdlSetAIPPByInputIndex(m.id, m.in, 0, aipp));
  GIVES(145015, aclmdlSetInputAIPP(m.id, m.in, 0, aipp));  // that is the image
  GIVES(145015, aclmdlSetAIPPByInputIndex(m.id, m.in, index, aipp));
  OK(aclmdlDestroyAIPP(aipp));
  aipp = settings(200);
  GIVES(145012, aclmdlSetInputAIPP(m.id, m.in, index, aipp));
  OK(aclmdlDestroyAIPP(aipp));
  GIVES(200006, aclmdlExecute(m.id, m.in, m.out));
  CHECK(strstr(aclGetRecentErrMsg(), "AIPP") != NULL);
  unload(&m);

  m = load("static");
  aipp = settings(1);
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

// Prints everything about a model, and holds the sizes against types and dims.
static void describe(aclmdlDesc *desc) {
  aclmdlIODims dims;
  for (size_t i = 0, inputs = aclmdlGetNumInputs(desc); i < inputs + aclmdlGetNumOutputs(desc); i++) {
    bool in = i < inputs;
    size_t at = in ? i : i - inputs;
    OK((in ? aclmdlGetInputDims : aclmdlGetOutputDims)(desc, at, &dims));
    const char *name = (in ? aclmdlGetInputNameByIndex : aclmdlGetOutputNameByIndex)(desc, at);
    aclDataType type = (in ? aclmdlGetInputDataType : aclmdlGetOutputDataType)(desc, at);
    aclFormat format = (in ? aclmdlGetInputFormat : aclmdlGetOutputFormat)(desc, at);
    size_t size = (in ? aclmdlGetInputSizeByIndex : aclmdlGetOutputSizeByIndex)(desc, at), bytes = aclDataTypeSize(type);
    printf("%s %zu %s: type %d, format %d, %zu bytes, dims", in ? "input" : "output", at, name, type, format, size);
    CHECK(strcmp(dims.name, name) == 0 && type != ACL_DT_UNDEFINED && format != ACL_FORMAT_UNDEFINED);
    bool known = true;
    for (size_t d = 0; d < dims.dimCount; d++) {
      printf(" %lld", (long long)dims.dims[d]);
      known &= dims.dims[d] >= 0;
      bytes *= (size_t)dims.dims[d];
    }
    printf("\n");
    if (known) CHECK(bytes == size);
  }
}

static void descriptions(void) {
  static const char *const names[] = {"static", "batch", "hw", "dims", "dynamic", "many"};
  begin();
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    struct loaded m = load(names[k]);
    describe(m.desc);
    const char *colon = strrchr(aclmdlGetOutputNameByIndex(m.desc, 0), ':');
    CHECK(colon != NULL && colon[1] == 'y');
    unload(&m);
  }
  end();
}

// One program for gears of a batch and of an image: an argument says which.
static void gears_by_argument(void) {
  begin();
  for (int by_batch = 0; by_batch < 2; by_batch++) {
    aclmdlBatch batch;
    aclmdlHW image;
    aclmdlIODims dims;
    struct loaded m = load(by_batch ? "batch" : "hw");
    describe(m.desc);
    size_t hidden = hidden_input(m.desc);
    OK(aclmdlGetDynamicBatch(m.desc, &batch));
    OK(aclmdlGetDynamicHW(m.desc, SIZE_MAX, &image));
    CHECK(batch.batchCount == (by_batch ? 3 : 0) && image.hwCount == (by_batch ? 0 : 2));
    if (by_batch) OK(aclmdlSetDynamicBatchSize(m.id, m.in, hidden, 2));
    else OK(aclmdlSetDynamicHWSize(m.id, m.in, hidden, 2, 4));
    size_t number = by_batch ? 12 : 8;
    feed(&m, 9, number);
    OK(aclmdlExecute(m.id, m.in, m.out));
    OK(aclmdlGetCurOutputDims(m.desc, 0, &dims));
    size_t elements = 1;
    for (size_t d = 0; d < dims.dimCount; d++) elements *= (size_t)dims.dims[d];
    CHECK(elements == number);
    expect(&m, 9, number);
    unload(&m);
  }
  end();
}

// As language models have it: many inputs of several types, each with an output of its own.
static void many_inputs(void) {  // x0… and y0…, of float, int32, float, int32… and 4 elements each
  enum { PAIRS = 40 };
  begin();
  struct loaded m = load("many");
  describe(m.desc);
  CHECK(aclmdlGetNumInputs(m.desc) == PAIRS && aclmdlGetNumOutputs(m.desc) == PAIRS);
  for (int i = 0; i < PAIRS; i++) {
    float reals[4];
    int32_t integers[4];
    for (int k = 0; k < 4; k++) reals[k] = (float)(integers[k] = 100 * i + k);
    OK(aclrtMemcpy(buffer_address(m.in, (size_t)i), 16, i % 2 ? (void *)integers : (void *)reals, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  OK(aclmdlExecute(m.id, m.in, m.out));
  for (int i = 0; i < PAIRS; i++) {
    float reals[4];
    int32_t integers[4];
    OK(aclrtMemcpy(i % 2 ? (void *)integers : (void *)reals, 16, buffer_address(m.out, (size_t)i), 16, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int k = 0; k < 4; k++) CHECK((i % 2 ? integers[k] : (int)reals[k]) == 2 * (100 * i + k));
  }
  unload(&m);
  end();
}

// How the common tools find out what a model is, with the context set for each call.
static void kinds_found_out(void) {
  static const char *const names[] = {"static", "batch", "hw", "dims", "dynamic"};
  static const char *const kinds[] = {"none", "batch", "image", "dims", "none"};
  aclrtContext context, current;
  begin();
  OK(aclrtSetExceptionInfoCallback(note_exception));
  OK(aclrtGetCurrentContext(&context));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t gears, hidden;
    aclmdlBatch batch;
    aclmdlHW image;
    const char *kind = "none";
    OK(aclrtSetCurrentContext(context));
    struct loaded m = load(names[i]);
    OK(aclmdlGetInputDynamicGearCount(m.desc, SIZE_MAX, &gears));
    bool has_hidden = aclmdlGetInputIndexByName(m.desc, ACL_DYNAMIC_TENSOR_NAME, &hidden) == 0;
    CHECK(has_hidden == (aclGetRecentErrMsg() == NULL));
    OK(aclmdlGetDynamicBatch(m.desc, &batch));
    OK(aclmdlGetDynamicHW(m.desc, SIZE_MAX, &image));
    if (has_hidden) kind = gears > 0 ? "dims" : batch.batchCount > 0 ? "batch" : image.hwCount > 0 ? "image" : "?";
    CHECK(strcmp(kind, kinds[i]) == 0);
    GIVES(145003, aclmdlExecute(m.id + 100, m.in, m.out));
    CHECK(aclGetRecentErrMsg() != NULL && aclGetRecentErrMsg() == NULL);
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == context);
    unload(&m);
  }
  OK(aclrtSetExceptionInfoCallback(NULL));
  end();
}

// As ONNX Runtime's provider runs a whole graph: everything comes out of one block of device memory, host memory is
// pageable, the objects of a launch are destroyed before the stream is waited for, any thread may run, and at the end
// neither the device is reset nor aclFinalize called.
struct provider {
  uint32_t id;
  unsigned char *block;
  int number;
};

enum { PIECE = 256 };  // of the block: 96 bytes, rounded up, and more

static void *provider_runs(void *argument) {
  struct provider *p = argument;
  OK(aclrtSetDevice(0));
  for (int run = 0; run < 20; run++) {
    float in[24], out[24] = {0}, first = (float)(1000 * p->number + run);
    unsigned char *x = p->block + 2 * PIECE * p->number, *y = x + PIECE;
    aclrtStream stream;
    for (int i = 0; i < 24; i++) in[i] = first + (float)i;
    OK(aclrtCreateStream(&stream));
    OK(aclrtMemcpyAsync(x, sizeof in, in, sizeof in, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    aclmdlDesc *desc = aclmdlCreateDesc();
    OK(aclmdlGetDesc(desc, p->id));
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    aclmdlIODims dims;
    CHECK(aclmdlGetNumInputs(desc) == 1 && aclmdlGetNumOutputs(desc) == 1);
    OK(aclmdlGetOutputDims(desc, 0, &dims));
    CHECK(dims.dimCount == 2 && dims.dims[0] == 4 && dims.dims[1] == 6);  // it sizes the result by them
    aclDataBuffer *given = aclCreateDataBuffer(x, aclmdlGetInputSizeByIndex(desc, 0));
    aclDataBuffer *taken = aclCreateDataBuffer(y, aclmdlGetOutputSizeByIndex(desc, 0));
    OK(aclmdlAddDatasetBuffer(inputs, given));
    OK(aclmdlAddDatasetBuffer(outputs, taken));
    OK(aclmdlExecuteAsync(p->id, inputs, outputs, stream));
    OK(aclmdlDestroyDesc(desc));
    OK(aclmdlDestroyDataset(inputs));
    OK(aclmdlDestroyDataset(outputs));
    OK(aclDestroyDataBuffer(given));
    OK(aclDestroyDataBuffer(taken));
    OK(aclrtMemcpyAsync(out, sizeof out, y, sizeof out, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
    CHECK(doubled(out, first, 24));
  }
  return NULL;
}

static void provider(void) {
  enum { THREADS = 4 };
  uint32_t count;
  pthread_t threads[THREADS];
  struct provider providers[THREADS];
  OK(aclInit(NULL));
  OK(aclrtGetDeviceCount(&count));
  OK(aclrtSetDevice(0));
  CHECK(aclrtGetSocName() != NULL);
  unsigned char *block = device_memory(2 * THREADS * PIECE);
  for (int i = 0; i < THREADS; i++) {
    providers[i] = (struct provider){.block = block, .number = i};
    OK(aclmdlLoadFromFile(model_path("static"), &providers[i].id));
    pthread_create(&threads[i], NULL, provider_runs, &providers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) OK(aclmdlUnload(providers[i].id));
  OK(aclrtFree(block));
  OK(aclrtSynchronizeDevice());
  OK(aclrtSynchronizeStream(NULL));
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

// Operators that were compiled before, and the matrix product: everything lies on the device, in half precision.
static void gemm(void) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {7, 8, 9, 10, 11, 12}, c[4] = {1, 1, 1, 1};  // 2x3 by 3x2
  const float numbers[2] = {2, 1}, want[4] = {2 * 58 + 1, 2 * 64 + 1, 2 * 139 + 1, 2 * 154 + 1}, *const sources[4] = {a, b, c, numbers};
  const size_t lengths[4] = {6, 6, 4, 2};
  aclFloat16 host[6], *memory[4];
  aclrtStream stream;
  begin();
  OK(aclopSetModelDir("op_models"));
  OK(aclrtCreateStream(&stream));
  for (int i = 0; i < 4; i++) {
    memory[i] = device_memory(sizeof host);
    for (size_t k = 0; k < lengths[i]; k++) host[k] = aclFloatToFloat16(sources[i][k]);
    OK(aclrtMemcpy(memory[i], sizeof host, host, 2 * lengths[i], ACL_MEMCPY_HOST_TO_DEVICE));
  }
  OK(aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 2, 2, 3, memory[3], memory[0], -1, ACL_FLOAT16, memory[1], -1, ACL_FLOAT16, memory[3] + 1, memory[2],
                   -1, ACL_FLOAT16, ACL_COMPUTE_HIGH_PRECISION, stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtMemcpy(host, sizeof host, memory[2], 8, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < 4; i++) CHECK(aclFloat16ToFloat(host[i]) == want[i]);
  GIVES(100000, aclblasGemmEx(ACL_TRANS_N, ACL_TRANS_N, ACL_TRANS_N, 2, 2, 3, memory[3], memory[0], 3, ACL_FLOAT16, memory[1], -1, ACL_FLOAT16, memory[3],
                              memory[2], -1, ACL_FLOAT16, ACL_COMPUTE_HIGH_PRECISION, stream));

  struct tensor x = tensor_of(1, (const int64_t[]){4}, c, false), y = tensor_of(1, (const int64_t[]){4}, NULL, false);
  float got[4];
  OK(aclopExecuteV2("Add", 2, (aclTensorDesc *[]){x.desc, x.desc}, (aclDataBuffer *[]){x.buffer, x.buffer}, 1, &y.desc, &y.buffer, NULL, stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtMemcpy(got, 16, y.memory, 16, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(got[0] == 2 && got[3] == 2);
  forget(&x);
  forget(&y);
  OK(aclrtFree(x.memory));
  OK(aclrtFree(y.memory));
  for (int i = 0; i < 4; i++) OK(aclrtFree(memory[i]));
  OK(aclrtDestroyStream(stream));
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
  // Whose code it runs, of the chips that are asked for.
  const char *asked = getenv("NPUCTL_TEST_CHIPS");
  char names[8192];
  snprintf(names, sizeof names, "%s", asked ? asked : "");
  for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
    int32_t runs;
    OK(aclrtCheckArchCompatibility(name, &runs));
    if (runs) printf("runs=%s\n", name);
  }
  end();
}

// Loads a model, and a second one beside it where it can. Prints the codes, for whoever set the chips to hold them
// against what they are compiled for.
static void chips_of_models(void) {  // with the models first.om and second.om
  uint32_t first = 0, second;
  begin();
  int code = aclmdlLoadFromFile(model_path("first"), &first), other = aclmdlLoadFromFile(model_path("second"), &second);
  printf("first=%d second=%d\n", code, other);
  if (other != 0) CHECK(strstr(aclGetRecentErrMsg(), "compiled for") != NULL);
  if (code == 0) OK(aclmdlUnload(first));
  // Where nobody chose a chip, the device is free again for another one.
  const char *chosen = getenv("NPUCTL_EMULATOR_SOC");
  if (code == 0 && (chosen == NULL || *chosen == 0)) {
    if (other == 0) OK(aclmdlUnload(second));
    OK(other = aclmdlLoadFromFile(model_path("second"), &second));
  }
  if (other == 0) OK(aclmdlUnload(second));
  end();
}

static void architectures(void) {  // with NPUCTL_EMULATOR_SOC=Ascend910B3
  static const struct {
    const char *chip;
    int32_t runs;
  } chips[] = {{"Ascend910B1", 1}, {"Ascend910_9391", 1}, {"Ascend910B", 0}, {"Ascend910A", 0}, {"Ascend310P3", 0}, {"Ascend000", 0}};
  int32_t runs;
  begin();
  for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
    OK(aclrtCheckArchCompatibility(chips[i].chip, &runs));
    CHECK(runs == chips[i].runs);
  }
  GIVES(107000, aclrtCheckArchCompatibility("", &runs));
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

// An event belongs to the context it was made in, and to none that comes after it in the same memory: so many come and
// go that one does.
static void event_outlives_context(void) {
  enum { MANY = 32 };
  aclrtContext contexts[MANY];
  aclrtStream stream;
  aclrtEvent event;
  begin();
  for (int i = 0; i < MANY; i++) OK(aclrtCreateContext(&contexts[i], 0));
  OK(aclrtCreateEvent(&event));  // in the last one
  for (int i = 0; i < MANY; i++) OK(aclrtDestroyContext(contexts[i]));
  for (int i = 0; i < MANY; i++) {
    OK(aclrtCreateContext(&contexts[i], 0));
    OK(aclrtCreateStream(&stream));
    GIVES(107003, aclrtRecordEvent(event, stream));
    OK(aclrtDestroyStream(stream));
  }
  for (int i = 0; i < MANY; i++) OK(aclrtDestroyContext(contexts[i]));
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
  const char *path = write_configuration("{\"err_msg_mode\": \"1\", \"dump\": {\"dump_list\": [], \"x\": [1, 2.5e3, null, true]}}");
  pthread_t thread;
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
    {"gears_by_argument", gears_by_argument},
    {"many_inputs", many_inputs},
    {"kinds_found_out", kinds_found_out},
    {"provider", provider},
    {"single_operators", single_operators},
    {"gemm", gemm},
    {"several_devices", several_devices},
    {"chip", chip},
    {"chips_of_models", chips_of_models},
    {"architectures", architectures},
    {"core_limits", core_limits},
    {"stream_limit", stream_limit},
    {"stream_ends", stream_ends},
    {"event_outlives_context", event_outlives_context},
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
