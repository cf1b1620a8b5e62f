// Executing models.
//
// A launch reads everything it needs from the datasets before it returns: addresses, sizes, shapes and the
// gear. The datasets may be destroyed right after it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct operand {
  struct span span;
  const struct om_tensor *tensor;
  size_t rank;
  int64_t dims[ACL_MAX_DIM_CNT];
};

struct execution {
  struct task task;
  struct model *model;     // cannot go away: an execution is in flight
  struct om *om;
  aclmdlDataset *results;  // of a call that waits, where shapes are told; NULL otherwise
  size_t input_count, output_count;
  struct operand *inputs, *outputs;
};

static pthread_cond_t computed;  // a model has ended an execution
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) { condition_init(&computed); }

static void release_operands(struct operand *operands, size_t number) {
  for (size_t i = 0; operands != NULL && i < number; i++) span_release(&operands[i].span);
  free(operands);
}

static void free_execution(struct execution *execution) {
  release_operands(execution->inputs, execution->input_count);
  release_operands(execution->outputs, execution->output_count);
  om_release(execution->om);
  free(execution);
}

static void release_execution(struct task *task) {
  struct execution *execution = (struct execution *)task;
  pthread_mutex_lock(&emulator_lock);
  execution->model->in_flight--;
  pthread_mutex_unlock(&emulator_lock);
  free_execution(execution);
}

// ---- reading the datasets ----

static int input_shape(const struct om *om, size_t index, size_t gear, const aclTensorDesc *desc, struct operand *input) {
  const struct om_tensor *tensor = input->tensor;
  if (om->dynamic_shape && desc != NULL) {
    if ((size_t)desc->rank != tensor->rank) return FAIL(ACL_ERROR_GE_SHAPE_INVALID, "input %s has %zu dims, not %d", tensor->name, tensor->rank, desc->rank);
    input->rank = tensor->rank;
    memcpy(input->dims, desc->dims, input->rank * sizeof *input->dims);
  } else if (tensor->rank_before_aipp > 0) {
    input->rank = tensor->rank_before_aipp;
    memcpy(input->dims, tensor->dims_before_aipp, input->rank * sizeof *input->dims);
  } else {
    input->rank = tensor->rank;
    om_input_dims(om, index, gear, input->dims);
  }
  for (size_t i = 0; i < input->rank; i++) {
    int64_t dim = input->dims[i];
    if (dim < 0) return FAIL(ACL_ERROR_GE_SHAPE_INVALID, "dim %zu of input %s is not known; aclmdlSetDatasetTensorDesc tells it", i, tensor->name);
    bool fixed = om->dynamic_shape && desc != NULL && tensor->dims[i] >= 0 && dim != tensor->dims[i];
    bool outside = tensor->ranges == tensor->rank && om->dynamic_shape &&
                   (dim < tensor->range[i][0] || (tensor->range[i][1] >= 0 && dim > tensor->range[i][1]));
    if (fixed || outside) return FAIL(ACL_ERROR_GE_SHAPE_INVALID, "dim %zu of input %s cannot be %lld", i, tensor->name, (long long)dim);
  }
  return 0;
}

static int read_input(const struct om *om, size_t index, size_t gear, const struct dataset_entry *entry, struct operand *input) {
  input->tensor = &om->inputs[index];
  if (index == om->hidden) return 0;
  int code = input_shape(om, index, gear, entry->desc, input);
  if (code != 0) return code;
  uint64_t needed = shape_bytes(input->tensor->type, input->rank, input->dims);
  if (entry->buffer->size < needed) {
    return FAIL(ACL_ERROR_MODEL_INPUT_NOT_MATCH, "input %s takes %llu bytes, and its buffer has %zu", input->tensor->name, (unsigned long long)needed,
                entry->buffer->size);
  }
  if (needed == 0) return 0;
  if ((uintptr_t)entry->buffer->address % 64 != 0) misuse("input %s at %p does not begin at 64 bytes", input->tensor->name, entry->buffer->address);
  return span_device(entry->buffer->address, needed, input->tensor->name, &input->span);
}

// An output without memory is allowed where the size is not known before: the runtime allocates it then.
static int read_output(const struct om *om, size_t index, size_t gear, const struct dataset_entry *entry, bool waits, struct operand *output) {
  output->tensor = &om->outputs[index];
  if (!om_output_dims(om, index, gear, &output->rank, output->dims)) {
    output->rank = output->tensor->rank;
    memcpy(output->dims, output->tensor->dims, output->rank * sizeof *output->dims);
  }
  uint64_t needed = shape_bytes(output->tensor->type, output->rank, output->dims);
  size_t size = entry->buffer->size;
  if (om->dynamic_shape && entry->buffer->address == NULL && size == 0) {
    if (waits) return 0;
    return FAIL(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, "output %s has no memory, and a call that does not wait cannot give it any", output->tensor->name);
  }
  if (size < needed) {
    return FAIL(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, "output %s takes %llu bytes, and its buffer has %zu", output->tensor->name, (unsigned long long)needed, size);
  }
  if (size == 0) return 0;
  if ((uintptr_t)entry->buffer->address % 64 != 0) misuse("output %s at %p does not begin at 64 bytes", output->tensor->name, entry->buffer->address);
  return span_device(entry->buffer->address, size, output->tensor->name, &output->span);
}

