// Streams: queues of tasks, each with a thread that runs them in order.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int next_stream_id;  // guarded by the lock

// What a call that waits for its own task shares with the stream's thread.
struct awaited {
  bool done;
  int code;
  char text[1024];
};

// ---- the thread ----

static void keep_failure_locked(struct stream *stream, int code, const char *text) {
  if (stream->failure != 0) return;  // the first is the cause
  stream->failure = code;
  snprintf(stream->failure_text, sizeof stream->failure_text, "%s", text);
}

// Runs a task, without the lock.
static int perform(struct task *task) {
  this_thread()->function = task->function;
  this_thread()->message[0] = 0;
  int code = 0;
  if (task->on_device) {
    code = injected_fault(AT_ANY_DEVICE_CALL);
    if (code == 0) code = injected_fault(AT_TASK);
  }
  if (code == 0) code = task->run(task);
  if (code != 0) report_exception(task, code);
  count(COUNT_STREAM_TASK, 1);
  return code;
}

static void *stream_main(void *argument) {
  struct stream *stream = argument;
  pthread_mutex_lock(&emulator_lock);
  for (;;) {
    while (stream->head == NULL && !stream->stopping) pthread_cond_wait(&stream->work, &emulator_lock);
    struct task *task = stream->head;
    if (task == NULL) break;
    stream->head = task->next;
    if (stream->head == NULL) stream->tail = NULL;
    stream->running = task;
    bool skip = stream->failure != 0 && stream->stop_on_failure;
    int code = stream->failure;
    uint64_t sequence = task->sequence;
    struct awaited *awaited = task->awaited;
    pthread_mutex_unlock(&emulator_lock);
    if (!skip) code = perform(task);
    task->release(task);
    pthread_mutex_lock(&emulator_lock);
    if (awaited != NULL) {
      awaited->done = true;
      awaited->code = code;
      memcpy(awaited->text, this_thread()->message, sizeof awaited->text);
    } else if (code != 0 && !skip) {
      keep_failure_locked(stream, code, this_thread()->message);
    }
    stream->running = NULL;
    stream->completed = sequence;
    pthread_cond_broadcast(&stream->progress);
  }
  pthread_mutex_unlock(&emulator_lock);
  return NULL;
}

// ---- life ----

struct stream *stream_open_locked(struct context *context, uint32_t priority, uint32_t flags, bool is_default) {
  struct stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  *stream = (struct stream){.context = context, .id = next_stream_id++, .priority = priority, .flags = flags, .is_default = is_default};
  condition_init(&stream->work);
  condition_init(&stream->progress);
  stream->next = context->streams;
  context->streams = stream;
  context->device->streams++;
  handle_add_locked(HANDLE_STREAM, stream);
  return stream;
}

// Takes the waiting tasks out of the queue. They are released without the lock.
static void drop_queue_locked(struct stream *stream) {
  struct task *task = stream->head;
  stream->head = stream->tail = NULL;
  if (stream->running == NULL) stream->completed = stream->launched;
  pthread_mutex_unlock(&emulator_lock);
  while (task != NULL) {
    struct task *next = task->next;
    struct awaited *awaited = task->awaited;
    task->release(task);
    if (awaited != NULL) {
      pthread_mutex_lock(&emulator_lock);
      *awaited = (struct awaited){.done = true, .code = ACL_ERROR_RT_INTERNAL_ERROR, .text = "[emulated] the stream was aborted"};
      pthread_mutex_unlock(&emulator_lock);
    }
    task = next;
  }
  pthread_mutex_lock(&emulator_lock);
  pthread_cond_broadcast(&stream->progress);
}

void stream_close_locked(struct stream *stream, bool drop) {
  handle_remove_locked(stream);
  LIST_REMOVE(stream->context->streams, stream);
  stream->context->device->streams--;
  stream->stopping = true;
  if (drop) {
    stream->aborting = true;
    wake_waiting_tasks_locked();
    drop_queue_locked(stream);
  }
  pthread_cond_broadcast(&stream->work);
  if (stream->started) {
    pthread_mutex_unlock(&emulator_lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&emulator_lock);
  }
  subscriptions_forget_stream_locked(stream);
  pthread_cond_broadcast(&stream->progress);
  while (stream->users > 0) pthread_cond_wait(&stream->progress, &emulator_lock);
  pthread_cond_destroy(&stream->work);
  pthread_cond_destroy(&stream->progress);
  free(stream);
}

int stream_find_locked(aclrtStream handle, bool of_any_context, struct stream **out) {
  struct context *context;
  int code = current_context_locked(&context);
  if (code != 0) return code;
  if (handle == NULL) {
    *out = context->default_stream;
    return 0;
  }
  if (!handle_is_locked(HANDLE_STREAM, handle)) {
    misuse("%p is not a stream, or has been destroyed", handle);
    return FAIL(ACL_ERROR_RT_INVALID_HANDLE, "%p is not a stream, or has been destroyed", handle);
  }
  struct stream *stream = handle;
  if (stream->context != context && !of_any_context) {
    return FAIL(ACL_ERROR_RT_STREAM_CONTEXT, "stream %d belongs to another context than the current one", stream->id);
  }
  *out = stream;
  return 0;
}

