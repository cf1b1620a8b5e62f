// Reading an .om file: the header, the table of partitions, the description of inputs and outputs, and the
// emulator's own partition with the model. Files are not trusted: every length is held against what is there.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cursor.h"

enum {
  HEADER_SIZE = 256,
  PARTITION_MODEL = 0,
  PARTITION_WEIGHTS = 1,
  PARTITION_SIGNATURE = 8,
  PARTITION_EMULATOR = 0x554d4531,
  MAX_PARTITIONS = 4096,
  MAX_TENSORS = 4096,
};

// ---- life ----

static void free_tensors(struct om_tensor *tensors, size_t number) {
  for (size_t i = 0; tensors != NULL && i < number; i++) free(tensors[i].name);
  free(tensors);
}

struct om *om_share(struct om *om) {
  __atomic_add_fetch(&om->references, 1, __ATOMIC_RELAXED);
  return om;
}

void om_release(struct om *om) {
  if (om == NULL || __atomic_sub_fetch(&om->references, 1, __ATOMIC_ACQ_REL) > 0) return;
  free_tensors(om->inputs, om->input_count);
  free_tensors(om->outputs, om->output_count);
  for (size_t i = 0; i < om->order_count; i++) free(om->order[i]);
  free(om->order);
  free(om->gears);
  free(om->output_shapes);
  free(om);
}

// ---- the signature ----

static size_t take_dims(struct cursor *c, uint32_t bytes, int64_t *dims) {
  size_t rank = bytes / 8;
  if (rank > ACL_MAX_DIM_CNT || bytes % 8 != 0) c->broken = true;
  for (size_t i = 0; i < rank && !c->broken; i++) dims[i] = (int64_t)take_u64(c);
  return c->broken ? 0 : rank;
}

static void take_tensor(struct cursor *c, struct om_tensor *tensor) {
  tensor->size = take_u64(c);
  tensor->format = (int)take_u32(c);
  tensor->type = (int)take_u32(c);
  uint32_t name = take_u32(c), dims = take_u32(c), before_aipp = take_u32(c), ranges = take_u32(c);
  tensor->name = take_text(c, name);
  tensor->rank = take_dims(c, dims, tensor->dims);
  tensor->rank_before_aipp = take_dims(c, before_aipp, tensor->dims_before_aipp);
  if (ranges > 0 && ranges != 16 * tensor->rank) c->broken = true;
  tensor->ranges = ranges / 16;
  for (size_t i = 0; i < tensor->ranges && !c->broken; i++) {
    tensor->range[i][0] = (int64_t)take_u64(c);
    tensor->range[i][1] = (int64_t)take_u64(c);
  }
  // Without AIPP the second form repeats the first.
  if (tensor->rank_before_aipp == tensor->rank && memcmp(tensor->dims, tensor->dims_before_aipp, tensor->rank * 8) == 0) tensor->rank_before_aipp = 0;
}

static void take_tensors(struct cursor *c, struct om_tensor **out, size_t *number) {
  uint32_t n = take_u32(c);
  if (n > MAX_TENSORS || *out != NULL) c->broken = true;
  if (c->broken || (*out = calloc(n + 1, sizeof **out)) == NULL) return;
  *number = n;
  for (uint32_t i = 0; i < n && !c->broken; i++) take_tensor(c, &(*out)[i]);
}

// Gears come as one number each, or as rows whose lengths stand first.
static void take_gears(struct cursor *c, enum gear_kind kind, struct om *om) {
  uint32_t number = take_u32(c);
  uint64_t length = 1;
  if (number == 0 || number > (uint64_t)(c->end - c->at) / 8 + 1 || om->gears != NULL) c->broken = true;
  for (uint32_t i = 0; kind != GEAR_BATCH && i < number && !c->broken; i++) {
    uint32_t row = take_u32(c);
    if (i == 0) length = row;
    if (row != length || row == 0) c->broken = true;  // a model has one list of designated axes
  }
  if (kind == GEAR_IMAGE && length != 2) c->broken = true;
  if (c->broken || length * number > (uint64_t)(c->end - c->at) / 8) {
    c->broken = true;
    return;
  }
  om->gears = calloc(length * number, sizeof *om->gears);
  if (om->gears == NULL) return;
  for (uint64_t i = 0; i < length * number; i++) om->gears[i] = take_u64(c);
  om->gear_kind = kind;
  om->gear_count = number;
  om->gear_length = length;
}

