// Loading and unloading models.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

static struct model *models;
static uint32_t last_id;

struct model *model_find_locked(uint32_t id) {
  struct model *model = models;
  while (model != NULL && model->id != id) model = model->next;
  return model;
}

struct model *model_next_locked(const struct model *model) { return model ? model->next : models; }

int model_for_call_locked(uint32_t id, struct model **out) {
  *out = model_find_locked(id);
  if (*out == NULL) return FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "there is no model %u", id);
  struct context *context;
  int code = current_context_locked(&context);
  if (code != 0) return code;
  if ((*out)->context == context) return 0;
  return FAIL(ACL_ERROR_RT_MODEL_CONTEXT, "model %u was loaded under another context than the current one", id);
}

// ---- loading ----

// How a program asks for a model: by file or from memory, with or without memory to work in.
struct request {
  const char *path;
  const void *bytes;
  size_t size;
  void *memory[2];  // work, weights; NULL: the runtime takes it
  size_t memory_size[2];
};

static const char *const memory_names[2] = {"work memory", "weight memory"};

// A card runs code for cores of its own architecture alone. Where nobody chose a chip, the emulated device takes
// a model for any: its default is no wish of anybody. But then all models on it must be for the same architecture,
// as on every card. Files that do not say what they are for pass, here as there.
static int check_soc_locked(const struct om *om, const struct device *device) {
  if (om->soc[0] == 0) return 0;
  const char *chosen = chosen_soc();
  if (chosen != NULL && !runs_code_of(chosen, om->soc)) {
    return FAIL(ACL_ERROR_RT_SOC_VERSION, "the model was compiled for %s, and NPUCTL_EMULATOR_SOC says that this is %s", om->soc, chosen);
  }
  for (const struct model *other = models; chosen == NULL && other != NULL; other = other->next) {
    if (other->device != device || other->om->soc[0] == 0 || runs_code_of(other->om->soc, om->soc)) continue;
    return FAIL(ACL_ERROR_RT_SOC_VERSION, "the model was compiled for %s, and model %u on device %d for %s: no chip runs both", om->soc, other->id,
                device->id, other->om->soc);
  }
  return 0;
}

