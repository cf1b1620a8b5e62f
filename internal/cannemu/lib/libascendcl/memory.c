// Device and host memory: allocating, and finding out what an address is.

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "internal.h"

// ---- device memory ----

// What an allocation takes: its size rounded up to 32 bytes, and 32 more that are reserved.
static bool space_of(uint64_t size, uint64_t *space) {
  if (size > UINT64_MAX - 64) return false;
  *space = (size + 31) / 32 * 32 + 32;
  return true;
}

int device_malloc(struct device *device, uint64_t size, bool of_model, struct allocation **out) {
  struct arena *arena;
  uint64_t space;
  int code = injected_fault(AT_MALLOC);
  if (code != 0) return code;
  if (!space_of(size, &space)) return FAIL(ACL_ERROR_INVALID_PARAM, "%llu bytes are too many", (unsigned long long)size);
  if ((code = device_arena(device, &arena)) != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  *out = arena_take_locked(arena, size, space, of_model);
  uint64_t left = arena_free_bytes_locked(arena);
  pthread_mutex_unlock(&emulator_lock);
  if (*out == NULL) {
    return FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d has no %llu bytes in one piece; %llu are free", device->id,
                (unsigned long long)size, (unsigned long long)left);
  }
  count(COUNT_MALLOC, 1);
  return 0;
}

void device_release(struct allocation *allocation) {
  if (allocation == NULL) return;
  pthread_mutex_lock(&emulator_lock);
  arena_free_locked(allocation->device->arena, allocation);
  pthread_mutex_unlock(&emulator_lock);
}

// Returns the device that an address belongs to, or NULL. Arenas are never closed while the process lives.
static struct device *device_of_locked(const void *address) {
  for (unsigned i = 0; i < device_count(); i++) {
    struct device *device = device_at((int)i);
    if (device->arena != NULL && arena_holds(device->arena, address)) return device;
  }
  return NULL;
}

bool is_device_address(const void *address) {
  pthread_mutex_lock(&emulator_lock);
  bool found = device_of_locked(address) != NULL;
  pthread_mutex_unlock(&emulator_lock);
  return found;
}

static aclError malloc_for_program(void **address, size_t size) {
  CHECK_ARGUMENT(address != NULL);
  CHECK_ARGUMENT(size > 0);
  uint64_t space;
  if (!space_of(size, &space)) return FAIL(ACL_ERROR_INVALID_PARAM, "%zu bytes are too many", size);
  struct context *context;
  struct allocation *allocation;
  int code = current_context(&context);
  if (code != 0) return code;
  struct device *device = context->device;
  if ((code = device_malloc(device, size, false, &allocation)) != 0) return code;
  count(LIVE_DEVICE_MEMORY, 1);
  *address = arena_address(device->arena, allocation);
  return 0;
}

ACL_API aclError aclrtMalloc(void **address, size_t size, aclrtMemMallocPolicy policy) {
  API_ENTRY();
  (void)policy;  // one kind of page serves all
  return malloc_for_program(address, size);
}

ACL_API aclError aclrtMallocAlign32(void **address, size_t size, aclrtMemMallocPolicy policy) {
  API_ENTRY();
  (void)policy;
  return malloc_for_program(address, size);
}

ACL_API aclError aclrtMallocCached(void **address, size_t size, aclrtMemMallocPolicy policy) {
  API_ENTRY();
  (void)policy;
  return malloc_for_program(address, size);
}

ACL_API aclError aclrtFree(void *address) {
  API_ENTRY();
  CHECK_ARGUMENT(address != NULL);
  pthread_mutex_lock(&emulator_lock);
  struct device *device = device_of_locked(address);
  struct allocation *allocation = device ? arena_find_locked(device->arena, address) : NULL;
  const char *wrong = NULL;
  if (device == NULL) wrong = "is not device memory";
  else if (allocation == NULL) wrong = "is not allocated, or has been freed";
  else if (arena_address(device->arena, allocation) != address) wrong = "is not the start of what was allocated";
  else if (allocation->of_model) wrong = "belongs to a model";
  unsigned uses = wrong ? 0 : allocation->uses;
  if (!wrong) arena_free_locked(device->arena, allocation);
  pthread_mutex_unlock(&emulator_lock);
  if (wrong) {
    misuse("%p %s", address, wrong);
    return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%p %s", address, wrong);
  }
  count(LIVE_DEVICE_MEMORY, -1);
  // The call does not wait, as on a card; what still runs would read or write memory of others there.
  if (uses > 0) misuse("%p is freed while %u tasks or models use it", address, uses);
  return 0;
}

