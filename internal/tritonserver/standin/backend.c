/*
 * A backend for Triton that takes any model and answers zeros.
 *
 * npuctl puts it in the place of a backend that a server does not have, so that the server judges everything it judges
 * itself: the configuration, the repository, the ensembles. What the real backend would say of the model file it cannot
 * tell. Compiled by the machine's C compiler; the declarations of Triton's backend interface below are the few in use.
 *
 * Outputs have the dims of the configuration (those behind `reshape`, where there is one). An open dim takes the size
 * of the same axis of the request's first input, or 1.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct TRITONSERVER_Error Error;
typedef struct TRITONSERVER_Message Message;
typedef struct TRITONBACKEND_Model Model;
typedef struct TRITONBACKEND_ModelInstance Instance;
typedef struct TRITONBACKEND_Request Request;
typedef struct TRITONBACKEND_Response Response;
typedef struct TRITONBACKEND_Input Input;
typedef struct TRITONBACKEND_Output Output;

enum { CODE_INTERNAL = 1, MEMORY_CPU = 0, FINAL = 1, RELEASE_ALL = 1, CONFIG_VERSION = 1 };

Error *TRITONSERVER_ErrorNew(int code, const char *text);
void TRITONSERVER_ErrorDelete(Error *);
Error *TRITONSERVER_MessageSerializeToJson(Message *, const char **base, size_t *size);
Error *TRITONSERVER_MessageDelete(Message *);
Error *TRITONBACKEND_ModelConfig(Model *, uint32_t version, Message **);
Error *TRITONBACKEND_ModelState(Model *, void **);
Error *TRITONBACKEND_ModelSetState(Model *, void *);
Error *TRITONBACKEND_ModelInstanceModel(Instance *, Model **);
Error *TRITONBACKEND_RequestInputCount(Request *, uint32_t *);
Error *TRITONBACKEND_RequestInputByIndex(Request *, uint32_t, Input **);
Error *TRITONBACKEND_InputProperties(Input *, const char **name, int *type, const int64_t **shape, uint32_t *rank,
                                     uint64_t *bytes, uint32_t *buffers);
Error *TRITONBACKEND_RequestOutputCount(Request *, uint32_t *);
Error *TRITONBACKEND_RequestOutputName(Request *, uint32_t, const char **);
Error *TRITONBACKEND_RequestRelease(Request *, uint32_t flags);
Error *TRITONBACKEND_ResponseNew(Response **, Request *);
Error *TRITONBACKEND_ResponseOutput(Response *, Output **, const char *name, int type, const int64_t *shape, uint32_t rank);
Error *TRITONBACKEND_ResponseSend(Response *, uint32_t flags, Error *);
Error *TRITONBACKEND_OutputBuffer(Output *, void **, uint64_t bytes, int *memory, int64_t *device);

/* ---- JSON, as far as a server writes it. Every function takes and gives a place in the text. */

static const char *past_blanks(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
  return at;
}

