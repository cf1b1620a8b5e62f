// What libascendcl.so offers to the emulator's other libraries. None of it belongs to AscendCL.

#ifndef NPUCTL_EMULATOR_H
#define NPUCTL_EMULATOR_H

#include "acl_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// Says that the client called this function: error texts and misuse reports name it. Every exported
// function begins with it.
#define API_ENTRY() npuctl_emulator_enter(__func__)
ACL_API void npuctl_emulator_enter(const char *function);

// Keeps the text as the calling thread's last error message and returns code.
ACL_API int npuctl_emulator_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define FAIL npuctl_emulator_fail

// Returns the code of an argument that is NULL, 0 otherwise.
#define CHECK_ARGUMENT(condition)                                                    \
  do {                                                                               \
    if (!(condition)) return FAIL(ACL_ERROR_INVALID_PARAM, "needs %s", #condition); \
  } while (0)

// The answer of functions that the emulator has by name only.
ACL_API int npuctl_emulator_unsupported(const char *function);

ACL_API uint32_t npuctl_emulator_device_count(void);

// Computes one operator on a stream: what aclopCompileAndExecute does.
ACL_API int npuctl_emulator_execute_operator(const char *type, int inputs, const aclTensorDesc *const *input_descs,
                                             const aclDataBuffer *const *input_buffers, int outputs,
                                             const aclTensorDesc *const *output_descs, aclDataBuffer *const *output_buffers,
                                             const aclopAttr *attributes, aclrtStream stream);

// Whether the emulator can compute the operator.
ACL_API bool npuctl_emulator_knows_operator(const char *type);

// Entries for tables of functions that are there by name only. A caller passes its arguments in vain, which
// the calling conventions of amd64 and arm64 allow.
#define UNSUPPORTED_CODE(name) \
  ACL_API aclError name(void); \
  ACL_API aclError name(void) { return npuctl_emulator_unsupported(#name); }
#define UNSUPPORTED_POINTER(name) \
  ACL_API void *name(void);       \
  ACL_API void *name(void) { npuctl_emulator_unsupported(#name); return NULL; }
#define UNSUPPORTED_NUMBER(name) \
  ACL_API uint64_t name(void);   \
  ACL_API uint64_t name(void) { npuctl_emulator_unsupported(#name); return 0; }
#define UNSUPPORTED_VOID(name) \
  ACL_API void name(void);     \
  ACL_API void name(void) { npuctl_emulator_unsupported(#name); }

#ifdef __cplusplus
}
#endif

#endif