static bool attribute_fits(aclrtMemAttr attribute) {
  switch (attribute) {
    case ACL_MEM_NORMAL:
    case ACL_MEM_HUGE: return true;
    case ACL_HBM_MEM:
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_NORMAL:
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_HUGE1G: return emulated_chip()->hbm;
    default: return !emulated_chip()->hbm;
  }
}

ACL_API aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free_bytes, size_t *total) {
  API_ENTRY();
  CHECK_ARGUMENT(free_bytes != NULL);
  CHECK_ARGUMENT(total != NULL);
  struct context *context;
  struct arena *arena;
  int code = current_context(&context);
  if (code != 0) return code;
  if (attribute < ACL_DDR_MEM || attribute > ACL_MEM_HUGE || !attribute_fits(attribute)) {
    return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%s has no memory of kind %d", soc_name(), attribute);
  }
  if ((code = device_arena(context->device, &arena)) != 0) return code;
  pthread_mutex_lock(&emulator_lock);
  *free_bytes = arena_free_bytes_locked(arena);
  *total = arena_size(arena);
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

// ---- ranges ----

int span_device(const void *address, size_t size, const char *what, struct span *out) {
  pthread_mutex_lock(&emulator_lock);
  struct device *device = device_of_locked(address);
  struct allocation *allocation = device ? arena_find_locked(device->arena, address) : NULL;
  char wrong[200] = "";
  if (device == NULL) {
    snprintf(wrong, sizeof wrong, "%s %p is not device memory", what, address);
  } else if (allocation == NULL) {
    snprintf(wrong, sizeof wrong, "%s %p is not allocated, or has been freed", what, address);
  } else {
    uint64_t at = (uint64_t)((const unsigned char *)address - (const unsigned char *)arena_address(device->arena, allocation));
    // Access up to the next 32 bytes is what the rounding of sizes is for.
    uint64_t limit = (allocation->size + 31) / 32 * 32;
    if (at > limit || size > limit - at) {
      snprintf(wrong, sizeof wrong, "%s %p: %zu bytes from byte %llu of an allocation of %llu", what, address, size, (unsigned long long)at,
               (unsigned long long)allocation->size);
    } else {
      allocation->uses++;
      *out = (struct span){arena_bytes(device->arena, allocation) + at, size, allocation};
    }
  }
  pthread_mutex_unlock(&emulator_lock);
  if (!wrong[0]) return 0;
  misuse("%s", wrong);
  return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%s", wrong);
}

int span_host(const void *address, size_t size, const char *what, struct span *out) {
  if (is_device_address(address)) {
    misuse("%s %p is device memory where host memory belongs", what, address);
    return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%s %p is device memory where host memory belongs", what, address);
  }
  *out = (struct span){(unsigned char *)(uintptr_t)address, size, NULL};
  return 0;
}

bool span_is_dead(const struct span *span) {
  if (span->allocation == NULL) return false;
  pthread_mutex_lock(&emulator_lock);
  bool dead = !span->allocation->live;
  pthread_mutex_unlock(&emulator_lock);
  return dead;
}

void span_release(struct span *span) {
  if (span->allocation == NULL) return;
  pthread_mutex_lock(&emulator_lock);
  arena_unuse_locked(span->allocation->device->arena, span->allocation);
  pthread_mutex_unlock(&emulator_lock);
  span->allocation = NULL;
}

struct leak {
  unsigned long long objects, bytes;
};

static void add_leak(struct allocation *allocation, void *leak) {
  if (allocation->of_model) return;
  ((struct leak *)leak)->objects++;
  ((struct leak *)leak)->bytes += allocation->size;
}

void report_memory_leaks_locked(struct device *device) {
  struct leak leak = {0, 0};
  if (device->arena == NULL) return;
  arena_each_locked(device->arena, add_leak, &leak);
  if (leak.objects > 0) report_leak("device memory", leak.objects, leak.bytes, device->id);
}

// ---- host memory that the device can reach ----

struct pinned {
  unsigned char *address;
  size_t size;
  bool registered;  // of aclrtHostRegister: not ours to free
};

static struct pinned *pinned;  // in no order: programs have few
static size_t pinned_count, pinned_space;
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

static bool pin(void *address, size_t size, bool registered) {
  pthread_mutex_lock(&pinned_lock);
  bool fits = pinned_count < pinned_space;
  if (!fits) {
    size_t space = pinned_space ? 2 * pinned_space : 32;
    struct pinned *grown = realloc(pinned, space * sizeof *grown);
    if (grown != NULL) {
      pinned = grown;
      pinned_space = space;
      fits = true;
    }
  }
  if (fits) pinned[pinned_count++] = (struct pinned){address, size, registered};
  pthread_mutex_unlock(&pinned_lock);
  return fits;
}

static bool unpin(void *address, bool registered) {
  bool found = false;
  pthread_mutex_lock(&pinned_lock);
  for (size_t i = 0; i < pinned_count && !found; i++) {
    if (pinned[i].address != address || pinned[i].registered != registered) continue;
    pinned[i] = pinned[--pinned_count];
    found = true;
  }
  pthread_mutex_unlock(&pinned_lock);
  return found;
}

bool host_is_pinned(const void *address, size_t size) {
  const unsigned char *from = address;
  bool found = false;
  pthread_mutex_lock(&pinned_lock);
  for (size_t i = 0; i < pinned_count && !found; i++) {
    found = from >= pinned[i].address && size <= pinned[i].size && (size_t)(from - pinned[i].address) <= pinned[i].size - size;
  }
  pthread_mutex_unlock(&pinned_lock);
  return found;
}

void release_host_memory(void) {
  pthread_mutex_lock(&pinned_lock);
  for (size_t i = 0; i < pinned_count; i++) {
    if (pinned[i].registered) continue;
    free(pinned[i].address);
    count(LIVE_HOST_MEMORY, -1);
  }
  pinned_count = 0;
  pthread_mutex_unlock(&pinned_lock);
}

static aclError malloc_host(void **address, size_t size) {
  CHECK_ARGUMENT(address != NULL);
  CHECK_ARGUMENT(size > 0);
  void *block = NULL;
  if (posix_memalign(&block, 64, size) != 0 || !pin(block, size, false)) {
    free(block);
    return FAIL(ACL_ERROR_RT_MEMORY_ALLOCATION, "no %zu bytes of host memory", size);
  }
  count(LIVE_HOST_MEMORY, 1);
  *address = block;
  return 0;
}

ACL_API aclError aclrtMallocHost(void **address, size_t size) {
  API_ENTRY();
  return malloc_host(address, size);
}

ACL_API aclError aclrtMallocHostWithCfg(void **address, uint64_t size, void *configuration) {
  API_ENTRY();
  (void)configuration;  // names the module that asks, no more
  return malloc_host(address, size);
}

ACL_API aclError aclrtFreeHost(void *address) {
  API_ENTRY();
  CHECK_ARGUMENT(address != NULL);
  if (!unpin(address, false)) {
    misuse("%p is not memory of aclrtMallocHost, or has been freed", address);
    return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%p is not memory of aclrtMallocHost, or has been freed", address);
  }
  free(address);
  count(LIVE_HOST_MEMORY, -1);
  return 0;
}

ACL_API aclError aclrtHostRegister(void *address, uint64_t size, aclrtHostRegisterType type, void **device_address) {
  API_ENTRY();
  CHECK_ARGUMENT(address != NULL);
  CHECK_ARGUMENT(size > 0);
  CHECK_ARGUMENT(device_address != NULL);
  CHECK_ARGUMENT(type == 0);
  struct context *context;
  int code = current_context(&context);
  if (code != 0) return code;
  if (!pin(address, size, true)) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory to remember it");
  // The device sees the memory at an address of its own; no task of the emulator takes one, so any will do.
  *device_address = address;
  return 0;
}

ACL_API aclError aclrtHostUnregister(void *address) {
  API_ENTRY();
  CHECK_ARGUMENT(address != NULL);
  if (!unpin(address, true)) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%p is not registered", address);
  return 0;
}

ACL_API aclError aclrtPointerGetAttributes(const void *address, aclrtPtrAttributes *attributes) {
  API_ENTRY();
  CHECK_ARGUMENT(address != NULL);
  CHECK_ARGUMENT(attributes != NULL);
  memset(attributes, 0, sizeof *attributes);
  pthread_mutex_lock(&emulator_lock);
  struct device *device = device_of_locked(address);
  pthread_mutex_unlock(&emulator_lock);
  attributes->location.id = device ? (uint32_t)device->id : 0;
  attributes->location.type = device ? 1 : host_is_pinned(address, 1) ? 0 : 2;
  attributes->pageSize = device ? 2u << 20 : 4096;
  return 0;
}
