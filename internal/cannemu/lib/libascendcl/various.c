// Small calls that programs make on their way: accepted, remembered where they can be asked for again.

#include <stdarg.h>
#include <string.h>

#include "internal.h"

ACL_API aclError aclrtSetOpExecuteTimeOut(uint32_t seconds) {
  API_ENTRY();
  (void)seconds;  // nothing here takes long enough
  return 0;
}

ACL_API aclError aclrtSetOpExecuteTimeOutV2(uint64_t wanted, uint64_t *actual) {
  API_ENTRY();
  CHECK_ARGUMENT(actual != NULL);
  *actual = wanted;
  return 0;
}

ACL_API aclError aclrtSetOpWaitTimeout(uint32_t seconds) {
  API_ENTRY();
  (void)seconds;
  return 0;
}

enum { SYSTEM_OPTIONS = 2 };  // deterministic computing, and its levels

static int64_t options[SYSTEM_OPTIONS];  // guarded by the lock

static aclError option(aclSysParamOpt which, const int64_t *set, int64_t *get) {
  if (which < 0 || which >= SYSTEM_OPTIONS) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "there is no option %d", which);
  pthread_mutex_lock(&emulator_lock);
  if (set != NULL) options[which] = *set;
  if (get != NULL) *get = options[which];
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtSetSysParamOpt(aclSysParamOpt which, int64_t value) {
  API_ENTRY();
  return option(which, &value, NULL);
}

ACL_API aclError aclrtCtxSetSysParamOpt(aclSysParamOpt which, int64_t value) {
  API_ENTRY();
  return option(which, &value, NULL);
}

ACL_API aclError aclrtGetSysParamOpt(aclSysParamOpt which, int64_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  return option(which, NULL, value);
}

// Dumps of intermediate tensors: the switch is there, nothing is written.
ACL_API aclError aclmdlInitDump(void) {
  API_ENTRY();
  return 0;
}

ACL_API aclError aclmdlSetDump(const char *path) {
  API_ENTRY();
  CHECK_ARGUMENT(path != NULL);
  return 0;
}

ACL_API aclError aclmdlFinalizeDump(void) {
  API_ENTRY();
  return 0;
}

// Log lines of the program go where the device's log would be kept: nowhere.
ACL_API void aclAppLog(int level, const char *function, const char *file, uint32_t line, const char *format, ...) {
  (void)level, (void)function, (void)file, (void)line, (void)format;
}

// Half precision, rounded to the nearest, ties to even.
ACL_API float aclFloat16ToFloat(aclFloat16 half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff, bits;
  if (exponent == 0x1f) {
    bits = sign | 0x7f800000 | fraction << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else if (fraction == 0) {
    bits = sign;
  } else {
    for (exponent = 113; !(fraction & 0x400); exponent--) fraction <<= 1;
    bits = sign | exponent << 23 | (fraction & 0x3ff) << 13;
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

ACL_API aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (aclFloat16)(sign | 0x7e00);
  if (magnitude >= 0x47800000) return (aclFloat16)(sign | 0x7c00);
  if (magnitude < 0x33000000) return (aclFloat16)sign;
  uint32_t exponent = magnitude >> 23, fraction = (magnitude & 0x7fffff) | 0x800000;
  uint32_t shift = exponent < 113 ? 126 - exponent : 13;  // small ones lose more bits
  uint32_t half = exponent < 113 ? fraction >> shift : ((exponent - 112) << 10) + ((fraction & 0x7fffff) >> shift);
  uint32_t lost = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
  if (lost > middle || (lost == middle && (half & 1))) half++;
  return (aclFloat16)(sign | half);
}
