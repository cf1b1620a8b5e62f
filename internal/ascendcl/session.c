//go:build cgo && linux

#include "api.h"
#include "try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Numbers of AscendCL's headers.
enum {
  HUGE_PAGES_FIRST = 0,
  HOST_TO_DEVICE = 1,
  DEVICE_TO_HOST = 2,
  DEVICE_TO_DEVICE = 3,
  FORMAT_ND = 2,
  TAKES_TIME = 8,    // ACL_EVENT_TIME_LINE
  NOT_YET = 507046,  // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
  OUTPUT_DOES_NOT_MATCH = 100018,  // ACL_ERROR_MODEL_OUTPUT_NOT_MATCH
};

enum {
  LOOK_UP_EVERY = 50,     // milliseconds that a call waits for the end of a run
  GIVE_UP_AFTER = 10000,  // milliseconds that are waited for tasks of which nobody wants the result
  SOME_BYTES = 64,        // an address is needed where there are no bytes, too
};

// Of a model of open shape, memory for the upper bounds is made ahead only when it takes no more than this.
static const size_t MOST_AHEAD = (size_t)64 << 20;

static const char gear_input[] = "ascend_mbatch_shape_data";

// ---- the weights ----

bool acl_shared_open(acl_shared *shared, acl_failure *failure) {
  const acl_library *library = shared->library;
  if (!shared->lends) return true;
  TRY(aclrtSetCurrentContext, shared->device->context);
  TRY(aclmdlQuerySize, shared->path, &shared->work_bytes, &shared->weight_bytes);
  if (shared->weight_bytes > 0) TRY(aclrtMalloc, &shared->weights, shared->weight_bytes, HUGE_PAGES_FIRST);
  return true;
}

void acl_shared_close(acl_shared *shared) {
  const acl_library *library = shared->library;
  if (shared->weights != NULL) {
    library->aclrtSetCurrentContext(shared->device->context);
    library->aclrtFree(shared->weights);
  }
  free(shared->path);
  *shared = (acl_shared){0};
}

// ---- making a session ----

// describe fills a port from what the model says of it.
static bool describe(acl_session *session, acl_port *port, size_t index, bool is_input) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  const char *name;
  if (is_input) {
    name = library->aclmdlGetInputNameByIndex(session->description, index);
    port->type = library->aclmdlGetInputDataType(session->description, index);
    port->bytes = library->aclmdlGetInputSizeByIndex(session->description, index);
    TRY(aclmdlGetInputDims, session->description, index, &port->dims);
    if (name != NULL && strcmp(name, gear_input) == 0) session->hidden = index;
  } else {
    name = library->aclmdlGetOutputNameByIndex(session->description, index);
    port->type = library->aclmdlGetOutputDataType(session->description, index);
    port->bytes = library->aclmdlGetOutputSizeByIndex(session->description, index);
    TRY(aclmdlGetOutputDims, session->description, index, &port->dims);
  }
  if (port->dims.dim_count > ACL_MOST_DIMS) port->dims.dim_count = ACL_MOST_DIMS;
  port->now = port->dims;
  port->is_new = true;
  port->name = strdup(name ? name : "");
  if (port->name == NULL) return acl_note(library, failure, OUT_OF_MEMORY, "strdup");
  return true;
}

static bool describe_all(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  MAKE(session->description, aclmdlCreateDesc);
  TRY(aclmdlGetDesc, session->description, session->id);
  session->input_count = library->aclmdlGetNumInputs(session->description);
  session->output_count = library->aclmdlGetNumOutputs(session->description);
  session->inputs = calloc(session->input_count + 1, sizeof *session->inputs);
  session->outputs = calloc(session->output_count + 1, sizeof *session->outputs);
  if (session->inputs == NULL || session->outputs == NULL) return acl_note(library, failure, OUT_OF_MEMORY, "calloc");
  for (size_t i = 0; i < session->input_count; i++) {
    if (!describe(session, &session->inputs[i], i, true)) return false;
  }
  for (size_t i = 0; i < session->output_count; i++) {
    if (!describe(session, &session->outputs[i], i, false)) return false;
  }
  return true;
}

