// The handles that clients hold: a hash set of live pointers with their kind. A pointer that is not in it is
// never followed.

#include <stdlib.h>

#include "internal.h"

pthread_mutex_t emulator_lock = PTHREAD_MUTEX_INITIALIZER;

struct slot {
  const void *handle;  // NULL: free
  enum handle_kind kind;
};

static struct slot *slots;
static size_t slot_count, used;  // slot_count is a power of two

static size_t home(const void *handle) { return ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (slot_count - 1); }

static void put(const void *handle, enum handle_kind kind) {
  size_t i = home(handle);
  while (slots[i].handle != NULL) i = (i + 1) & (slot_count - 1);
  slots[i] = (struct slot){handle, kind};
}

static void grow(void) {
  struct slot *old = slots;
  size_t old_count = slot_count;
  slot_count = old_count ? 2 * old_count : 256;
  slots = calloc(slot_count, sizeof *slots);
  if (slots == NULL) abort();  // a few kilobytes: nothing else would work either
  for (size_t i = 0; i < old_count; i++) {
    if (old[i].handle != NULL) put(old[i].handle, old[i].kind);
  }
  free(old);
}

static struct slot *find(const void *handle) {
  if (slot_count == 0 || handle == NULL) return NULL;
  for (size_t i = home(handle); slots[i].handle != NULL; i = (i + 1) & (slot_count - 1)) {
    if (slots[i].handle == handle) return &slots[i];
  }
  return NULL;
}

void handle_add_locked(enum handle_kind kind, void *handle) {
  if (2 * (used + 1) > slot_count) grow();
  put(handle, kind);
  used++;
}

void handle_remove_locked(void *handle) {
  struct slot *slot = find(handle);
  if (slot == NULL) return;
  slot->handle = NULL;
  used--;
  // What stood behind it in the same run must be put again, or it could not be found any more.
  for (size_t i = ((size_t)(slot - slots) + 1) & (slot_count - 1); slots[i].handle != NULL; i = (i + 1) & (slot_count - 1)) {
    struct slot moved = slots[i];
    slots[i].handle = NULL;
    put(moved.handle, moved.kind);
  }
}

bool handle_is_locked(enum handle_kind kind, const void *handle) {
  struct slot *slot = find(handle);
  return slot != NULL && slot->kind == kind;
}

void *handle_any_locked(enum handle_kind kind) {
  for (size_t i = 0; i < slot_count; i++) {
    if (slots[i].handle != NULL && slots[i].kind == kind) return (void *)(uintptr_t)slots[i].handle;
  }
  return NULL;
}