// Strings come after the list of their lengths.
static char **take_strings(struct cursor *c, size_t *number) {
  uint32_t n = take_u32(c);
  struct cursor lengths = take_part(c, 4ull * n);
  char **texts = lengths.broken ? NULL : calloc((size_t)n + 1, sizeof *texts);
  for (uint32_t i = 0; texts != NULL && i < n; i++) texts[i] = take_text(c, take_u32(&lengths));
  *number = texts ? n : 0;
  return texts;
}

static void free_strings(char **texts, size_t number) {
  for (size_t i = 0; i < number; i++) free(texts[i]);
  free(texts);
}

// "gear,output,dim,dim…"
static bool parse_output_shape(const char *text, struct om_output_shape *shape) {
  int64_t numbers[ACL_MAX_DIM_CNT + 2];
  size_t n = 0;
  for (const char *at = text;; at++) {
    char *end;
    if (n == COUNT(numbers)) return false;
    numbers[n++] = strtoll(at, &end, 10);
    if (end == at) return false;
    at = end;
    if (*at == 0) break;
    if (*at != ',') return false;
  }
  if (n < 2 || numbers[1] < 0) return false;
  shape->gear = numbers[0];
  shape->output = (size_t)numbers[1];
  shape->rank = n - 2;
  memcpy(shape->dims, numbers + 2, shape->rank * sizeof *numbers);
  return true;
}

static void take_output_shapes(struct cursor *c, struct om *om) {
  size_t number;
  char **texts = take_strings(c, &number);
  if (om->output_shapes == NULL) om->output_shapes = calloc(number + 1, sizeof *om->output_shapes);
  else number = 0;
  for (size_t i = 0; om->output_shapes != NULL && i < number; i++) {
    if (texts[i] != NULL && parse_output_shape(texts[i], &om->output_shapes[i])) om->output_shape_count++;
    else c->broken = true;
    if (c->broken) break;
  }
  free_strings(texts, number);
}

static bool read_signature(struct cursor c, struct om *om) {
  while (c.at < c.end && !c.broken) {
    uint32_t type = take_u32(&c);
    struct cursor block = take_part(&c, take_u32(&c));
    switch (type) {
      case 0: take_tensors(&block, &om->inputs, &om->input_count); break;
      case 1: take_tensors(&block, &om->outputs, &om->output_count); break;
      case 2: take_gears(&block, GEAR_BATCH, om); break;
      case 3: take_gears(&block, GEAR_IMAGE, om); break;
      case 4: take_gears(&block, GEAR_DIMS, om); break;
      case 5: take_output_shapes(&block, om); break;
      case 6:
        if (om->order == NULL) om->order = take_strings(&block, &om->order_count);
        block.broken |= om->order_count > MAX_TENSORS;
        break;
    }
    if (block.broken) return false;
  }
  return !c.broken;
}

// ---- the emulator's partition ----

static bool read_emulator_partition(struct cursor c, struct om *om) {
  const unsigned char *magic = take(&c, 8);
  if (magic == NULL || memcmp(magic, "NPUCEMU1", 8) != 0) return false;
  uint32_t number = take_u32(&c);
  for (uint32_t i = 0; i < number && !c.broken; i++) {
    uint32_t key_size = take_u32(&c), value_size = take_u32(&c);
    struct cursor key = take_part(&c, key_size), value = take_part(&c, value_size);
    if (c.broken || !piece_is(&key, "model")) continue;
    om->model = value.at;
    om->model_size = value_size;
  }
  return !c.broken;
}

