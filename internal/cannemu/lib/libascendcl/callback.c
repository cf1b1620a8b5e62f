// Functions of the program that streams call: on a thread that the program lends (aclrtProcessReport), or on
// the stream's own.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct call {
  struct call *next;
  aclrtCallback function;
  void *argument;
  bool *done;  // of a stream that waits for it
};

// A thread that processes reports, with the streams that report to it.
struct subscription {
  struct subscription *next;
  uint64_t thread;
  unsigned streams;
  struct call *first, *last;
  unsigned waiting;  // calls of aclrtProcessReport
};

static struct subscription *subscriptions;
static pthread_cond_t changed;  // a call came, or one has returned
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) { condition_init(&changed); }

void wake_callbacks_locked(void) {
  pthread_once(&once, prepare);
  pthread_cond_broadcast(&changed);
}

static struct subscription *find_locked(uint64_t thread) {
  struct subscription *found = subscriptions;
  while (found != NULL && found->thread != thread) found = found->next;
  return found;
}

// Ends a subscription that no stream has any more. Calls that nobody made are dropped.
static void end_if_unused_locked(struct subscription *subscription) {
  if (subscription->streams > 0 || subscription->waiting > 0) return;
  LIST_REMOVE(subscriptions, subscription);
  while (subscription->first != NULL) {
    struct call *call = subscription->first;
    subscription->first = call->next;
    if (call->done != NULL) *call->done = true;
    free(call);
  }
  wake_callbacks_locked();
  free(subscription);
}

void subscriptions_forget_stream_locked(struct stream *stream) {
  struct subscription *subscription = stream->subscription;
  if (subscription == NULL) return;
  stream->subscription = NULL;
  subscription->streams--;
  end_if_unused_locked(subscription);
}

