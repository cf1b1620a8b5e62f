//go:build cgo && (linux || darwin)

// The part of ONNX Runtime's C API that this package calls, declared here so that
// no header of ONNX Runtime is needed to build.
//
// The library exports one symbol, OrtGetApiBase. It leads to a table of function
// pointers whose order never changes: new functions are appended, and none is
// removed. So a slot number and a signature are all that is needed to call one.
// ONNX Runtime states both in onnxruntime_c_api.h (struct OrtApi, slot = position
// from 0). Enumerations are passed as int, which is how C compilers lay them out.

#ifndef NPUCTL_ONNXRUNTIME_API_H
#define NPUCTL_ONNXRUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Objects of ONNX Runtime. Each is made and released by functions of the table.
typedef struct OrtStatus OrtStatus;                  // why a call failed; NULL when it did not
typedef struct OrtEnv OrtEnv;                        // process-wide state of the library
typedef struct OrtSession OrtSession;                // a loaded model
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;                    // a tensor, sequence, map or optional
typedef struct OrtTypeInfo OrtTypeInfo;              // the declared type of an input or output
typedef struct OrtTensorInfo OrtTensorInfo;          // element type and dims; OrtTensorTypeAndShapeInfo
typedef struct OrtSequenceInfo OrtSequenceInfo;      // OrtSequenceTypeInfo
typedef struct OrtMapInfo OrtMapInfo;                // OrtMapTypeInfo
typedef struct OrtOptionalInfo OrtOptionalInfo;      // OrtOptionalTypeInfo
typedef struct OrtMemoryInfo OrtMemoryInfo;          // where a tensor's memory lies
typedef struct OrtAllocator OrtAllocator;

// The version of the table that is asked for: the first that has every function of
// ORT_FUNCTIONS. Version N came with ONNX Runtime 1.N.
#define ORT_API_WANTED 17

