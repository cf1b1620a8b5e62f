// Devices: counting their users, telling what they are, and their limits.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static struct device devices[MAX_DEVICES];
static unsigned number_of_devices;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void set_up(void) {
  unsigned long long wanted = setting_number("NPUCTL_EMULATOR_DEVICES", 1);
  number_of_devices = wanted > MAX_DEVICES ? MAX_DEVICES : (unsigned)wanted;
  for (unsigned i = 0; i < number_of_devices; i++) devices[i].id = (int)i;
}

unsigned device_count(void) {
  pthread_once(&once, set_up);
  return number_of_devices;
}

uint32_t npuctl_emulator_device_count(void) { return device_count(); }

struct device *device_at(int id) { return id >= 0 && (unsigned)id < device_count() ? &devices[id] : NULL; }

int device_arena(struct device *device, struct arena **out) {
  uint64_t size = setting_number("NPUCTL_EMULATOR_MEMORY", emulated_chip()->memory) / 4096 * 4096;
  pthread_mutex_lock(&emulator_lock);
  if (device->arena == NULL) device->arena = arena_open(device, size);
  *out = device->arena;
  pthread_mutex_unlock(&emulator_lock);
  if (*out != NULL) return 0;
  return FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "this process has no room for the %llu bytes of device %d; NPUCTL_EMULATOR_MEMORY=1G makes it smaller",
              (unsigned long long)size, device->id);
}

// ---- what it is ----

ACL_API aclError aclrtGetDeviceCount(uint32_t *number) {
  API_ENTRY();
  CHECK_ARGUMENT(number != NULL);
  *number = device_count();
  return 0;
}

ACL_API const char *aclrtGetSocName(void) {
  API_ENTRY();
  return device_count() > 0 ? soc_name() : NULL;
}

ACL_API aclError aclrtCheckArchCompatibility(const char *compiled_for, int32_t *compatible) {
  API_ENTRY();
  CHECK_ARGUMENT(compatible != NULL);
  *compatible = 0;
  if (compiled_for == NULL || *compiled_for == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "needs the name of a chip");
  *compatible = runs_code_of(soc_name(), compiled_for);
  return 0;
}

ACL_API aclError aclrtGetRunMode(aclrtRunMode *mode) {
  API_ENTRY();
  CHECK_ARGUMENT(mode != NULL);
  *mode = ACL_HOST;
  return 0;
}

static int no_such_device(int id) {
  return FAIL(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %d; NPUCTL_EMULATOR_DEVICES says how many there are, now %u", id, device_count());
}

ACL_API aclError aclrtGetDeviceInfo(uint32_t id, aclrtDevAttr attribute, int64_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  if (device_at((int)id) == NULL) return no_such_device((int)id);
  const struct chip *chip = emulated_chip();
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = chip->ai_cpus; return 0;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = chip->cube_cores; return 0;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = chip->vector_cores; return 0;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = (int64_t)setting_number("NPUCTL_EMULATOR_MEMORY", chip->memory); return 0;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = (int64_t)chip->l2; return 0;
    default: return FAIL(ACL_ERROR_INVALID_PARAM, "the emulator does not know attribute %d of a device", attribute);
  }
}

ACL_API aclError aclGetDeviceCapability(uint32_t id, aclDeviceInfo what, int64_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  if (device_at((int)id) == NULL) return no_such_device((int)id);
  switch (what) {
    case ACL_AI_CORE_NUM: *value = emulated_chip()->cube_cores; return 0;
    case ACL_VECTOR_CORE_NUM: *value = emulated_chip()->vector_cores; return 0;
    case ACL_L2_SIZE: *value = (int64_t)emulated_chip()->l2; return 0;
    default: return FAIL(ACL_ERROR_INVALID_PARAM, "there is no capability %d", what);
  }
}

ACL_API aclError aclrtGetDeviceUtilizationRate(int32_t id, aclrtUtilizationInfo *info) {
  API_ENTRY();
  CHECK_ARGUMENT(info != NULL);
  CHECK_ARGUMENT(info->utilizationExtend == NULL);
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  bool busy = false;
  pthread_mutex_lock(&emulator_lock);
  struct stream *stream = device->primary ? device->primary->streams : NULL;
  for (; stream != NULL; stream = stream->next) busy |= stream->completed < stream->launched;
  pthread_mutex_unlock(&emulator_lock);
  info->cubeUtilization = info->vectorUtilization = busy ? 100 : 0;
  info->aicpuUtilization = 0;
  info->memoryUtilization = -1;
  return 0;
}

ACL_API aclError aclrtQueryDeviceStatus(int32_t id, aclrtDeviceStatus *status) {
  API_ENTRY();
  CHECK_ARGUMENT(status != NULL);
  if (device_at(id) == NULL) return no_such_device(id);
  *status = device_is_lost() ? ACL_DEVICE_ABNORMAL : ACL_DEVICE_NORMAL;
  return 0;
}