static int check_soc(const struct om *om, const struct device *device) {
  pthread_mutex_lock(&emulator_lock);
  int code = check_soc_locked(om, device);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static int take_memory(struct model *model, const struct request *request, int which, uint64_t wanted) {
  if (request->memory[which] == NULL) {
    // A model without weights still has an address for them.
    return device_malloc(model->device, wanted > 0 ? wanted : 64, true, &model->own[which]);
  }
  if (request->memory_size[which] < wanted) {
    return FAIL(ACL_ERROR_GE_PARAM_INVALID, "the %s has %zu bytes, and the model needs %llu", memory_names[which], request->memory_size[which],
                (unsigned long long)wanted);
  }
  return span_device(request->memory[which], request->memory_size[which], memory_names[which], &model->lent[which]);
}

static void free_model(struct model *model) {
  for (int i = 0; i < 2; i++) {
    device_release(model->own[i]);
    span_release(&model->lent[i]);
  }
  compute_close(model->compute);
  om_release(model->om);
  free(model);
}

static int fill_model(struct model *model, const struct request *request, const void *bytes, size_t size) {
  int code = injected_fault(AT_LOAD);
  if (code == 0) code = om_read(bytes, size, &model->om);
  if (code == 0) code = check_soc(model->om, model->device);  // before it takes anything
  if (code == 0) code = take_memory(model, request, 0, model->om->dynamic_shape ? 0 : model->om->work_size);
  if (code == 0) code = take_memory(model, request, 1, model->om->dynamic_shape ? 0 : model->om->weight_size);
  if (code == 0 && model->om->model != NULL) code = compute_open(model->om->model, model->om->model_size, &model->compute);
  return code;
}

// Gives the model its number, and its streams of the device.
static int publish(struct model *model) {
  struct context *context;
  pthread_mutex_lock(&emulator_lock);
  int code = current_context_locked(&context);
  unsigned streams = model->om->dynamic_shape ? 0 : model->om->streams;
  if (code == 0) code = check_soc_locked(model->om, model->device);  // another thread may have loaded one meanwhile
  if (code == 0 && context->device->streams + streams > emulated_chip()->streams) {
    code = FAIL(ACL_ERROR_RT_NO_STREAM_RESOURCE, "the model takes %u streams, and device %d has %u left", streams, context->device->id,
                emulated_chip()->streams - context->device->streams);
  }
  if (code == 0) {
    model->context = context;
    model->streams = streams;
    context->device->streams += streams;
    model->id = ++last_id;
    model->next = models;
    models = model;
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static int load(const struct request *request, uint32_t *id) {
  struct context *context;
  if (!initialized()) return FAIL(ACL_ERROR_GE_EXEC_NOT_INIT, "aclInit has not been called");
  int code = current_context(&context);
  if (code != 0 || (code = injected_fault(AT_ANY_DEVICE_CALL)) != 0) return code;
  void *read = NULL;
  size_t size = request->size;
  if (request->path != NULL && read_file(request->path, &read, &size) != 0) {
    return FAIL(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "cannot read %s", request->path);
  }
  struct model *model = calloc(1, sizeof *model);
  if (model == NULL) code = FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a model");
  if (code == 0) {
    *model = (struct model){.device = context->device, .gear = SIZE_MAX};
    code = fill_model(model, request, read ? read : request->bytes, size);
    if (code == 0) model->om->model = NULL;  // the bytes go away now
    if (code == 0) code = publish(model);
    if (code != 0) free_model(model);
  }
  free(read);
  if (code != 0) return code;
  count(LIVE_MODEL, 1);
  count(COUNT_MODEL_LOAD, 1);
  *id = model->id;
  return 0;
}

ACL_API aclError aclmdlLoadFromFile(const char *path, uint32_t *id) {
  API_ENTRY();
  CHECK_ARGUMENT(path != NULL);
  CHECK_ARGUMENT(id != NULL);
  return load(&(struct request){.path = path}, id);
}

ACL_API aclError aclmdlLoadFromMem(const void *bytes, size_t size, uint32_t *id) {
  API_ENTRY();
  CHECK_ARGUMENT(bytes != NULL);
  CHECK_ARGUMENT(size > 0);
  CHECK_ARGUMENT(id != NULL);
  return load(&(struct request){.bytes = bytes, .size = size}, id);
}

ACL_API aclError aclmdlLoadFromFileWithMem(const char *path, uint32_t *id, void *work, size_t work_size, void *weight, size_t weight_size) {
  API_ENTRY();
  CHECK_ARGUMENT(path != NULL);
  CHECK_ARGUMENT(id != NULL);
  return load(&(struct request){.path = path, .memory = {work, weight}, .memory_size = {work_size, weight_size}}, id);
}

ACL_API aclError aclmdlLoadFromMemWithMem(const void *bytes, size_t size, uint32_t *id, void *work, size_t work_size, void *weight, size_t weight_size) {
  API_ENTRY();
  CHECK_ARGUMENT(bytes != NULL);
  CHECK_ARGUMENT(size > 0);
  CHECK_ARGUMENT(id != NULL);
  return load(&(struct request){.bytes = bytes, .size = size, .memory = {work, weight}, .memory_size = {work_size, weight_size}}, id);
}

// ---- what it needs ----

static int query_size(const void *bytes, size_t size, size_t *work, size_t *weight) {
  struct om *om;
  int code = om_read(bytes, size, &om);
  if (code != 0) return code;
  if (om->dynamic_shape) code = FAIL(ACL_ERROR_GE_FAILURE, "a model of dynamic shape takes its memory as it runs");
  *work = om->work_size;
  *weight = om->weight_size;
  om_release(om);
  return code;
}

ACL_API aclError aclmdlQuerySize(const char *path, size_t *work, size_t *weight) {
  API_ENTRY();
  CHECK_ARGUMENT(path != NULL);
  CHECK_ARGUMENT(work != NULL && weight != NULL);
  void *bytes;
  size_t size;
  if (read_file(path, &bytes, &size) != 0) return FAIL(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "cannot read %s", path);
  int code = query_size(bytes, size, work, weight);
  free(bytes);
  return code;
}

ACL_API aclError aclmdlQuerySizeFromMem(const void *bytes, size_t size, size_t *work, size_t *weight) {
  API_ENTRY();
  CHECK_ARGUMENT(bytes != NULL);
  CHECK_ARGUMENT(size > 0);
  CHECK_ARGUMENT(work != NULL && weight != NULL);
  return query_size(bytes, size, work, weight);
}

// ---- unloading ----

static void unlink_locked(struct model *model) {
  LIST_REMOVE(models, model);
  model->device->streams -= model->streams;
  count(LIVE_MODEL, -1);
}

ACL_API aclError aclmdlUnload(uint32_t id) {
  API_ENTRY();
  struct model *model;
  pthread_mutex_lock(&emulator_lock);
  int code = model_for_call_locked(id, &model);
  if (code == 0 && model->in_flight > 0) {
    misuse("model %u is unloaded while an execution of it is under way", id);
    code = FAIL(ACL_ERROR_GE_FAILURE, "model %u is still being executed", id);
  }
  if (code == 0) unlink_locked(model);
  pthread_mutex_unlock(&emulator_lock);
  if (code == 0) free_model(model);
  return code;
}

// Models of a context that ends can never be used or unloaded by their program again.
void forget_models_locked(struct context *context) {
  for (struct model *model = models; model != NULL; model = model->next) {
    if (model->context == context) model->context = NULL;
  }
}

// At the end, after the streams have stopped.
void unload_all_models(void) {
  for (;;) {
    pthread_mutex_lock(&emulator_lock);
    struct model *model = models;
    if (model != NULL) unlink_locked(model);
    pthread_mutex_unlock(&emulator_lock);
    if (model == NULL) return;
    free_model(model);
  }
}
