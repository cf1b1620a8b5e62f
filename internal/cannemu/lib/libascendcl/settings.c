// Environment variables, and the clock.

#include <stdlib.h>
#include <time.h>

#include "internal.h"

unsigned long long setting_number(const char *variable, unsigned long long fallback) {
  const char *text = getenv(variable);
  if (text == NULL || *text == 0) return fallback;
  char *end;
  unsigned long long value = strtoull(text, &end, 10);
  switch (*end) {
    case 'K': value <<= 10; break;
    case 'M': value <<= 20; break;
    case 'G': value <<= 30; break;
  }
  return value;
}

double monotonic_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct timespec deadline_after(int milliseconds) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  moment.tv_sec += milliseconds / 1000;
  moment.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (moment.tv_nsec >= 1000000000) {
    moment.tv_sec++;
    moment.tv_nsec -= 1000000000;
  }
  return moment;
}

void condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}
