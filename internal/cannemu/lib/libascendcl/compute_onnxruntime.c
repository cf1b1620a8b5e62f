// Computing with ONNX Runtime, whose library is looked for at run time. Its C API is declared by api.h and
// api.c of npuctl's own package onnxruntime.

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api.h"
#include "internal.h"

enum { LOG_FATAL = 4, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0, MAX_OUTPUTS = 4096, OLDEST_RELEASE = 17 };

static ort_library library;
static OrtEnv *environment;
static OrtMemoryInfo *main_memory;

struct session {
  OrtSession *session;
  size_t output_count;
  char **output_names;
};

// Turns a status into a message.
static char *message_of(OrtStatus *status) {
  if (status == NULL) return NULL;
  char *text = strdup(ort_GetErrorMessage(&library, status));
  ort_ReleaseStatus(&library, status);
  return text ? text : strdup("");
}

static char *message(const char *format, const char *detail) {
  char *text = NULL;
  return asprintf(&text, format, detail) < 0 ? strdup(format) : text;
}

// ---- finding the library ----

static unsigned release_of(const char *version) {
  unsigned major = 0, minor = 0;
  return sscanf(version, "%u.%u", &major, &minor) == 2 && major == 1 ? minor : 0;
}

// Opens the library at path. Returns NULL, or why not.
static char *open_file(const char *path) {
  char *why = ort_open(&library, path);
  if (why != NULL) return why;
  unsigned release = release_of(library.version);
  if (release >= OLDEST_RELEASE && ort_bind(&library, release)) return NULL;
  ort_close(&library);
  return message("%s is a release older than 1.17", path);
}

static int by_version(const void *a, const void *b) { return strverscmp(*(char *const *)b, *(char *const *)a); }

// Opens the newest of the libraries that a pattern finds.
static bool open_newest(const char *pattern, char **why) {
  glob_t found;
  bool done = false;
  if (glob(pattern, 0, NULL, &found) == 0) {
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_version);
    for (size_t i = 0; i < found.gl_pathc && !done; i++) {
      char *problem = open_file(found.gl_pathv[i]);
      done = problem == NULL;
      if (*why == NULL) *why = problem;
      else free(problem);
    }
  }
  globfree(&found);
  return done;
}

// The well-known places. Those that begin with a variable are left out where it is not set; the working
// directory is not among them, since opening a library runs its code.
static const struct {
  const char *variable, *below;
} places[] = {
    {"NPUCTL_CACHE", "onnxruntime/libonnxruntime.so*"},
    {"HOME", ".cache/npuctl/onnxruntime/libonnxruntime.so*"},
    {"", "usr/local/lib/libonnxruntime.so*"},
    {"", "usr/lib/libonnxruntime.so*"},
    {"", "usr/lib64/libonnxruntime.so*"},
    {"", "usr/lib/*-linux-gnu/libonnxruntime.so*"},
    {"VIRTUAL_ENV", "lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*"},
    {"CONDA_PREFIX", "lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*"},
    {"HOME", ".local/lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*"},
    {"", "usr/local/lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*"},
    {"", "usr/lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*"},
};

static char *find_library(void) {
  char pattern[4096];
  char *why = NULL;
  const char *named = getenv("NPUCTL_ORT_LIB");
  if (named != NULL && *named) {
    struct stat info;
    if (stat(named, &info) != 0 || !S_ISDIR(info.st_mode)) return open_file(named);
    snprintf(pattern, sizeof pattern, "%s/libonnxruntime.so*", named);
    if (open_newest(pattern, &why)) return NULL;
    return why ? why : message("NPUCTL_ORT_LIB=%s has no libonnxruntime.so", named);
  }
  for (size_t i = 0; i < COUNT(places); i++) {
    const char *folder = places[i].variable[0] ? getenv(places[i].variable) : "";
    if (folder == NULL || (places[i].variable[0] && *folder != '/')) continue;
    snprintf(pattern, sizeof pattern, "%s/%s", folder, places[i].below);
    if (!open_newest(pattern, &why)) continue;
    free(why);
    return NULL;
  }
  return why ? why : strdup("the ONNX Runtime library is not in any of the well-known places; NPUCTL_ORT_LIB names it");
}

static char *start(void) {
  if (environment != NULL) return NULL;
  char *why = find_library();
  if (why != NULL) return why;
  why = message_of(ort_CreateEnv(&library, LOG_FATAL, "npuctl emulator", &environment));
  if (why == NULL) why = message_of(ort_CreateCpuMemoryInfo(&library, ARENA_ALLOCATOR, DEFAULT_MEMORY, &main_memory));
  return why;
}

// ---- sessions ----

static void close_session(void *handle) {
  struct session *session = handle;
  if (session->session != NULL) ort_ReleaseSession(&library, session->session);
  for (size_t i = 0; i < session->output_count; i++) free(session->output_names[i]);
  free(session->output_names);
  free(session);
}