static int read_datasets(struct execution *execution, uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, bool waits) {
  const struct om *om = execution->om;
  if (in->count != om->input_count) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has %zu inputs, and the dataset %zu buffers", om->input_count, in->count);
  if (out->count != om->output_count) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has %zu outputs, and the dataset %zu buffers", om->output_count, out->count);
  execution->inputs = calloc(in->count + 1, sizeof *execution->inputs);
  execution->outputs = calloc(out->count + 1, sizeof *execution->outputs);
  if (execution->inputs == NULL || execution->outputs == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the operands");
  execution->input_count = in->count;
  execution->output_count = out->count;
  // Without a setter, it is the largest gear.
  bool chosen = om->gear_kind != GEAR_NONE && in->gear_kind == om->gear_kind && in->gear_model == id;
  size_t gear = chosen ? in->gear : SIZE_MAX;
  int code = 0;
  for (size_t i = 0; i < in->count && code == 0; i++) code = read_input(om, i, gear, &in->entries[i], &execution->inputs[i]);
  for (size_t i = 0; i < out->count && code == 0; i++) code = read_output(om, i, gear, &out->entries[i], waits, &execution->outputs[i]);
  return code;
}

// ---- computing ----

// Gives an output the memory that the program left to the runtime. The program frees it.
static int allocate_output(struct execution *execution, size_t index, uint64_t size, struct operand *output) {
  struct allocation *allocation;
  struct device *device = execution->model->device;
  int code = device_malloc(device, size > 0 ? size : 1, false, &allocation);
  if (code != 0) return code;
  count(LIVE_DEVICE_MEMORY, 1);
  void *address = arena_address(device->arena, allocation);
  *execution->results->entries[index].buffer = (aclDataBuffer){address, size};
  return span_device(address, size, output->tensor->name, &output->span);
}

static int tell_shape(struct execution *execution, size_t index, const struct compute_tensor *value) {
  struct dataset_entry *entry = &execution->results->entries[index];
  aclTensorDesc *desc = calloc(1, sizeof *desc);
  if (desc == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a tensor description");
  desc->type = value->type;
  desc->format = execution->outputs[index].tensor->format;
  desc->rank = (int)value->rank;
  memcpy(desc->dims, value->dims, value->rank * sizeof *value->dims);
  free_tensor_desc(entry->desc);
  entry->desc = desc;
  return 0;
}

static int take_result(void *receiver, size_t index, const struct compute_tensor *value) {
  struct execution *execution = receiver;
  if (index >= execution->output_count) return FAIL(ACL_ERROR_GE_FAILURE, "the model inside the file has more outputs than the file says");
  struct operand *output = &execution->outputs[index];
  if (value->type != output->tensor->type) {
    return FAIL(ACL_ERROR_GE_FAILURE, "output %s came as type %d, and the file says %d", output->tensor->name, value->type, output->tensor->type);
  }
  if (execution->results != NULL && execution->om->dynamic_shape) {
    int code = tell_shape(execution, index, value);
    if (code == 0 && execution->results->entries[index].buffer->address == NULL) code = allocate_output(execution, index, value->size, output);
    if (code != 0) return code;
  }
  if (value->size > output->span.size) {
    return FAIL(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, "output %s takes %zu bytes, and its buffer has %zu", output->tensor->name, value->size, output->span.size);
  }
  if (value->size > 0) memcpy(output->span.bytes, value->bytes, value->size);
  return 0;
}

static bool operands_are_dead(const struct execution *execution) {
  bool dead = false;
  for (size_t i = 0; i < execution->input_count; i++) dead |= span_is_dead(&execution->inputs[i].span);
  for (size_t i = 0; i < execution->output_count; i++) dead |= span_is_dead(&execution->outputs[i].span);
  return dead;
}

static int compute(struct execution *execution) {
  struct compute_tensor inputs[execution->input_count + 1];
  size_t number = 0;
  static char nothing[64];
  for (size_t i = 0; i < execution->input_count; i++) {
    struct operand *input = &execution->inputs[i];
    if (i == execution->om->hidden) continue;
    void *bytes = input->span.bytes ? input->span.bytes : (unsigned char *)nothing;
    inputs[number++] = (struct compute_tensor){input->tensor->name, input->tensor->type, input->rank, input->dims, bytes, input->span.size};
  }
  return compute_run(execution->model->compute, inputs, number, take_result, execution);
}

static int run_execution(struct task *task) {
  struct execution *execution = (struct execution *)task;
  int code = injected_fault(AT_COMPUTE);
  if (code != 0) return code;
  if (operands_are_dead(execution)) return FAIL(ACL_ERROR_RT_AICORE_EXCEPTION, "device memory of an input or output was freed before the model ran");
  // Whatever the program does, two executions of one model never run at once: results must not mix.
  pthread_mutex_lock(&emulator_lock);
  while (execution->model->computing) pthread_cond_wait(&computed, &emulator_lock);
  execution->model->computing = true;
  pthread_mutex_unlock(&emulator_lock);
  code = compute(execution);
  pthread_mutex_lock(&emulator_lock);
  execution->model->computing = false;
  pthread_cond_broadcast(&computed);
  pthread_mutex_unlock(&emulator_lock);
  count(COUNT_MODEL_EXECUTE, 1);
  return code;
}

// ---- launching ----

// Models that were loaded with the same work memory must not run at the same time.
static void check_work_memory_locked(const struct model *model) {
  for (const struct model *other = model->lent[0].allocation ? model_next_locked(NULL) : NULL; other != NULL; other = model_next_locked(other)) {
    if (other == model || other->in_flight == 0 || other->lent[0].allocation == NULL || other->in_flight_on == model->in_flight_on) continue;
    const unsigned char *a = model->lent[0].bytes, *b = other->lent[0].bytes;
    if (a < b + other->lent[0].size && b < a + model->lent[0].size) misuse("models %u and %u run at once in the same work memory", model->id, other->id);
  }
}

// Claims the model for an execution on a stream, or by the calling thread.
static int claim(uint32_t id, const void *where, struct model **out) {
  pthread_mutex_lock(&emulator_lock);
  int code = model_for_call_locked(id, out);
  struct model *model = *out;
  if (code == 0 && model->om->aipp_input != SIZE_MAX) code = FAIL(ACL_ERROR_FEATURE_UNSUPPORTED, "the emulator does not compute dynamic AIPP");
  if (code == 0 && model->compute == NULL) code = FAIL(ACL_ERROR_GE_FAILURE, "the emulator can only run .om files that the emulator's atc wrote");
  if (code == 0 && model->in_flight > 0 && model->in_flight_on != where) {
    // Programs get away with it now and then, so only a strict emulator refuses. Results do not mix here.
    misuse("model %u is executed while another stream or thread executes it", id);
    if (strict()) code = FAIL(ACL_ERROR_GE_FAILURE, "model %u is being executed elsewhere; one model serves one stream at a time", id);
  }
  if (code == 0) {
    model->in_flight++;
    model->in_flight_on = where;
    check_work_memory_locked(model);
  }
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static void unclaim(struct model *model) {
  pthread_mutex_lock(&emulator_lock);
  model->in_flight--;
  pthread_mutex_unlock(&emulator_lock);
}

// Builds an execution out of the datasets; the model is claimed when that succeeds.
static int build(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, const void *where, bool waits, struct execution **result) {
  pthread_once(&once, prepare);
  struct model *model;
  int code = claim(id, where, &model);
  if (code != 0) return code;
  struct execution *execution = calloc(1, sizeof *execution);
  if (execution == NULL) {
    unclaim(model);
    return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for an execution");
  }
  execution->task = (struct task){.on_device = true, .run = run_execution, .release = release_execution};
  execution->model = model;
  execution->om = om_share(model->om);
  execution->results = waits ? out : NULL;
  code = read_datasets(execution, id, in, out, waits);
  if (code != 0) {
    unclaim(model);
    free_execution(execution);
    return code;
  }
  *result = execution;
  return 0;
}

ACL_API aclError aclmdlExecute(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out) {
  API_ENTRY();
  CHECK_ARGUMENT(in != NULL);
  CHECK_ARGUMENT(out != NULL);
  struct execution *execution;
  int code = build(id, in, out, this_thread(), true, &execution);
  if (code != 0) return code;
  code = injected_fault(AT_ANY_DEVICE_CALL);
  if (code == 0) code = injected_fault(AT_TASK);
  if (code == 0) code = run_execution(&execution->task);
  release_execution(&execution->task);
  return code;
}

// Finds the stream first: it is what the model is claimed for.
static aclError launch(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, aclrtStream handle, bool waits) {
  CHECK_ARGUMENT(in != NULL);
  CHECK_ARGUMENT(out != NULL);
  struct stream *stream;
  struct execution *execution;
  pthread_mutex_lock(&emulator_lock);
  int code = stream_find_locked(handle, false, &stream);
  pthread_mutex_unlock(&emulator_lock);
  if (code != 0) return code;
  if ((code = injected_fault(AT_ANY_DEVICE_CALL)) != 0) return code;
  code = build(id, in, out, stream, waits, &execution);
  return code != 0 ? code : stream_launch(handle, &execution->task, waits);
}

ACL_API aclError aclmdlExecuteAsync(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, aclrtStream stream) {
  API_ENTRY();
  return launch(id, in, out, stream, false);
}

ACL_API aclError aclmdlExecuteAsyncV2(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, aclrtStream stream, const aclmdlExecConfigHandle *configuration) {
  API_ENTRY();
  CHECK_ARGUMENT(configuration != NULL);
  return launch(id, in, out, stream, false);
}

ACL_API aclError aclmdlExecuteV2(uint32_t id, const aclmdlDataset *in, aclmdlDataset *out, aclrtStream handle, const aclmdlExecConfigHandle *configuration) {
  API_ENTRY();
  CHECK_ARGUMENT(configuration != NULL);
  return launch(id, in, out, handle, true);
}