int stream_lock(aclrtStream handle, bool of_any_context, struct stream **out) {
  pthread_mutex_lock(&emulator_lock);
  int code = stream_find_locked(handle, of_any_context, out);
  if (code != 0) pthread_mutex_unlock(&emulator_lock);
  return code;
}

// ---- launching ----

static int start_thread_locked(struct stream *stream) {
  if (stream->started) return 0;
  if (pthread_create(&stream->thread, NULL, stream_main, stream) != 0) return FAIL(ACL_ERROR_RT_NO_STREAM_RESOURCE, "the system gives no thread for the stream");
  stream->started = true;
  return 0;
}

int stream_launch_unlock(struct stream *stream, struct task *task, bool wait) {
  struct awaited awaited = {0};
  int code = 0;
  if (task->on_device && device_is_lost()) code = FAIL(ACL_ERROR_RT_LOST_HEARTBEAT, "the device does not answer any more");
  else if (stream->failure != 0 && stream->stop_on_failure) code = FAIL(stream->failure, "the stream stopped at an earlier failure: %s", stream->failure_text);
  else code = start_thread_locked(stream);
  if (code != 0) {
    pthread_mutex_unlock(&emulator_lock);
    task->release(task);
    return code;
  }
  task->next = NULL;
  task->function = this_thread()->function;
  task->sequence = ++stream->launched;
  task->stream = stream;
  task->context = stream->context;
  task->awaited = wait ? &awaited : NULL;
  *(stream->tail ? &stream->tail->next : &stream->head) = task;
  stream->tail = task;
  pthread_cond_signal(&stream->work);
  stream->users++;
  while (wait && !awaited.done) pthread_cond_wait(&stream->progress, &emulator_lock);
  if (--stream->users == 0) pthread_cond_broadcast(&stream->progress);
  pthread_mutex_unlock(&emulator_lock);
  if (awaited.code == 0) return 0;
  memcpy(this_thread()->message, awaited.text, sizeof awaited.text);
  return this_thread()->last_error = awaited.code;
}

int stream_launch(aclrtStream handle, struct task *task, bool wait) {
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code == 0) return stream_launch_unlock(stream, task, wait);
  task->release(task);
  return code;
}

int stream_wait_locked(struct stream *stream, int milliseconds) {
  uint64_t until = stream->launched;
  struct timespec deadline = deadline_after(milliseconds < 0 ? 0 : milliseconds);
  int code = 0;
  stream->users++;
  while (stream->completed < until && code == 0) {
    if (milliseconds < 0) pthread_cond_wait(&stream->progress, &emulator_lock);
    else if (pthread_cond_timedwait(&stream->progress, &emulator_lock, &deadline) == ETIMEDOUT && stream->completed < until) code = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  }
  if (code == 0 && stream->failure != 0) {
    code = stream->failure;
    memcpy(this_thread()->message, stream->failure_text, sizeof stream->failure_text);
    this_thread()->last_error = code;
    // In the mode that goes on after failures, each is told once.
    if (!stream->stop_on_failure) stream->failure = 0;
  } else if (code != 0) {
    FAIL(code, "stream %d was not done within %d ms", stream->id, milliseconds);
  }
  if (--stream->users == 0) pthread_cond_broadcast(&stream->progress);
  return code;
}

// ---- calls ----

static aclError create_stream(aclrtStream *out, uint32_t priority, uint32_t flags) {
  CHECK_ARGUMENT(out != NULL);
  struct context *context;
  int code = injected_fault(AT_ANY_DEVICE_CALL);
  if (code != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  code = current_context_locked(&context);
  if (code == 0 && context->device->streams >= emulated_chip()->streams) {
    code = FAIL(ACL_ERROR_RT_NO_STREAM_RESOURCE, "device %d has no more than %u streams", context->device->id, emulated_chip()->streams);
  }
  if (code == 0) {
    *out = stream_open_locked(context, priority, flags, false);
    if (*out == NULL) code = FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a stream");
  }
  pthread_mutex_unlock(&emulator_lock);
  if (code == 0) count(LIVE_STREAM, 1);
  return code;
}

ACL_API aclError aclrtCreateStream(aclrtStream *stream) {
  API_ENTRY();
  return create_stream(stream, 0, 0);
}

ACL_API aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flags) {
  API_ENTRY();
  return create_stream(stream, priority, flags);
}

static aclError destroy_stream(aclrtStream handle, bool drop) {
  CHECK_ARGUMENT(handle != NULL);
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  if (stream->is_default) code = FAIL(ACL_ERROR_RT_PARAM_INVALID, "a default stream lives as long as its context");
  if (code == 0 && stream->started && pthread_equal(stream->thread, pthread_self())) {
    misuse("a stream is destroyed by a function that runs in it");
    code = FAIL(ACL_ERROR_RT_PARAM_INVALID, "a stream is destroyed by a function that runs in it");
  }
  if (code == 0 && stream->users > 0) misuse("stream %d is destroyed while another call uses it", stream->id);
  if (code == 0) stream_close_locked(stream, drop);
  pthread_mutex_unlock(&emulator_lock);
  if (code == 0) count(LIVE_STREAM, -1);
  return code;
}