ACL_API aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t id, int32_t peer) {
  API_ENTRY();
  CHECK_ARGUMENT(can != NULL);
  if (device_at(id) == NULL) return no_such_device(id);
  if (device_at(peer) == NULL) return no_such_device(peer);
  *can = id != peer;
  return 0;
}

// Every device reaches the memory of every other one.
static aclError peer(int32_t id) {
  struct context *context;
  int code = current_context(&context);
  return code != 0 ? code : device_at(id) == NULL ? no_such_device(id) : 0;
}

ACL_API aclError aclrtDeviceEnablePeerAccess(int32_t id, uint32_t flags) {
  API_ENTRY();
  CHECK_ARGUMENT(flags == 0);
  return peer(id);
}

ACL_API aclError aclrtDeviceDisablePeerAccess(int32_t id) {
  API_ENTRY();
  return peer(id);
}

ACL_API aclError aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
  API_ENTRY();
  CHECK_ARGUMENT(least != NULL && greatest != NULL);
  *least = 7;
  *greatest = 0;
  return 0;
}

// Logical, physical and user numbers of devices are the same here.
static aclError same_id(int32_t id, int32_t *other) {
  CHECK_ARGUMENT(other != NULL);
  if (device_at(id) == NULL) return no_such_device(id);
  *other = id;
  return 0;
}

ACL_API aclError aclrtGetLogicDevIdByUserDevId(const int32_t id, int32_t *const other) {
  API_ENTRY();
  return same_id(id, other);
}

ACL_API aclError aclrtGetPhyDevIdByLogicDevId(const int32_t id, int32_t *const other) {
  API_ENTRY();
  return same_id(id, other);
}

// ---- core limits ----

unsigned hardware_limit(int type) {
  const struct chip *chip = emulated_chip();
  return type == ACL_RES_CUBE_CORE || chip->vector_cores == 0 ? chip->cube_cores : chip->vector_cores;
}

static int check_limit(int type, unsigned value) {
  if (type < 0 || type >= ACL_RES_TYPES) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "there is no core type %d", type);
  if (value > hardware_limit(type)) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%s has %u of these cores, not %u", soc_name(), hardware_limit(type), value);
  return 0;
}

ACL_API aclError aclrtSetDeviceResLimit(int32_t id, aclrtDevResLimitType type, uint32_t value) {
  API_ENTRY();
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  if (value == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "a limit of 0 cores leaves nothing to compute with");
  int code = check_limit(type, value);
  if (code != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  device->limits[type] = value;
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

static unsigned device_limit_locked(const struct device *device, int type) { return device->limits[type] ? device->limits[type] : hardware_limit(type); }

ACL_API aclError aclrtGetDeviceResLimit(int32_t id, aclrtDevResLimitType type, uint32_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  int code = check_limit(type, 0);
  if (code != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  *value = device_limit_locked(device, type);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtResetDeviceResLimit(int32_t id) {
  API_ENTRY();
  struct device *device = device_at(id);
  if (device == NULL) return no_such_device(id);
  pthread_mutex_lock(&emulator_lock);
  memset(device->limits, 0, sizeof device->limits);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtSetStreamResLimit(aclrtStream handle, aclrtDevResLimitType type, uint32_t value) {
  API_ENTRY();
  struct stream *stream;
  if (value == 0) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "a limit of 0 cores leaves nothing to compute with");
  int code = check_limit(type, value);
  if (code != 0 || (code = stream_lock(handle, false, &stream)) != 0) return code;
  stream->limits[type] = value;
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtGetStreamResLimit(aclrtStream handle, aclrtDevResLimitType type, uint32_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  struct stream *stream;
  int code = check_limit(type, 0);
  if (code != 0 || (code = stream_lock(handle, false, &stream)) != 0) return code;
  *value = stream->limits[type] ? stream->limits[type] : device_limit_locked(stream->context->device, type);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtResetStreamResLimit(aclrtStream handle) {
  API_ENTRY();
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  memset(stream->limits, 0, sizeof stream->limits);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

ACL_API aclError aclrtUseStreamResInCurrentThread(aclrtStream handle) {
  API_ENTRY();
  struct stream *stream;
  int code = stream_lock(handle, false, &stream);
  if (code != 0) return code;
  this_thread()->limits_stream = stream;
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

// The stream is passed by newer programs and left out by older ones, so nothing is made of it.
ACL_API aclError aclrtUnuseStreamResInCurrentThread(aclrtStream handle) {
  API_ENTRY();
  (void)handle;
  this_thread()->limits_stream = NULL;
  return 0;
}

ACL_API aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) {
  API_ENTRY();
  CHECK_ARGUMENT(value != NULL);
  struct context *context;
  int code = check_limit(type, 0);
  if (code != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  code = current_context_locked(&context);
  if (code == 0) {
    struct stream *stream = this_thread()->limits_stream;
    bool own = handle_is_locked(HANDLE_STREAM, stream) && stream->limits[type] > 0;
    *value = own ? stream->limits[type] : device_limit_locked(context->device, type);
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}
