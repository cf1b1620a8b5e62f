// Exceptions of the device: a failed task is told to the function that the program registered.

#include <stdatomic.h>

#include "internal.h"

struct aclrtExceptionInfo {
  uint32_t task, stream, thread, device, code;
};

static _Atomic(aclrtExceptionInfoCallback) callback;

void report_exception(const struct task *task, int code) {
  aclrtExceptionInfoCallback function = atomic_load(&callback);
  if (function == NULL || !task->on_device) return;
  struct aclrtExceptionInfo info = {
      .task = (uint32_t)task->sequence,
      .stream = (uint32_t)task->stream->id,
      .device = (uint32_t)task->context->device->id,
      .code = (uint32_t)code,
  };
  function(&info);
}

ACL_API aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback function) {
  API_ENTRY();
  atomic_store(&callback, function);  // NULL takes it back
  return 0;
}

// Getters on NULL answer with the number that stands for none.
#define GETTER(name, member)                                 \
  ACL_API uint32_t name(const aclrtExceptionInfo *info) {    \
    API_ENTRY();                                             \
    return info ? info->member : UINT32_MAX;                 \
  }

GETTER(aclrtGetTaskIdFromExceptionInfo, task)
GETTER(aclrtGetStreamIdFromExceptionInfo, stream)
GETTER(aclrtGetThreadIdFromExceptionInfo, thread)
GETTER(aclrtGetDeviceIdFromExceptionInfo, device)
GETTER(aclrtGetErrorCodeFromExceptionInfo, code)
