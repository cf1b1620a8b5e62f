// The report: misuse as it happens, leaks and counters at the end.
//
// Each is a line of JSON in the file NPUCTL_EMULATOR_REPORT, which is added to; without it, misuse and leaks
// go to standard error as plain lines.
//
// Misuse never ends the process by itself. NPUCTL_EMULATOR_STRICT=1 makes aclFinalize fail when there was any,
// or a leak, and refuses to execute one model in two places at once. NPUCTL_EMULATOR_STRICT=abort aborts at
// the first misuse, for a debugger.

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static const char *const counter_names[COUNTERS] = {
    [LIVE_DATA_BUFFER] = "data buffer",
    [LIVE_DATASET] = "dataset",
    [LIVE_TENSOR_DESC] = "tensor description",
    [LIVE_MODEL_DESC] = "model description",
    [LIVE_CONFIG] = "configuration",
    [LIVE_AIPP] = "AIPP description",
    [LIVE_OPERATOR_ATTRIBUTES] = "operator attributes",
    [LIVE_CONTEXT] = "context",
    [LIVE_STREAM] = "stream",
    [LIVE_EVENT] = "event",
    [LIVE_MODEL] = "model",
    [LIVE_DEVICE_MEMORY] = "device memory",
    [LIVE_HOST_MEMORY] = "pinned host memory",
    [COUNT_MALLOC] = "mallocs",
    [COUNT_COPY] = "copies",
    [COUNT_COPY_BYTES] = "copied_bytes",
    [COUNT_PAGEABLE_ASYNC_COPY] = "asynchronous_copies_of_pageable_memory",
    [COUNT_MODEL_LOAD] = "model_loads",
    [COUNT_MODEL_EXECUTE] = "model_executions",
    [COUNT_OPERATOR_EXECUTE] = "operator_executions",
    [COUNT_STREAM_TASK] = "stream_tasks",
    [COUNT_CALLBACK] = "callbacks",
    [COUNT_INJECTED_FAULT] = "injected_faults",
    [COUNT_FORGOTTEN] = "leaks_before_the_end",
};

enum { MISUSE_LINES = 1000 };

static atomic_llong counters[COUNTERS];
static atomic_ulong misuses;

void count(enum counter counter, long long change) { atomic_fetch_add_explicit(&counters[counter], change, memory_order_relaxed); }

long long counted(enum counter counter) { return atomic_load_explicit(&counters[counter], memory_order_relaxed); }

unsigned long misuse_count(void) { return atomic_load(&misuses); }

static bool strict_is(const char *value) {
  const char *strict = getenv("NPUCTL_EMULATOR_STRICT");
  return strict != NULL && strcmp(strict, value) == 0;
}

bool strict(void) { return strict_is("1"); }

// Writes a line in one go, so that lines of several threads and processes do not mix.
static void put_line(const char *line) {
  const char *path = getenv("NPUCTL_EMULATOR_REPORT");
  int file = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  ssize_t written = write(file < 0 ? STDERR_FILENO : file, line, strlen(line));
  (void)written;  // there is nobody left to tell
  if (file >= 0) close(file);
}

static bool as_json(void) {
  const char *path = getenv("NPUCTL_EMULATOR_REPORT");
  return path && *path;
}

// Quotes for JSON. What is not plain ASCII becomes '?': it comes from file names and tensor names.
static void quote(const char *text, char *out, size_t size) {
  size_t at = 0;
  for (; *text && at + 3 < size; text++) {
    if (*text == '"' || *text == '\\') out[at++] = '\\';
    out[at++] = *text >= 0x20 && *text < 0x7f ? *text : '?';
  }
  out[at] = 0;
}

void misuse(const char *format, ...) {
  char text[800], quoted[1000], line[1400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  // A program that goes wrong in a loop must not fill the disk: later ones are only counted.
  if (atomic_fetch_add(&misuses, 1) >= MISUSE_LINES) return;
  const char *function = this_thread()->function ? this_thread()->function : "";
  quote(text, quoted, sizeof quoted);
  if (as_json()) {
    snprintf(line, sizeof line, "{\"kind\":\"misuse\",\"pid\":%d,\"function\":\"%s\",\"text\":\"%s\"}\n", (int)getpid(), function, quoted);
  } else {
    snprintf(line, sizeof line, "npuctl emulator: misuse: %s: %s\n", function, text);
  }
  put_line(line);
  if (strict_is("abort")) abort();
}

void report_leak(const char *what, unsigned long long objects, unsigned long long bytes, int device) {
  char line[300], extra[80] = "";
  if (as_json()) {
    if (bytes > 0) snprintf(extra, sizeof extra, ",\"bytes\":%llu,\"device\":%d", bytes, device);
    snprintf(line, sizeof line, "{\"kind\":\"leak\",\"pid\":%d,\"what\":\"%s\",\"count\":%llu%s}\n", (int)getpid(), what, objects, extra);
  } else {
    if (bytes > 0) snprintf(extra, sizeof extra, ", %llu bytes on device %d", bytes, device);
    snprintf(line, sizeof line, "npuctl emulator: leak: %llu x %s%s\n", objects, what, extra);
  }
  put_line(line);
}

static void report_counters(const char *moment) {
  if (!as_json()) return;
  char line[1200];
  int at = snprintf(line, sizeof line, "{\"kind\":\"end\",\"pid\":%d,\"at\":\"%s\",\"misuse\":%lu", (int)getpid(), moment, misuse_count());
  for (int i = LIVE_COUNTERS; i < COUNTERS; i++) {
    at += snprintf(line + at, sizeof line - (size_t)at, ",\"%s\":%lld", counter_names[i], counted(i));
  }
  snprintf(line + at, sizeof line - (size_t)at, "}\n");
  put_line(line);
}

int report_end(const char *moment) {
  int leaks = 0;
  for (int i = 0; i < LIVE_COUNTERS; i++) {
    long long live = counted(i);
    if (live <= 0) continue;
    leaks++;
    // Device memory is told per device, with its bytes, where the devices are.
    if (i != LIVE_DEVICE_MEMORY) report_leak(counter_names[i], (unsigned long long)live, 0, 0);
  }
  report_counters(moment);
  return leaks;
}
