// Attributes of single operators.

#include <stdlib.h>
#include <string.h>

#include "attribute.h"

ACL_API aclopAttr *aclopCreateAttr(void) {
  API_ENTRY();
  aclopAttr *attributes = calloc(1, sizeof *attributes);
  if (attributes != NULL) count(LIVE_OPERATOR_ATTRIBUTES, 1);
  return attributes;
}

static void free_value(struct attribute *attribute) {
  free(attribute->name);
  free(attribute->integers);
  free(attribute->floats);
  free(attribute->text);
}

ACL_API void aclopDestroyAttr(const aclopAttr *attributes) {
  API_ENTRY();
  if (attributes == NULL) return;
  for (size_t i = 0; i < attributes->count; i++) free_value(&attributes->items[i]);
  free(attributes->items);
  free((void *)(uintptr_t)attributes);
  count(LIVE_OPERATOR_ATTRIBUTES, -1);
}

const struct attribute *attribute_find(const aclopAttr *attributes, const char *name) {
  for (size_t i = 0; attributes != NULL && i < attributes->count; i++) {
    if (strcmp(attributes->items[i].name, name) == 0) return &attributes->items[i];
  }
  return NULL;
}

// Makes room for a value under a name; a second value replaces the first.
static struct attribute *slot(aclopAttr *attributes, const char *name) {
  struct attribute *old = (struct attribute *)(uintptr_t)attribute_find(attributes, name);
  if (old != NULL) {
    free_value(old);
    memset(old, 0, sizeof *old);
    old->name = strdup(name);
    return old->name ? old : NULL;
  }
  struct attribute *items = realloc(attributes->items, (attributes->count + 1) * sizeof *items);
  if (items == NULL) return NULL;
  attributes->items = items;
  struct attribute *added = &items[attributes->count];
  memset(added, 0, sizeof *added);
  added->name = strdup(name);
  if (added->name == NULL) return NULL;
  attributes->count++;
  return added;
}

static bool is_float(enum attribute_kind kind) { return kind == ATTRIBUTE_FLOAT || kind == ATTRIBUTE_FLOATS; }

// Keeps a copy of numbers: floats for the kinds of floats, 64-bit integers for the others.
static aclError set_numbers(aclopAttr *attributes, const char *name, enum attribute_kind kind, size_t number, const void *values) {
  CHECK_ARGUMENT(attributes != NULL);
  CHECK_ARGUMENT(name != NULL);
  CHECK_ARGUMENT(values != NULL || number == 0);
  size_t width = is_float(kind) ? sizeof(float) : sizeof(int64_t);
  void *copy = malloc((number + 1) * width);
  struct attribute *attribute = copy ? slot(attributes, name) : NULL;
  if (attribute == NULL) {
    free(copy);
    return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for attribute %s", name);
  }
  if (number > 0) memcpy(copy, values, number * width);
  attribute->kind = kind;
  attribute->number = number;
  if (is_float(kind)) attribute->floats = copy;
  else attribute->integers = copy;
  return 0;
}

ACL_API aclError aclopSetAttrBool(aclopAttr *attributes, const char *name, uint8_t value) {
  API_ENTRY();
  return set_numbers(attributes, name, ATTRIBUTE_INTEGER, 1, &(int64_t){value != 0});
}

ACL_API aclError aclopSetAttrInt(aclopAttr *attributes, const char *name, int64_t value) {
  API_ENTRY();
  return set_numbers(attributes, name, ATTRIBUTE_INTEGER, 1, &value);
}

ACL_API aclError aclopSetAttrDataType(aclopAttr *attributes, const char *name, aclDataType value) {
  API_ENTRY();
  return set_numbers(attributes, name, ATTRIBUTE_INTEGER, 1, &(int64_t){value});
}

ACL_API aclError aclopSetAttrFloat(aclopAttr *attributes, const char *name, float value) {
  API_ENTRY();
  return set_numbers(attributes, name, ATTRIBUTE_FLOAT, 1, &value);
}

ACL_API aclError aclopSetAttrListInt(aclopAttr *attributes, const char *name, int number, const int64_t *values) {
  API_ENTRY();
  CHECK_ARGUMENT(number >= 0);
  return set_numbers(attributes, name, ATTRIBUTE_INTEGERS, (size_t)number, values);
}

ACL_API aclError aclopSetAttrListFloat(aclopAttr *attributes, const char *name, int number, const float *values) {
  API_ENTRY();
  CHECK_ARGUMENT(number >= 0);
  return set_numbers(attributes, name, ATTRIBUTE_FLOATS, (size_t)number, values);
}

ACL_API aclError aclopSetAttrListBool(aclopAttr *attributes, const char *name, int number, const uint8_t *values) {
  API_ENTRY();
  CHECK_ARGUMENT(number >= 0 && number <= 4096);
  CHECK_ARGUMENT(values != NULL || number == 0);
  int64_t wide[4096];
  for (int i = 0; i < number; i++) wide[i] = values[i] != 0;
  return set_numbers(attributes, name, ATTRIBUTE_INTEGERS, (size_t)number, wide);
}

ACL_API aclError aclopSetAttrString(aclopAttr *attributes, const char *name, const char *value) {
  API_ENTRY();
  CHECK_ARGUMENT(attributes != NULL);
  CHECK_ARGUMENT(name != NULL);
  CHECK_ARGUMENT(value != NULL);
  char *copy = strdup(value);
  struct attribute *attribute = copy ? slot(attributes, name) : NULL;
  if (attribute == NULL) {
    free(copy);
    return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for attribute %s", name);
  }
  attribute->kind = ATTRIBUTE_TEXT;
  attribute->text = copy;
  return 0;
}
