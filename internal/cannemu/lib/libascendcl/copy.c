// Copies and fills, at once and in streams.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct copy {
  struct task task;  // first, so that a pointer to one is a pointer to the other
  struct span to, from;
  int value;  // of a fill: from has no bytes then
};

static void perform(const struct copy *copy) {
  if (copy->from.bytes == NULL) memset(copy->to.bytes, copy->value, copy->to.size);
  else memmove(copy->to.bytes, copy->from.bytes, copy->from.size);
  count(COUNT_COPY, 1);
  count(COUNT_COPY_BYTES, (long long)copy->to.size);
}

static int run_copy(struct task *task) {
  struct copy *copy = (struct copy *)task;
  int code = injected_fault(AT_COPY);
  if (code != 0) return code;
  if (span_is_dead(&copy->to) || span_is_dead(&copy->from)) return FAIL(ACL_ERROR_RT_SYS_DMA, "its device memory was freed before it ran");
  perform(copy);
  return 0;
}

static void release_copy(struct task *task) {
  struct copy *copy = (struct copy *)task;
  span_release(&copy->to);
  span_release(&copy->from);
  free(copy);
}

// Finds out what both ends are. Sets *pageable when host memory is part of it that is not pinned.
static int prepare(void *to, const void *from, size_t size, aclrtMemcpyKind kind, struct copy *copy, bool *pageable) {
  bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
  if (kind == ACL_MEMCPY_DEFAULT) {
    to_device = is_device_address(to);
    from_device = is_device_address(from);
  }
  int code = (to_device ? span_device : span_host)(to, size, "the destination", &copy->to);
  if (code != 0) return code;
  code = (from_device ? span_device : span_host)(from, size, "the source", &copy->from);
  if (code != 0) {
    span_release(&copy->to);
    return code;
  }
  *pageable = (!to_device && !host_is_pinned(to, size)) || (!from_device && !host_is_pinned(from, size));
  return 0;
}

static int check_copy(const void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind) {
  CHECK_ARGUMENT(to != NULL);
  CHECK_ARGUMENT(from != NULL);
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return FAIL(ACL_ERROR_INVALID_PARAM, "there is no kind of copy %d", kind);
  if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "copies by way of a buffer are not emulated");
  struct context *context;
  int code = current_context(&context);
  if (code != 0) return code;
  if (size > to_size) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit into %zu", size, to_size);
  return injected_fault(AT_ANY_DEVICE_CALL);
}

static aclError copy_now(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind) {
  if (size == 0) return 0;
  int code = check_copy(to, to_size, from, size, kind);
  struct copy copy = {0};
  bool pageable;
  if (code != 0 || (code = prepare(to, from, size, kind, &copy, &pageable)) != 0) return code;
  if ((code = injected_fault(AT_COPY)) == 0) perform(&copy);
  span_release(&copy.to);
  span_release(&copy.from);
  return code;
}

