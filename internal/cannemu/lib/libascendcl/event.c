// Events: marks in streams, with the time at which the stream came to them.

#include <errno.h>
#include <stdlib.h>

#include "internal.h"

struct event {
  struct event *next;        // of all
  uint64_t context_serial;     // of the context it was made in, which may be gone
  uint32_t flags;
  uint64_t recorded, reached;  // how often it was put into a stream, and which of these was reached
  int stream_id;               // of the last record
  double seconds;              // at which it was reached
  unsigned uses;               // by tasks and waiting calls
  bool destroyed;
};

static struct event *events;
static pthread_cond_t reached;  // any event was, or a stream gives up
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) { condition_init(&reached); }

void wake_waiting_tasks_locked(void) {
  pthread_once(&once, prepare);
  pthread_cond_broadcast(&reached);
  wake_callbacks_locked();
}

static void unuse_locked(struct event *event) {
  if (--event->uses == 0 && event->destroyed) free(event);
}

// ---- tasks ----

struct mark {
  struct task task;
  struct event *event;
  uint64_t record;  // which record of the event is meant
};

static int run_record(struct task *task) {
  struct mark *mark = (struct mark *)task;
  pthread_mutex_lock(&emulator_lock);
  mark->event->seconds = monotonic_seconds();
  if (mark->event->reached < mark->record) mark->event->reached = mark->record;
  pthread_cond_broadcast(&reached);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

static int run_wait(struct task *task) {
  struct mark *mark = (struct mark *)task;
  pthread_mutex_lock(&emulator_lock);
  while (mark->event->reached < mark->record && !task->stream->aborting) pthread_cond_wait(&reached, &emulator_lock);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

// A record that is dropped with its stream must not keep others waiting.
static void release_mark(struct task *task) {
  struct mark *mark = (struct mark *)task;
  pthread_mutex_lock(&emulator_lock);
  if (task->run == run_record && mark->event->reached < mark->record) {
    mark->event->reached = mark->record;
    pthread_cond_broadcast(&reached);
  }
  unuse_locked(mark->event);
  pthread_mutex_unlock(&emulator_lock);
  free(mark);
}

// ---- calls ----

static int find_locked(aclrtEvent handle, struct event **out) {
  if (handle == NULL) return FAIL(ACL_ERROR_INVALID_PARAM, "needs an event");
  if (!handle_is_locked(HANDLE_EVENT, handle)) {
    misuse("%p is not an event, or has been destroyed", handle);
    return FAIL(ACL_ERROR_RT_INVALID_HANDLE, "%p is not an event, or has been destroyed", handle);
  }
  *out = handle;
  return 0;
}

static aclError create_event(aclrtEvent *out, uint32_t flags) {
  CHECK_ARGUMENT(out != NULL);
  pthread_once(&once, prepare);
  struct context *context;
  struct event *event = calloc(1, sizeof *event);
  if (event == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for an event");
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(&context);
  if (code == 0) {
    *event = (struct event){.next = events, .context_serial = context->serial, .flags = flags};
    events = event;
    handle_add_locked(HANDLE_EVENT, event);
    *out = event;
  }
  pthread_mutex_unlock(&emulator_lock);
  if (code != 0) free(event);
  else count(LIVE_EVENT, 1);
  return code;
}

// Without flags, an event can do what does not cost more.
ACL_API aclError aclrtCreateEvent(aclrtEvent *event) {
  API_ENTRY();
  return create_event(event, ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE);
}

static aclError create_event_with_flags(aclrtEvent *event, uint32_t flags) {
  CHECK_ARGUMENT(event != NULL);
  const uint32_t known = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
  if (flags == 0 || (flags & ~known) != 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "0x%x are no flags of an event", flags);
  return create_event(event, flags);
}

ACL_API aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flags) {
  API_ENTRY();
  return create_event_with_flags(event, flags);
}

ACL_API aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flags) {
  API_ENTRY();
  return create_event_with_flags(event, flags);
}

static void destroy_locked(struct event *event) {
  handle_remove_locked(event);
  LIST_REMOVE(events, event);
  event->destroyed = true;
  event->uses++;
  unuse_locked(event);
  count(LIVE_EVENT, -1);
}

ACL_API aclError aclrtDestroyEvent(aclrtEvent handle) {
  API_ENTRY();
  struct event *event;
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) destroy_locked(event);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

void destroy_all_events(void) {
  pthread_mutex_lock(&emulator_lock);
  while (events != NULL) destroy_locked(events);
  pthread_mutex_unlock(&emulator_lock);
}

// Puts a record of the event, or a wait for its last record, into the stream.
static aclError put_into_stream(aclrtEvent handle, aclrtStream stream_handle, int (*run)(struct task *)) {
  struct event *event;
  struct stream *stream;
  CHECK_ARGUMENT(handle != NULL);
  struct mark *mark = calloc(1, sizeof *mark);
  if (mark == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the task");
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) code = stream_find_locked(stream_handle, false, &stream);
  if (code == 0 && run == run_record && event->context_serial != stream->context->serial) {
    code = FAIL(ACL_ERROR_RT_STREAM_CONTEXT, "the event belongs to another context than the stream");
  }
  bool nothing_to_wait_for = code == 0 && run == run_wait && event->recorded == event->reached;
  if (code != 0 || nothing_to_wait_for) {
    pthread_mutex_unlock(&emulator_lock);
    free(mark);
    return code;
  }
  if (run == run_record) {
    event->recorded++;
    event->stream_id = stream->id;
  }
  event->uses++;
  *mark = (struct mark){.task = {.run = run, .release = release_mark}, .event = event, .record = event->recorded};
  return stream_launch_unlock(stream, &mark->task, false);
}

ACL_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  API_ENTRY();
  return put_into_stream(event, stream, run_record);
}

