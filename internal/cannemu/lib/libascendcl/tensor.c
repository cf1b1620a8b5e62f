// Tensor descriptions: type, shape and format of a tensor.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void free_tensor_desc(aclTensorDesc *desc) {
  if (desc == NULL) return;
  free(desc->constant);
  free(desc);
}

aclTensorDesc *tensor_desc_copy(const aclTensorDesc *desc) {
  aclTensorDesc *copy = malloc(sizeof *copy);
  if (copy == NULL) return NULL;
  *copy = *desc;
  if (desc->constant != NULL) {
    copy->constant = malloc(desc->constant_size);
    if (copy->constant == NULL) {
      free(copy);
      return NULL;
    }
    memcpy(copy->constant, desc->constant, desc->constant_size);
  }
  return copy;
}

ACL_API aclTensorDesc *aclCreateTensorDesc(aclDataType type, int rank, const int64_t *dims, aclFormat format) {
  API_ENTRY();
  if (rank < 0 || rank > ACL_MAX_DIM_CNT || (rank > 0 && dims == NULL)) {
    FAIL(ACL_ERROR_INVALID_PARAM, "a tensor of %d dims cannot be described", rank);
    return NULL;
  }
  aclTensorDesc *desc = calloc(1, sizeof *desc);
  if (desc == NULL) return NULL;
  desc->type = type;
  desc->format = format;
  desc->rank = rank;
  if (rank > 0) memcpy(desc->dims, dims, (size_t)rank * sizeof *dims);
  count(LIVE_TENSOR_DESC, 1);
  return desc;
}

ACL_API void aclDestroyTensorDesc(const aclTensorDesc *desc) {
  API_ENTRY();
  if (desc == NULL) return;
  free_tensor_desc((aclTensorDesc *)(uintptr_t)desc);
  count(LIVE_TENSOR_DESC, -1);
}

ACL_API aclDataType aclGetTensorDescType(const aclTensorDesc *desc) { return desc ? desc->type : ACL_DT_UNDEFINED; }
ACL_API aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc) { return desc ? desc->format : ACL_FORMAT_UNDEFINED; }
ACL_API size_t aclGetTensorDescNumDims(const aclTensorDesc *desc) { return desc ? (size_t)desc->rank : 0; }
ACL_API void *aclGetTensorDescAddress(const aclTensorDesc *desc) { return desc ? desc->constant : NULL; }
ACL_API aclTensorDesc *aclGetTensorDescByIndex(aclTensorDesc *desc, size_t index) { return index == 0 ? desc : NULL; }

// 0 for a shape with unknown dims.
ACL_API size_t aclGetTensorDescSize(const aclTensorDesc *desc) {
  return desc ? shape_bytes(desc->type, (size_t)desc->rank, desc->dims) : 0;
}

ACL_API size_t aclGetTensorDescElementCount(const aclTensorDesc *desc) {
  return desc ? shape_bytes(ACL_UINT8, (size_t)desc->rank, desc->dims) : 0;
}

ACL_API int64_t aclGetTensorDescDim(const aclTensorDesc *desc, size_t index) { return desc && index < (size_t)desc->rank ? desc->dims[index] : -1; }

ACL_API aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dim) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(dim != NULL);
  CHECK_ARGUMENT(index < (size_t)desc->rank);
  *dim = desc->dims[index];
  return 0;
}

ACL_API void aclSetTensorDescName(aclTensorDesc *desc, const char *name) {
  API_ENTRY();
  if (desc != NULL) snprintf(desc->name, sizeof desc->name, "%s", name ? name : "");
}

// The setters of formats and shapes of storage do nothing on NULL.
ACL_API aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format) {
  API_ENTRY();
  (void)desc, (void)format;
  return 0;
}

ACL_API aclError aclSetTensorShape(aclTensorDesc *desc, int rank, const int64_t *dims) {
  API_ENTRY();
  (void)desc, (void)rank, (void)dims;
  return 0;
}

ACL_API aclError aclSetTensorShapeRange(aclTensorDesc *desc, size_t number, int64_t range[][2]) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(number <= ACL_MAX_DIM_CNT);
  CHECK_ARGUMENT(number == 0 || range != NULL);
  desc->ranges = number;
  for (size_t i = 0; i < number; i++) memcpy(desc->range[i], range[i], sizeof range[i]);
  return 0;
}

ACL_API aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType placement) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  desc->placement = placement;
  return 0;
}

ACL_API aclError aclSetTensorConst(aclTensorDesc *desc, void *bytes, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(desc != NULL);
  CHECK_ARGUMENT(bytes != NULL && size > 0);
  void *copy = malloc(size);
  if (copy == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a constant");
  memcpy(copy, bytes, size);
  free(desc->constant);
  desc->constant = copy;
  desc->constant_size = size;
  return 0;
}
