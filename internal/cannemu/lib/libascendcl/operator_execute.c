// Computing one operator in a stream: it becomes an ONNX model of one node, which is opened once and kept.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"

struct operator_task {
  struct task task;
  struct compute *compute;
  int input_count, output_count;
  struct side {
    struct span span;
    unsigned char *copy;  // of an input in host memory, taken at the launch
    int type;
    size_t rank;
    int64_t dims[ACL_MAX_DIM_CNT];
    bool absent;
  } inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
};

static void release(struct task *task) {
  struct operator_task *op = (struct operator_task *)task;
  for (int i = 0; i < MAX_OPERANDS; i++) {
    span_release(&op->inputs[i].span);
    span_release(&op->outputs[i].span);
    free(op->inputs[i].copy);
  }
  compute_close(op->compute);
  free(op);
}

static int take_result(void *receiver, size_t index, const struct compute_tensor *value) {
  struct operator_task *op = receiver;
  struct side *output = &op->outputs[index];
  if (index >= (size_t)op->output_count || value->size > output->span.size) {
    return FAIL(ACL_ERROR_MODEL_OUTPUT_NOT_MATCH, "output %zu takes %zu bytes, and its buffer has %zu", index, value->size, output->span.size);
  }
  if (value->size > 0) memcpy(output->span.bytes, value->bytes, value->size);
  return 0;
}

static int run(struct task *task) {
  struct operator_task *op = (struct operator_task *)task;
  struct compute_tensor inputs[MAX_OPERANDS];
  char names[MAX_OPERANDS][16];
  size_t number = 0;
  int code = injected_fault(AT_COMPUTE);
  for (int i = 0; i < op->input_count && code == 0; i++) {
    struct side *input = &op->inputs[i];
    if (input->absent) continue;
    if (span_is_dead(&input->span)) code = FAIL(ACL_ERROR_RT_AICORE_EXCEPTION, "an input was freed before the operator ran");
    snprintf(names[i], sizeof names[i], "i%d", i);
    inputs[number++] = (struct compute_tensor){names[i], input->type, input->rank, input->dims, input->span.bytes, input->span.size};
  }
  for (int i = 0; i < op->output_count && code == 0; i++) {
    if (span_is_dead(&op->outputs[i].span)) code = FAIL(ACL_ERROR_RT_AICORE_EXCEPTION, "an output was freed before the operator ran");
  }
  if (code == 0) code = compute_run(op->compute, inputs, number, take_result, op);
  count(COUNT_OPERATOR_EXECUTE, 1);
  return code;
}

