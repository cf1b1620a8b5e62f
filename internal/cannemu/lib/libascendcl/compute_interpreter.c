// Computing with npuctl's own interpreter: a child process, asked over a socket that is its standard input
// and output. Numbers are little-endian, as they lie in memory here.
//
//   request  u8 1, u64 n, n bytes of ONNX                    load
//            u8 2, u32 model, u32 inputs, tensors            run
//            u8 3, u32 model                                 unload
//   reply    u32 status; then, when it is 0, u32 model (load) or u32 outputs, tensors (run);
//            and when it is not, u32 n, n bytes of text
//   tensor   u32 n, n bytes of name, i32 type, u32 rank, rank x i64 dims, u64 n, n bytes
//
// The command is NPUCTL_EMULATOR_INTERPRETER, for a shell, or "interpreter" in npuctl-emulator.json beside
// the library's folder: a string for a shell, or a list of arguments.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

enum { LOAD = 1, RUN = 2, UNLOAD = 3, MAX_ARGUMENTS = 16, MAX_TEXT = 1 << 20 };

static int link_to_child = -1;
static pthread_mutex_t child_lock = PTHREAD_MUTEX_INITIALIZER;  // one request at a time

extern char **environ;

// ---- starting it ----

static bool marker_command(char arguments[][512], int *number) {
  Dl_info info;
  char path[4200], folder[4096];
  void *text;
  size_t size, value_size;
  const char *value;
  if (dladdr((void *)(uintptr_t)&npuctl_emulator_enter, &info) == 0 || info.dli_fname == NULL) return false;
  snprintf(folder, sizeof folder, "%s", info.dli_fname);
  snprintf(path, sizeof path, "%s/../npuctl-emulator.json", dirname(folder));
  if (read_file(path, &text, &size) != 0) return false;
  bool found = json_member(text, size, "interpreter", &value, &value_size) && value != NULL;
  *number = found ? json_strings(value, value_size, arguments, MAX_ARGUMENTS) : -1;
  if (found && *number < 0) {
    *number = 3;
    strcpy(arguments[0], "/bin/sh");
    strcpy(arguments[1], "-c");
    found = json_string(value, value_size, arguments[2], 512);
  }
  free(text);
  return found && *number > 0;
}

static char *start_child(char *const *arguments) {
  int ends[2];
  pid_t child;
  posix_spawn_file_actions_t actions;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return strdup(strerror(errno));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  int error = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) {
    link_to_child = ends[0];
    return NULL;
  }
  close(ends[0]);
  char *why = NULL;
  return asprintf(&why, "start %s: %s", arguments[0], strerror(error)) < 0 ? strdup("start the interpreter") : why;
}

static char *start(void) {
  if (link_to_child >= 0) return NULL;
  char texts[MAX_ARGUMENTS][512];
  char *arguments[MAX_ARGUMENTS + 1] = {NULL};
  const char *command = getenv("NPUCTL_EMULATOR_INTERPRETER");
  int number = 0;
  if (command != NULL && *command) return start_child((char *const[]){"/bin/sh", "-c", (char *)(uintptr_t)command, NULL});
  if (!marker_command(texts, &number)) return strdup("no interpreter is named; NPUCTL_EMULATOR_INTERPRETER is the command");
  for (int i = 0; i < number; i++) arguments[i] = texts[i];
  return start_child(arguments);
}

// ---- talking to it ----

