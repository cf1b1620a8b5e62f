// Many threads with many streams each, for a number of seconds. Every result must be that of its own input:
// none may get lost or crossed. Run as: stress MODELS SECONDS THREADS STREAMS.

#include "client.h"

enum { ELEMENTS = 24, BYTES = 4 * ELEMENTS, MAX_STREAMS = 64 };

static double deadline;
static int streams_each;
static unsigned long total;

struct lane {
  aclrtStream stream;
  aclrtEvent event;
  struct loaded model;
  float *in, *out;  // pinned
  void *work;
};

static void open_lane(struct lane *lane, void *weight, size_t weight_size, size_t work_size) {
  uint32_t id;
  OK(aclrtCreateStream(&lane->stream));
  OK(aclrtCreateEventWithFlag(&lane->event, ACL_EVENT_SYNC));
  lane->work = device_memory(work_size);
  OK(aclmdlLoadFromFileWithMem(model_path("static"), &id, lane->work, work_size, weight, weight_size));
  lane->model = with_datasets(id);
  OK(aclrtMallocHost((void **)&lane->in, BYTES));
  OK(aclrtMallocHost((void **)&lane->out, BYTES));
}

static void close_lane(struct lane *lane) {
  unload(&lane->model);
  OK(aclrtFree(lane->work));
  OK(aclrtFreeHost(lane->in));
  OK(aclrtFreeHost(lane->out));
  OK(aclrtDestroyEvent(lane->event));
  OK(aclrtDestroyStream(lane->stream));
}

static void launch(struct lane *lane, float first) {
  for (int i = 0; i < ELEMENTS; i++) lane->in[i] = first + (float)i;
  memset(lane->out, 0xff, BYTES);
  OK(aclrtMemcpyAsync(buffer_address(lane->model.in, 0), BYTES, lane->in, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, lane->stream));
  OK(aclmdlExecuteAsync(lane->model.id, lane->model.in, lane->model.out, lane->stream));
  OK(aclrtMemcpyAsync(lane->out, BYTES, buffer_address(lane->model.out, 0), BYTES, ACL_MEMCPY_DEVICE_TO_HOST, lane->stream));
  OK(aclrtRecordEvent(lane->event, lane->stream));
}

static void *work(void *argument) {
  int thread = (int)(intptr_t)argument;
  struct lane lanes[MAX_STREAMS];
  aclrtContext context;
  size_t work_size, weight_size;
  unsigned long runs = 0;
  // Half of the threads share the default context.
  if (thread % 2 == 0) OK(aclrtSetDevice(0));
  else OK(aclrtCreateContext(&context, 0));
  OK(aclmdlQuerySize(model_path("static"), &work_size, &weight_size));
  void *weight = device_memory(weight_size);
  for (int s = 0; s < streams_each; s++) open_lane(&lanes[s], weight, weight_size, work_size);
  for (int round = 0; seconds() < deadline; round++) {
    for (int s = 0; s < streams_each; s++) launch(&lanes[s], (float)(thread * 100000 + s * 1000 + round % 900));
    for (int s = 0; s < streams_each; s++) {
      OK(aclrtSynchronizeEvent(lanes[s].event));
      CHECK(doubled(lanes[s].out, (float)(thread * 100000 + s * 1000 + round % 900), ELEMENTS));
      runs++;
    }
  }
  for (int s = 0; s < streams_each; s++) close_lane(&lanes[s]);
  OK(aclrtFree(weight));
  if (thread % 2 == 0) OK(aclrtResetDevice(0));
  else OK(aclrtDestroyContext(context));
  __atomic_add_fetch(&total, runs, __ATOMIC_RELAXED);
  return NULL;
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  models = arguments[1];
  int threads = atoi(arguments[3]);
  streams_each = atoi(arguments[4]);
  pthread_t ids[64];
  CHECK(threads <= 64 && streams_each <= MAX_STREAMS);
  OK(aclInit(NULL));
  deadline = seconds() + atof(arguments[2]);
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  OK(aclFinalize());
  printf("%lu runs\n", total);
  return 0;
}
