// Attributes of single operators, as the program set them.

#ifndef NPUCTL_ATTRIBUTE_H
#define NPUCTL_ATTRIBUTE_H

#include "internal.h"

enum attribute_kind { ATTRIBUTE_INTEGER, ATTRIBUTE_INTEGERS, ATTRIBUTE_FLOAT, ATTRIBUTE_FLOATS, ATTRIBUTE_TEXT };

struct attribute {
  char *name;
  enum attribute_kind kind;
  size_t number;
  int64_t *integers;
  float *floats;
  char *text;
};

struct aclopAttr {
  size_t count;
  struct attribute *items;
};

const struct attribute *attribute_find(const aclopAttr *attributes, const char *name);

#endif
