// Data buffers and datasets: plain objects of the host that tell a launch where its tensors lie.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

ACL_API size_t aclDataTypeSize(aclDataType type) {
  API_ENTRY();
  // What is smaller than a byte counts as one.
  return (element_bits(type) + 7) / 8;
}

// ---- data buffers ----

ACL_API aclDataBuffer *aclCreateDataBuffer(void *address, size_t size) {
  API_ENTRY();
  aclDataBuffer *buffer = malloc(sizeof *buffer);
  if (buffer == NULL) return NULL;
  *buffer = (aclDataBuffer){address, size};
  count(LIVE_DATA_BUFFER, 1);
  return buffer;
}

ACL_API aclError aclDestroyDataBuffer(const aclDataBuffer *buffer) {
  API_ENTRY();
  CHECK_ARGUMENT(buffer != NULL);
  free((void *)(uintptr_t)buffer);
  count(LIVE_DATA_BUFFER, -1);
  return 0;
}

ACL_API aclError aclUpdateDataBuffer(aclDataBuffer *buffer, void *address, size_t size) {
  API_ENTRY();
  CHECK_ARGUMENT(buffer != NULL);
  *buffer = (aclDataBuffer){address, size};
  return 0;
}

ACL_API void *aclGetDataBufferAddr(const aclDataBuffer *buffer) { return buffer ? buffer->address : NULL; }
ACL_API size_t aclGetDataBufferSizeV2(const aclDataBuffer *buffer) { return buffer ? buffer->size : 0; }
ACL_API uint32_t aclGetDataBufferSize(const aclDataBuffer *buffer) { return buffer ? (uint32_t)buffer->size : 0; }

// ---- datasets ----

ACL_API aclmdlDataset *aclmdlCreateDataset(void) {
  API_ENTRY();
  aclmdlDataset *dataset = calloc(1, sizeof *dataset);
  if (dataset != NULL) count(LIVE_DATASET, 1);
  return dataset;
}

ACL_API aclError aclmdlDestroyDataset(const aclmdlDataset *dataset) {
  API_ENTRY();
  CHECK_ARGUMENT(dataset != NULL);
  // The descriptions belong to the dataset, the buffers do not.
  for (size_t i = 0; i < dataset->count; i++) free_tensor_desc(dataset->entries[i].desc);
  free(dataset->entries);
  free((void *)(uintptr_t)dataset);
  count(LIVE_DATASET, -1);
  return 0;
}

ACL_API aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *buffer) {
  API_ENTRY();
  CHECK_ARGUMENT(dataset != NULL);
  CHECK_ARGUMENT(buffer != NULL);
  if (dataset->count == dataset->space) {
    size_t space = dataset->space ? 2 * dataset->space : 8;
    struct dataset_entry *entries = realloc(dataset->entries, space * sizeof *entries);
    if (entries == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a longer dataset");
    dataset->entries = entries;
    dataset->space = space;
  }
  dataset->entries[dataset->count++] = (struct dataset_entry){buffer, NULL};
  return 0;
}

ACL_API size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset) { return dataset ? dataset->count : 0; }

ACL_API aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index) {
  return dataset && index < dataset->count ? dataset->entries[index].buffer : NULL;
}

ACL_API aclError aclmdlSetDatasetTensorDesc(aclmdlDataset *dataset, aclTensorDesc *desc, size_t index) {
  API_ENTRY();
  CHECK_ARGUMENT(dataset != NULL);
  CHECK_ARGUMENT(index < dataset->count);
  aclTensorDesc *copy = desc ? tensor_desc_copy(desc) : NULL;
  if (desc != NULL && copy == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for a tensor description");
  free_tensor_desc(dataset->entries[index].desc);
  dataset->entries[index].desc = copy;
  return 0;
}

ACL_API aclTensorDesc *aclmdlGetDatasetTensorDesc(const aclmdlDataset *dataset, size_t index) {
  return dataset && index < dataset->count ? dataset->entries[index].desc : NULL;
}
