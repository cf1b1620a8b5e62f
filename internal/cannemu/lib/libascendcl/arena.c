// The memory of one device: two ranges of addresses of the same size.
//
// Clients get addresses of the first range, which nobody may touch: a program that takes a device pointer for
// one of its own dies at once. The bytes lie at the same offset of the second range, which only this library
// knows. Physical memory is taken as it is written to, so a device of 64 GiB costs what is in use.

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define COMMIT_STEP (64ull << 20)
#define POISON_LIMIT (64u << 10)  // so much of new memory is filled with POISON
#define POISON 0xa5

struct gap {
  uint64_t offset, length;
};

struct arena {
  struct device *device;
  uint64_t size, taken, committed;
  unsigned char *shown, *hidden;
  struct allocation **live;  // by offset
  size_t live_count, live_space;
  struct gap *gaps;          // free ranges by offset
  size_t gap_count, gap_space;
};

struct arena *arena_open(struct device *device, uint64_t size) {
  struct arena *arena = calloc(1, sizeof *arena);
  if (arena == NULL) return NULL;
  void *shown = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void *hidden = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  arena->gaps = calloc(16, sizeof *arena->gaps);
  if (shown == MAP_FAILED || hidden == MAP_FAILED || arena->gaps == NULL) {
    if (shown != MAP_FAILED) munmap(shown, size);
    if (hidden != MAP_FAILED) munmap(hidden, size);
    free(arena->gaps);
    free(arena);
    return NULL;
  }
  arena->device = device;
  arena->size = size;
  arena->shown = shown;
  arena->hidden = hidden;
  arena->gap_space = 16;
  arena->gaps[arena->gap_count++] = (struct gap){0, size};
  return arena;
}

uint64_t arena_free_bytes_locked(const struct arena *arena) { return arena->size - arena->taken; }
uint64_t arena_size(const struct arena *arena) { return arena->size; }

struct allocation *arena_first_of_program_locked(const struct arena *arena) {
  for (size_t i = 0; i < arena->live_count; i++) {
    if (!arena->live[i]->of_model) return arena->live[i];
  }
  return NULL;
}

bool arena_holds(const struct arena *arena, const void *address) {
  return (const unsigned char *)address >= arena->shown && (const unsigned char *)address < arena->shown + arena->size;
}

void *arena_address(const struct arena *arena, const struct allocation *allocation) { return arena->shown + allocation->offset; }
unsigned char *arena_bytes(const struct arena *arena, const struct allocation *allocation) { return arena->hidden + allocation->offset; }

// Makes the hidden bytes below end usable. It only ever grows, so that the range stays two mappings.
static bool commit(struct arena *arena, uint64_t end) {
  if (end <= arena->committed) return true;
  uint64_t wanted = (end + COMMIT_STEP - 1) / COMMIT_STEP * COMMIT_STEP;
  if (wanted > arena->size) wanted = arena->size;
  if (mprotect(arena->hidden + arena->committed, wanted - arena->committed, PROT_READ | PROT_WRITE) != 0) return false;
  arena->committed = wanted;
  return true;
}

