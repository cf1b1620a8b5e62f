//go:build cgo && linux

#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Numbers of AscendCL's headers.
enum {
  SUCCESS = 0,
  REPEATED_START = 100002,  // somebody in this process has started it before
  OUT_OF_MEMORY = 200000,   // ACL_ERROR_BAD_ALLOC
  RUNS_ON_HOST = 1,         // ACL_HOST
  HUGE_PAGES_FIRST = 0,
  HOST_TO_DEVICE = 1,
  DEVICE_TO_HOST = 2,
  DEVICE_TO_DEVICE = 3,
  FORMAT_ND = 2,
  NOT_YET = 507046,    // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
  LOOK_UP_EVERY = 50,  // milliseconds
};

static char *message(const char *format, const char *what) {
  size_t bytes = strlen(format) + strlen(what) + 1;
  char *text = malloc(bytes);
  if (text != NULL) snprintf(text, bytes, format, what);
  return text;
}

static void *look_up(void *const *handles, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    void *found = dlsym(handles[i], name);
    if (found != NULL) return found;
  }
  return NULL;
}

// The libraries stay mapped: CANN's keep threads and static state that are not made
// to be unloaded.
char *acl_open(acl_library *library, const char *const *paths, int count) {
  void *handles[8];
  if (count > (int)(sizeof handles / sizeof *handles)) return message("%s", "too many libraries");
  for (int i = 0; i < count; i++) {
    // Their plug-ins look for symbols of the process.
    handles[i] = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL);
    if (handles[i] == NULL) {
      const char *why = dlerror();
      return message("%s", why ? why : "dlopen failed and does not say why");
    }
  }
  // A pointer to a function may be read through one to data: POSIX promises it for dlsym.