// One model must not run on two streams at once, so every session loads it for itself, with memory of its own to
// work in; only the weights, which no run writes, are the same memory for all.
bool acl_session_load(acl_session *session, const acl_shared *shared) {
  const acl_library *library = shared->library;
  acl_failure *failure = &session->failure;
  *session = (acl_session){.shared = shared, .hidden = ACL_NO_HIDDEN};
  TRY(aclrtCreateContext, &session->context, shared->device->number);
  TRY(aclrtCreateStream, &session->stream);
  for (int i = 0; i < ACL_MARKS; i++) TRY(aclrtCreateEventExWithFlag, &session->marks[i], TAKES_TIME);
  if (shared->lends) {
    if (shared->work_bytes > 0) TRY(aclrtMalloc, &session->work, shared->work_bytes, HUGE_PAGES_FIRST);
    TRY(aclmdlLoadFromFileWithMem, shared->path, &session->id, session->work, shared->work_bytes, shared->weights, shared->weight_bytes);
  } else {
    TRY(aclmdlLoadFromFile, shared->path, &session->id);
  }
  session->loaded = true;
  return describe_all(session);
}

static bool is_open(const acl_session *session, const acl_port *port) {
  if (session->hidden != ACL_NO_HIDDEN) return false;
  for (size_t i = 0; i < port->dims.dim_count; i++) {
    if (port->dims.dims[i] < 0) return true;
  }
  return port->bytes == 0;
}

// reserve makes memory of the device for a port, reserve_host pinned memory of the host. What there is stays when it
// is large enough, and is given up first when it is not.
static bool reserve(acl_session *session, acl_port *port, size_t bytes) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  if (bytes < SOME_BYTES) bytes = SOME_BYTES;
  if (bytes <= port->room) return true;
  void *old = port->memory;
  port->memory = NULL;
  port->room = 0;
  if (old != NULL) TRY(aclrtFree, old);
  TRY(aclrtMalloc, &port->memory, bytes, HUGE_PAGES_FIRST);
  port->room = bytes;
  return true;
}

static bool reserve_host(acl_session *session, acl_port *port, size_t bytes) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  if (bytes < SOME_BYTES) bytes = SOME_BYTES;
  if (bytes <= port->host_room) return true;
  void *old = port->host;
  port->host = NULL;
  port->host_room = 0;
  if (old != NULL) TRY(aclrtFreeHost, old);
  TRY(aclrtMallocHost, &port->host, bytes);
  port->host_room = bytes;
  return true;
}

// allocate makes the memory of a port for its largest size, where that is known, and puts it into its data set.
static bool allocate(acl_session *session, acl_port *port, void *set, bool host) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  bool later = is_open(session, port) && (port->bytes == 0 || port->bytes > MOST_AHEAD);
  if (later) port->bytes = 0;
  else if (!reserve(session, port, port->bytes) || (host && !reserve_host(session, port, port->bytes))) return false;
  MAKE(port->buffer, aclCreateDataBuffer, port->memory, port->bytes);
  TRY(aclmdlAddDatasetBuffer, set, port->buffer);
  return true;
}

bool acl_session_allocate(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtSetCurrentContext, session->context);
  MAKE(session->input_set, aclmdlCreateDataset);
  MAKE(session->output_set, aclmdlCreateDataset);
  for (size_t i = 0; i < session->input_count; i++) {
    if (!allocate(session, &session->inputs[i], session->input_set, i != session->hidden)) return false;
  }
  for (size_t i = 0; i < session->output_count; i++) {
    if (!allocate(session, &session->outputs[i], session->output_set, true)) return false;
  }
  return true;
}

bool acl_session_limit(acl_session *session, int kind, uint32_t cores) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtSetCurrentContext, session->context);
  TRY(aclrtSetStreamResLimit, session->stream, kind, cores);
  session->limited = true;
  return true;
}