static char *read_output_names(struct session *session) {
  OrtAllocator *allocator;
  size_t number = 0;
  char *why = message_of(ort_GetAllocatorWithDefaultOptions(&library, &allocator));
  if (why == NULL) why = message_of(ort_SessionGetOutputCount(&library, session->session, &number));
  if (why != NULL) return why;
  if (number > MAX_OUTPUTS || (session->output_names = calloc(number + 1, sizeof(char *))) == NULL) return strdup("the model has too many outputs");
  for (size_t i = 0; i < number; i++) {
    char *name;
    if ((why = message_of(ort_SessionGetOutputName(&library, session->session, i, allocator, &name))) != NULL) return why;
    session->output_names[session->output_count++] = strdup(name);
    if ((why = message_of(ort_AllocatorFree(&library, allocator, name))) != NULL) return why;
  }
  return NULL;
}

// One thread a run: streams are what works side by side here.
static char *set_options(OrtSessionOptions *options) {
  int threads = (int)setting_number("NPUCTL_EMULATOR_THREADS", 1);
  char *why = message_of(ort_SetIntraOpNumThreads(&library, options, threads));
  if (why == NULL) why = message_of(ort_SetInterOpNumThreads(&library, options, 1));
  if (why == NULL) why = message_of(ort_SetSessionLogSeverityLevel(&library, options, LOG_FATAL));
  if (why == NULL) why = message_of(ort_AddSessionConfigEntry(&library, options, "session.intra_op.allow_spinning", "0"));
  return why;
}

static char *open_model(const void *model, size_t size, void **out) {
  struct session *session = calloc(1, sizeof *session);
  OrtSessionOptions *options = NULL;
  if (session == NULL) return strdup("no memory for a session");
  char *why = message_of(ort_CreateSessionOptions(&library, &options));
  if (why == NULL) why = set_options(options);
  if (why == NULL) why = message_of(ort_CreateSessionFromArray(&library, environment, model, size, options, &session->session));
  if (options != NULL) ort_ReleaseSessionOptions(&library, options);
  if (why == NULL) why = read_output_names(session);
  if (why == NULL) *out = session;
  else close_session(session);
  return why;
}

// ---- runs ----

static char *give_output(OrtValue *value, const char *name, size_t index, compute_sink sink, void *receiver, int *code) {
  OrtTensorInfo *info;
  int64_t dims[ACL_MAX_DIM_CNT];
  int type = 0;
  size_t rank = 0;
  void *bytes = NULL;
  char *why = message_of(ort_GetTensorTypeAndShape(&library, value, &info));
  if (why != NULL) return why;
  why = message_of(ort_GetTensorElementType(&library, info, &type));
  if (why == NULL) why = message_of(ort_GetDimensionsCount(&library, info, &rank));
  if (why == NULL && rank > ACL_MAX_DIM_CNT) why = strdup("an output has too many dims");
  if (why == NULL) why = message_of(ort_GetDimensions(&library, info, dims, rank));
  ort_ReleaseTensorTypeAndShapeInfo(&library, info);
  if (why == NULL) why = message_of(ort_GetTensorMutableData(&library, value, &bytes));
  if (why != NULL) return why;
  int acl_type = acl_type_of(type);
  struct compute_tensor tensor = {name, acl_type, rank, dims, bytes, shape_bytes(acl_type, rank, dims)};
  *code = sink(receiver, index, &tensor);
  return *code == 0 ? NULL : strdup("the result was refused");
}

static char *run(void *handle, const struct compute_tensor *inputs, size_t input_count, compute_sink sink, void *receiver, int *code) {
  struct session *session = handle;
  const char **names = calloc(input_count + 1, sizeof *names);
  OrtValue **values = calloc(input_count + session->output_count + 1, sizeof *values);
  char *why = names && values ? NULL : strdup("no memory for a run");
  for (size_t i = 0; why == NULL && i < input_count; i++) {
    names[i] = inputs[i].name;
    why = message_of(ort_CreateTensorWithDataAsOrtValue(&library, main_memory, inputs[i].bytes, inputs[i].size, inputs[i].dims, inputs[i].rank,
                                                        onnx_type_of(inputs[i].type), &values[i]));
  }
  OrtValue **outputs = values + input_count;
  if (why == NULL) {
    why = message_of(ort_Run(&library, session->session, NULL, names, (const OrtValue *const *)values, input_count,
                             (const char *const *)session->output_names, session->output_count, outputs));
  }
  for (size_t i = 0; why == NULL && i < session->output_count; i++) why = give_output(outputs[i], session->output_names[i], i, sink, receiver, code);
  for (size_t i = 0; values != NULL && i < input_count + session->output_count; i++) {
    if (values[i] != NULL) ort_ReleaseValue(&library, values[i]);
  }
  free(values);
  free(names);
  return why;
}

const struct compute_engine onnxruntime_engine = {"onnxruntime", start, open_model, close_session, run};
