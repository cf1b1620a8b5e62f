// Reading bytes that are not trusted: every length is held against what is there, and what does not fit breaks
// the cursor instead of the program.

#ifndef NPUCTL_CURSOR_H
#define NPUCTL_CURSOR_H

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// A piece of the file that is still to be read.
struct cursor {
  const unsigned char *at, *end;
  bool broken;  // something did not fit; what was read since is zeros
};

static inline const unsigned char *take(struct cursor *c, uint64_t size) {
  if (c->broken || size > (uint64_t)(c->end - c->at)) {
    c->broken = true;
    return NULL;
  }
  const unsigned char *start = c->at;
  c->at += size;
  return start;
}

static inline uint64_t take_number(struct cursor *c, size_t size) {
  uint64_t value = 0;
  const unsigned char *bytes = take(c, size);
  for (size_t i = 0; bytes != NULL && i < size; i++) value |= (uint64_t)bytes[i] << 8 * i;
  return value;
}

static inline uint32_t take_u32(struct cursor *c) { return (uint32_t)take_number(c, 4); }
static inline uint64_t take_u64(struct cursor *c) { return take_number(c, 8); }

static inline struct cursor take_part(struct cursor *c, uint64_t size) {
  const unsigned char *start = take(c, size);
  return start ? (struct cursor){start, start + size, false} : (struct cursor){0, 0, true};
}

static inline char *take_text(struct cursor *c, uint64_t size) {
  const unsigned char *bytes = take(c, size);
  char *text = bytes ? malloc(size + 1) : NULL;
  if (text == NULL) {
    c->broken = true;
    return NULL;
  }
  memcpy(text, bytes, size);
  text[size] = 0;
  return text;
}

static inline bool piece_is(const struct cursor *piece, const char *text) {
  return piece->at != NULL && (size_t)(piece->end - piece->at) == strlen(text) && memcmp(piece->at, text, strlen(text)) == 0;
}

// ---- definition.c: the partition MODEL_DEF ----

// Takes what the attributes of the model say of its needs.
void definition_read(struct cursor c, struct om *om);
// Takes inputs and outputs out of the graph. Returns false when it is damaged.
bool definition_read_signature(struct cursor c, struct om *om);

#endif