// ---- the file ----

static int bad_file(const char *why) { return FAIL(ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID, "not an offline model: %s", why); }

struct partition {
  uint32_t type;
  struct cursor bytes;
};

// Reads the table of the first model of the file. Returns the number of partitions, or -1.
static int read_table(struct cursor *body, bool wide, struct partition *partitions, int limit) {
  uint32_t number = take_u32(body);
  if (wide) take_u32(body);
  struct cursor table = take_part(body, (wide ? 24ull : 12ull) * number);
  if (table.broken || number == 0 || number > (uint32_t)limit) return -1;
  for (uint32_t i = 0; i < number; i++) {
    // Offsets are not looked at: what counts is the running sum of the sizes.
    partitions[i].type = take_u32(&table);
    if (wide) take_u32(&table);
    take_number(&table, wide ? 8 : 4);
    partitions[i].bytes = take_part(body, take_number(&table, wide ? 8 : 4));
    if (partitions[i].bytes.broken) return -1;
  }
  return (int)number;
}

static const struct partition *find_partition(const struct partition *partitions, int number, uint32_t type) {
  for (int i = 0; i < number; i++) {
    if (partitions[i].type == type) return &partitions[i];
  }
  return NULL;
}

// Completes what the file leaves to the reader.
static void finish(struct om *om, const struct partition *weights) {
  om->hidden = om->aipp_input = SIZE_MAX;
  for (size_t i = 0; i < om->input_count; i++) {
    if (strcmp(om->inputs[i].name, ACL_DYNAMIC_TENSOR_NAME) == 0) om->hidden = i;
    if (strcmp(om->inputs[i].name, ACL_DYNAMIC_AIPP_NAME) == 0) om->aipp_input = i;
  }
  if (om->weight_size == 0 && weights != NULL) om->weight_size = (uint64_t)(weights->bytes.end - weights->bytes.at);
  if (om->work_size > 0) return;
  for (size_t i = 0; i < om->input_count; i++) om->work_size += om->inputs[i].size;
  for (size_t i = 0; i < om->output_count; i++) om->work_size += om->outputs[i].size;
}

static int read_partitions(struct om *om, const struct partition *partitions, int number) {
  const struct partition *signature = find_partition(partitions, number, PARTITION_SIGNATURE);
  const struct partition *definition = find_partition(partitions, number, PARTITION_MODEL);
  const struct partition *own = find_partition(partitions, number, PARTITION_EMULATOR);
  if (definition == NULL) return FAIL(ACL_ERROR_GE_LOAD_MODEL, "the file has no model definition");
  definition_read(definition->bytes, om);
  // Files up to CANN 5 describe their inputs and outputs in the graph alone.
  if (signature == NULL && !definition_read_signature(definition->bytes, om)) return FAIL(ACL_ERROR_GE_LOAD_MODEL, "the model definition is damaged");
  if (signature != NULL && !read_signature(signature->bytes, om)) return FAIL(ACL_ERROR_GE_LOAD_MODEL, "the description of inputs and outputs is damaged");
  if (own != NULL && !read_emulator_partition(own->bytes, om)) return FAIL(ACL_ERROR_GE_LOAD_MODEL, "the emulator's partition is damaged");
  finish(om, find_partition(partitions, number, PARTITION_WEIGHTS));
  if (om->gear_kind != GEAR_NONE && om->hidden == SIZE_MAX) return FAIL(ACL_ERROR_GE_LOAD_MODEL, "the file lists gears, but has no input for them");
  return 0;
}

