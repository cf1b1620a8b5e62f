// Operators of AscendCL as operators of ONNX: the table, and the model of one node that is made by it.

#ifndef NPUCTL_OPERATOR_H
#define NPUCTL_OPERATOR_H

#include "attribute.h"

// What becomes of an attribute.
enum attribute_rule {
  SAME,            // under another name
  WITHOUT_NC,      // a list with an entry per axis loses those of N and C
  ELEMENT_TYPE,    // an element type changes its numbering
  OPPOSITE,        // a truth value is turned round
  PADDING,         // CALCULATED, SAME and VALID have other names
  FIRST_OF_LIST,   // a list of one is that one
  MUST_BE_ZERO,    // the operator is known without it only
};

struct attribute_mapping {
  const char *from, *to;
  enum attribute_rule rule;
};

enum { MAX_OPERANDS = 16 };

struct operator_row {
  const char *type;             // of AscendCL
  const char *onnx;
  const char *onnx_global;      // when the attribute global_pooling is set
  int outputs;                  // that are computed; further ones keep what they hold
  const char *scalars[2];       // ONNX attributes that come as the inputs behind the others, in host memory
  int first_scalar;
  struct attribute_mapping attributes[8];
};

// Returns NULL for an operator that the emulator does not compute.
const struct operator_row *operator_find(const char *type);

// The bytes of a model.
struct model_bytes {
  unsigned char *bytes;
  size_t size, space;
  bool failed;  // no memory
};

// What a node reads or writes.
struct operand_type {
  bool absent;
  int type;  // acl numbering
  size_t rank;
  const int64_t *dims;
};

// Writes a model of one node. The tensors are called i0, i1… and o0, o1…. The error is set on failure.
int operator_model(const struct operator_row *row, const struct operand_type *inputs, int input_count, const struct operand_type *outputs,
                   const aclopAttr *attributes, const float *scalars, struct model_bytes *out);

#endif
