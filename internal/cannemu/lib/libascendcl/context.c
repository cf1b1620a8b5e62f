// Contexts: what a thread is bound to before it can do anything with a device.

#include <stdlib.h>

#include "internal.h"

static uint64_t next_serial;  // guarded by the lock

static int no_such_device(int id) {
  return FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %d; NPUCTL_EMULATOR_DEVICES says how many there are, now %u", id, device_count());
}

static void bind_locked(struct context *context) {
  this_thread()->context = context;
  this_thread()->context_serial = context->serial;
}

int current_context_locked(struct context **out) {
  struct context *context = this_thread()->context;
  if (context == NULL) return FAIL(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no context; aclrtSetDevice or aclrtSetCurrentContext gives it one");
  if (!handle_is_locked(HANDLE_CONTEXT, context) || context->serial != this_thread()->context_serial) {
    return FAIL(ACL_ERROR_RT_CONTEXT_NULL, "the context of this thread has been destroyed");
  }
  *out = context;
  return 0;
}

int current_context(struct context **out) {
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(out);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static struct context *open_locked(struct device *device) {
  struct context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  *context = (struct context){.device = device, .serial = ++next_serial};
  context->default_stream = stream_open_locked(context, 0, 0, true);
  if (context->default_stream == NULL) {
    free(context);
    return NULL;
  }
  device->contexts++;
  handle_add_locked(HANDLE_CONTEXT, context);
  return context;
}

// Takes back what the program left on a device that it has let go of.
static void clear_memory_locked(struct device *device, bool tell) {
  if (device->arena == NULL || device->contexts > 0) return;
  if (tell) report_memory_leaks_locked(device);
  for (struct allocation *left; (left = arena_first_of_program_locked(device->arena)) != NULL;) {
    count(LIVE_DEVICE_MEMORY, -1);
    count(COUNT_FORGOTTEN, tell);
    arena_free_locked(device->arena, left);
  }
}

// Ends a context with all its streams. Tasks that have been launched are run, unless drop is set. What the
// program forgot is told now, unless that has been done.
static void close_locked(struct context *context, bool drop, bool tell) {
  handle_remove_locked(context);
  struct device *device = context->device;
  if (device->primary == context) device->primary = NULL;
  unsigned forgotten = 0;
  for (struct stream *stream = context->streams; stream != NULL; stream = stream->next) forgotten += !stream->is_default;
  count(LIVE_STREAM, -(long long)forgotten);
  if (forgotten > 0 && tell) {
    report_leak("stream", forgotten, 0, 0);
    count(COUNT_FORGOTTEN, forgotten);
  }
  while (context->streams != NULL) stream_close_locked(context->streams, drop);
  device->contexts--;
  forget_models_locked(context);
  free(context);
  clear_memory_locked(device, tell);
}

void destroy_all_contexts(void) {
  pthread_mutex_lock(&emulator_lock);
  for (unsigned i = 0; i < device_count(); i++) {
    struct device *device = device_at((int)i);
    device->set_count = 0;
    if (device->primary != NULL) close_locked(device->primary, true, false);
  }
  for (struct context *left; (left = handle_any_locked(HANDLE_CONTEXT)) != NULL;) {
    count(LIVE_CONTEXT, -1);
    close_locked(left, true, false);
  }
  pthread_mutex_unlock(&emulator_lock);
}

// ---- devices, by way of their default contexts ----

ACL_API aclError aclrtSetDevice(int32_t id) {
  API_ENTRY();
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  int code = injected_fault(AT_ANY_DEVICE_CALL);
  if (code != 0) return code;
  if (!initialized()) misuse("device %d is set before aclInit", id);
  pthread_mutex_lock(&emulator_lock);
  if (device->primary == NULL) device->primary = open_locked(device);
  if (device->primary == NULL) {
    code = FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a context");
  } else {
    device->set_count++;
    bind_locked(device->primary);
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static aclError reset_device(int32_t id, bool force) {
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  pthread_mutex_lock(&emulator_lock);
  if (device->set_count > 0) device->set_count = force ? 0 : device->set_count - 1;
  if (device->set_count == 0 && device->primary != NULL) close_locked(device->primary, force, true);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtResetDevice(int32_t id) {
  API_ENTRY();
  return reset_device(id, false);
}

ACL_API aclError aclrtResetDeviceForce(int32_t id) {
  API_ENTRY();
  return reset_device(id, true);
}

ACL_API aclError aclrtGetDevice(int32_t *id) {
  API_ENTRY();
  CHECK_ARGUMENT(id != NULL);
  struct context *context;
  int code = current_context(&context);
  if (code == 0) *id = context->device->id;
  return code;
}

ACL_API aclError aclrtGetPrimaryCtxState(int32_t id, uint32_t *flags, int32_t *active) {
  API_ENTRY();
  CHECK_ARGUMENT(active != NULL);
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  pthread_mutex_lock(&emulator_lock);
  *active = device->primary != NULL;
  pthread_mutex_unlock(&emulator_lock);
  if (flags != NULL) *flags = 0;
  return 0;
}

// ---- explicit contexts ----

ACL_API aclError aclrtCreateContext(aclrtContext *out, int32_t id) {
  API_ENTRY();
  CHECK_ARGUMENT(out != NULL);
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  int code = injected_fault(AT_ANY_DEVICE_CALL);
  if (code != 0) return code;
  if (!initialized()) misuse("a context is made before aclInit");
  pthread_mutex_lock(&emulator_lock);
  struct context *context = open_locked(device);
  if (context != NULL) bind_locked(context);
  pthread_mutex_unlock(&emulator_lock);
  if (context == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a context");
  count(LIVE_CONTEXT, 1);
  *out = context;
  return 0;
}

ACL_API aclError aclrtDestroyContext(aclrtContext handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  int code = 0;
  pthread_mutex_lock(&emulator_lock);
  struct context *context = handle;
  if (!handle_is_locked(HANDLE_CONTEXT, handle)) code = FAIL(ACL_ERROR_RT_CONTEXT_NULL, "%p is not a context, or has been destroyed", handle);
  else if (context->device->primary == context) code = FAIL(ACL_ERROR_RT_CONTEXT_NULL, "the default context of a device ends with aclrtResetDevice");
  else close_locked(context, false, true);
  pthread_mutex_unlock(&emulator_lock);
  if (code == 0) count(LIVE_CONTEXT, -1);
  return code;
}

ACL_API aclError aclrtSetCurrentContext(aclrtContext handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  pthread_mutex_lock(&emulator_lock);
  bool known = handle_is_locked(HANDLE_CONTEXT, handle);
  if (known) bind_locked(handle);
  pthread_mutex_unlock(&emulator_lock);
  return known ? 0 : FAIL(ACL_ERROR_RT_CONTEXT_NULL, "%p is not a context, or has been destroyed", handle);
}

ACL_API aclError aclrtGetCurrentContext(aclrtContext *handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  struct context *context;
  int code = current_context(&context);
  if (code == 0) *handle = context;
  return code;
}

ACL_API aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
  API_ENTRY();
  CHECK_ARGUMENT(stream != NULL);
  struct context *context;
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(&context);
  if (code == 0) *stream = context->default_stream;
  pthread_mutex_unlock(&emulator_lock);
  return code;
}
