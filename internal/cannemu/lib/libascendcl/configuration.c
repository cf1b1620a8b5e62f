// Handles that collect how a model is to be loaded or executed.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { EXECUTE_OPTIONS = 9 };

// What an option holds. ANY is what the emulator takes and does not look at.
enum option_kind { ANY, NUMBER, SIZE, ADDRESS, TEXT };

static const enum option_kind load_options[ACL_MDL_ATTR_LAST + 1] = {
    [ACL_MDL_PRIORITY] = NUMBER,       [ACL_MDL_LOAD_TYPE] = SIZE,       [ACL_MDL_PATH] = TEXT,
    [ACL_MDL_MEM_ADDR] = ADDRESS,      [ACL_MDL_MEM_SIZE] = SIZE,        [ACL_MDL_WEIGHT_ADDR] = ADDRESS,
    [ACL_MDL_WEIGHT_SIZE] = SIZE,      [ACL_MDL_WORKSPACE_ADDR] = ADDRESS, [ACL_MDL_WORKSPACE_SIZE] = SIZE,
    [ACL_MDL_WEIGHT_PATH] = TEXT,
};

static const enum option_kind execute_options[EXECUTE_OPTIONS] = {
    [ACL_MDL_STREAM_SYNC_TIMEOUT] = NUMBER, [ACL_MDL_EVENT_SYNC_TIMEOUT] = NUMBER, [ACL_MDL_WORK_ADDR] = ADDRESS,
    [ACL_MDL_WORK_SIZE] = SIZE,             [ACL_MDL_EXEC_PRIORITY] = NUMBER,
};

struct option {
  bool set;
  uint64_t value;  // a number, a size or an address
  char *text;
};

struct aclmdlConfigHandle {
  struct option options[ACL_MDL_ATTR_LAST + 1];
};

struct aclmdlExecConfigHandle {
  struct option options[EXECUTE_OPTIONS];
};

// Copies a value into its option. A text comes as the address of a pointer to it.
static aclError set_option(struct option *options, const enum option_kind *kinds, size_t limit, int which, const void *value, size_t size) {
  CHECK_ARGUMENT(value != NULL);
  if (which < 0 || (size_t)which >= limit) return FAIL(ACL_ERROR_INVALID_PARAM, "there is no option %d", which);
  enum option_kind kind = kinds[which];
  size_t wanted = kind == NUMBER ? sizeof(int32_t) : sizeof(uint64_t);
  if (kind != ANY && size != wanted) return FAIL(ACL_ERROR_INVALID_PARAM, "option %d takes %zu bytes, not %zu", which, wanted, size);
  struct option *option = &options[which];
  option->set = true;
  option->value = 0;
  memcpy(&option->value, value, size < sizeof option->value ? size : sizeof option->value);
  if (kind != TEXT) return 0;
  const char *text = (const char *)(uintptr_t)option->value;
  CHECK_ARGUMENT(text != NULL);
  free(option->text);
  option->text = strdup(text);
  return option->text ? 0 : FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a path");
}

static void free_texts(struct option *options, size_t number) {
  for (size_t i = 0; i < number; i++) free(options[i].text);
}

// ---- loading ----

ACL_API aclmdlConfigHandle *aclmdlCreateConfigHandle(void) {
  API_ENTRY();
  aclmdlConfigHandle *handle = calloc(1, sizeof *handle);
  if (handle != NULL) count(LIVE_CONFIG, 1);
  return handle;
}

ACL_API aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle *handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  free_texts(handle->options, COUNT(handle->options));
  free(handle);
  count(LIVE_CONFIG, -1);
  return 0;
}

ACL_API aclError aclmdlSetConfigOpt(aclmdlConfigHandle *handle, aclmdlConfigAttr which, const void *value, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  return set_option(handle->options, load_options, COUNT(handle->options), which, value, size);
}

// The emulator's models carry their weights, so an address for external ones is taken and not used.
ACL_API aclError aclmdlSetExternalWeightAddress(aclmdlConfigHandle *handle, const char *file, void *address, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  CHECK_ARGUMENT(file != NULL);
  CHECK_ARGUMENT(address != NULL && size > 0);
  struct span span;
  int code = span_device(address, size, "the external weights", &span);
  if (code == 0) span_release(&span);
  return code;
}

ACL_API aclError aclmdlLoadWithConfig(const aclmdlConfigHandle *handle, uint32_t *id) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  CHECK_ARGUMENT(id != NULL);
  const struct option *o = handle->options;
  if (!o[ACL_MDL_LOAD_TYPE].set) return FAIL(ACL_ERROR_INVALID_PARAM, "the load type is not set");
  const char *path = o[ACL_MDL_PATH].text;
  void *bytes = (void *)(uintptr_t)o[ACL_MDL_MEM_ADDR].value;
  size_t size = o[ACL_MDL_MEM_SIZE].value;
  void *work = (void *)(uintptr_t)o[ACL_MDL_WORKSPACE_ADDR].value, *weight = (void *)(uintptr_t)o[ACL_MDL_WEIGHT_ADDR].value;
  size_t work_size = o[ACL_MDL_WORKSPACE_SIZE].value, weight_size = o[ACL_MDL_WEIGHT_SIZE].value;
  switch (o[ACL_MDL_LOAD_TYPE].value) {
    case ACL_MDL_LOAD_FROM_FILE: return aclmdlLoadFromFile(path, id);
    case ACL_MDL_LOAD_FROM_FILE_WITH_MEM: return aclmdlLoadFromFileWithMem(path, id, work, work_size, weight, weight_size);
    case ACL_MDL_LOAD_FROM_MEM: return aclmdlLoadFromMem(bytes, size, id);
    case ACL_MDL_LOAD_FROM_MEM_WITH_MEM: return aclmdlLoadFromMemWithMem(bytes, size, id, work, work_size, weight, weight_size);
    default: return FAIL(ACL_ERROR_FEATURE_UNSUPPORTED, "load type %llu is not emulated", (unsigned long long)o[ACL_MDL_LOAD_TYPE].value);
  }
}

// ---- executing ----

ACL_API aclmdlExecConfigHandle *aclmdlCreateExecConfigHandle(void) {
  API_ENTRY();
  aclmdlExecConfigHandle *handle = calloc(1, sizeof *handle);
  if (handle != NULL) count(LIVE_CONFIG, 1);
  return handle;
}

ACL_API aclError aclmdlDestroyExecConfigHandle(const aclmdlExecConfigHandle *handle) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  free((void *)(uintptr_t)handle);
  count(LIVE_CONFIG, -1);
  return 0;
}

ACL_API aclError aclmdlSetExecConfigOpt(aclmdlExecConfigHandle *handle, aclmdlExecConfigAttr which, const void *value, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(handle != NULL);
  return set_option(handle->options, execute_options, COUNT(handle->options), which, value, size);
}
