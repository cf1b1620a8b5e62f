// The partition MODEL_DEF: a protobuf message, of which little is needed: some attributes of the model and, in
// old files, the inputs and outputs of its graph.

#include <stdio.h>

#include "cursor.h"

static uint64_t take_varint(struct cursor *c) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint64_t byte = take_number(c, 1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  c->broken = true;
  return 0;
}

// One field of a message: its number, and its value as a number or as a piece.
struct field {
  uint64_t number, value;
  struct cursor piece;
};

static bool take_field(struct cursor *c, struct field *field) {
  if (c->at == c->end || c->broken) return false;
  uint64_t tag = take_varint(c);
  *field = (struct field){.number = tag >> 3};
  switch (tag & 7) {
    case 0: field->value = take_varint(c); break;
    case 1: field->value = take_u64(c); break;
    case 2: field->piece = take_part(c, take_varint(c)); break;
    case 5: field->value = take_u32(c); break;
    default: c->broken = true;
  }
  return !c->broken;
}

// Numbers of fields.
enum {
  MODEL_GRAPH = 7, MODEL_ATTRIBUTES = 11,
  GRAPH_OP = 6,
  OP_NAME = 1, OP_TYPE = 2, OP_INPUT_DESC = 33,
  DESC_TYPE = 2, DESC_SHAPE = 3, DESC_LAYOUT = 4, DESC_SIZE = 10,
  SHAPE_DIM = 1,
  MAP_KEY = 1, MAP_VALUE = 2,
  VALUE_LIST = 1, VALUE_TEXT = 2, VALUE_INTEGER = 3,
  LIST_TEXT = 2,
};

// ---- attributes ----

static void read_attribute(struct cursor entry, struct om *om) {
  struct field field, key = {0}, value = {0};
  while (take_field(&entry, &field)) {
    if (field.number == MAP_KEY) key = field;
    if (field.number == MAP_VALUE) value = field;
  }
  while (value.piece.at != NULL && take_field(&value.piece, &field)) {
    if (field.number == VALUE_INTEGER && piece_is(&key.piece, "memory_size")) om->work_size = field.value;
    if (field.number == VALUE_INTEGER && piece_is(&key.piece, "weight_size")) om->weight_size = field.value;
    if (field.number == VALUE_INTEGER && piece_is(&key.piece, "stream_num")) om->streams = (unsigned)field.value;
    if (field.number == VALUE_TEXT && piece_is(&key.piece, "soc_version") && field.piece.at != NULL) {
      snprintf(om->soc, sizeof om->soc, "%.*s", (int)(field.piece.end - field.piece.at < 60 ? field.piece.end - field.piece.at : 60), (const char *)field.piece.at);
    }
  }
}

void definition_read(struct cursor c, struct om *om) {
  struct field field;
  while (take_field(&c, &field)) {
    if (field.number == MODEL_ATTRIBUTES && field.piece.at != NULL) read_attribute(field.piece, om);
  }
}

// ---- the graph ----

// Element types have numbers of their own here.
static int type_of(uint64_t number) {
  static const int types[] = {
      [1] = ACL_FLOAT, [2] = ACL_FLOAT16, [3] = ACL_INT8, [4] = ACL_UINT8, [5] = ACL_INT16, [6] = ACL_UINT16, [7] = ACL_INT32,
      [8] = ACL_INT64, [9] = ACL_UINT32, [10] = ACL_UINT64, [11] = ACL_BOOL, [12] = ACL_DOUBLE, [13] = ACL_STRING, [27] = ACL_BF16,
      [28] = ACL_INT4, [29] = ACL_UINT1,
  };
  bool known = (number >= 1 && number <= 13) || (number >= 27 && number <= 29);
  return known ? types[number] : ACL_DT_UNDEFINED;
}

static void add_dim(struct cursor *c, struct om_tensor *tensor, uint64_t dim) {
  if (tensor->rank < ACL_MAX_DIM_CNT) tensor->dims[tensor->rank++] = (int64_t)dim;
  else c->broken = true;
}

// Dims come one by one, or packed.
static void read_shape(struct cursor c, struct om_tensor *tensor, struct cursor *whole) {
  struct field field;
  while (take_field(&c, &field)) {
    if (field.number != SHAPE_DIM) continue;
    if (field.piece.at == NULL) add_dim(&c, tensor, field.value);
    while (field.piece.at != NULL && field.piece.at < field.piece.end && !field.piece.broken && !c.broken) add_dim(&c, tensor, take_varint(&field.piece));
  }
  whole->broken |= c.broken;
}

