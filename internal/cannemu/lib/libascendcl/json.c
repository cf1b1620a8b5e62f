// A reader for the two small JSON files that the library is given: the configuration of aclInit, and the
// marker file of the emulator's folder. It checks the whole text and looks into the outermost object.

#include <string.h>

#include "internal.h"

enum { MAX_DEPTH = 64 };

struct reader {
  const char *at, *end;
};

static void skip_space(struct reader *r) {
  while (r->at < r->end && strchr(" \t\r\n", *r->at)) r->at++;
}

static bool take(struct reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool skip_string(struct reader *r) {
  if (!take(r, '"')) return false;
  for (; r->at < r->end; r->at++) {
    if (*r->at == '"') return r->at++, true;
    if (*r->at == '\\' && ++r->at == r->end) return false;
  }
  return false;
}

static bool skip_value(struct reader *r, int depth);

static bool skip_members(struct reader *r, char close, bool named, int depth) {
  if (take(r, close)) return true;
  do {
    if (named && !(skip_string(r) && take(r, ':'))) return false;
    if (!skip_value(r, depth)) return false;
  } while (take(r, ','));
  return take(r, close);
}

// Numbers and the three words: what they are made of is enough here.
static bool skip_word(struct reader *r) {
  const char *start = r->at;
  while (r->at < r->end && *r->at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *r->at)) r->at++;
  return r->at > start;
}

static bool skip_value(struct reader *r, int depth) {
  if (depth > MAX_DEPTH) return false;
  skip_space(r);
  if (r->at == r->end) return false;
  switch (*r->at) {
    case '{': r->at++; return skip_members(r, '}', true, depth + 1);
    case '[': r->at++; return skip_members(r, ']', false, depth + 1);
    case '"': return skip_string(r);
    default: return skip_word(r);
  }
}

bool json_member(const char *text, size_t size, const char *key, const char **value, size_t *value_size) {
  struct reader r = {text, text + size};
  *value = NULL;
  *value_size = 0;
  if (!take(&r, '{')) return false;
  if (take(&r, '}')) return skip_space(&r), r.at == r.end;
  do {
    skip_space(&r);
    const char *name = r.at + 1;
    if (!skip_string(&r)) return false;
    bool found = (size_t)(r.at - 1 - name) == strlen(key) && memcmp(name, key, strlen(key)) == 0;
    if (!take(&r, ':')) return false;
    skip_space(&r);
    const char *start = r.at;
    if (!skip_value(&r, 0)) return false;
    if (found) {
      *value = start;
      *value_size = (size_t)(r.at - start);
    }
  } while (take(&r, ','));
  if (!take(&r, '}')) return false;
  skip_space(&r);
  return r.at == r.end;
}

// Escapes other than \" \\ \/ keep their letter: no path or number that is read here needs them.
bool json_string(const char *value, size_t size, char *out, size_t out_size) {
  if (size < 2 || value[0] != '"') return false;
  size_t at = 0;
  for (size_t i = 1; i + 1 < size; i++) {
    if (value[i] == '\\') i++;
    if (at + 1 >= out_size) return false;
    out[at++] = value[i];
  }
  out[at] = 0;
  return true;
}

int json_strings(const char *value, size_t size, char out[][512], int limit) {
  struct reader r = {value, value + size};
  int number = 0;
  if (!take(&r, '[')) return -1;
  if (take(&r, ']')) return 0;
  do {
    skip_space(&r);
    const char *start = r.at;
    if (number == limit || !skip_string(&r)) return -1;
    if (!json_string(start, (size_t)(r.at - start), out[number++], 512)) return -1;
  } while (take(&r, ','));
  return take(&r, ']') ? number : -1;
}