bool acl_session_reserve(acl_session *session, size_t input, size_t bytes) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtSetCurrentContext, session->context);
  acl_port *port = &session->inputs[input];
  port->is_new = true;
  return reserve(session, port, bytes) && reserve_host(session, port, bytes);
}

// ---- its end ----

static void free_ports(const acl_library *library, acl_port *ports, size_t count) {
  for (size_t i = 0; ports != NULL && i < count; i++) {
    if (ports[i].memory != NULL) library->aclrtFree(ports[i].memory);
    if (ports[i].host != NULL) library->aclrtFreeHost(ports[i].host);
    free(ports[i].name);
  }
  free(ports);
}

static void destroy_buffers(const acl_library *library, acl_port *ports, size_t count) {
  for (size_t i = 0; ports != NULL && i < count; i++) {
    if (ports[i].buffer != NULL) library->aclDestroyDataBuffer(ports[i].buffer);
  }
}

void acl_session_close(acl_session *session) {
  const acl_library *library = session->shared->library;
  if (session->context == NULL) return;  // not even begun
  library->aclrtSetCurrentContext(session->context);
  destroy_buffers(library, session->inputs, session->input_count);
  destroy_buffers(library, session->outputs, session->output_count);
  if (session->input_set != NULL) library->aclmdlDestroyDataset(session->input_set);
  if (session->output_set != NULL) library->aclmdlDestroyDataset(session->output_set);
  if (session->description != NULL) library->aclmdlDestroyDesc(session->description);
  if (session->loaded) library->aclmdlUnload(session->id);
  free_ports(library, session->inputs, session->input_count);
  free_ports(library, session->outputs, session->output_count);
  if (session->work != NULL) library->aclrtFree(session->work);
  for (int i = 0; i < ACL_MARKS; i++) {
    if (session->marks[i] != NULL) library->aclrtDestroyEvent(session->marks[i]);
  }
  if (session->stream != NULL) library->aclrtDestroyStream(session->stream);
  library->aclrtDestroyContext(session->context);
  *session = (acl_session){0};
}

// ---- runs ----

// enter binds the thread to the session. The limits of a stream count for launches of a thread that says so.
static bool enter(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtSetCurrentContext, session->context);
  if (session->limited) TRY(aclrtUseStreamResInCurrentThread, session->stream);
  return true;
}

static void leave(acl_session *session) {
  if (session->limited) session->shared->library->aclrtUnuseStreamResInCurrentThread(session->stream);
}

static bool mark(acl_session *session, int which) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtRecordEvent, session->marks[which], session->stream);
  session->in_flight = true;
  return true;
}

static bool between(acl_session *session, int from, float *milliseconds) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  TRY(aclrtEventElapsedTime, milliseconds, session->marks[from], session->marks[from + 1]);
  return true;
}

static bool copy_in(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  int kind = session->shared->device->on_host ? HOST_TO_DEVICE : DEVICE_TO_DEVICE;
  for (size_t i = 0; i < session->input_count; i++) {
    acl_port *port = &session->inputs[i];
    if (i == session->hidden || port->now_bytes == 0) continue;
    TRY(aclrtMemcpyAsync, port->memory, port->room, port->host, port->now_bytes, kind, session->stream);
  }
  return true;
}

static bool copy_out(acl_session *session, const acl_port *port, const void *memory) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  int kind = session->shared->device->on_host ? DEVICE_TO_HOST : DEVICE_TO_DEVICE;
  if (port->now_bytes > 0) TRY(aclrtMemcpyAsync, port->host, port->host_room, memory, port->now_bytes, kind, session->stream);
  return true;
}