int om_read(const void *bytes, size_t size, struct om **out) {
  const unsigned char *header = bytes;
  if (size < HEADER_SIZE) return bad_file("it is shorter than a header");
  struct cursor c = {header, header + size, false};
  uint32_t magic = take_u32(&c);
  c.at = header + 8;
  uint32_t version = take_u32(&c);
  c.at = header + 76;
  uint32_t old_length = take_u32(&c);
  // The first generation has letters where newer headers have the number of models.
  c.at = header + 156;
  uint32_t model_count = version == 0x10000000 ? 1 : take_u32(&c);
  c.at = header + 184;
  uint64_t length = version == 0x10000000 ? 0 : take_u64(&c);
  if (magic == 0x04034b50) return bad_file("it is a ZIP archive, as .om2 files are");
  if ((length ? length : old_length) != size - HEADER_SIZE) return bad_file("the length in its header is not that of the file");
  if (magic != 0x444f4d49) return bad_file("it does not begin with IMOD");
  struct om *om = calloc(1, sizeof *om);
  struct partition *partitions = calloc(MAX_PARTITIONS, sizeof *partitions);
  int code = om && partitions ? 0 : FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the description of a model");
  c.at = header + HEADER_SIZE;
  int number = code == 0 ? read_table(&c, length != 0, partitions, MAX_PARTITIONS) : 0;
  if (number < 0) code = bad_file("its table of partitions is damaged");
  if (code == 0) {
    om->references = 1;
    om->dynamic_shape = version >= 0x20000000 && (header[193] == 1 || model_count > 1);
    code = read_partitions(om, partitions, number);
  }
  free(partitions);
  if (code == 0) *out = om;
  else if (om != NULL) om->references = 1, om_release(om);
  return code;
}

int read_file(const char *path, void **bytes, size_t *size) {
  FILE *file = fopen(path, "rb");
  *bytes = NULL;
  *size = 0;
  if (file == NULL) return -1;
  long end = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (end >= 0 && end < INT64_MAX / 2 && fseek(file, 0, SEEK_SET) == 0 && (*bytes = malloc((size_t)end + 1)) != NULL) {
    *size = fread(*bytes, 1, (size_t)end, file);
    if (*size != (size_t)end) {
      free(*bytes);
      *bytes = NULL;
    }
  }
  fclose(file);
  return *bytes ? 0 : -1;
}

// ---- sizes and shapes ----

size_t element_bits(int type) {
  static const unsigned char bits[] = {
      [ACL_FLOAT] = 32, [ACL_FLOAT16] = 16, [ACL_INT8] = 8, [ACL_INT32] = 32, [ACL_UINT8] = 8, [ACL_INT16] = 16,
      [ACL_UINT16] = 16, [ACL_UINT32] = 32, [ACL_INT64] = 64, [ACL_UINT64] = 64, [ACL_DOUBLE] = 64, [ACL_BOOL] = 8,
      [ACL_COMPLEX64] = 64, [ACL_COMPLEX128] = 128, [ACL_BF16] = 16, [ACL_INT4] = 4, [ACL_UINT1] = 1, [ACL_COMPLEX32] = 32,
      [ACL_HIFLOAT8] = 8, [ACL_FLOAT8_E5M2] = 8, [ACL_FLOAT8_E4M3FN] = 8, [ACL_FLOAT8_E8M0] = 8, [ACL_FLOAT6_E3M2] = 6,
      [ACL_FLOAT6_E2M3] = 6, [ACL_FLOAT4_E2M1] = 4, [ACL_FLOAT4_E1M2] = 4,
  };
  return type >= 0 && (size_t)type < COUNT(bits) ? bits[type] : 0;
}

// 0 for a shape that is not known, and for one that has no size.
uint64_t shape_bytes(int type, size_t rank, const int64_t *dims) {
  uint64_t elements = 1;
  for (size_t i = 0; i < rank; i++) {
    if (dims[i] < 0 || __builtin_mul_overflow(elements, (uint64_t)dims[i], &elements)) return 0;
  }
  uint64_t bits;
  return __builtin_mul_overflow(elements, element_bits(type), &bits) ? 0 : bits / 8 + (bits % 8 != 0);
}

