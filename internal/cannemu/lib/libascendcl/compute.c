// Computing models: choosing an engine, and sharing what is opened.
//
// Loads of the same model share one opened model, as they would share weights on a card; a run does not
// change it. NPUCTL_EMULATOR_COMPUTE=onnxruntime or =interpreter decides for one engine; without it, it is
// ONNX Runtime where its library is found.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
  IDLE_SIZE = 64 << 10,  // models up to this size stay open when nobody uses them:
  IDLE_LIMIT = 64,       // single operators, which come again and again
};

struct compute {
  struct compute *next;
  uint64_t hash[2];
  size_t size;
  void *model;  // of the engine
  unsigned references;
};

static pthread_mutex_t compute_lock = PTHREAD_MUTEX_INITIALIZER;  // of all below; held while opening
static struct compute *opened;                                    // the last used first
static const struct compute_engine *engine;

// ---- element types ----

static const struct {
  int acl, onnx;
} types[] = {
    {ACL_FLOAT, 1},   {ACL_UINT8, 2},   {ACL_INT8, 3},     {ACL_UINT16, 4},    {ACL_INT16, 5},         {ACL_INT32, 6},
    {ACL_INT64, 7},   {ACL_STRING, 8},  {ACL_BOOL, 9},     {ACL_FLOAT16, 10},  {ACL_DOUBLE, 11},       {ACL_UINT32, 12},
    {ACL_UINT64, 13}, {ACL_COMPLEX64, 14}, {ACL_COMPLEX128, 15}, {ACL_BF16, 16}, {ACL_FLOAT8_E4M3FN, 17}, {ACL_FLOAT8_E5M2, 19},
    {ACL_INT4, 22},
};

int onnx_type_of(int acl_type) {
  for (size_t i = 0; i < COUNT(types); i++) {
    if (types[i].acl == acl_type) return types[i].onnx;
  }
  return -1;
}

int acl_type_of(int onnx_type) {
  for (size_t i = 0; i < COUNT(types); i++) {
    if (types[i].onnx == onnx_type) return types[i].acl;
  }
  return ACL_DT_UNDEFINED;
}

// ---- the end of the process ----

// An engine's own clean-up at exit must not find runs under way. Handlers run in reverse order, so this one,
// registered after the engine has started, comes first: it waits for them, and lets no other begin.
static pthread_mutex_t run_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t run_ended;
static unsigned running;
static bool exiting;

enum { EXIT_PATIENCE = 10000 };  // milliseconds

static void begin_run(void) {
  pthread_mutex_lock(&run_lock);
  while (exiting) pthread_cond_wait(&run_ended, &run_lock);  // for ever: the process is about to go
  running++;
  pthread_mutex_unlock(&run_lock);
}

static void end_run(void) {
  pthread_mutex_lock(&run_lock);
  if (--running == 0) pthread_cond_broadcast(&run_ended);
  pthread_mutex_unlock(&run_lock);
}

static void wait_for_runs(void) {
  struct timespec deadline = deadline_after(EXIT_PATIENCE);
  pthread_mutex_lock(&run_lock);
  exiting = true;
  while (running > 0 && pthread_cond_timedwait(&run_ended, &run_lock, &deadline) == 0) continue;
  pthread_mutex_unlock(&run_lock);
}

static bool is_exiting(void) {
  pthread_mutex_lock(&run_lock);
  bool value = exiting;
  pthread_mutex_unlock(&run_lock);
  return value;
}

// ---- engines ----

static int fail_with(int code, const char *doing, char *why) {
  FAIL(code, "%s: %s", doing, why);
  free(why);
  return code;
}

static int choose_engine_locked(void) {
  if (engine != NULL) return 0;
  const char *wanted = getenv("NPUCTL_EMULATOR_COMPUTE");
  if (wanted != NULL && *wanted == 0) wanted = NULL;
  char *why = NULL;
  for (const struct compute_engine *const *e = (const struct compute_engine *const[]){&onnxruntime_engine, &interpreter_engine, NULL}; *e; e++) {
    if (wanted != NULL && strcmp(wanted, (*e)->name) != 0) continue;
    char *problem = (*e)->start();
    if (problem == NULL) {
      engine = *e;
      condition_init(&run_ended);
      atexit(wait_for_runs);
      free(why);
      return 0;
    }
    // The first engine's problem is the one to solve.
    if (why == NULL) why = problem;
    else free(problem);
  }
  return fail_with(ACL_ERROR_GE_LOAD_MODEL, "nothing to compute with", why ? why : strdup("NPUCTL_EMULATOR_COMPUTE is onnxruntime or interpreter"));
}

// ---- opened models ----

// Two FNV-1a sums, of the bytes as they are and of their complements: models are not told apart by it
// against somebody who wants them mixed up, but nobody does.
static void hash_bytes(const unsigned char *bytes, size_t size, uint64_t hash[2]) {
  hash[0] = 0xcbf29ce484222325;
  hash[1] = 0x84222325cbf29ce4;
  for (size_t i = 0; i < size; i++) {
    hash[0] = (hash[0] ^ bytes[i]) * 0x100000001b3;
    hash[1] = (hash[1] ^ (unsigned char)~bytes[i]) * 0x10000000233;
  }
}

static void end_locked(struct compute *compute) {
  LIST_REMOVE(opened, compute);
  if (!is_exiting()) engine->close(compute->model);  // at exit the engine may be gone already
  free(compute);
}

static void end_idle_locked(void) {
  int idle = 0;
  for (struct compute *next, *at = opened; at != NULL; at = next) {
    next = at->next;
    if (at->references == 0 && (at->size > IDLE_SIZE || ++idle > IDLE_LIMIT)) end_locked(at);
  }
}

static int open_locked(const void *model, size_t size, struct compute **out) {
  int code = choose_engine_locked();
  if (code != 0) return code;
  uint64_t hash[2];
  hash_bytes(model, size, hash);
  struct compute *compute = opened;
  while (compute != NULL && !(compute->size == size && memcmp(compute->hash, hash, sizeof hash) == 0)) compute = compute->next;
  if (compute == NULL) {
    void *handle;
    char *why = engine->open(model, size, &handle);
    if (why != NULL) return fail_with(ACL_ERROR_GE_LOAD_MODEL, "open the model", why);
    compute = calloc(1, sizeof *compute);
    if (compute == NULL) {
      engine->close(handle);
      return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a model");
    }
    *compute = (struct compute){.hash = {hash[0], hash[1]}, .size = size, .model = handle};
  } else {
    LIST_REMOVE(opened, compute);
  }
  compute->next = opened;
  opened = compute;
  compute->references++;
  *out = compute;
  return 0;
}

int compute_open(const void *model, size_t size, struct compute **out) {
  pthread_mutex_lock(&compute_lock);
  int code = open_locked(model, size, out);
  pthread_mutex_unlock(&compute_lock);
  return code;
}

void compute_close(struct compute *compute) {
  if (compute == NULL) return;
  pthread_mutex_lock(&compute_lock);
  compute->references--;
  end_idle_locked();
  pthread_mutex_unlock(&compute_lock);
}

int compute_run(struct compute *compute, const struct compute_tensor *inputs, size_t input_count, compute_sink sink, void *receiver) {
  int code = 0;
  begin_run();
  char *why = engine->run(compute->model, inputs, input_count, sink, receiver, &code);
  end_run();
  if (why == NULL) return 0;
  if (code != 0) {
    free(why);
    return code;  // the sink has set the text
  }
  return fail_with(ACL_ERROR_RT_MODEL_EXECUTE, "compute the model", why);
}