// size says how many bytes an output has in its dims of now; it fails where there are not so many.
static bool size(acl_session *session, acl_port *port, size_t most, const char *call) {
  uint64_t elements = 1, bits = 0;
  bool fits = port->now.dim_count <= ACL_MOST_DIMS;
  for (size_t i = 0; fits && i < port->now.dim_count; i++) {
    int64_t dim = port->now.dims[i];
    fits = dim >= 0 && !__builtin_mul_overflow(elements, (uint64_t)dim, &elements);
  }
  fits = fits && !__builtin_mul_overflow(elements, (uint64_t)port->bits, &bits);
  port->now_bytes = fits ? bits / 8 + (bits % 8 != 0) : 0;
  if (fits && port->now_bytes <= most) return true;
  acl_failure *failure = &session->failure;
  failure->code = OUTPUT_DOES_NOT_MATCH;
  failure->call = call;
  snprintf(failure->text, sizeof failure->text, "output %s has dims that do not suit its %zu bytes", port->name, most);
  return false;
}

// choose tells the runtime the gear, and asks for the dims of the outputs in it. Both stay as they are until the next
// gear, as the data set and the hidden input are the same in every run.
static bool choose(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  const int64_t *values = session->values.dims;
  switch (session->gear) {
    case ACL_BATCH_GEAR:
      TRY(aclmdlSetDynamicBatchSize, session->id, session->input_set, session->hidden, (uint64_t)values[0]);
      break;
    case ACL_IMAGE_GEAR:
      TRY(aclmdlSetDynamicHWSize, session->id, session->input_set, session->hidden, (uint64_t)values[0], (uint64_t)values[1]);
      break;
    case ACL_DIMS_GEAR:
      TRY(aclmdlSetInputDynamicDims, session->id, session->input_set, session->hidden, &session->values);
      break;
  }
  for (size_t i = 0; i < session->output_count; i++) {
    acl_port *port = &session->outputs[i];
    if (session->gear != ACL_NO_GEAR) TRY(aclmdlGetCurOutputDims, session->description, i, &port->now);
    if (!size(session, port, port->room, "aclmdlGetCurOutputDims")) return false;
  }
  session->gear_set = true;
  return true;
}

static bool launch(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  if (!session->gear_set && !choose(session)) return false;
  if (!mark(session, 0) || !copy_in(session) || !mark(session, 1)) return false;
  TRY(aclmdlExecuteAsync, session->id, session->input_set, session->output_set, session->stream);
  if (!mark(session, 2)) return false;
  for (size_t i = 0; i < session->output_count; i++) {
    if (!copy_out(session, &session->outputs[i], session->outputs[i].memory)) return false;
  }
  return mark(session, 3);
}

static bool read_times(acl_session *session) {
  return between(session, 0, &session->h2d) && between(session, 1, &session->compute) && between(session, 2, &session->d2h);
}

static int failed(acl_session *session) {
  session->gear_set = false;
  return ACL_FAILED;
}

// look waits a while for the stream. A run that failed as it was launched is waited for as well: what had been put
// into the stream by then uses the memory of the session.
static int look(acl_session *session) {
  const acl_library *library = session->shared->library;
  int code = library->aclrtSynchronizeStreamWithTimeout(session->stream, LOOK_UP_EVERY);
  if (code == NOT_YET) {
    library->aclGetRecentErrMsg();  // that it takes longer is no failure
    return ACL_UNDER_WAY;
  }
  session->in_flight = false;
  if (session->failing) return failed(session);
  if (code != SUCCESS) {
    acl_note(library, &session->failure, code, "aclrtSynchronizeStreamWithTimeout");
    return failed(session);
  }
  return read_times(session) ? ACL_DONE : failed(session);
}

int acl_session_start(acl_session *session) {
  session->failing = false;
  if (!enter(session)) return failed(session);
  session->failing = !launch(session);
  leave(session);
  return session->failing && !session->in_flight ? failed(session) : look(session);
}

int acl_session_wait(acl_session *session) {
  const acl_library *library = session->shared->library;
  int code = library->aclrtSetCurrentContext(session->context);
  if (code == SUCCESS) return look(session);
  acl_note(library, &session->failure, code, "aclrtSetCurrentContext");
  return failed(session);
}

// ---- runs of open shape ----