// X(slot, result, name, parameters, arguments)
#define ORT_FUNCTIONS(X) \
  /* errors */ \
  X(1, int, GetErrorCode, (const OrtStatus *status), (status)) \
  X(2, const char *, GetErrorMessage, (const OrtStatus *status), (status)) \
  X(93, void, ReleaseStatus, (OrtStatus *status), (status)) \
  /* the environment */ \
  X(3, OrtStatus *, CreateEnv, (int severity, const char *log_id, OrtEnv **out), (severity, log_id, out)) \
  X(92, void, ReleaseEnv, (OrtEnv *env), (env)) \
  X(69, OrtStatus *, CreateCpuMemoryInfo, (int allocator, int memory, OrtMemoryInfo **out), (allocator, memory, out)) \
  X(94, void, ReleaseMemoryInfo, (OrtMemoryInfo *info), (info)) \
  X(78, OrtStatus *, GetAllocatorWithDefaultOptions, (OrtAllocator **out), (out)) \
  X(76, OrtStatus *, AllocatorFree, (OrtAllocator *allocator, void *memory), (allocator, memory)) \
  /* options of a session */ \
  X(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **out), (out)) \
  X(100, void, ReleaseSessionOptions, (OrtSessionOptions *options), (options)) \
  X(11, OrtStatus *, SetOptimizedModelFilePath, (OrtSessionOptions *options, const char *path), (options, path)) \
  X(13, OrtStatus *, SetSessionExecutionMode, (OrtSessionOptions *options, int mode), (options, mode)) \
  X(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *options, int severity), (options, severity)) \
  X(23, OrtStatus *, SetSessionGraphOptimizationLevel, (OrtSessionOptions *options, int level), (options, level)) \
  X(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *options, int threads), (options, threads)) \
  X(25, OrtStatus *, SetInterOpNumThreads, (OrtSessionOptions *options, int threads), (options, threads)) \
  X(130, OrtStatus *, AddSessionConfigEntry, (OrtSessionOptions *options, const char *key, const char *value), (options, key, value)) \
  X(273, OrtStatus *, SetDeterministicCompute, (OrtSessionOptions *options, bool on), (options, on)) \
  /* a session and what it declares */ \
  X(7, OrtStatus *, CreateSession, (const OrtEnv *env, const char *path, const OrtSessionOptions *options, OrtSession **out), (env, path, options, out)) \
  X(8, OrtStatus *, CreateSessionFromArray, (const OrtEnv *env, const void *model, size_t size, const OrtSessionOptions *options, OrtSession **out), (env, model, size, options, out)) \
  X(95, void, ReleaseSession, (OrtSession *session), (session)) \
  X(30, OrtStatus *, SessionGetInputCount, (const OrtSession *session, size_t *out), (session, out)) \
  X(31, OrtStatus *, SessionGetOutputCount, (const OrtSession *session, size_t *out), (session, out)) \
  X(32, OrtStatus *, SessionGetOverridableInitializerCount, (const OrtSession *session, size_t *out), (session, out)) \
  X(33, OrtStatus *, SessionGetInputTypeInfo, (const OrtSession *session, size_t index, OrtTypeInfo **out), (session, index, out)) \
  X(34, OrtStatus *, SessionGetOutputTypeInfo, (const OrtSession *session, size_t index, OrtTypeInfo **out), (session, index, out)) \
  X(35, OrtStatus *, SessionGetOverridableInitializerTypeInfo, (const OrtSession *session, size_t index, OrtTypeInfo **out), (session, index, out)) \
  X(36, OrtStatus *, SessionGetInputName, (const OrtSession *session, size_t index, OrtAllocator *allocator, char **out), (session, index, allocator, out)) \
  X(37, OrtStatus *, SessionGetOutputName, (const OrtSession *session, size_t index, OrtAllocator *allocator, char **out), (session, index, allocator, out)) \
  X(38, OrtStatus *, SessionGetOverridableInitializerName, (const OrtSession *session, size_t index, OrtAllocator *allocator, char **out), (session, index, allocator, out)) \
  /* declared types; what the casts and getters give lives as long as the OrtTypeInfo, \
     but a nested OrtTypeInfo is released by itself */ \
  X(98, void, ReleaseTypeInfo, (OrtTypeInfo *info), (info)) \
  X(56, OrtStatus *, GetOnnxTypeFromTypeInfo, (const OrtTypeInfo *info, int *out), (info, out)) \
  X(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *info, const OrtTensorInfo **out), (info, out)) \
  X(103, OrtStatus *, CastTypeInfoToMapTypeInfo, (const OrtTypeInfo *info, const OrtMapInfo **out), (info, out)) \
  X(104, OrtStatus *, CastTypeInfoToSequenceTypeInfo, (const OrtTypeInfo *info, const OrtSequenceInfo **out), (info, out)) \
  X(250, OrtStatus *, CastTypeInfoToOptionalTypeInfo, (const OrtTypeInfo *info, const OrtOptionalInfo **out), (info, out)) \
  X(105, OrtStatus *, GetMapKeyType, (const OrtMapInfo *info, int *out), (info, out)) \
  X(106, OrtStatus *, GetMapValueType, (const OrtMapInfo *info, OrtTypeInfo **out), (info, out)) \
  X(107, OrtStatus *, GetSequenceElementType, (const OrtSequenceInfo *info, OrtTypeInfo **out), (info, out)) \
  X(251, OrtStatus *, GetOptionalContainedTypeInfo, (const OrtOptionalInfo *info, OrtTypeInfo **out), (info, out)) \
  X(60, OrtStatus *, GetTensorElementType, (const OrtTensorInfo *info, int *out), (info, out)) \
  X(61, OrtStatus *, GetDimensionsCount, (const OrtTensorInfo *info, size_t *out), (info, out)) \
  X(62, OrtStatus *, GetDimensions, (const OrtTensorInfo *info, int64_t *dims, size_t count), (info, dims, count)) \
  X(63, OrtStatus *, GetSymbolicDimensions, (const OrtTensorInfo *info, const char **names, size_t count), (info, names, count)) \
  X(99, void, ReleaseTensorTypeAndShapeInfo, (OrtTensorInfo *info), (info)) \
  /* values */ \
  X(96, void, ReleaseValue, (OrtValue *value), (value)) \
  X(192, OrtStatus *, HasValue, (const OrtValue *value, int *out), (value, out)) \
  X(67, OrtStatus *, GetValueType, (const OrtValue *value, int *out), (value, out)) \
  X(80, OrtStatus *, GetValue, (const OrtValue *value, int index, OrtAllocator *allocator, OrtValue **out), (value, index, allocator, out)) \
  X(81, OrtStatus *, GetValueCount, (const OrtValue *value, size_t *out), (value, out)) \
  X(82, OrtStatus *, CreateValue, (const OrtValue *const *parts, size_t count, int type, OrtValue **out), (parts, count, type, out)) \
  X(48, OrtStatus *, CreateTensorAsOrtValue, (OrtAllocator *allocator, const int64_t *dims, size_t rank, int type, OrtValue **out), (allocator, dims, rank, type, out)) \
  X(49, OrtStatus *, CreateTensorWithDataAsOrtValue, (const OrtMemoryInfo *info, void *data, size_t size, const int64_t *dims, size_t rank, int type, OrtValue **out), (info, data, size, dims, rank, type, out)) \
  X(51, OrtStatus *, GetTensorMutableData, (OrtValue *value, void **out), (value, out)) \
  X(65, OrtStatus *, GetTensorTypeAndShape, (const OrtValue *value, OrtTensorInfo **out), (value, out)) \
  X(53, OrtStatus *, GetStringTensorDataLength, (const OrtValue *value, size_t *out), (value, out)) \
  X(54, OrtStatus *, GetStringTensorContent, (const OrtValue *value, void *bytes, size_t size, size_t *offsets, size_t count), (value, bytes, size, offsets, count)) \
  X(252, OrtStatus *, GetResizedStringTensorElementBuffer, (OrtValue *value, size_t index, size_t size, char **out), (value, index, size, out)) \
  /* runs */ \
  X(39, OrtStatus *, CreateRunOptions, (OrtRunOptions **out), (out)) \
  X(97, void, ReleaseRunOptions, (OrtRunOptions *options), (options)) \
  X(46, OrtStatus *, RunOptionsSetTerminate, (OrtRunOptions *options), (options)) \
  X(47, OrtStatus *, RunOptionsUnsetTerminate, (OrtRunOptions *options), (options)) \
  X(9, OrtStatus *, Run, (OrtSession *session, const OrtRunOptions *options, const char *const *input_names, const OrtValue *const *inputs, size_t input_count, const char *const *output_names, size_t output_count, OrtValue **outputs), (session, options, input_names, inputs, input_count, output_names, output_count, outputs))

