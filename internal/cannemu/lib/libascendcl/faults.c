// Faults on demand.
//
// NPUCTL_EMULATOR_FAULT is a list of NAME[=VALUE][@N][xM] by commas: from the N-th call at that point on
// (1 unless given), at most M times (without limit unless given). Names of other programs' faults are passed
// over: the emulator's atc reads the same variable.

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

enum { MAX_FAULTS = 16 };

static const struct fault_name {
  const char *name;
  enum fault_point point;
  int code;
  const char *text;
} fault_names[] = {
    {"oom", AT_MALLOC, ACL_ERROR_RT_MEMORY_ALLOCATION, "the device has no memory left"},
    {"load", AT_LOAD, ACL_ERROR_GE_LOAD_MODEL, "the model cannot be loaded"},
    {"copy", AT_COPY, ACL_ERROR_RT_SYS_DMA, "the copy failed"},
    {"timeout", AT_TASK, ACL_ERROR_RT_AICORE_TIMEOUT, "the operator did not end in time"},
    {"exception", AT_COMPUTE, ACL_ERROR_RT_AICORE_EXCEPTION, "an AI core stopped with an exception"},
    {"ecc", AT_COMPUTE, ACL_ERROR_RT_HBM_MULTI_BIT_ECC, "several bits of the memory flipped"},
    {"device-lost", AT_ANY_DEVICE_CALL, ACL_ERROR_RT_LOST_HEARTBEAT, "the device does not answer any more"},
    {"slow-stream", AT_TASK, 0, NULL},  // sleeps VALUE milliseconds
};

struct fault {
  const struct fault_name *name;
  long value;
  long first;             // the call it begins at
  long times;             // -1: without limit
  atomic_long calls, struck;
};

static struct fault faults[MAX_FAULTS];
static int fault_count;
static atomic_bool lost;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

static const struct fault_name *find_name(const char *text, size_t length) {
  for (size_t i = 0; i < COUNT(fault_names); i++) {
    if (strlen(fault_names[i].name) == length && strncmp(fault_names[i].name, text, length) == 0) return &fault_names[i];
  }
  return NULL;
}

// Words for the emulator's atc, which mean nothing here.
static bool is_for_atc(const char *text, size_t length) {
  static const char *const words[] = {"crash", "hang", "disk-full", "garbage", "slow"};
  for (size_t i = 0; i < COUNT(words); i++) {
    if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0) return true;
  }
  return false;
}

static void read_faults(void) {
  const char *at = getenv("NPUCTL_EMULATOR_FAULT");
  while (at != NULL && *at && fault_count < MAX_FAULTS) {
    const char *end = at + strcspn(at, ",");
    const struct fault_name *name = find_name(at, strcspn(at, ",=@ x"));
    if (name == NULL) name = find_name(at, strcspn(at, ",=@"));
    if (name != NULL) {
      struct fault *fault = &faults[fault_count++];
      *fault = (struct fault){.name = name, .first = 1, .times = -1};
      for (const char *part = at + strlen(name->name); part < end;) {
        char *next;
        long number = strtol(part + 1, &next, 10);
        if (*part == '=') fault->value = number;
        if (*part == '@') fault->first = number;
        if (*part == 'x') fault->times = number;
        part = next > part ? next : part + 1;
      }
    } else if (strcspn(at, ",=@ ") > 0 && !is_for_atc(at, strcspn(at, ",=@ "))) {
      fprintf(stderr, "npuctl's emulator knows no fault \"%.*s\" of NPUCTL_EMULATOR_FAULT\n", (int)strcspn(at, ","), at);
    }
    at = *end ? end + 1 : end;
  }
}

static bool due(struct fault *fault) {
  long call = atomic_fetch_add(&fault->calls, 1) + 1;
  if (call < fault->first) return false;
  return fault->times < 0 || atomic_fetch_add(&fault->struck, 1) < fault->times;
}

static void sleep_milliseconds(long milliseconds) {
  struct timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1000000};
  nanosleep(&time, NULL);
}

int injected_fault(enum fault_point point) {
  pthread_once(&read_once, read_faults);
  for (int i = 0; i < fault_count; i++) {
    struct fault *fault = &faults[i];
    if (fault->name->point != point || !due(fault)) continue;
    count(COUNT_INJECTED_FAULT, 1);
    if (fault->name->code == 0) {
      sleep_milliseconds(fault->value);
      continue;
    }
    if (point == AT_ANY_DEVICE_CALL) atomic_store(&lost, true);
    return FAIL(fault->name->code, "%s (injected by NPUCTL_EMULATOR_FAULT=%s)", fault->name->text, fault->name->name);
  }
  // A lost device stays lost.
  if (point == AT_ANY_DEVICE_CALL && atomic_load(&lost)) return FAIL(ACL_ERROR_RT_LOST_HEARTBEAT, "the device does not answer any more");
  return 0;
}

bool device_is_lost(void) { return atomic_load(&lost); }