#define BIND(result, name, parameters)                                              \
  *(void **)&library->name = look_up(handles, count, #name);                        \
  if (library->name == NULL) return message("the library has no function %s", #name);
  ACL_FUNCTIONS(BIND)
#undef BIND
  library->emulated = look_up(handles, count, "npuctl_emulator_enter") != NULL;
  return NULL;
}

// note keeps what went wrong. The text belongs to this thread and to the next call:
// it must be fetched now.
static bool note(const acl_library *library, acl_failure *failure, int code, const char *call) {
  failure->code = code;
  failure->call = call;
  const char *text = library->aclGetRecentErrMsg();
  snprintf(failure->text, sizeof failure->text, "%s", text ? text : "");
  return false;
}

// TRY calls a function, and leaves the one around it when it fails.
#define TRY(function, ...)                                                              \
  do {                                                                                  \
    int code = library->function(__VA_ARGS__);                                          \
    if (code != SUCCESS) return note(library, failure, code, #function);                \
  } while (0)

// MAKE calls a function that gives an object or NULL.
#define MAKE(place, function, ...)                                                            \
  do {                                                                                        \
    (place) = library->function(__VA_ARGS__);                                                 \
    if ((place) == NULL) return note(library, failure, OUT_OF_MEMORY, #function);             \
  } while (0)

bool acl_start(const acl_library *library, bool *began, acl_failure *failure) {
  int code = library->aclInit(NULL);
  *began = code == SUCCESS;
  return code == SUCCESS || code == REPEATED_START || note(library, failure, code, "aclInit");
}

int acl_version(const acl_library *library, int32_t *major, int32_t *minor, int32_t *patch) {
  return library->aclrtGetVersion(major, minor, patch);
}

bool acl_devices(const acl_library *library, uint32_t *count, acl_failure *failure) {
  TRY(aclrtGetDeviceCount, count);
  return true;
}

void acl_stop(const acl_library *library) { library->aclFinalize(); }

bool acl_device_open(const acl_library *library, acl_device *device, int32_t number, acl_failure *failure) {
  device->number = number;
  TRY(aclrtSetDevice, number);
  int mode = RUNS_ON_HOST;
  int code = library->aclrtGetRunMode(&mode);
  const char *call = "aclrtGetRunMode";
  if (code == SUCCESS) {
    code = library->aclrtCreateContext(&device->context, number);
    call = "aclrtCreateContext";
  }
  if (code != SUCCESS) {
    note(library, failure, code, call);
    library->aclrtResetDevice(number);
    return false;
  }
  device->on_host = mode == RUNS_ON_HOST;
  return true;
}

const char *acl_device_chip(const acl_library *library, const acl_device *device) {
  if (library->aclrtSetCurrentContext(device->context) != SUCCESS) return NULL;
  return library->aclrtGetSocName();
}

void acl_device_close(const acl_library *library, acl_device *device) {
  library->aclrtSetCurrentContext(device->context);
  library->aclrtDestroyContext(device->context);
  library->aclrtResetDevice(device->number);
}

// describe fills a port from what the model says of it.
static bool describe(const acl_model *model, acl_port *port, size_t index, bool is_input, acl_failure *failure) {
  const acl_library *library = model->library;
  const char *name;
  if (is_input) {
    name = library->aclmdlGetInputNameByIndex(model->description, index);
    port->type = library->aclmdlGetInputDataType(model->description, index);
    port->bytes = library->aclmdlGetInputSizeByIndex(model->description, index);
    TRY(aclmdlGetInputDims, model->description, index, &port->dims);
  } else {
    name = library->aclmdlGetOutputNameByIndex(model->description, index);
    port->type = library->aclmdlGetOutputDataType(model->description, index);
    port->bytes = library->aclmdlGetOutputSizeByIndex(model->description, index);
    TRY(aclmdlGetOutputDims, model->description, index, &port->dims);
  }
  if (port->dims.dim_count > ACL_MOST_DIMS) port->dims.dim_count = ACL_MOST_DIMS;
  port->name = strdup(name ? name : "");
  if (port->name == NULL) return note(library, failure, OUT_OF_MEMORY, "strdup");
  return true;
}

static bool load(acl_model *model, const char *path, acl_failure *failure) {
  const acl_library *library = model->library;
  TRY(aclrtSetCurrentContext, model->device->context);
  TRY(aclmdlLoadFromFile, path, &model->id);
  model->loaded = true;
  MAKE(model->description, aclmdlCreateDesc);
  TRY(aclmdlGetDesc, model->description, model->id);
  TRY(aclrtCreateStream, &model->stream);
  model->input_count = library->aclmdlGetNumInputs(model->description);
  model->output_count = library->aclmdlGetNumOutputs(model->description);
  model->inputs = calloc(model->input_count + 1, sizeof *model->inputs);
  model->outputs = calloc(model->output_count + 1, sizeof *model->outputs);
  if (model->inputs == NULL || model->outputs == NULL) return note(library, failure, OUT_OF_MEMORY, "calloc");
  for (size_t i = 0; i < model->input_count; i++) {
    if (!describe(model, &model->inputs[i], i, true, failure)) return false;
  }
  for (size_t i = 0; i < model->output_count; i++) {
    if (!describe(model, &model->outputs[i], i, false, failure)) return false;
  }
  return true;
}

bool acl_model_load(acl_model *model, const acl_library *library, const acl_device *device, const char *path, acl_failure *failure) {
  *model = (acl_model){.library = library, .device = device};
  if (load(model, path, failure)) return true;
  acl_model_close(model);
  return false;
}

static void free_ports(const acl_library *library, acl_port *ports, size_t count) {
  for (size_t i = 0; ports != NULL && i < count; i++) {
    if (ports[i].memory != NULL) library->aclrtFree(ports[i].memory);
    free(ports[i].name);
  }
  free(ports);
}

void acl_model_close(acl_model *model) {
  const acl_library *library = model->library;
  library->aclrtSetCurrentContext(model->device->context);
  if (model->stream != NULL) {
    library->aclrtSynchronizeStream(model->stream);
    library->aclrtDestroyStream(model->stream);
  }
  if (model->description != NULL) library->aclmdlDestroyDesc(model->description);
  if (model->loaded) library->aclmdlUnload(model->id);
  free_ports(library, model->inputs, model->input_count);
  free_ports(library, model->outputs, model->output_count);
  *model = (acl_model){0};
}

// A data set under construction: the runtime's list of buffers, which it does not own.
typedef struct {
  void *set;
  void **buffers;
  size_t count;
} dataset;

static void drop(const acl_library *library, dataset *d) {
  for (size_t i = 0; i < d->count; i++) library->aclDestroyDataBuffer(d->buffers[i]);
  if (d->set != NULL) library->aclmdlDestroyDataset(d->set);
  free(d->buffers);
  *d = (dataset){0};
}

static bool begin(const acl_library *library, dataset *d, size_t count, acl_failure *failure) {
  d->buffers = calloc(count + 1, sizeof *d->buffers);
  if (d->buffers == NULL) return note(library, failure, OUT_OF_MEMORY, "calloc");
  MAKE(d->set, aclmdlCreateDataset);
  return true;
}

static bool append(const acl_library *library, dataset *d, void *memory, size_t bytes, acl_failure *failure) {
  void *buffer;
  MAKE(buffer, aclCreateDataBuffer, memory, bytes);
  d->buffers[d->count++] = buffer;
  TRY(aclmdlAddDatasetBuffer, d->set, buffer);
  return true;
}

// reserve gives a port memory on the device, once.
static bool reserve(const acl_library *library, acl_port *port, size_t bytes, acl_failure *failure) {
  if (port->memory != NULL || bytes == 0) return true;
  TRY(aclrtMalloc, &port->memory, bytes, HUGE_PAGES_FIRST);
  return true;
}

// renew gives a port of open shape memory for this run.
static bool renew(const acl_library *library, acl_port *port, size_t bytes, acl_failure *failure) {
  if (port->memory != NULL) TRY(aclrtFree, port->memory);
  port->memory = NULL;
  return reserve(library, port, bytes ? bytes : 1, failure);
}

static bool fill_inputs(acl_model *model, int gear, size_t hidden, const acl_array *inputs, dataset *d, acl_failure *failure) {
  const acl_library *library = model->library;
  int kind = model->device->on_host ? HOST_TO_DEVICE : DEVICE_TO_DEVICE;
  for (size_t i = 0; i < model->input_count; i++) {
    acl_port *port = &model->inputs[i];
    bool open = gear == ACL_OPEN_SHAPE;
    size_t bytes = open ? inputs[i].bytes : port->bytes;
    if (!(open ? renew(library, port, bytes, failure) : reserve(library, port, bytes, failure))) return false;
    if (i != hidden) TRY(aclrtMemcpy, port->memory, bytes, inputs[i].data, inputs[i].bytes, kind);
    if (!append(library, d, port->memory, bytes, failure)) return false;
    if (!open) continue;
    void *tensor;
    MAKE(tensor, aclCreateTensorDesc, port->type, (int)inputs[i].dims.dim_count, inputs[i].dims.dims, FORMAT_ND);
    int code = library->aclmdlSetDatasetTensorDesc(d->set, tensor, i);
    library->aclDestroyTensorDesc(tensor);
    if (code != SUCCESS) return note(library, failure, code, "aclmdlSetDatasetTensorDesc");
  }
  return true;
}

static bool place_outputs(acl_model *model, int gear, dataset *d, acl_failure *failure) {
  const acl_library *library = model->library;
  for (size_t i = 0; i < model->output_count; i++) {
    acl_port *port = &model->outputs[i];
    if (gear == ACL_OPEN_SHAPE) {
      // The runtime makes the memory, which then is ours: an earlier run's is given back.
      if (port->memory != NULL) TRY(aclrtFree, port->memory);
      port->memory = NULL;
    } else if (!reserve(library, port, port->bytes, failure)) {
      return false;
    }
    if (!append(library, d, port->memory, gear == ACL_OPEN_SHAPE ? 0 : port->bytes, failure)) return false;
  }
  return true;
}

static bool set_gear(acl_model *model, int gear, const acl_dims *dims, size_t hidden, dataset *d, acl_failure *failure) {
  const acl_library *library = model->library;
  switch (gear) {
    case ACL_BATCH_GEAR:
      TRY(aclmdlSetDynamicBatchSize, model->id, d->set, hidden, (uint64_t)dims->dims[0]);
      break;
    case ACL_IMAGE_GEAR:
      TRY(aclmdlSetDynamicHWSize, model->id, d->set, hidden, (uint64_t)dims->dims[0], (uint64_t)dims->dims[1]);
      break;
    case ACL_DIMS_GEAR:
      TRY(aclmdlSetInputDynamicDims, model->id, d->set, hidden, dims);
      break;
  }
  return true;
}

// read_outputs says which dims and bytes the outputs of a run have.
static bool read_outputs(acl_model *model, int gear, dataset *d, acl_array *outputs, acl_failure *failure) {
  const acl_library *library = model->library;
  for (size_t i = 0; i < model->output_count; i++) {
    acl_port *port = &model->outputs[i];
    if (gear != ACL_OPEN_SHAPE) {
      outputs[i].dims = port->dims;
      if (gear != ACL_NO_GEAR) TRY(aclmdlGetCurOutputDims, model->description, i, &outputs[i].dims);
      outputs[i].bytes = port->bytes;
      continue;
    }
    void *tensor;
    MAKE(tensor, aclmdlGetDatasetTensorDesc, d->set, i);
    size_t rank = library->aclGetTensorDescNumDims(tensor);
    outputs[i].dims.dim_count = rank > ACL_MOST_DIMS ? ACL_MOST_DIMS : rank;
    for (size_t axis = 0; axis < outputs[i].dims.dim_count; axis++) {
      TRY(aclGetTensorDescDimV2, tensor, axis, &outputs[i].dims.dims[axis]);
    }
    outputs[i].bytes = library->aclGetTensorDescSize(tensor);
  }
  return true;
}

// wait waits for the stream, and now and then looks whether somebody wants to give up.
static bool wait(acl_model *model, acl_failure *failure) {
  for (;;) {
    int code = model->library->aclrtSynchronizeStreamWithTimeout(model->stream, LOOK_UP_EVERY);
    if (code == SUCCESS) return true;
    if (code != NOT_YET) return note(model->library, failure, code, "aclrtSynchronizeStreamWithTimeout");
    model->library->aclGetRecentErrMsg();  // that it takes longer is no failure
    if (__atomic_load_n(&model->stop, __ATOMIC_ACQUIRE)) {
      model->abandoned = true;
      failure->code = 0;
      failure->call = "aclrtSynchronizeStreamWithTimeout";
      return false;
    }
  }
}

void acl_model_stop(acl_model *model) { __atomic_store_n(&model->stop, 1, __ATOMIC_RELEASE); }

// own takes what the runtime made for outputs of open shape: it is the model's from now on, whether the run
// succeeded or broke off half-way.
static void own(acl_model *model, const dataset *out) {
  for (size_t i = 0; i < model->output_count; i++) model->outputs[i].memory = model->library->aclGetDataBufferAddr(out->buffers[i]);
}

static bool run(acl_model *model, int gear, const acl_dims *gear_dims, size_t hidden, const acl_array *inputs, acl_array *outputs,
                dataset *in, dataset *out, acl_failure *failure) {
  const acl_library *library = model->library;
  TRY(aclrtSetCurrentContext, model->device->context);
  if (!begin(library, in, model->input_count, failure) || !fill_inputs(model, gear, hidden, inputs, in, failure)) return false;
  if (!begin(library, out, model->output_count, failure) || !place_outputs(model, gear, out, failure)) return false;
  if (!set_gear(model, gear, gear_dims, hidden, in, failure)) return false;
  if (gear == ACL_OPEN_SHAPE) {
    // The synchronous call is the one that every release makes outputs with.
    int code = library->aclmdlExecute(model->id, in->set, out->set);
    if (code != SUCCESS) note(library, failure, code, "aclmdlExecute");
    own(model, out);
    if (code != SUCCESS) return false;
  } else {
    TRY(aclmdlExecuteAsync, model->id, in->set, out->set, model->stream);
    if (!wait(model, failure)) return false;
  }
  return read_outputs(model, gear, out, outputs, failure);
}

bool acl_model_run(acl_model *model, int gear, const acl_dims *gear_dims, size_t hidden, const acl_array *inputs, acl_array *outputs, acl_failure *failure) {
  dataset in = {0}, out = {0};
  bool done = run(model, gear, gear_dims, hidden, inputs, outputs, &in, &out, failure);
  drop(model->library, &in);
  drop(model->library, &out);
  return done;
}

bool acl_model_fetch(acl_model *model, size_t output, void *to, size_t bytes, acl_failure *failure) {
  const acl_library *library = model->library;
  TRY(aclrtSetCurrentContext, model->device->context);
  if (bytes > 0) {
    TRY(aclrtMemcpy, to, bytes, model->outputs[output].memory, bytes, model->device->on_host ? DEVICE_TO_HOST : DEVICE_TO_DEVICE);
  }
  return true;
}
