// Texts of errors: per thread, or per process when the configuration says so.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static __thread struct thread_state state;
static bool per_process;           // guarded by process_lock, as is the message
static char process_message[1024];
static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

struct thread_state *this_thread(void) { return &state; }

void use_message_per_process(bool value) {
  pthread_mutex_lock(&process_lock);
  per_process = value;
  process_message[0] = 0;
  pthread_mutex_unlock(&process_lock);
}

void npuctl_emulator_enter(const char *function) { state.function = function; }

int npuctl_emulator_fail(int code, const char *format, ...) {
  char text[900];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  state.last_error = code;
  snprintf(state.message, sizeof state.message, "[emulated] %s: %s (%d)", state.function ? state.function : "AscendCL", text, code);
  pthread_mutex_lock(&process_lock);
  if (per_process) memcpy(process_message, state.message, sizeof process_message);
  pthread_mutex_unlock(&process_lock);
  return code;
}

int npuctl_emulator_unsupported(const char *function) {
  npuctl_emulator_enter(function);
  return FAIL(ACL_ERROR_FEATURE_UNSUPPORTED, "the emulator has this function by name only; it does nothing");
}

ACL_API const char *aclGetRecentErrMsg(void) {
  pthread_mutex_lock(&process_lock);
  char *pending = per_process ? process_message : state.message;
  bool some = pending[0] != 0;
  if (some) memcpy(state.fetched, pending, sizeof state.fetched);
  pending[0] = 0;
  pthread_mutex_unlock(&process_lock);
  return some ? state.fetched : NULL;
}

// The only level is that of the thread.
ACL_API aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  API_ENTRY();
  CHECK_ARGUMENT(level == 0);
  return state.last_error;
}

ACL_API aclError aclrtGetLastError(aclrtLastErrLevel level) {
  API_ENTRY();
  CHECK_ARGUMENT(level == 0);
  int code = state.last_error;
  state.last_error = 0;
  return code;
}