// tell gives the runtime the shape of an input, where it is another than in the run before.
static bool tell(acl_session *session, size_t index) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  acl_port *port = &session->inputs[index];
  if (!port->is_new) return true;
  TRY(aclUpdateDataBuffer, port->buffer, port->memory, port->now_bytes);
  void *tensor;
  MAKE(tensor, aclCreateTensorDesc, port->type, (int)port->now.dim_count, port->now.dims, FORMAT_ND);
  int code = library->aclmdlSetDatasetTensorDesc(session->input_set, tensor, index);
  library->aclDestroyTensorDesc(tensor);
  if (code != SUCCESS) return acl_note(library, failure, code, "aclmdlSetDatasetTensorDesc");
  port->is_new = false;
  return true;
}

// read_shape asks which shape an output has got, and makes the memory of the host large enough for it.
static bool read_shape(acl_session *session, size_t index) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  acl_port *port = &session->outputs[index];
  void *tensor;
  MAKE(tensor, aclmdlGetDatasetTensorDesc, session->output_set, index);
  size_t rank = library->aclGetTensorDescNumDims(tensor);
  port->now.dim_count = rank;
  for (size_t axis = 0; axis < rank && axis < ACL_MOST_DIMS; axis++) TRY(aclGetTensorDescDimV2, tensor, axis, &port->now.dims[axis]);
  size_t has = library->aclGetTensorDescSize(tensor);
  if (!size(session, port, has, "aclmdlGetDatasetTensorDesc")) return false;
  return port->now_bytes <= port->host_room || reserve_host(session, port, 2 * port->now_bytes);
}

// release gives back what the runtime made for outputs; the memory that is the port's own stays.
static bool release(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  bool done = true;
  for (size_t i = 0; i < session->output_count; i++) {
    acl_port *port = &session->outputs[i];
    void *made = library->aclGetDataBufferAddr(port->buffer);
    if (made == port->memory) continue;
    library->aclUpdateDataBuffer(port->buffer, port->memory, port->bytes);
    int code = library->aclrtFree(made);
    if (code != SUCCESS && done) done = acl_note(library, failure, code, "aclrtFree");
  }
  return done;
}

static bool synchronize(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  session->in_flight = false;
  TRY(aclrtSynchronizeStream, session->stream);
  return true;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// The call that waits is the one with which every release makes outputs of open shape. It is the host's clock that
// says how long it took.
static bool execute_open(acl_session *session) {
  const acl_library *library = session->shared->library;
  acl_failure *failure = &session->failure;
  if (!mark(session, 0) || !copy_in(session) || !mark(session, 1)) return false;
  for (size_t i = 0; i < session->input_count; i++) {
    if (!tell(session, i)) return false;
  }
  if (!synchronize(session)) return false;
  double began = now();
  TRY(aclmdlExecute, session->id, session->input_set, session->output_set);
  session->compute = (float)(now() - began);
  if (!mark(session, 2)) return false;
  for (size_t i = 0; i < session->output_count; i++) {
    acl_port *port = &session->outputs[i];
    if (!read_shape(session, i) || !copy_out(session, port, library->aclGetDataBufferAddr(port->buffer))) return false;
  }
  if (!mark(session, 3) || !synchronize(session)) return false;
  return between(session, 0, &session->h2d) && between(session, 2, &session->d2h);
}

// drain waits until the stream is empty; what its tasks came to does not matter any more.
static bool drain(acl_session *session) {
  const acl_library *library = session->shared->library;
  if (!session->in_flight) return true;
  if (library->aclrtSynchronizeStreamWithTimeout(session->stream, GIVE_UP_AFTER) == NOT_YET) return false;
  session->in_flight = false;
  return true;
}

int acl_session_run_open(acl_session *session) {
  if (!enter(session)) return ACL_FAILED;
  bool done = execute_open(session);
  leave(session);
  if (!done && !drain(session)) return ACL_FAILED;  // what is still in the stream uses the outputs
  if (!release(session)) done = false;
  return done ? ACL_DONE : ACL_FAILED;
}