// Reads one operand. Inputs that the program keeps in host memory are copied now.
static int read_side(const aclTensorDesc *desc, const aclDataBuffer *buffer, bool is_input, struct side *side) {
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(buffer != NULL);
  side->type = desc->type;
  side->rank = (size_t)desc->rank;
  memcpy(side->dims, desc->dims, side->rank * sizeof *side->dims);
  side->absent = desc->type == ACL_DT_UNDEFINED;
  if (side->absent) return 0;
  if (onnx_type_of(desc->type) < 0) return FAIL(ACL_ERROR_UNSUPPORTED_DATA_TYPE, "the emulator does not compute with element type %d", desc->type);
  uint64_t needed = shape_bytes(desc->type, side->rank, side->dims);
  if (buffer->size < needed) return FAIL(ACL_ERROR_INVALID_PARAM, "a tensor of %llu bytes lies in a buffer of %zu", (unsigned long long)needed, buffer->size);
  if (needed == 0) return 0;
  const void *host = desc->constant != NULL && desc->constant_size >= needed ? desc->constant : desc->placement != ACL_MEMTYPE_DEVICE ? buffer->address : NULL;
  if (!is_input || host == NULL) return span_device(buffer->address, needed, is_input ? "an input" : "an output", &side->span);
  side->copy = malloc(needed);
  if (side->copy == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for an input");
  memcpy(side->copy, host, needed);
  side->span = (struct span){side->copy, needed, NULL};
  return 0;
}

static struct operand_type type_of(const struct side *side) { return (struct operand_type){side->absent, side->type, side->rank, side->dims}; }

static int open_model(const struct operator_row *row, struct operator_task *op, const aclopAttr *attributes, const float *scalars) {
  struct operand_type inputs[MAX_OPERANDS], outputs[MAX_OPERANDS];
  struct model_bytes model = {0};
  for (int i = 0; i < op->input_count; i++) inputs[i] = type_of(&op->inputs[i]);
  for (int i = 0; i < row->outputs; i++) outputs[i] = type_of(&op->outputs[i]);
  int code = operator_model(row, inputs, op->input_count, outputs, attributes, scalars, &model);
  if (code == 0) code = compute_open(model.bytes, model.size, &op->compute);
  free(model.bytes);
  return code;
}

// Reads one number, a float of 32 or 16 bits, in host or device memory.
static int read_scalar(const char *name, const aclTensorDesc *desc, const aclDataBuffer *buffer, float *scalar) {
  bool is_half = desc != NULL && desc->type == ACL_FLOAT16;
  size_t size = is_half ? sizeof(aclFloat16) : sizeof(float);
  bool known = is_half || (desc != NULL && desc->type == ACL_FLOAT);
  if (!known || buffer == NULL || buffer->address == NULL || buffer->size < size) return FAIL(ACL_ERROR_INVALID_PARAM, "needs %s as a float", name);
  struct span span;
  int code = (is_device_address(buffer->address) ? span_device : span_host)(buffer->address, size, name, &span);
  if (code != 0) return code;
  aclFloat16 half;
  if (is_half) memcpy(&half, span.bytes, size);
  else memcpy(scalar, span.bytes, size);
  if (is_half) *scalar = aclFloat16ToFloat(half);
  span_release(&span);
  return 0;
}

// The numbers that ONNX has as attributes come as inputs behind the others.
static int read_scalars(const struct operator_row *row, int inputs, const aclTensorDesc *const *descs, const aclDataBuffer *const *buffers, float *scalars) {
  int code = 0;
  for (int i = 0; i < (int)COUNT(row->scalars) && row->scalars[i] != NULL && code == 0; i++) {
    int at = row->first_scalar + i;
    code = at < inputs ? read_scalar(row->scalars[i], descs[at], buffers[at], &scalars[i])
                       : FAIL(ACL_ERROR_INVALID_PARAM, "%s needs %s", row->type, row->scalars[i]);
  }
  return code;
}

int npuctl_emulator_execute_operator(const char *type, int inputs, const aclTensorDesc *const *input_descs, const aclDataBuffer *const *input_buffers,
                                     int outputs, const aclTensorDesc *const *output_descs, aclDataBuffer *const *output_buffers,
                                     const aclopAttr *attributes, aclrtStream stream) {
  CHECK_ARGUMENT(type != NULL);
  CHECK_ARGUMENT(inputs >= 0 && inputs <= MAX_OPERANDS && outputs >= 0 && outputs <= MAX_OPERANDS);
  CHECK_ARGUMENT(inputs == 0 || (input_descs != NULL && input_buffers != NULL));
  CHECK_ARGUMENT(outputs == 0 || (output_descs != NULL && output_buffers != NULL));
  const struct operator_row *row = operator_find(type);
  if (row == NULL || outputs < row->outputs) return FAIL(ACL_ERROR_OP_NOT_FOUND, "the emulator does not compute the operator %s by itself", type);
  float scalars[2] = {0};
  int code = read_scalars(row, inputs, input_descs, input_buffers, scalars);
  if (code != 0) return code;
  struct operator_task *op = calloc(1, sizeof *op);
  if (op == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the task");
  op->task = (struct task){.on_device = true, .run = run, .release = release};
  op->input_count = row->scalars[0] != NULL ? row->first_scalar : inputs;
  op->output_count = outputs;
  for (int i = 0; i < op->input_count && code == 0; i++) code = read_side(input_descs[i], input_buffers[i], true, &op->inputs[i]);
  for (int i = 0; i < outputs && code == 0; i++) code = read_side(output_descs[i], output_buffers[i], false, &op->outputs[i]);
  if (code == 0) code = open_model(row, op, attributes, scalars);
  if (code == 0) return stream_launch(stream, &op->task, false);
  release(&op->task);
  return code;
}

// ---- operators that were compiled before ----

// The emulator needs no compiled operators, so a folder of them is only looked at when one is missing.
ACL_API aclError aclopSetModelDir(const char *folder) {
  API_ENTRY();
  CHECK_ARGUMENT(folder != NULL);
  return 0;
}

ACL_API aclError aclopExecuteV2(const char *type, int inputs, aclTensorDesc *input_descs[], aclDataBuffer *input_buffers[], int outputs,
                                aclTensorDesc *output_descs[], aclDataBuffer *output_buffers[], aclopAttr *attributes, aclrtStream stream) {
  API_ENTRY();
  return npuctl_emulator_execute_operator(type, inputs, (const aclTensorDesc *const *)input_descs, (const aclDataBuffer *const *)input_buffers, outputs,
                                          (const aclTensorDesc *const *)output_descs, output_buffers, attributes, stream);
}
