// Beginning and end of AscendCL in this process.

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool running;  // read without the lock: callbacks ask while aclFinalize waits for them
static bool ever_finalized;
static uint64_t references;
static char *configuration;  // of the first aclInit

bool initialized(void) { return running; }

static int read_configuration(const char *path, char **text) {
  *text = NULL;
  if (path == NULL || *path == 0) return 0;
  void *bytes;
  size_t size;
  if (read_file(path, &bytes, &size) != 0) return FAIL(ACL_ERROR_INVALID_FILE, "cannot read the configuration %s", path);
  char *copy = realloc(bytes, size + 1);
  if (copy == NULL) {
    free(bytes);
    return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the configuration");
  }
  copy[size] = 0;
  *text = copy;
  return 0;
}

// Of all that the configuration can say, only err_msg_mode means something here.
static int apply_configuration(const char *text) {
  const char *value;
  size_t size;
  char mode[8] = "0";
  if (text != NULL) {
    if (!json_member(text, strlen(text), "err_msg_mode", &value, &size)) return FAIL(ACL_ERROR_PARSE_FILE, "the configuration is not a JSON object");
    if (value != NULL && (!json_string(value, size, mode, sizeof mode) || (strcmp(mode, "0") != 0 && strcmp(mode, "1") != 0))) {
      return FAIL(ACL_ERROR_INVALID_PARAM, "err_msg_mode is \"0\" or \"1\"");
    }
  }
  use_message_per_process(strcmp(mode, "1") == 0);
  return 0;
}

// Streams are threads that run code of this library: it must not be unmapped under them.
static void stay_mapped(void) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)&npuctl_emulator_enter, &info) != 0 && info.dli_fname != NULL) dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

static int initialize_locked(const char *path) {
  if (running) {
    references++;
    return FAIL(ACL_ERROR_REPEAT_INITIALIZE, "aclInit has been called already");
  }
  char *text;
  int code = read_configuration(path, &text);
  if (code != 0) return code;
  if (ever_finalized && strcmp(text ? text : "", configuration ? configuration : "") != 0) {
    free(text);
    return FAIL(ACL_ERROR_INVALID_PARAM, "a second beginning needs the configuration of the first");
  }
  if ((code = apply_configuration(text)) != 0) {
    free(text);
    return code;
  }
  stay_mapped();
  free(configuration);
  configuration = text;
  running = true;
  references = 1;
  return 0;
}

ACL_API aclError aclInit(const char *path) {
  API_ENTRY();
  pthread_mutex_lock(&process_lock);
  int code = initialize_locked(path);
  pthread_mutex_unlock(&process_lock);
  return code;
}

// Ends everything that is left, and says what that was.
static int finish(void) {
  this_thread()->function = "aclFinalize";
  long long told = counted(COUNT_FORGOTTEN);
  int leaks = report_end("aclFinalize");
  for (unsigned i = 0; i < device_count(); i++) {
    pthread_mutex_lock(&emulator_lock);
    report_memory_leaks_locked(device_at((int)i));
    pthread_mutex_unlock(&emulator_lock);
  }
  unload_all_models();
  destroy_all_contexts();
  destroy_all_events();
  release_host_memory();
  if (!strict() || (leaks == 0 && told == 0 && misuse_count() == 0)) return 0;
  return FAIL(ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, "%d kinds of objects leaked and %lu calls were misuse; the report names them", leaks, misuse_count());
}

// With a count, finalizing happens when it comes to 0.
static aclError finalize(uint64_t *count_out, bool counting) {
  pthread_mutex_lock(&process_lock);
  int code = 0;
  if (!running) {
    code = ever_finalized ? FAIL(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize has been called already") : FAIL(ACL_ERROR_UNINITIALIZE, "aclInit has not been called");
  } else if (counting && --references > 0) {
    *count_out = references;
  } else {
    if (count_out != NULL) *count_out = 0;
    running = false;
    ever_finalized = true;
    code = finish();
  }
  pthread_mutex_unlock(&process_lock);
  return code;
}

ACL_API aclError aclFinalize(void) {
  API_ENTRY();
  return finalize(NULL, false);
}

ACL_API aclError aclFinalizeReference(uint64_t *references_left) {
  API_ENTRY();
  uint64_t ignored;
  return finalize(references_left ? references_left : &ignored, true);
}

// A process that ends without aclFinalize still gets its report. Threads may be at work, so nothing is ended.
__attribute__((destructor)) static void at_exit(void) {
  if (!running) return;
  this_thread()->function = "exit";
  report_end("exit");
  if (pthread_mutex_trylock(&emulator_lock) != 0) return;
  for (unsigned i = 0; i < device_count(); i++) report_memory_leaks_locked(device_at((int)i));
  pthread_mutex_unlock(&emulator_lock);
}

// ---- versions ----

// The numbers of the interface that the emulator follows.
enum { VERSION_MAJOR = 1, VERSION_MINOR = 17, VERSION_PATCH = 0 };

ACL_API aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
  API_ENTRY();
  CHECK_ARGUMENT(major != NULL && minor != NULL && patch != NULL);
  *major = VERSION_MAJOR;
  *minor = VERSION_MINOR;
  *patch = VERSION_PATCH;
  return 0;
}

ACL_API aclError aclsysGetVersionStr(char *package, char *version) {
  API_ENTRY();
  CHECK_ARGUMENT(package != NULL && version != NULL);
  snprintf(version, ACL_MAX_TENSOR_NAME_LEN, "emulated");
  return 0;
}

ACL_API aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version) {
  API_ENTRY();
  CHECK_ARGUMENT(version != NULL);
  (void)name;
  memset(version, 0, sizeof *version);
  snprintf(version->version, sizeof version->version, "emulated");
  return 0;
}