ACL_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  API_ENTRY();
  return put_into_stream(event, stream, run_wait);
}

ACL_API aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  struct event *event;
  struct stream *stream;
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) code = stream_find_locked(stream_handle, false, &stream);
  if (code == 0 && event->recorded != event->reached) misuse("an event is reset while a stream is still to come to it");
  if (code == 0) event->recorded = event->reached = 0;
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static bool complete(const struct event *event) { return event->recorded > 0 && event->recorded == event->reached; }

ACL_API aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus *status) {
  API_ENTRY();
  CHECK_ARGUMENT(status != NULL);
  struct event *event;
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) *status = complete(event) ? ACL_EVENT_COMPLETE : ACL_EVENT_NOT_READY;
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static aclError synchronize(aclrtEvent handle, int milliseconds) {
  struct event *event;
  struct timespec deadline = deadline_after(milliseconds < 0 ? 0 : milliseconds);
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) {
    uint64_t until = event->recorded;
    event->uses++;
    while (event->reached < until && !event->destroyed && code == 0) {
      if (milliseconds < 0) pthread_cond_wait(&reached, &emulator_lock);
      else if (pthread_cond_timedwait(&reached, &emulator_lock, &deadline) == ETIMEDOUT && event->reached < until) {
        code = FAIL(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event was not reached within %d ms", milliseconds);
      }
    }
    unuse_locked(event);
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtSynchronizeEvent(aclrtEvent event) {
  API_ENTRY();
  return synchronize(event, -1);
}

ACL_API aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t milliseconds) {
  API_ENTRY();
  CHECK_ARGUMENT(event != NULL);
  if (milliseconds < -1 || milliseconds == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "waits -1 (for ever) or more than 0 ms, not %d", milliseconds);
  return synchronize(event, milliseconds);
}

// Finds an event whose time is wanted.
static int timed_locked(aclrtEvent handle, struct event **out) {
  int code = find_locked(handle, out);
  if (code != 0) return code;
  if ((*out)->recorded == 0) return FAIL(ACL_ERROR_RT_INTERNAL_ERROR, "the event was never recorded");
  if (!((*out)->flags & ACL_EVENT_TIME_LINE)) return FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event was made without the flag ACL_EVENT_TIME_LINE");
  if (!complete(*out)) return FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the stream has not come to the event yet");
  return 0;
}

ACL_API aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start_handle, aclrtEvent end_handle) {
  API_ENTRY();
  CHECK_ARGUMENT(milliseconds != NULL);
  CHECK_ARGUMENT(start_handle != NULL && end_handle != NULL);
  struct event *start, *end;
  pthread_mutex_lock(&emulator_lock);
  int code = timed_locked(start_handle, &start);
  if (code == 0) code = timed_locked(end_handle, &end);
  if (code == 0 && start->stream_id != end->stream_id) misuse("the time between events of two streams means nothing");
  if (code == 0 && end->seconds < start->seconds) code = FAIL(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "the second event was reached before the first");
  if (code == 0) *milliseconds = (float)((end->seconds - start->seconds) * 1e3);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t *microseconds) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  CHECK_ARGUMENT(microseconds != NULL);
  struct event *event;
  pthread_mutex_lock(&emulator_lock);
  int code = timed_locked(handle, &event);
  if (code == 0) *microseconds = (uint64_t)(event->seconds * 1e6);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus *status) {
  API_ENTRY();
  CHECK_ARGUMENT(status != NULL);
  struct event *event;
  pthread_mutex_lock(&emulator_lock);
  int code = find_locked(handle, &event);
  if (code == 0) *status = event->uses == 0 ? 0 : 1;  // 0: every wait is done
  pthread_mutex_unlock(&emulator_lock);
  return code;
}