// After a broken link, every later request fails with the same message.
static bool put(const void *bytes, size_t size) {
  for (const char *at = bytes; size > 0;) {
    ssize_t sent = send(link_to_child, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

static bool get(void *bytes, size_t size) {
  for (char *at = bytes; size > 0;) {
    ssize_t got = recv(link_to_child, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= (size_t)got;
  }
  return true;
}

static bool put_u32(uint32_t value) { return put(&value, sizeof value); }
static bool put_u64(uint64_t value) { return put(&value, sizeof value); }
static bool get_u32(uint32_t *value) { return get(value, sizeof *value); }
static bool put_request(uint8_t request) { return put(&request, 1); }

static char *broken(void) { return strdup("the interpreter does not answer any more"); }

// Reads the status, and the text when it is not 0.
static char *get_status(void) {
  uint32_t status, size;
  if (!get_u32(&status)) return broken();
  if (status == 0) return NULL;
  if (!get_u32(&size) || size > MAX_TEXT) return broken();
  char *text = malloc(size + 1);
  if (text == NULL || !get(text, size)) {
    free(text);
    return broken();
  }
  text[size] = 0;
  return text;
}

static char *open_model(const void *model, size_t size, void **out) {
  uint32_t id = 0;
  pthread_mutex_lock(&child_lock);
  bool sent = put_request(LOAD) && put_u64(size) && put(model, size);
  char *why = sent ? get_status() : broken();
  if (why == NULL && !get_u32(&id)) why = broken();
  pthread_mutex_unlock(&child_lock);
  *out = (void *)(uintptr_t)id;
  return why;
}

static void close_model(void *handle) {
  pthread_mutex_lock(&child_lock);
  if (put_request(UNLOAD) && put_u32((uint32_t)(uintptr_t)handle)) free(get_status());
  pthread_mutex_unlock(&child_lock);
}

static bool put_tensor(const struct compute_tensor *tensor) {
  uint32_t name = (uint32_t)strlen(tensor->name);
  return put_u32(name) && put(tensor->name, name) && put_u32((uint32_t)tensor->type) && put_u32((uint32_t)tensor->rank) &&
         put(tensor->dims, tensor->rank * sizeof *tensor->dims) && put_u64(tensor->size) && put(tensor->bytes, tensor->size);
}

// Reads one result and hands it on. Once *why is set, results are read and thrown away: the link must come
// to the end of the reply.
static bool get_tensor(size_t index, compute_sink sink, void *receiver, int *code, char **why) {
  char name[ACL_MAX_TENSOR_NAME_LEN * 8];
  int64_t dims[ACL_MAX_DIM_CNT];
  uint32_t size, type, rank;
  uint64_t bytes;
  if (!get_u32(&size) || size >= sizeof name || !get(name, size)) return false;
  name[size] = 0;
  if (!get_u32(&type) || !get_u32(&rank) || rank > ACL_MAX_DIM_CNT || !get(dims, rank * sizeof *dims) || !get(&bytes, sizeof bytes)) return false;
  if (bytes != shape_bytes((int)type, rank, dims)) return false;
  void *data = malloc(bytes + 1);
  if (data == NULL || !get(data, bytes)) {
    free(data);
    return false;
  }
  struct compute_tensor tensor = {name, (int)type, rank, dims, data, bytes};
  if (*why == NULL && (*code = sink(receiver, index, &tensor)) != 0) *why = strdup("the result was refused");
  free(data);
  return true;
}

static char *run(void *handle, const struct compute_tensor *inputs, size_t input_count, compute_sink sink, void *receiver, int *code) {
  uint32_t outputs = 0;
  pthread_mutex_lock(&child_lock);
  bool sent = put_request(RUN) && put_u32((uint32_t)(uintptr_t)handle) && put_u32((uint32_t)input_count);
  for (size_t i = 0; sent && i < input_count; i++) sent = put_tensor(&inputs[i]);
  char *why = sent ? get_status() : broken();
  if (why == NULL && !get_u32(&outputs)) why = broken();
  bool whole = true;
  for (uint32_t i = 0; whole && i < outputs; i++) whole = get_tensor(i, sink, receiver, code, &why);
  if (!whole) {
    // What follows on the link has no meaning any more.
    shutdown(link_to_child, SHUT_RDWR);
    free(why);
    why = broken();
    *code = 0;
  }
  pthread_mutex_unlock(&child_lock);
  return why;
}

const struct compute_engine interpreter_engine = {"interpreter", start, open_model, close_model, run};