static void read_desc(struct cursor *c, struct cursor desc, struct om_tensor *tensor) {
  struct field field;
  tensor->format = ACL_FORMAT_ND;
  tensor->type = ACL_DT_UNDEFINED;
  while (take_field(&desc, &field)) {
    if (field.number == DESC_TYPE) tensor->type = type_of(field.value);
    if (field.number == DESC_SIZE) tensor->size = field.value;
    if (field.number == DESC_LAYOUT && piece_is(&field.piece, "NCHW")) tensor->format = ACL_FORMAT_NCHW;
    if (field.number == DESC_LAYOUT && piece_is(&field.piece, "NHWC")) tensor->format = ACL_FORMAT_NHWC;
    if (field.number == DESC_SHAPE && field.piece.at != NULL) read_shape(field.piece, tensor, c);
  }
  c->broken |= desc.broken;
}

static struct om_tensor *add_tensor(struct cursor *c, struct om_tensor **tensors, size_t *number) {
  struct om_tensor *grown = *number < 4096 ? realloc(*tensors, (*number + 1) * sizeof *grown) : NULL;
  if (grown == NULL) {
    c->broken = true;
    return NULL;
  }
  *tensors = grown;
  memset(&grown[*number], 0, sizeof *grown);
  return &grown[(*number)++];
}

// The n-th name of the model's attribute with the names of outputs; made up where there is none.
static char *output_name(struct cursor model, size_t index) {
  struct field attribute, part, value;
  char made_up[40];
  while (take_field(&model, &attribute)) {
    bool found = false;
    struct cursor list = {0};
    if (attribute.number != MODEL_ATTRIBUTES || attribute.piece.at == NULL) continue;
    while (take_field(&attribute.piece, &part)) {
      if (part.number == MAP_KEY) found = piece_is(&part.piece, "attr_model_out_nodes_name");
      while (part.number == MAP_VALUE && part.piece.at != NULL && take_field(&part.piece, &value)) {
        if (value.number == VALUE_LIST) list = value.piece;
      }
    }
    size_t at = 0;
    while (found && list.at != NULL && take_field(&list, &value)) {
      if (value.number == LIST_TEXT && value.piece.at != NULL && at++ == index) return take_text(&value.piece, (uint64_t)(value.piece.end - value.piece.at));
    }
  }
  snprintf(made_up, sizeof made_up, "output_%zu", index);
  return strdup(made_up);
}

// Reads one operator: a Data is an input, described by its first input_desc; NetOutput has a description of
// every output.
static void read_op(struct cursor *c, struct cursor op, struct cursor model, struct om *om) {
  struct field field, name = {0}, type = {0};
  struct cursor again = op;
  while (take_field(&op, &field)) {
    if (field.number == OP_NAME) name = field;
    if (field.number == OP_TYPE) type = field;
  }
  bool is_input = piece_is(&type.piece, "Data"), is_output = piece_is(&type.piece, "NetOutput");
  if (!is_input && !is_output) return;
  struct om_tensor *tensor = is_input ? add_tensor(c, &om->inputs, &om->input_count) : NULL;
  if (tensor != NULL) {
    tensor->name = name.piece.at ? take_text(&name.piece, (uint64_t)(name.piece.end - name.piece.at)) : strdup("");
    tensor->format = ACL_FORMAT_ND;
    tensor->type = ACL_DT_UNDEFINED;
    c->broken |= tensor->name == NULL;
  }
  for (bool first = true; take_field(&again, &field) && !c->broken;) {
    if (field.number != OP_INPUT_DESC || field.piece.at == NULL) continue;
    if (is_input && !first) break;
    first = false;
    if (is_output && (tensor = add_tensor(c, &om->outputs, &om->output_count)) != NULL) {
      tensor->name = output_name(model, om->output_count - 1);
      c->broken |= tensor->name == NULL;
    }
    if (tensor != NULL) read_desc(c, field.piece, tensor);
  }
}

// The graph of the model is the first; those of branches follow.
bool definition_read_signature(struct cursor c, struct om *om) {
  struct cursor model = c;
  struct field graph = {0}, op;
  while (take_field(&c, &graph)) {
    if (graph.number != MODEL_GRAPH || graph.piece.at == NULL) continue;
    while (take_field(&graph.piece, &op)) {
      if (op.number == GRAPH_OP && op.piece.at != NULL) read_op(&c, op.piece, model, om);
    }
    break;
  }
  return !c.broken && !graph.piece.broken;
}