// A function that only newer libraries have. It is NULL in the others.
#define ORT_API_SHAPE 24
#define ORT_SLOT_HAS_SHAPE 390

#define ORT_MEMBER(slot, result, name, parameters, arguments) result(*name) parameters;

// One opened library: its table, with the types restored.
typedef struct {
  void *handle;         // of dlopen
  const void *base;     // of OrtGetApiBase
  const char *version;  // "1.24.3"; memory of the library
  ORT_FUNCTIONS(ORT_MEMBER)
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorInfo *info);
} ort_library;

#undef ORT_MEMBER

// Go cannot call a function pointer, so each has a function: ort_Run(library, …).
#define ORT_LIST(...) __VA_ARGS__
#define ORT_CALL(slot, result, name, parameters, arguments) \
  static inline result ort_##name(const ort_library *library, ORT_LIST parameters) { return library->name arguments; }

ORT_FUNCTIONS(ORT_CALL)

#undef ORT_CALL
#undef ORT_LIST

// Reports whether a declared tensor states its rank. Libraries before ORT_API_SHAPE
// cannot tell a scalar from a tensor of unknown rank: then no dims mean unknown.
static inline bool ort_has_shape(const ort_library *library, const OrtTensorInfo *info, size_t rank) {
  return library->TensorTypeAndShape_HasShape ? library->TensorTypeAndShape_HasShape(info) : rank > 0;
}

// Maps the library at path and reads its version. Returns NULL, or a message that
// the caller frees; then nothing stays mapped.
char *ort_open(ort_library *library, const char *path);

// Fills the table. Returns false when the library does not have the wanted version
// of it. The minor number of the library's version says which versions it has:
// asking for one that it has not would make it print to standard error.
bool ort_bind(ort_library *library, unsigned minor);

// Unmaps a library of which nothing but the version has been used.
void ort_close(ort_library *library);

#endif