static const char *past_string(const char *at) {
  for (at++; *at && *at != '"'; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

static const char *past_value(const char *at) {
  at = past_blanks(at);
  if (*at == '"') return past_string(at);
  if (*at != '{' && *at != '[') {
    while (*at && !strchr(",]} \t\r\n", *at)) at++;
    return at;
  }
  int depth = 0;
  do {
    if (*at == '"') {
      at = past_string(at);
      continue;
    }
    if (*at == '{' || *at == '[') depth++;
    if (*at == '}' || *at == ']') depth--;
    if (*at) at++;
  } while (*at && depth > 0);
  return at;
}

/* The value of an object's member, or NULL. */
static const char *member(const char *object, const char *name) {
  size_t length = strlen(name);
  const char *at = object ? past_blanks(object) : "";
  if (*at != '{') return NULL;
  for (at = past_blanks(at + 1); *at == '"';) {
    const char *key = at + 1, *end = past_string(at);
    const char *value = past_blanks(past_blanks(end) + 1);
    if ((size_t)(end - 1 - key) == length && !memcmp(key, name, length)) return value;
    at = past_blanks(past_value(value));
    if (*at == ',') at = past_blanks(at + 1);
  }
  return NULL;
}

/* The first element of an array, or the one behind another; NULL behind the last. */
static const char *first(const char *array) {
  const char *at = array ? past_blanks(array) : "";
  if (*at != '[') return NULL;
  at = past_blanks(at + 1);
  return *at == ']' || !*at ? NULL : at;
}

static const char *next(const char *element) {
  const char *at = past_blanks(past_value(element));
  return *at == ',' ? past_blanks(at + 1) : NULL;
}

/* Whether a string of the text, without escapes, is this one. */
static int is(const char *string, const char *text) {
  size_t length = strlen(text);
  return string && *string == '"' && !strncmp(string + 1, text, length) && string[1 + length] == '"';
}

/* ---- What a model has. */

enum { DIMS = 64 };

typedef struct {
  char *name;
  int type;
  uint64_t width;
  uint32_t rank;
  int64_t dims[DIMS];
} Tensor;

typedef struct {
  int batches;
  uint32_t count;
  Tensor outputs[];
} Description;

static const struct {
  const char *name;
  uint64_t width;
} types[] = {{"TYPE_INVALID", 0}, {"TYPE_BOOL", 1},   {"TYPE_UINT8", 1}, {"TYPE_UINT16", 2}, {"TYPE_UINT32", 4},
             {"TYPE_UINT64", 8},  {"TYPE_INT8", 1},   {"TYPE_INT16", 2}, {"TYPE_INT32", 4},  {"TYPE_INT64", 8},
             {"TYPE_FP16", 2},    {"TYPE_FP32", 4},   {"TYPE_FP64", 8},  {"TYPE_STRING", 4}, /* an empty string's length */
             {"TYPE_BF16", 2}};

static void drop(Error *e) {
  if (e) TRITONSERVER_ErrorDelete(e);
}

static Error *failure(const char *text) { return TRITONSERVER_ErrorNew(CODE_INTERNAL, text); }

/* The text of a string, with escapes read as UTF-8. */
static char *text_of(const char *string) {
  const char *end = past_string(string);
  char *out = malloc(end - string + 1), *to = out;
  if (!out) return NULL;
  for (const char *at = string + 1; at < end - 1; at++) {
    if (*at != '\\') {
      *to++ = *at;
      continue;
    }
    at++;
    unsigned code = 0;
    if (*at == 'u' && sscanf(at + 1, "%4x", &code) == 1) {
      at += 4;
      if (code < 0x80) *to++ = code;
      else if (code < 0x800) *to++ = 0xc0 | code >> 6, *to++ = 0x80 | (code & 63);
      else *to++ = 0xe0 | code >> 12, *to++ = 0x80 | (code >> 6 & 63), *to++ = 0x80 | (code & 63);
      continue;
    }
    const char *known = strchr("n\nt\tr\rb\bf\f", *at);
    *to++ = known ? known[1] : *at;
  }
  *to = 0;
  return out;
}

static void read_tensor(const char *json, Tensor *t) {
  const char *name = member(json, "name"), *type = member(json, "data_type");
  t->name = name && *name == '"' ? text_of(name) : NULL;
  for (int i = 0; i < (int)(sizeof types / sizeof *types); i++)
    if (is(type, types[i].name)) t->type = i, t->width = types[i].width;
  const char *reshape = member(json, "reshape");
  const char *dims = reshape && *reshape == '{' ? member(reshape, "shape") : member(json, "dims");
  for (const char *d = first(dims); d && t->rank < DIMS - 1; d = next(d)) t->dims[t->rank++] = strtoll(*d == '"' ? d + 1 : d, NULL, 10);
}

static void forget(Description *d) {
  for (uint32_t i = 0; d && i < d->count; i++) free(d->outputs[i].name);
  free(d);
}

Error *TRITONBACKEND_ModelInitialize(Model *model) {
  Message *message;
  const char *base;
  size_t size;
  Error *e = TRITONBACKEND_ModelConfig(model, CONFIG_VERSION, &message);
  if (e) return e;
  if ((e = TRITONSERVER_MessageSerializeToJson(message, &base, &size))) return e;
  char *json = malloc(size + 1); /* the message's text has no end of its own */
  if (!json) return failure("out of memory");
  memcpy(json, base, size);
  json[size] = 0;
  drop(TRITONSERVER_MessageDelete(message));

  const char *outputs = member(json, "output"), *batch = member(json, "max_batch_size");
  uint32_t count = 0;
  for (const char *o = first(outputs); o; o = next(o)) count++;
  Description *d = calloc(1, sizeof *d + count * sizeof(Tensor));
  if (!d) {
    free(json);
    return failure("out of memory");
  }
  d->batches = batch && strtoll(batch, NULL, 10) > 0;
  for (const char *o = first(outputs); o; o = next(o)) read_tensor(o, &d->outputs[d->count++]);
  free(json);
  return TRITONBACKEND_ModelSetState(model, d);
}

Error *TRITONBACKEND_ModelFinalize(Model *model) {
  void *d;
  Error *e = TRITONBACKEND_ModelState(model, &d);
  if (!e) forget(d);
  return e;
}

/* ---- Answering. */

/* The shape of a request's first input; rank 0 without one. */
static uint32_t first_shape(Request *request, const int64_t **shape) {
  Input *input;
  const char *name;
  int type;
  uint32_t rank, buffers, count = 0;
  uint64_t bytes;
  Error *e = TRITONBACKEND_RequestInputCount(request, &count);
  if (e || !count || (e = TRITONBACKEND_RequestInputByIndex(request, 0, &input)) ||
      (e = TRITONBACKEND_InputProperties(input, &name, &type, shape, &rank, &bytes, &buffers))) {
    drop(e);
    return 0;
  }
  return rank;
}

static Error *answer_output(Response *response, const Description *d, const char *name, const int64_t *like, uint32_t rank) {
  const Tensor *t = NULL;
  for (uint32_t i = 0; i < d->count && !t; i++)
    if (d->outputs[i].name && !strcmp(d->outputs[i].name, name)) t = &d->outputs[i];
  if (!t) return failure("the configuration has no output of this name");

  int64_t shape[DIMS];
  uint32_t n = 0;
  uint64_t bytes = t->width;
  if (d->batches) shape[n++] = rank ? like[0] : 1;
  for (uint32_t i = 0; i < t->rank; i++, n++) shape[n] = t->dims[i] >= 0 ? t->dims[i] : n < rank ? like[n] : 1;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes)) return failure("the output is too large");

  Output *output;
  void *buffer = NULL;
  int memory = MEMORY_CPU;
  int64_t device = 0;
  Error *e = TRITONBACKEND_ResponseOutput(response, &output, name, t->type, shape, n);
  if (!e) e = TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &device);
  if (!e && bytes) memset(buffer, 0, bytes);
  return e;
}

static void answer(const Description *d, Request *request) {
  Response *response;
  const int64_t *like = NULL;
  uint32_t outputs = 0, rank = first_shape(request, &like);
  Error *e = TRITONBACKEND_ResponseNew(&response, request);
  if (e) {
    drop(e);
    return;
  }
  e = TRITONBACKEND_RequestOutputCount(request, &outputs);
  for (uint32_t i = 0; i < outputs && !e; i++) {
    const char *name;
    e = TRITONBACKEND_RequestOutputName(request, i, &name);
    if (!e) e = answer_output(response, d, name, like, rank);
  }
  drop(TRITONBACKEND_ResponseSend(response, FINAL, e));
  drop(e);
}

Error *TRITONBACKEND_ModelInstanceExecute(Instance *instance, Request **requests, uint32_t count) {
  Model *model;
  void *d;
  Error *e = TRITONBACKEND_ModelInstanceModel(instance, &model);
  if (e || (e = TRITONBACKEND_ModelState(model, &d))) return e;
  for (uint32_t i = 0; i < count; i++) {
    answer(d, requests[i]);
    drop(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
