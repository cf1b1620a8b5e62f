// What programs ask about a model: its inputs, outputs and gears.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

ACL_API aclmdlDesc *aclmdlCreateDesc(void) {
  API_ENTRY();
  aclmdlDesc *desc = calloc(1, sizeof *desc);
  if (desc != NULL) count(LIVE_MODEL_DESC, 1);
  return desc;
}

ACL_API aclError aclmdlDestroyDesc(aclmdlDesc *desc) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  om_release(desc->om);
  free(desc);
  count(LIVE_MODEL_DESC, -1);
  return 0;
}

static void describe(aclmdlDesc *desc, struct om *om, uint32_t id) {
  om_release(desc->om);
  desc->om = om;
  desc->id = id;
}

ACL_API aclError aclmdlGetDesc(aclmdlDesc *desc, uint32_t id) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  pthread_mutex_lock(&emulator_lock);
  struct model *model = model_find_locked(id);
  struct om *om = model ? om_share(model->om) : NULL;
  pthread_mutex_unlock(&emulator_lock);
  if (om == NULL) return FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "there is no model %u", id);
  describe(desc, om, id);
  return 0;
}

static int describe_bytes(aclmdlDesc *desc, const void *bytes, size_t size) {
  struct om *om;
  int code = om_read(bytes, size, &om);
  if (code != 0) return code;
  om->model = NULL;  // the bytes may go away
  describe(desc, om, 0);
  return 0;
}

ACL_API aclError aclmdlGetDescFromMem(aclmdlDesc *desc, const void *bytes, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(bytes != NULL);
  CHECK_ARGUMENT(size > 0);
  return describe_bytes(desc, bytes, size);
}

ACL_API aclError aclmdlGetDescFromFile(aclmdlDesc *desc, const char *path) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(path != NULL);
  void *bytes;
  size_t size;
  if (read_file(path, &bytes, &size) != 0) return FAIL(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, "cannot read %s", path);
  int code = describe_bytes(desc, bytes, size);
  free(bytes);
  return code;
}

// ---- one side of a model ----

enum side { INPUT, OUTPUT };

static const char *const side_names[] = {"input", "output"};

static size_t tensor_count(const aclmdlDesc *desc, enum side side) {
  if (desc == NULL || desc->om == NULL) return 0;
  return side == INPUT ? desc->om->input_count : desc->om->output_count;
}

static const struct om_tensor *tensor_at(const aclmdlDesc *desc, enum side side, size_t index) {
  if (index >= tensor_count(desc, side)) return NULL;
  return side == INPUT ? &desc->om->inputs[index] : &desc->om->outputs[index];
}

// Names that do not fit into the structures of AscendCL are replaced by made-up ones.
static const char *short_name(const aclmdlDesc *desc, enum side side, size_t index, char *buffer) {
  const char *name = tensor_at(desc, side, index)->name;
  if (strlen(name) < ACL_MAX_TENSOR_NAME_LEN) return name;
  snprintf(buffer, ACL_MAX_TENSOR_NAME_LEN, "acl_modelId_%u_%s_%zu", desc->id, side_names[side], index);
  return buffer;
}

static const char *name_at(const aclmdlDesc *desc, enum side side, size_t index) {
  if (tensor_at(desc, side, index) == NULL) return "";
  return short_name(desc, side, index, ((aclmdlDesc *)(uintptr_t)desc)->shown);
}

static aclError index_of(const aclmdlDesc *desc, enum side side, const char *name, size_t *index) {
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(name != NULL);
  CHECK_ARGUMENT(index != NULL);
  char buffer[ACL_MAX_TENSOR_NAME_LEN];
  for (size_t i = 0; i < tensor_count(desc, side); i++) {
    if (strcmp(name, tensor_at(desc, side, i)->name) != 0 && strcmp(name, short_name(desc, side, i, buffer)) != 0) continue;
    *index = i;
    return 0;
  }
  return FAIL(ACL_ERROR_INVALID_PARAM, "the model has no %s %s", side_names[side], name);
}

static aclError put_dims(const aclmdlDesc *desc, enum side side, size_t index, size_t rank, const int64_t *dims, aclmdlIODims *out) {
  char buffer[ACL_MAX_TENSOR_NAME_LEN];
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%s", short_name(desc, side, index, buffer));
  out->dimCount = rank;
  memcpy(out->dims, dims, rank * sizeof *dims);
  return 0;
}

