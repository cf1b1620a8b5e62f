// Writing an ONNX model of one node. Field numbers are those of the ONNX specification.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"

enum { IR_VERSION = 8, OPSET = 17 };

// ---- protobuf ----

static void put(struct model_bytes *b, const void *bytes, size_t size) {
  if (b->failed || size == 0) return;
  if (b->size + size > b->space) {
    size_t space = 2 * (b->size + size);
    unsigned char *grown = realloc(b->bytes, space);
    if (grown == NULL) {
      b->failed = true;
      return;
    }
    b->bytes = grown;
    b->space = space;
  }
  memcpy(b->bytes + b->size, bytes, size);
  b->size += size;
}

static void put_varint(struct model_bytes *b, uint64_t value) {
  unsigned char bytes[10];
  size_t n = 0;
  do {
    bytes[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value > 0);
  put(b, bytes, n);
}

static void put_number(struct model_bytes *b, int field, uint64_t value) {
  put_varint(b, (uint64_t)field << 3);
  put_varint(b, value);
}

static void put_float(struct model_bytes *b, int field, float value) {
  put_varint(b, (uint64_t)field << 3 | 5);
  put(b, &value, sizeof value);
}

static void put_bytes(struct model_bytes *b, int field, const void *bytes, size_t size) {
  put_varint(b, (uint64_t)field << 3 | 2);
  put_varint(b, size);
  put(b, bytes, size);
}

static void put_text(struct model_bytes *b, int field, const char *text) { put_bytes(b, field, text, strlen(text)); }

// Puts a message that has been written apart, and ends it.
static void put_message(struct model_bytes *b, int field, struct model_bytes *message) {
  put_bytes(b, field, message->bytes, message->size);
  b->failed |= message->failed;
  free(message->bytes);
  *message = (struct model_bytes){0};
}

// ---- attributes ----

enum { NAME = 1, FLOAT = 2, INTEGER = 3, TEXT = 4, FLOATS = 7, INTEGERS = 8, TYPE = 20 };                  // fields
enum { TYPE_FLOAT = 1, TYPE_INTEGER = 2, TYPE_TEXT = 3, TYPE_FLOATS = 6, TYPE_INTEGERS = 7, ATTRIBUTE = 5 };

static void put_attribute(struct model_bytes *node, const char *name, const struct attribute *value) {
  static const int types[] = {
      [ATTRIBUTE_INTEGER] = TYPE_INTEGER, [ATTRIBUTE_INTEGERS] = TYPE_INTEGERS, [ATTRIBUTE_FLOAT] = TYPE_FLOAT,
      [ATTRIBUTE_FLOATS] = TYPE_FLOATS,   [ATTRIBUTE_TEXT] = TYPE_TEXT,
  };
  struct model_bytes a = {0};
  put_text(&a, NAME, name);
  if (value->kind == ATTRIBUTE_TEXT) put_text(&a, TEXT, value->text);
  if (value->kind == ATTRIBUTE_INTEGER) put_number(&a, INTEGER, (uint64_t)value->integers[0]);
  if (value->kind == ATTRIBUTE_FLOAT) put_float(&a, FLOAT, value->floats[0]);
  for (size_t i = 0; value->kind == ATTRIBUTE_INTEGERS && i < value->number; i++) put_number(&a, INTEGERS, (uint64_t)value->integers[i]);
  for (size_t i = 0; value->kind == ATTRIBUTE_FLOATS && i < value->number; i++) put_float(&a, FLOATS, value->floats[i]);
  put_number(&a, TYPE, (uint64_t)types[value->kind]);
  put_message(node, ATTRIBUTE, &a);
}

static bool is_text(const struct attribute *attribute, const char *text) { return attribute->kind == ATTRIBUTE_TEXT && strcmp(attribute->text, text) == 0; }

// Applies one row of the table. Returns false when the value is one that the emulator does not compute.
static bool map_attribute(struct model_bytes *node, const struct attribute_mapping *mapping, const struct attribute *given, bool explicit_padding) {
  struct attribute changed = *given;
  bool list = given->kind == ATTRIBUTE_INTEGERS, number = given->kind == ATTRIBUTE_INTEGER && given->number == 1;
  int64_t value = number ? given->integers[0] : 0;
  switch (mapping->rule) {
    case SAME: break;
    case WITHOUT_NC:
      if (!list) return false;
      // A list that is as short as an image's axes has none for N and C.
      if (given->number >= 4) {
        changed.integers += 2;
        changed.number -= 2;
      }
      break;
    case ELEMENT_TYPE:
      value = onnx_type_of((int)value);
      changed.integers = &value;
      if (!number || value < 0) return false;
      break;
    case OPPOSITE:
      value = !value;
      changed.integers = &value;
      if (!number) return false;
      break;
    case PADDING:
      if (is_text(given, "CALCULATED") || is_text(given, "NOTSET")) return true;  // as ONNX does without it
      if (is_text(given, "SAME")) changed.text = (char *)(uintptr_t) "SAME_UPPER";
      break;
    case FIRST_OF_LIST:
      changed.kind = ATTRIBUTE_INTEGER;
      if (!list || given->number != 1) return false;
      break;
    case MUST_BE_ZERO: return number && value == 0;
  }
  // ONNX refuses pads beside a padding that computes them.
  if (strcmp(mapping->to, "pads") == 0 && !explicit_padding) return true;
  put_attribute(node, mapping->to, &changed);
  return true;
}

static int put_attributes(struct model_bytes *node, const struct operator_row *row, const aclopAttr *attributes, const float *scalars) {
  bool explicit_padding = true;
  for (const char *const *name = (const char *const[]){"padding_mode", "auto_pad", NULL}; *name != NULL; name++) {
    const struct attribute *padding = attribute_find(attributes, *name);
    explicit_padding &= padding == NULL || is_text(padding, "CALCULATED") || is_text(padding, "NOTSET");
  }
  for (const struct attribute_mapping *mapping = row->attributes; mapping < row->attributes + COUNT(row->attributes) && mapping->from != NULL; mapping++) {
    const struct attribute *given = attribute_find(attributes, mapping->from);
    if (given == NULL || map_attribute(node, mapping, given, explicit_padding)) continue;
    return FAIL(ACL_ERROR_OP_NOT_FOUND, "the emulator does not compute %s with this %s", row->type, mapping->from);
  }
  for (size_t i = 0; i < COUNT(row->scalars) && row->scalars[i] != NULL; i++) {
    put_attribute(node, row->scalars[i], &(struct attribute){.kind = ATTRIBUTE_FLOAT, .number = 1, .floats = (float *)(uintptr_t)&scalars[i]});
  }
  return 0;
}

// ---- the model ----

// A declared input or output of the graph.
static void put_value(struct model_bytes *graph, int field, const char *name, const struct operand_type *operand) {
  struct model_bytes shape = {0}, tensor = {0}, type = {0}, value = {0};
  for (size_t i = 0; i < operand->rank; i++) {
    struct model_bytes dim = {0};
    put_number(&dim, 1, (uint64_t)operand->dims[i]);
    put_message(&shape, 1, &dim);
  }
  put_number(&tensor, 1, (uint64_t)onnx_type_of(operand->type));
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(graph, field, &value);
}

int operator_model(const struct operator_row *row, const struct operand_type *inputs, int input_count, const struct operand_type *outputs,
                   const aclopAttr *attributes, const float *scalars, struct model_bytes *out) {
  struct model_bytes node = {0}, graph = {0}, opset = {0};
  char name[16];
  const struct attribute *global = attribute_find(attributes, "global_pooling");
  bool whole = row->onnx_global != NULL && global != NULL && global->kind == ATTRIBUTE_INTEGER && global->integers[0] != 0;
  for (int i = 0; i < input_count; i++) {
    snprintf(name, sizeof name, inputs[i].absent ? "" : "i%d", i);
    put_text(&node, 1, name);
  }
  for (int i = 0; i < row->outputs; i++) {
    snprintf(name, sizeof name, "o%d", i);
    put_text(&node, 2, name);
  }
  put_text(&node, 4, whole ? row->onnx_global : row->onnx);
  int code = whole ? 0 : put_attributes(&node, row, attributes, scalars);
  put_message(&graph, 1, &node);
  put_text(&graph, 2, row->type);
  for (int i = 0; i < input_count; i++) {
    snprintf(name, sizeof name, "i%d", i);
    if (!inputs[i].absent) put_value(&graph, 11, name, &inputs[i]);
  }
  for (int i = 0; i < row->outputs; i++) {
    snprintf(name, sizeof name, "o%d", i);
    put_value(&graph, 12, name, &outputs[i]);
  }
  put_number(out, 1, IR_VERSION);
  put_message(out, 7, &graph);
  put_number(&opset, 2, OPSET);
  put_message(out, 8, &opset);
  if (code == 0 && out->failed) code = FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the operator");
  return code;
}