ACL_API aclError aclrtSubscribeReport(uint64_t thread, aclrtStream handle) {
  API_ENTRY();
  pthread_once(&once, prepare);
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  if (stream->subscription != NULL) code = FAIL(ACL_ERROR_REPEAT_SUBSCRIBE, "the stream reports to a thread already");
  struct subscription *subscription = code == 0 ? find_locked(thread) : NULL;
  if (code == 0 && subscription == NULL) {
    subscription = calloc(1, sizeof *subscription);
    if (subscription == NULL) {
      code = FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a subscription");
    } else {
      *subscription = (struct subscription){.next = subscriptions, .thread = thread};
      subscriptions = subscription;
    }
  }
  if (code == 0) {
    stream->subscription = subscription;
    subscription->streams++;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream handle) {
  API_ENTRY();
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  if (stream->subscription == NULL || stream->subscription->thread != thread) {
    code = FAIL(ACL_ERROR_RT_THREAD_SUBSCRIBE, "the stream does not report to this thread");
  }
  if (code == 0 && stream->completed < stream->launched) misuse("a stream is unsubscribed before it is done");
  if (code == 0) subscriptions_forget_stream_locked(stream);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

ACL_API aclError aclrtProcessReport(int32_t milliseconds) {
  API_ENTRY();
  if (milliseconds < -1 || milliseconds == 0) return FAIL(ACL_ERROR_INVALID_PARAM, "waits -1 (for ever) or more than 0 ms, not %d", milliseconds);
  pthread_once(&once, prepare);
  struct timespec deadline = deadline_after(milliseconds < 0 ? 0 : milliseconds);
  pthread_mutex_lock(&emulator_lock);
  struct subscription *subscription = find_locked((uint64_t)pthread_self());
  if (subscription == NULL) {
    pthread_mutex_unlock(&emulator_lock);
    return FAIL(ACL_ERROR_RT_THREAD_SUBSCRIBE, "no stream reports to this thread");
  }
  subscription->waiting++;
  int waited = 0;
  while (subscription->first == NULL && subscription->streams > 0 && waited != ETIMEDOUT) {
    waited = milliseconds < 0 ? pthread_cond_wait(&changed, &emulator_lock) : pthread_cond_timedwait(&changed, &emulator_lock, &deadline);
  }
  struct call *call = subscription->first;
  if (call != NULL) subscription->first = call->next;
  subscription->waiting--;
  end_if_unused_locked(subscription);
  pthread_mutex_unlock(&emulator_lock);
  if (call == NULL && waited != ETIMEDOUT) return FAIL(ACL_ERROR_RT_REPORT_TIMEOUT, "the last stream that reported to this thread was unsubscribed");
  if (call == NULL) return FAIL(ACL_ERROR_RT_REPORT_TIMEOUT, "no stream called within %d ms", milliseconds);
  call->function(call->argument);
  count(COUNT_CALLBACK, 1);
  pthread_mutex_lock(&emulator_lock);
  if (call->done != NULL) *call->done = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&emulator_lock);
  free(call);
  return 0;
}

// ---- tasks ----

struct call_task {
  struct task task;
  aclrtCallback function;
  void *argument;
  bool blocks;
};

static void release_call(struct task *task) { free(task); }

// Gives up waiting for a call that nobody has begun. One that runs is waited for: it will write to done.
static bool withdraw_locked(struct subscription *subscription, bool *done) {
  struct call *call = subscription ? subscription->first : NULL;
  while (call != NULL && call->done != done) call = call->next;
  if (call == NULL) return false;
  call->done = NULL;
  return true;
}

static int run_report(struct task *task) {
  struct call_task *wanted = (struct call_task *)task;
  struct call *call = calloc(1, sizeof *call);
  bool done = false;
  if (call == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a callback");
  pthread_mutex_lock(&emulator_lock);
  struct subscription *subscription = task->stream->subscription;
  if (subscription == NULL) {
    pthread_mutex_unlock(&emulator_lock);
    free(call);
    return FAIL(ACL_ERROR_RT_STREAM_NO_CB_REG, "the stream was unsubscribed before its callback came");
  }
  *call = (struct call){.function = wanted->function, .argument = wanted->argument, .done = wanted->blocks ? &done : NULL};
  *(subscription->first ? &subscription->last->next : &subscription->first) = call;
  subscription->last = call;
  pthread_cond_broadcast(&changed);
  while (wanted->blocks && !done) {
    if (task->stream->aborting && withdraw_locked(task->stream->subscription, &done)) break;
    pthread_cond_wait(&changed, &emulator_lock);
  }
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

static int run_here(struct task *task) {
  struct call_task *wanted = (struct call_task *)task;
  wanted->function(wanted->argument);
  count(COUNT_CALLBACK, 1);
  return 0;
}

static int launch(aclrtStream handle, aclrtCallback function, void *argument, bool blocks, int (*run)(struct task *)) {
  struct call_task *task = calloc(1, sizeof *task);
  if (task == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the task");
  *task = (struct call_task){.task = {.run = run, .release = release_call}, .function = function, .argument = argument, .blocks = blocks};
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) {
    free(task);
    return code;
  }
  bool subscribed = stream->subscription != NULL;
  if (run == run_report && !subscribed) {
    pthread_mutex_unlock(&emulator_lock);
    free(task);
    return FAIL(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread has subscribed to the stream's reports");
  }
  if (run == run_here && subscribed) misuse("callbacks and host functions are mixed on a stream");
  return stream_launch_unlock(stream, &task->task, false);
}

ACL_API aclError aclrtLaunchCallback(aclrtCallback function, void *argument, aclrtCallbackBlockType block, aclrtStream handle) {
  API_ENTRY();
  CHECK_ARGUMENT(function != NULL);
  CHECK_ARGUMENT(block == ACL_CALLBACK_NO_BLOCK || block == ACL_CALLBACK_BLOCK);
  return launch(handle, function, argument, block == ACL_CALLBACK_BLOCK, run_report);
}

ACL_API aclError aclrtLaunchHostFunc(aclrtStream handle, aclrtHostFunc function, void *argument) {
  API_ENTRY();
  CHECK_ARGUMENT(function != NULL);
  return launch(handle, function, argument, true, run_here);
}
