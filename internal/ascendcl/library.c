//go:build cgo && linux

#include "api.h"
#include "try.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  REPEATED_START = 100002,  // somebody in this process has started it before
  RUNS_ON_HOST = 1,         // ACL_HOST
  AI_CORES = 0,             // of aclGetDeviceCapability
  VECTOR_CORES = 1,
};

static char *message(const char *format, const char *what) {
  size_t bytes = strlen(format) + strlen(what) + 1;
  char *text = malloc(bytes);
  if (text != NULL) snprintf(text, bytes, format, what);
  return text;
}

static void *look_up(void *const *handles, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    void *found = dlsym(handles[i], name);
    if (found != NULL) return found;
  }
  return NULL;
}

// The libraries stay mapped: CANN's keep threads and static state that are not made
// to be unloaded.
char *acl_open(acl_library *library, const char *const *paths, int count) {
  void *handles[8];
  if (count > (int)(sizeof handles / sizeof *handles)) return message("%s", "too many libraries");
  for (int i = 0; i < count; i++) {
    // Their plug-ins look for symbols of the process.
    handles[i] = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL);
    if (handles[i] == NULL) {
      const char *why = dlerror();
      return message("%s", why ? why : "dlopen failed and does not say why");
    }
  }
  // A pointer to a function may be read through one to data: POSIX promises it for dlsym.
#define BIND(result, name, parameters)                       \
  *(void **)&library->name = look_up(handles, count, #name); \
  if (library->name == NULL) return message("the library has no function %s; npuctl needs CANN 8.0 or newer", #name);
  ACL_FUNCTIONS(BIND)
#undef BIND
#define BIND(result, name, parameters) *(void **)&library->name = look_up(handles, count, #name);
  ACL_LATER_FUNCTIONS(BIND)
#undef BIND
  library->emulated = look_up(handles, count, "npuctl_emulator_enter") != NULL;
  return NULL;
}

// acl_note keeps what went wrong. The text belongs to this thread and to the next call:
// it must be fetched now.
bool acl_note(const acl_library *library, acl_failure *failure, int code, const char *call) {
  failure->code = code;
  failure->call = call;
  const char *text = library->aclGetRecentErrMsg();
  snprintf(failure->text, sizeof failure->text, "%s", text ? text : "");
  return false;
}

bool acl_start(const acl_library *library, bool *began, acl_failure *failure) {
  int code = library->aclInit(NULL);
  *began = code == SUCCESS;
  return code == SUCCESS || code == REPEATED_START || acl_note(library, failure, code, "aclInit");
}

int acl_version(const acl_library *library, int32_t *major, int32_t *minor, int32_t *patch) {
  return library->aclrtGetVersion(major, minor, patch);
}

bool acl_devices(const acl_library *library, uint32_t *count, acl_failure *failure) {
  TRY(aclrtGetDeviceCount, count);
  return true;
}

void acl_stop(const acl_library *library) { library->aclFinalize(); }

bool acl_device_open(const acl_library *library, acl_device *device, int32_t number, acl_failure *failure) {
  device->number = number;
  TRY(aclrtSetDevice, number);
  int mode = RUNS_ON_HOST;
  int code = library->aclrtGetRunMode(&mode);
  const char *call = "aclrtGetRunMode";
  if (code == SUCCESS) {
    code = library->aclrtCreateContext(&device->context, number);
    call = "aclrtCreateContext";
  }
  if (code != SUCCESS) {
    acl_note(library, failure, code, call);
    library->aclrtResetDevice(number);
    return false;
  }
  device->on_host = mode == RUNS_ON_HOST;
  return true;
}

const char *acl_device_chip(const acl_library *library, const acl_device *device) {
  if (library->aclrtSetCurrentContext(device->context) != SUCCESS) return NULL;
  return library->aclrtGetSocName();
}

bool acl_device_cores(const acl_library *library, const acl_device *device, int64_t *cube, int64_t *vector, acl_failure *failure) {
  TRY(aclrtSetCurrentContext, device->context);
  TRY(aclGetDeviceCapability, (uint32_t)device->number, AI_CORES, cube);
  TRY(aclGetDeviceCapability, (uint32_t)device->number, VECTOR_CORES, vector);
  return true;
}

void acl_device_close(const acl_library *library, acl_device *device) {
  library->aclrtSetCurrentContext(device->context);
  library->aclrtDestroyContext(device->context);
  library->aclrtResetDevice(device->number);
}
