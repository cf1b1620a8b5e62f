// Choosing the gear of the next execution.
//
// The choice is kept in three places, as on a card: in the hidden input's device memory, on the dataset that
// will be executed, and on the model.

#include <string.h>

#include "internal.h"

static const char *const gear_names[] = {"no gears", "a dynamic batch", "a dynamic image size", "dynamic dims"};

// Writes the values into the hidden input's memory: 8 bytes each where they fit, or 4.
static int write_values(const aclDataBuffer *buffer, const uint64_t *values, size_t number) {
  if (buffer->address == NULL) return FAIL(ACL_ERROR_GE_DYNAMIC_INPUT_ADDR_INVALID, "the hidden input has no memory");
  if (buffer->size < 4 * number) {
    return FAIL(ACL_ERROR_GE_DYNAMIC_INPUT_LENGTH_INVALID, "%zu values do not fit into the %zu bytes of the hidden input", number, buffer->size);
  }
  size_t width = buffer->size >= 8 * number ? 8 : 4;
  struct span span;
  int code = span_device(buffer->address, width * number, "the hidden input", &span);
  if (code != 0) return code;
  for (size_t i = 0; i < number; i++) memcpy(span.bytes + i * width, &values[i], width);
  span_release(&span);
  return 0;
}

// Looks the model up and checks that it has gears of that kind.
static int find_model(uint32_t id, enum gear_kind kind, struct om **out) {
  struct model *model;
  pthread_mutex_lock(&emulator_lock);
  int code = model_for_call_locked(id, &model);
  if (code == 0 && model->om->gear_kind != kind) {
    code = FAIL(model->om->gear_kind == GEAR_NONE ? ACL_ERROR_MODEL_NOT_DYNAMIC : ACL_ERROR_GE_PARAM_INVALID, "model %u has %s, not %s", id,
                gear_names[model->om->gear_kind], gear_names[kind]);
  }
  if (code == 0 && model->in_flight > 0) misuse("the gear of model %u is set while an execution of it is under way", id);
  if (code == 0) *out = om_share(model->om);
  pthread_mutex_unlock(&emulator_lock);
  return code;
}

static int choose(uint32_t id, struct om *om, enum gear_kind kind, aclmdlDataset *dataset, size_t index, const uint64_t *values, size_t number) {
  size_t gear = om_find_gear(om, values, number);
  if (gear == SIZE_MAX) return FAIL(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, "the model has no such gear among its %zu", om->gear_count);
  if (index != om->hidden) misuse("buffer %zu is not the hidden input, which is %zu", index, om->hidden);
  int code = write_values(dataset->entries[index].buffer, values, number);
  if (code != 0) return code;
  dataset->gear_kind = kind;
  dataset->gear = gear;
  dataset->gear_model = id;
  pthread_mutex_lock(&emulator_lock);
  struct model *model = model_find_locked(id);
  if (model != NULL) model->gear = gear;
  pthread_mutex_unlock(&emulator_lock);
  return 0;
}

static aclError set_gear(uint32_t id, enum gear_kind kind, aclmdlDataset *dataset, size_t index, const uint64_t *values, size_t number) {
  CHECK_ARGUMENT(dataset != NULL);
  for (size_t i = 0; i < number; i++) {
    if (values[i] == 0) return FAIL(ACL_ERROR_INVALID_PARAM, "no gear has a 0");
  }
  if (index >= dataset->count) return FAIL(ACL_ERROR_INVALID_PARAM, "the dataset has no buffer %zu for the hidden input", index);
  struct om *om;
  int code = find_model(id, kind, &om);
  if (code != 0) return code;
  code = choose(id, om, kind, dataset, index, values, number);
  om_release(om);
  return code;
}

ACL_API aclError aclmdlSetDynamicBatchSize(uint32_t id, aclmdlDataset *dataset, size_t index, uint64_t batch) {
  API_ENTRY();
  return set_gear(id, GEAR_BATCH, dataset, index, &batch, 1);
}

ACL_API aclError aclmdlSetDynamicHWSize(uint32_t id, aclmdlDataset *dataset, size_t index, uint64_t height, uint64_t width) {
  API_ENTRY();
  return set_gear(id, GEAR_IMAGE, dataset, index, (const uint64_t[]){height, width}, 2);
}

// Takes the values at the unknown dims out of all dims of all inputs. Returns their number, or SIZE_MAX
// when the known dims differ.
static size_t values_of(const struct om *om, const aclmdlIODims *dims, uint64_t *values) {
  size_t order[ACL_MAX_DIM_CNT], at = 0, number = 0;
  size_t inputs = om_ordered_inputs(om, order, COUNT(order));
  for (size_t k = 0; k < inputs; k++) {
    const struct om_tensor *tensor = &om->inputs[order[k]];
    for (size_t i = 0; i < tensor->rank; i++, at++) {
      if (at >= dims->dimCount || (tensor->dims[i] >= 0 && tensor->dims[i] != dims->dims[at])) return SIZE_MAX;
      if (tensor->dims[i] < 0) values[number++] = (uint64_t)dims->dims[at];
    }
  }
  return at == dims->dimCount ? number : SIZE_MAX;
}

ACL_API aclError aclmdlSetInputDynamicDims(uint32_t id, aclmdlDataset *dataset, size_t index, const aclmdlIODims *dims) {
  API_ENTRY();
  CHECK_ARGUMENT(dataset != NULL);
  CHECK_ARGUMENT(dims != NULL);
  CHECK_ARGUMENT(dims->dimCount > 0 && dims->dimCount <= ACL_MAX_DIM_CNT);
  CHECK_ARGUMENT(index < dataset->count);
  struct om *om;
  uint64_t values[ACL_MAX_DIM_CNT];
  int code = find_model(id, GEAR_DIMS, &om);
  if (code != 0) return code;
  size_t number = values_of(om, dims, values);
  if (number == SIZE_MAX) code = FAIL(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID, "the %zu dims are not those of the model's inputs", dims->dimCount);
  else code = choose(id, om, GEAR_DIMS, dataset, index, values, number);
  om_release(om);
  return code;
}
