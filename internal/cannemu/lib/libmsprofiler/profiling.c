// Profiling: the calls and their order are those of AscendCL. Nothing is measured and no file is written.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"

struct aclprofConfig {
  uint64_t mask;
};

enum { MAX_PATH = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized, started;

static int not_running(const char *what) { return FAIL(ACL_ERROR_PROF_NOT_RUN, "%s has not been called", what); }

ACL_API aclError aclprofInit(const char *path, size_t length) {
  API_ENTRY();
  CHECK_ARGUMENT(path != NULL);
  CHECK_ARGUMENT(length > 0 && length <= MAX_PATH);
  pthread_mutex_lock(&lock);
  int code = initialized ? FAIL(ACL_ERROR_REPEAT_INITIALIZE, "aclprofInit has been called already") : 0;
  initialized = true;
  pthread_mutex_unlock(&lock);
  return code;
}

ACL_API aclError aclprofFinalize(void) {
  API_ENTRY();
  pthread_mutex_lock(&lock);
  int code = initialized ? 0 : not_running("aclprofInit");
  initialized = started = false;
  pthread_mutex_unlock(&lock);
  return code;
}

static aclError switch_to(const aclprofConfig *config, bool on) {
  CHECK_ARGUMENT(config != NULL);
  pthread_mutex_lock(&lock);
  int code = 0;
  if (!initialized) code = not_running("aclprofInit");
  else if (on && started) code = FAIL(ACL_ERROR_PROF_ALREADY_RUN, "aclprofStart has been called already");
  else if (!on && !started) code = not_running("aclprofStart");
  if (code == 0) started = on;
  pthread_mutex_unlock(&lock);
  return code;
}

ACL_API aclError aclprofStart(const aclprofConfig *config) {
  API_ENTRY();
  return switch_to(config, true);
}

ACL_API aclError aclprofStop(const aclprofConfig *config) {
  API_ENTRY();
  return switch_to(config, false);
}

ACL_API aclprofConfig *aclprofCreateConfig(uint32_t *devices, uint32_t number, aclprofAicoreMetrics metrics, const aclprofAicoreEvents *events, uint64_t mask) {
  API_ENTRY();
  (void)metrics, (void)events;
  bool known = number == 0 || devices != NULL;
  for (uint32_t i = 0; known && i < number; i++) known = devices[i] < npuctl_emulator_device_count();
  if (!known) {
    FAIL(ACL_ERROR_INVALID_PARAM, "the list of devices names one that is not there");
    return NULL;
  }
  aclprofConfig *config = malloc(sizeof *config);
  if (config != NULL) config->mask = mask;
  return config;
}

ACL_API aclError aclprofDestroyConfig(const aclprofConfig *config) {
  API_ENTRY();
  CHECK_ARGUMENT(config != NULL);
  free((void *)(uintptr_t)config);
  return 0;
}

ACL_API aclError aclprofSetConfig(aclprofConfigType type, const char *value, size_t length) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  CHECK_ARGUMENT(length > 0);
  (void)type;
  return 0;
}

// Subscribing to single operators, steps and marks.
UNSUPPORTED_POINTER(aclprofCreateStamp)
UNSUPPORTED_VOID(aclprofDestroyStamp)
UNSUPPORTED_POINTER(aclprofCreateStepInfo)
UNSUPPORTED_VOID(aclprofDestroyStepInfo)
UNSUPPORTED_CODE(aclprofGetStepTimestamp)
UNSUPPORTED_POINTER(aclprofCreateSubscribeConfig)
UNSUPPORTED_CODE(aclprofDestroySubscribeConfig)
UNSUPPORTED_CODE(aclprofModelSubscribe)
UNSUPPORTED_CODE(aclprofModelUnSubscribe)
UNSUPPORTED_NUMBER(aclprofGetModelId)
UNSUPPORTED_CODE(aclprofGetOpDescSize)
UNSUPPORTED_NUMBER(aclprofGetOpDuration)
UNSUPPORTED_NUMBER(aclprofGetOpEnd)
UNSUPPORTED_CODE(aclprofGetOpName)
UNSUPPORTED_CODE(aclprofGetOpNameLen)
UNSUPPORTED_CODE(aclprofGetOpNum)
UNSUPPORTED_NUMBER(aclprofGetOpStart)
UNSUPPORTED_CODE(aclprofGetOpType)
UNSUPPORTED_CODE(aclprofGetOpTypeLen)
UNSUPPORTED_CODE(aclprofMark)
UNSUPPORTED_CODE(aclprofMarkEx)
UNSUPPORTED_CODE(aclprofPop)
UNSUPPORTED_CODE(aclprofPush)
UNSUPPORTED_CODE(aclprofRangeStart)
UNSUPPORTED_CODE(aclprofRangeStop)
UNSUPPORTED_CODE(aclprofSetStampTraceMessage)