// A dynamic input's size is that of the upper ends of its ranges.
uint64_t om_tensor_bytes(const struct om_tensor *tensor) {
  if (tensor->size > 0) return tensor->size;
  int64_t largest[ACL_MAX_DIM_CNT];
  for (size_t i = 0; i < tensor->rank; i++) {
    largest[i] = tensor->dims[i];
    if (largest[i] < 0 && tensor->ranges == tensor->rank) largest[i] = tensor->range[i][1];
  }
  return shape_bytes(tensor->type, tensor->rank, largest);
}

size_t om_largest_gear(const struct om *om) {
  size_t best = 0;
  uint64_t most = 0;
  for (size_t gear = 0; gear < om->gear_count; gear++) {
    uint64_t product = 1;
    for (size_t i = 0; i < om->gear_length; i++) {
      if (__builtin_mul_overflow(product, om->gears[gear * om->gear_length + i], &product)) product = UINT64_MAX;
    }
    if (product <= most) continue;
    most = product;
    best = gear;
  }
  return best;
}

size_t om_find_gear(const struct om *om, const uint64_t *values, size_t number) {
  for (size_t gear = 0; number == om->gear_length && gear < om->gear_count; gear++) {
    if (memcmp(om->gears + gear * number, values, number * sizeof *values) == 0) return gear;
  }
  return SIZE_MAX;
}

static size_t unknown_dims(const struct om_tensor *tensor) {
  size_t number = 0;
  for (size_t i = 0; i < tensor->rank; i++) number += tensor->dims[i] < 0;
  return number;
}

static size_t input_named(const struct om *om, const char *name) {
  size_t i = 0;
  while (i < om->input_count && strcmp(om->inputs[i].name, name) != 0) i++;
  return i;
}

size_t om_ordered_inputs(const struct om *om, size_t *inputs, size_t limit) {
  size_t number = 0;
  for (size_t k = 0; k < om->order_count && number < limit; k++) {
    size_t input = om->order[k] ? input_named(om, om->order[k]) : om->input_count;
    if (input < om->input_count) inputs[number++] = input;
  }
  // A file without that list means the order of its inputs.
  for (size_t i = 0; om->order_count == 0 && i < om->input_count && number < limit; i++) {
    if (i != om->hidden) inputs[number++] = i;
  }
  return number;
}

// Where the values of an input begin in a row of gears: after those of the inputs before it.
static size_t first_value(const struct om *om, size_t input) {
  size_t order[ACL_MAX_DIM_CNT], before = 0;
  size_t number = om_ordered_inputs(om, order, COUNT(order));
  for (size_t k = 0; k < number && order[k] != input; k++) before += unknown_dims(&om->inputs[order[k]]);
  return before;
}

void om_input_dims(const struct om *om, size_t input, size_t gear, int64_t *dims) {
  const struct om_tensor *tensor = &om->inputs[input];
  memcpy(dims, tensor->dims, tensor->rank * sizeof *dims);
  if (om->gear_kind == GEAR_NONE) return;
  const uint64_t *row = om->gears + (gear == SIZE_MAX ? om_largest_gear(om) : gear) * om->gear_length;
  // A batch is one number for all inputs; an image is two; dims go on from input to input.
  size_t value = om->gear_kind == GEAR_DIMS ? first_value(om, input) : 0;
  for (size_t i = 0; i < tensor->rank; i++) {
    if (dims[i] < 0 && value < om->gear_length) dims[i] = (int64_t)row[value++];
    if (om->gear_kind == GEAR_BATCH) value = 0;
  }
}

bool om_output_dims(const struct om *om, size_t output, size_t gear, size_t *rank, int64_t *dims) {
  if (gear == SIZE_MAX && om->gear_kind != GEAR_NONE) gear = om_largest_gear(om);
  for (size_t i = 0; i < om->output_shape_count; i++) {
    const struct om_output_shape *shape = &om->output_shapes[i];
    if (shape->output != output || (shape->gear != -1 && (uint64_t)shape->gear != gear)) continue;
    *rank = shape->rank;
    memcpy(dims, shape->dims, shape->rank * sizeof *dims);
    return true;
  }
  return false;
}