static aclError dims_at(const aclmdlDesc *desc, enum side side, size_t index, bool before_aipp, aclmdlIODims *out) {
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(out != NULL);
  const struct om_tensor *tensor = tensor_at(desc, side, index);
  if (tensor == NULL) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has no %s %zu", side_names[side], index);
  if (before_aipp && tensor->rank_before_aipp > 0) return put_dims(desc, side, index, tensor->rank_before_aipp, tensor->dims_before_aipp, out);
  return put_dims(desc, side, index, tensor->rank, tensor->dims, out);
}

ACL_API size_t aclmdlGetNumInputs(aclmdlDesc *desc) { return tensor_count(desc, INPUT); }
ACL_API size_t aclmdlGetNumOutputs(aclmdlDesc *desc) { return tensor_count(desc, OUTPUT); }

#define GETTER(result, name, side, expression, none)               \
  ACL_API result name(const aclmdlDesc *desc, size_t index) {      \
    const struct om_tensor *tensor = tensor_at(desc, side, index); \
    return tensor ? (expression) : (none);                         \
  }

GETTER(aclDataType, aclmdlGetInputDataType, INPUT, tensor->type, ACL_DT_UNDEFINED)
GETTER(aclDataType, aclmdlGetOutputDataType, OUTPUT, tensor->type, ACL_DT_UNDEFINED)
GETTER(aclFormat, aclmdlGetInputFormat, INPUT, tensor->format, ACL_FORMAT_UNDEFINED)
GETTER(aclFormat, aclmdlGetOutputFormat, OUTPUT, tensor->format, ACL_FORMAT_UNDEFINED)

ACL_API size_t aclmdlGetInputSizeByIndex(aclmdlDesc *desc, size_t index) {
  const struct om_tensor *tensor = tensor_at(desc, INPUT, index);
  return tensor ? om_tensor_bytes(tensor) : 0;
}

ACL_API size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *desc, size_t index) {
  const struct om_tensor *tensor = tensor_at(desc, OUTPUT, index);
  return tensor ? om_tensor_bytes(tensor) : 0;
}

ACL_API const char *aclmdlGetInputNameByIndex(const aclmdlDesc *desc, size_t index) { return name_at(desc, INPUT, index); }
ACL_API const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *desc, size_t index) { return name_at(desc, OUTPUT, index); }

ACL_API aclError aclmdlGetInputIndexByName(const aclmdlDesc *desc, const char *name, size_t *index) {
  API_ENTRY();
  return index_of(desc, INPUT, name, index);
}

ACL_API aclError aclmdlGetOutputIndexByName(const aclmdlDesc *desc, const char *name, size_t *index) {
  API_ENTRY();
  return index_of(desc, OUTPUT, name, index);
}

ACL_API const char *aclmdlGetTensorRealName(const aclmdlDesc *desc, const char *name) {
  API_ENTRY();
  size_t index;
  if (desc == NULL || name == NULL) return NULL;
  if (index_of(desc, INPUT, name, &index) == 0) return desc->om->inputs[index].name;
  if (index_of(desc, OUTPUT, name, &index) == 0) return desc->om->outputs[index].name;
  return NULL;
}

ACL_API aclError aclmdlGetInputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims) {
  API_ENTRY();
  return dims_at(desc, INPUT, index, false, dims);
}

ACL_API aclError aclmdlGetInputDimsV2(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims) {
  API_ENTRY();
  return dims_at(desc, INPUT, index, true, dims);
}

ACL_API aclError aclmdlGetOutputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims) {
  API_ENTRY();
  return dims_at(desc, OUTPUT, index, false, dims);
}

ACL_API aclError aclmdlGetCurOutputDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *out) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(out != NULL);
  const struct om_tensor *tensor = tensor_at(desc, OUTPUT, index);
  if (tensor == NULL) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has no output %zu", index);
  pthread_mutex_lock(&emulator_lock);
  struct model *model = model_find_locked(desc->id);
  size_t gear = model ? model->gear : SIZE_MAX;
  pthread_mutex_unlock(&emulator_lock);
  int64_t dims[ACL_MAX_DIM_CNT];
  size_t rank;
  if (om_output_dims(desc->om, index, gear, &rank, dims)) return put_dims(desc, OUTPUT, index, rank, dims, out);
  return put_dims(desc, OUTPUT, index, tensor->rank, tensor->dims, out);
}