ACL_API aclError aclrtDestroyStream(aclrtStream stream) {
  API_ENTRY();
  return destroy_stream(stream, false);
}

ACL_API aclError aclrtDestroyStreamForce(aclrtStream stream) {
  API_ENTRY();
  return destroy_stream(stream, true);
}

// A stream of another context may be waited for: the runtime changes context for the call.
static aclError synchronize(aclrtStream handle, int milliseconds) {
  struct stream *stream;
  int code = stream_lock(handle, true, &stream);
  if (code != 0) return code;
  code = stream_wait_locked(stream, milliseconds);
  pthread_mutex_unlock(&emulator_lock);
  if (code == 0) code = injected_fault(AT_ANY_DEVICE_CALL);
  return code;
}

ACL_API aclError aclrtSynchronizeStream(aclrtStream stream) {
  API_ENTRY();
  return synchronize(stream, -1);
}

ACL_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds) {
  API_ENTRY();
  if (milliseconds < -1 || milliseconds == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "waits -1 (for ever) or more than 0 ms, not %d", milliseconds);
  return synchronize(stream, milliseconds);
}

// Waits for every stream of the current context, until one moment for all.
static aclError synchronize_all(int milliseconds) {
  struct context *context;
  double end = monotonic_seconds() + milliseconds / 1000.0;
  int result = 0;
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(&context);
  // The lock is given up while waiting, so streams may come and go: look for one that is not done, again and again.
  for (bool found = code == 0; found;) {
    found = false;
    for (struct stream *stream = context->streams; stream != NULL && !found; stream = stream->next) {
      if (stream->completed == stream->launched && stream->failure == 0) continue;
      int left = milliseconds < 0 ? -1 : (int)((end - monotonic_seconds()) * 1000);
      code = stream_wait_locked(stream, milliseconds >= 0 && left < 0 ? 0 : left);
      if (code != 0 && result == 0) result = code;
      found = code != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT && !(code != 0 && stream->stop_on_failure);
      if (code != 0 && !found) break;
    }
  }
  pthread_mutex_unlock(&emulator_lock);
  return result != 0 ? result : code == 0 ? injected_fault(AT_ANY_DEVICE_CALL) : code;
}

ACL_API aclError aclrtSynchronizeDevice(void) {
  API_ENTRY();
  return synchronize_all(-1);
}

ACL_API aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
  API_ENTRY();
  if (milliseconds < -1 || milliseconds == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "waits -1 (for ever) or more than 0 ms, not %d", milliseconds);
  return synchronize_all(milliseconds);
}

#define GETTER(name, type, of_any_context, expression)     \
  ACL_API aclError name(aclrtStream handle, type *answer) { \
    API_ENTRY();                                           \
    CHECK_ARGUMENT(answer != NULL);                        \
    struct stream *stream;                                 \
    int code = stream_lock(handle, of_any_context, &stream); \
    if (code != 0) return code;                            \
    *answer = (expression);                                \
    pthread_mutex_unlock(&emulator_lock);                  \
    return 0;                                              \
  }

GETTER(aclrtStreamQuery, aclrtStreamStatus, false, stream->completed == stream->launched ? ACL_STREAM_COMPLETE : ACL_STREAM_NOT_READY)
GETTER(aclrtStreamGetId, int32_t, true, stream->id)
GETTER(aclrtStreamGetPriority, uint32_t, true, stream->priority)
GETTER(aclrtStreamGetFlags, uint32_t, true, stream->flags)

ACL_API aclError aclrtGetStreamAvailableNum(uint32_t *number) {
  API_ENTRY();
  CHECK_ARGUMENT(number != NULL);
  struct context *context;
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(&context);
  if (code == 0) *number = emulated_chip()->streams - context->device->streams;
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode) {
  API_ENTRY();
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  if (stream->is_default) code = FAIL(ACL_ERROR_RT_PARAM_INVALID, "the mode of a default stream cannot be set");
  if (code == 0 && mode > 1) code = FAIL(ACL_ERROR_RT_PARAM_INVALID, "the modes are 0 (continue) and 1 (stop)");
  if (code == 0) stream->stop_on_failure = mode == 1;
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtStreamAbort(aclrtStream handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  stream->users++;
  stream->aborting = true;
  wake_waiting_tasks_locked();
  drop_queue_locked(stream);
  while (stream->running != NULL) pthread_cond_wait(&stream->progress, &emulator_lock);
  stream->completed = stream->launched;
  stream->aborting = false;
  stream->failure = 0;
  stream->users--;
  pthread_cond_broadcast(&stream->progress);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}