// Returns the place of the first live allocation that begins after offset.
static size_t place_after(const struct arena *arena, uint64_t offset) {
  size_t low = 0, high = arena->live_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (arena->live[middle]->offset > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

static bool insert_live(struct arena *arena, struct allocation *allocation) {
  if (arena->live_count == arena->live_space) {
    size_t space = arena->live_space ? 2 * arena->live_space : 64;
    struct allocation **live = realloc(arena->live, space * sizeof *live);
    if (live == NULL) return false;
    arena->live = live;
    arena->live_space = space;
  }
  size_t at = place_after(arena, allocation->offset);
  memmove(&arena->live[at + 1], &arena->live[at], (arena->live_count - at) * sizeof *arena->live);
  arena->live[at] = allocation;
  arena->live_count++;
  return true;
}

struct allocation *arena_take_locked(struct arena *arena, uint64_t size, uint64_t space, bool of_model) {
  space = (space + 63) / 64 * 64;  // the next one begins aligned as well
  size_t i = 0;
  while (i < arena->gap_count && arena->gaps[i].length < space) i++;
  if (i == arena->gap_count) return NULL;
  struct allocation *allocation = calloc(1, sizeof *allocation);
  if (allocation == NULL) return NULL;
  *allocation = (struct allocation){.device = arena->device, .offset = arena->gaps[i].offset, .size = size, .space = space, .live = true, .of_model = of_model};
  if (!commit(arena, allocation->offset + space) || !insert_live(arena, allocation)) {
    free(allocation);
    return NULL;
  }
  arena->gaps[i].offset += space;
  arena->gaps[i].length -= space;
  if (arena->gaps[i].length == 0) {
    memmove(&arena->gaps[i], &arena->gaps[i + 1], (--arena->gap_count - i) * sizeof *arena->gaps);
  }
  arena->taken += space;
  // New memory of a card holds what was there before. A program that counts on zeros must not pass here.
  memset(arena_bytes(arena, allocation), POISON, size < POISON_LIMIT ? size : POISON_LIMIT);
  return allocation;
}

struct allocation *arena_find_locked(const struct arena *arena, const void *address) {
  uint64_t offset = (uint64_t)((const unsigned char *)address - arena->shown);
  size_t after = place_after(arena, offset);
  if (after == 0) return NULL;
  struct allocation *allocation = arena->live[after - 1];
  return offset < allocation->offset + allocation->space ? allocation : NULL;
}

static void give_back(struct arena *arena, uint64_t offset, uint64_t length) {
  size_t i = 0;
  while (i < arena->gap_count && arena->gaps[i].offset < offset) i++;
  bool joins_before = i > 0 && arena->gaps[i - 1].offset + arena->gaps[i - 1].length == offset;
  bool joins_after = i < arena->gap_count && offset + length == arena->gaps[i].offset;
  if (joins_before && joins_after) {
    arena->gaps[i - 1].length += length + arena->gaps[i].length;
    memmove(&arena->gaps[i], &arena->gaps[i + 1], (--arena->gap_count - i) * sizeof *arena->gaps);
  } else if (joins_before) {
    arena->gaps[i - 1].length += length;
  } else if (joins_after) {
    arena->gaps[i].offset = offset;
    arena->gaps[i].length += length;
  } else {
    if (arena->gap_count == arena->gap_space) {
      struct gap *gaps = realloc(arena->gaps, 2 * arena->gap_space * sizeof *gaps);
      if (gaps == NULL) return;  // the range is lost to later allocations, no more
      arena->gaps = gaps;
      arena->gap_space *= 2;
    }
    memmove(&arena->gaps[i + 1], &arena->gaps[i], (arena->gap_count++ - i) * sizeof *arena->gaps);
    arena->gaps[i] = (struct gap){offset, length};
  }
}

// Ends an allocation that nobody uses any more.
static void reclaim(struct arena *arena, struct allocation *allocation) {
  const uint64_t page = 4096;
  uint64_t begin = (allocation->offset + page - 1) / page * page, end = (allocation->offset + allocation->space) / page * page;
  if (end > begin + 16 * page) madvise(arena->hidden + begin, end - begin, MADV_DONTNEED);
  give_back(arena, allocation->offset, allocation->space);
  arena->taken -= allocation->space;
  free(allocation);
}

void arena_free_locked(struct arena *arena, struct allocation *allocation) {
  size_t at = place_after(arena, allocation->offset) - 1;
  memmove(&arena->live[at], &arena->live[at + 1], (--arena->live_count - at) * sizeof *arena->live);
  allocation->live = false;
  // Tasks that still use it see that it is dead; the last of them gives the memory back.
  if (allocation->uses == 0) reclaim(arena, allocation);
}

void arena_unuse_locked(struct arena *arena, struct allocation *allocation) {
  if (--allocation->uses == 0 && !allocation->live) reclaim(arena, allocation);
}

void arena_each_locked(const struct arena *arena, void (*visit)(struct allocation *, void *), void *argument) {
  for (size_t i = 0; i < arena->live_count; i++) visit(arena->live[i], argument);
}