static aclError copy_in_stream(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind, aclrtStream stream) {
  if (size == 0) return 0;
  int code = check_copy(to, to_size, from, size, kind);
  if (code != 0) return code;
  if (kind == ACL_MEMCPY_HOST_TO_HOST) return FAIL(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "a stream does not copy from host to host");
  struct copy *copy = calloc(1, sizeof *copy);
  if (copy == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the task");
  bool pageable;
  if ((code = prepare(to, from, size, kind, copy, &pageable)) != 0) {
    free(copy);
    return code;
  }
  copy->task = (struct task){.on_device = true, .run = run_copy, .release = release_copy};
  // The device cannot reach pageable memory by itself: the call waits for its turn and copies.
  if (pageable) count(COUNT_PAGEABLE_ASYNC_COPY, 1);
  return stream_launch(stream, &copy->task, pageable);
}

ACL_API aclError aclrtMemcpy(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind) {
  API_ENTRY();
  return copy_now(to, to_size, from, size, kind);
}

ACL_API aclError aclrtMemcpyAsync(void *to, size_t to_size, const void *from, size_t size, aclrtMemcpyKind kind, aclrtStream stream) {
  API_ENTRY();
  return copy_in_stream(to, to_size, from, size, kind, stream);
}

// What the attributes say of an address is not needed: addresses tell by themselves where they lie.
static aclError copy_batch(void **to, size_t *to_sizes, void **from, size_t *sizes, size_t number, const aclrtMemcpyBatchAttr *attributes,
                           const size_t *attribute_indexes, size_t attribute_count, size_t *failed, bool in_stream, aclrtStream stream) {
  CHECK_ARGUMENT(to != NULL && to_sizes != NULL && from != NULL && sizes != NULL);
  CHECK_ARGUMENT(number > 0);
  CHECK_ARGUMENT(attributes != NULL && attribute_indexes != NULL);
  CHECK_ARGUMENT(attribute_count > 0 && attribute_count <= number);
  CHECK_ARGUMENT(failed != NULL);
  *failed = SIZE_MAX;
  for (size_t i = 0; i < number; i++) {
    int code = in_stream ? copy_in_stream(to[i], to_sizes[i], from[i], sizes[i], ACL_MEMCPY_DEFAULT, stream)
                         : copy_now(to[i], to_sizes[i], from[i], sizes[i], ACL_MEMCPY_DEFAULT);
    if (code != 0) {
      *failed = i;
      return code;
    }
  }
  return 0;
}

ACL_API aclError aclrtMemcpyBatch(void **to, size_t *to_sizes, void **from, size_t *sizes, size_t number, aclrtMemcpyBatchAttr *attributes,
                                  size_t *attribute_indexes, size_t attribute_count, size_t *failed) {
  API_ENTRY();
  return copy_batch(to, to_sizes, from, sizes, number, attributes, attribute_indexes, attribute_count, failed, false, NULL);
}

ACL_API aclError aclrtMemcpyBatchAsync(void **to, size_t *to_sizes, void **from, size_t *sizes, size_t number, aclrtMemcpyBatchAttr *attributes,
                                       size_t *attribute_indexes, size_t attribute_count, size_t *failed, aclrtStream stream) {
  API_ENTRY();
  return copy_batch(to, to_sizes, from, sizes, number, attributes, attribute_indexes, attribute_count, failed, true, stream);
}

static int prepare_fill(void *to, size_t to_size, int32_t value, size_t size, struct copy *copy) {
  CHECK_ARGUMENT(to != NULL);
  struct context *context;
  int code = current_context(&context);
  if (code != 0) return code;
  if (size > to_size) return FAIL(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes do not fit into %zu", size, to_size);
  if ((code = injected_fault(AT_ANY_DEVICE_CALL)) != 0) return code;
  copy->value = value;
  return (is_device_address(to) ? span_device : span_host)(to, size, "the destination", &copy->to);
}

ACL_API aclError aclrtMemset(void *to, size_t to_size, int32_t value, size_t size) {
  API_ENTRY();
  if (size == 0) return 0;
  struct copy copy = {0};
  int code = prepare_fill(to, to_size, value, size, &copy);
  if (code != 0) return code;
  if ((code = injected_fault(AT_COPY)) == 0) perform(&copy);
  span_release(&copy.to);
  return code;
}

ACL_API aclError aclrtMemsetAsync(void *to, size_t to_size, int32_t value, size_t size, aclrtStream stream) {
  API_ENTRY();
  if (size == 0) return 0;
  struct copy *copy = calloc(1, sizeof *copy);
  if (copy == NULL) return FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the task");
  int code = prepare_fill(to, to_size, value, size, copy);
  if (code != 0) {
    free(copy);
    return code;
  }
  copy->task = (struct task){.on_device = true, .run = run_copy, .release = release_copy};
  return stream_launch(stream, &copy->task, false);
}