ACL_API aclError aclmdlGetInputDimsRange(const aclmdlDesc *desc, size_t index, aclmdlIODimsRange *range) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(range != NULL);
  const struct om_tensor *tensor = tensor_at(desc, INPUT, index);
  if (tensor == NULL) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has no input %zu", index);
  memset(range, 0, sizeof *range);
  range->rangeCount = tensor->ranges;
  memcpy(range->range, tensor->range, tensor->ranges * sizeof tensor->range[0]);
  return 0;
}

// The one documented attribute lists the original operators that became one; the emulator keeps them apart.
ACL_API const char *aclmdlGetOpAttr(aclmdlDesc *desc, const char *op, const char *attribute) {
  API_ENTRY();
  if (desc == NULL || op == NULL || attribute == NULL) {
    FAIL(ACL_ERROR_INVALID_PARAM, "needs a model description, the name of an operator and that of an attribute");
    return NULL;
  }
  return "";
}

// ---- gears ----

// Tells how many gears of a kind a model has, 0 for one without, and all their numbers when rows has room for them.
// The queries answer for as many gears as their structures hold.
static int list_gears(const aclmdlDesc *desc, enum gear_kind kind, size_t *number, uint64_t *rows) {
  *number = 0;
  const struct om *om = desc->om;
  if (om == NULL || om->gear_kind != kind) return 0;
  if (om->gear_count > ACL_MAX_BATCH_NUM) {
    return FAIL(ACL_ERROR_GE_FAILURE, "the model has %zu gears, more than the %d that can be told", om->gear_count, ACL_MAX_BATCH_NUM);
  }
  *number = om->gear_count;
  if (rows != NULL) memcpy(rows, om->gears, om->gear_count * om->gear_length * sizeof *rows);
  return 0;
}

ACL_API aclError aclmdlGetDynamicBatch(const aclmdlDesc *desc, aclmdlBatch *batch) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(batch != NULL);
  memset(batch, 0, sizeof *batch);
  return list_gears(desc, GEAR_BATCH, &batch->batchCount, batch->batch);
}

ACL_API aclError aclmdlGetDynamicHW(const aclmdlDesc *desc, size_t index, aclmdlHW *image) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(image != NULL);
  (void)index;  // -1 is asked for, and nothing looks at it
  memset(image, 0, sizeof *image);
  return list_gears(desc, GEAR_IMAGE, &image->hwCount, image->hw[0]);
}

ACL_API aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc *desc, size_t index, size_t *number) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(number != NULL);
  CHECK_ARGUMENT(index == SIZE_MAX);
  return list_gears(desc, GEAR_DIMS, number, NULL);
}

ACL_API aclError aclmdlGetInputDynamicDims(const aclmdlDesc *desc, size_t index, aclmdlIODims *dims, size_t number) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(dims != NULL);
  CHECK_ARGUMENT(index == SIZE_MAX);
  const struct om *om = desc->om;
  size_t gears;
  int code = list_gears(desc, GEAR_DIMS, &gears, NULL);
  if (code != 0 || gears == 0) return code;
  if (number < gears) return FAIL(ACL_ERROR_INVALID_PARAM, "the model has %zu gears, and there is room for %zu", gears, number);
  size_t order[ACL_MAX_DIM_CNT];
  size_t inputs = om_ordered_inputs(om, order, COUNT(order));
  for (size_t gear = 0; gear < gears; gear++) {
    aclmdlIODims *row = &dims[gear];
    memset(row, 0, sizeof *row);
    for (size_t k = 0; k < inputs; k++) {
      int64_t filled[ACL_MAX_DIM_CNT];
      size_t rank = om->inputs[order[k]].rank;
      om_input_dims(om, order[k], gear, filled);
      if (row->dimCount + rank > ACL_MAX_DIM_CNT) return FAIL(ACL_ERROR_GE_FAILURE, "the inputs have more than %d dims together", ACL_MAX_DIM_CNT);
      memcpy(row->dims + row->dimCount, filled, rank * sizeof *filled);
      row->dimCount += rank;
    }
  }
  return 0;
}
