// The binary interface of AscendCL, as far as the emulator offers it: types, numbers and layouts, written
// from the interface's description, not from a vendor header. The asserts at the end hold every size and
// offset that a client compiled against the real headers relies on (64-bit systems).

#ifndef NPUCTL_ACL_ABI_H
#define NPUCTL_ACL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Marks a function that clients call. Everything else is built with -fvisibility=hidden.
#define ACL_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define ACL_ASSERT static_assert
extern "C" {
#else
#define ACL_ASSERT _Static_assert
#endif

typedef int aclError;

// Handles.
typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;

// Objects that clients only hold pointers to.
typedef struct aclDataBuffer aclDataBuffer;
typedef struct aclTensorDesc aclTensorDesc;
typedef struct aclmdlDataset aclmdlDataset;
typedef struct aclmdlDesc aclmdlDesc;
typedef struct aclmdlConfigHandle aclmdlConfigHandle;
typedef struct aclmdlExecConfigHandle aclmdlExecConfigHandle;
typedef struct aclmdlAIPP aclmdlAIPP;
typedef struct aclopAttr aclopAttr;
typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;
typedef struct aclrtExceptionInfo aclrtExceptionInfo;

// Enumerations travel as 32-bit integers.
typedef int aclDataType;
typedef int aclFormat;
typedef int aclMemType;
typedef int aclDeviceInfo;
typedef int aclrtMemcpyKind;
typedef int aclrtMemMallocPolicy;
typedef int aclrtMemAttr;
typedef int aclrtDevAttr;
typedef int aclrtDevResLimitType;
typedef int aclrtRunMode;
typedef int aclrtDeviceStatus;
typedef int aclrtStreamStatus;
typedef int aclrtEventRecordedStatus;
typedef int aclrtEventWaitStatus;
typedef int aclrtCallbackBlockType;
typedef int aclrtHostRegisterType;
typedef int aclrtLastErrLevel;
typedef int aclmdlConfigAttr;
typedef int aclmdlExecConfigAttr;
typedef int aclmdlInputAippType;
typedef int aclAippInputFormat;
typedef int aclopEngineType;
typedef int aclopCompileType;
typedef int aclTransType;
typedef int aclComputeType;
typedef int aclprofAicoreMetrics;
typedef int aclprofConfigType;
typedef int aclCANNPackageName;
typedef int aclSysParamOpt;
typedef uint16_t aclFloat16;

typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *info);

// Fixed sizes.
enum {
  ACL_MAX_DIM_CNT = 128,
  ACL_MAX_TENSOR_NAME_LEN = 128,
  ACL_MAX_BATCH_NUM = 128,
  ACL_MAX_HW_NUM = 128,
  ACL_MAX_SHAPE_COUNT = 128,
};

// The names of the inputs that the compiler adds.
#define ACL_DYNAMIC_TENSOR_NAME "ascend_mbatch_shape_data"
#define ACL_DYNAMIC_AIPP_NAME "ascend_dynamic_aipp_data"

enum {  // aclDataType; 5 is not in use
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
  ACL_FLOAT8_E8M0 = 37,
  ACL_FLOAT6_E3M2 = 38,
  ACL_FLOAT6_E2M3 = 39,
  ACL_FLOAT4_E2M1 = 40,
  ACL_FLOAT4_E1M2 = 41,
};

enum {  // aclFormat
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
};

enum {  // aclrtMemcpyKind
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4,
  ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
};

enum {  // aclrtMemAttr
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
  ACL_DDR_MEM_P2P_HUGE = 6,
  ACL_DDR_MEM_P2P_NORMAL = 7,
  ACL_HBM_MEM_P2P_HUGE = 8,
  ACL_HBM_MEM_P2P_NORMAL = 9,
  ACL_HBM_MEM_HUGE1G = 10,
  ACL_MEM_NORMAL = 12,
  ACL_MEM_HUGE = 13,
};

enum {  // aclrtDevAttr
  ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
  ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
  ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
  ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
  ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,
  ACL_DEV_ATTR_L2_CACHE_SIZE = 302,
};

enum { ACL_TRANS_N = 0, ACL_TRANS_T = 1, ACL_TRANS_NZ = 2, ACL_TRANS_NZ_T = 3 };  // aclTransType
enum { ACL_COMPUTE_HIGH_PRECISION = 0, ACL_COMPUTE_LOW_PRECISION = 1 };           // aclComputeType
enum { ACL_AI_CORE_NUM = 0, ACL_VECTOR_CORE_NUM = 1, ACL_L2_SIZE = 2 };          // aclDeviceInfo
enum { ACL_RES_CUBE_CORE = 0, ACL_RES_VECTOR_CORE = 1, ACL_RES_TYPES = 2 };      // aclrtDevResLimitType
enum { ACL_DEVICE = 0, ACL_HOST = 1 };                                           // aclrtRunMode
enum { ACL_DEVICE_NORMAL = 0, ACL_DEVICE_ABNORMAL = 1 };                         // aclrtDeviceStatus
enum { ACL_STREAM_COMPLETE = 0, ACL_STREAM_NOT_READY = 1 };                      // aclrtStreamStatus
enum { ACL_EVENT_NOT_READY = 0, ACL_EVENT_COMPLETE = 1 };                        // aclrtEventRecordedStatus
enum { ACL_CALLBACK_NO_BLOCK = 0, ACL_CALLBACK_BLOCK = 1 };                      // aclrtCallbackBlockType
enum { ACL_MEMTYPE_DEVICE = 0, ACL_MEMTYPE_HOST = 1, ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT = 2 };  // aclMemType

enum {  // event flags
  ACL_EVENT_SYNC = 1,
  ACL_EVENT_CAPTURE_STREAM_PROGRESS = 2,
  ACL_EVENT_TIME_LINE = 8,
  ACL_EVENT_DEVICE_USE_ONLY = 0x10,
  ACL_EVENT_EXTERNAL = 0x20,
  ACL_EVENT_IPC = 0x40,
};

enum {  // aclmdlConfigAttr, by ordinal
  ACL_MDL_PRIORITY = 0,
  ACL_MDL_LOAD_TYPE = 1,
  ACL_MDL_PATH = 2,
  ACL_MDL_MEM_ADDR = 3,
  ACL_MDL_MEM_SIZE = 4,
  ACL_MDL_WEIGHT_ADDR = 5,
  ACL_MDL_WEIGHT_SIZE = 6,
  ACL_MDL_WORKSPACE_ADDR = 7,
  ACL_MDL_WORKSPACE_SIZE = 8,
  ACL_MDL_INPUTQ_NUM = 9,
  ACL_MDL_OUTPUTQ_ADDR = 12,
  ACL_MDL_WORKSPACE_MEM_OPTIMIZE = 13,
  ACL_MDL_WEIGHT_PATH = 14,
  ACL_MDL_ATTR_LAST = 29,
};

enum {  // load types of ACL_MDL_LOAD_TYPE
  ACL_MDL_LOAD_FROM_FILE = 1,
  ACL_MDL_LOAD_FROM_FILE_WITH_MEM = 2,
  ACL_MDL_LOAD_FROM_MEM = 3,
  ACL_MDL_LOAD_FROM_MEM_WITH_MEM = 4,
};

enum {  // aclmdlExecConfigAttr
  ACL_MDL_STREAM_SYNC_TIMEOUT = 0,
  ACL_MDL_EVENT_SYNC_TIMEOUT = 1,
  ACL_MDL_WORK_ADDR = 2,
  ACL_MDL_WORK_SIZE = 3,
  ACL_MDL_EXEC_PRIORITY = 8,
};

enum {  // aclError
  ACL_SUCCESS = 0,
  ACL_ERROR_INVALID_PARAM = 100000,
  ACL_ERROR_UNINITIALIZE = 100001,
  ACL_ERROR_REPEAT_INITIALIZE = 100002,
  ACL_ERROR_INVALID_FILE = 100003,
  ACL_ERROR_PARSE_FILE = 100006,
  ACL_ERROR_MODEL_INPUT_NOT_MATCH = 100017,
  ACL_ERROR_MODEL_OUTPUT_NOT_MATCH = 100018,
  ACL_ERROR_MODEL_NOT_DYNAMIC = 100019,
  ACL_ERROR_OP_NOT_FOUND = 100024,
  ACL_ERROR_UNSUPPORTED_DATA_TYPE = 100026,
  ACL_ERROR_REPEAT_SUBSCRIBE = 100033,
  ACL_ERROR_REPEAT_FINALIZE = 100037,
  ACL_ERROR_NOT_STATIC_AIPP = 100038,
  ACL_ERROR_PROF_ALREADY_RUN = 100042,
  ACL_ERROR_PROF_NOT_RUN = 100043,
  ACL_ERROR_GE_PARAM_INVALID = 145000,
  ACL_ERROR_GE_EXEC_NOT_INIT = 145001,
  ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID = 145002,
  ACL_ERROR_GE_EXEC_MODEL_ID_INVALID = 145003,
  ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID = 145006,
  ACL_ERROR_GE_DYNAMIC_INPUT_ADDR_INVALID = 145011,
  ACL_ERROR_GE_DYNAMIC_INPUT_LENGTH_INVALID = 145012,
  ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID = 145013,
  ACL_ERROR_GE_AIPP_NOT_EXIST = 145015,
  ACL_ERROR_GE_SHAPE_INVALID = 145021,
  ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED = 148051,
  ACL_ERROR_BAD_ALLOC = 200000,
  ACL_ERROR_FEATURE_UNSUPPORTED = 200006,
  ACL_ERROR_FAILURE = 500001,
  ACL_ERROR_GE_FAILURE = 500002,
  ACL_ERROR_GE_LOAD_MODEL = 545001,
  ACL_ERROR_GE_EXEC_TIMEOUT = 545601,
  ACL_ERROR_RT_PARAM_INVALID = 107000,
  ACL_ERROR_RT_INVALID_DEVICEID = 107001,
  ACL_ERROR_RT_CONTEXT_NULL = 107002,
  ACL_ERROR_RT_STREAM_CONTEXT = 107003,
  ACL_ERROR_RT_MODEL_CONTEXT = 107004,
  ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006,
  ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL = 107007,
  ACL_ERROR_RT_THREAD_SUBSCRIBE = 107012,
  ACL_ERROR_RT_STREAM_NO_CB_REG = 107015,
  ACL_ERROR_RT_INVALID_HANDLE = 107017,
  ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000,
  ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
  ACL_ERROR_RT_NO_STREAM_RESOURCE = 207008,
  ACL_ERROR_RT_INTERNAL_ERROR = 507000,
  ACL_ERROR_RT_SOC_VERSION = 507008,
  ACL_ERROR_RT_LOST_HEARTBEAT = 507010,
  ACL_ERROR_RT_MODEL_EXECUTE = 507011,
  ACL_ERROR_RT_REPORT_TIMEOUT = 507012,
  ACL_ERROR_RT_SYS_DMA = 507013,
  ACL_ERROR_RT_AICORE_TIMEOUT = 507014,
  ACL_ERROR_RT_AICORE_EXCEPTION = 507015,
  ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
  ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
  ACL_ERROR_RT_HBM_MULTI_BIT_ECC = 507054,
};

typedef struct {
  char name[ACL_MAX_TENSOR_NAME_LEN];
  size_t dimCount;
  int64_t dims[ACL_MAX_DIM_CNT];
} aclmdlIODims;

typedef struct {
  size_t rangeCount;
  int64_t range[ACL_MAX_DIM_CNT][2];
} aclmdlIODimsRange;

typedef struct {
  size_t batchCount;
  uint64_t batch[ACL_MAX_BATCH_NUM];
} aclmdlBatch;

typedef struct {
  size_t hwCount;
  uint64_t hw[ACL_MAX_HW_NUM][2];  // height, width
} aclmdlHW;

typedef struct {
  aclmdlIODims srcDims;
  size_t srcSize;
  aclmdlIODims aippOutdims;
  size_t aippOutSize;
} aclAippDims;

// The emulator never fills one, so only its size is known here.
typedef struct {
  uint64_t words[299216 / 8];
} aclAippInfo;

typedef struct {
  int32_t cubeUtilization;
  int32_t vectorUtilization;
  int32_t aicpuUtilization;
  int32_t memoryUtilization;
  void *utilizationExtend;  // must be NULL
} aclrtUtilizationInfo;

typedef struct {
  uint32_t id;  // of the device
  int32_t type;  // 0 host, 1 device, 2 neither
} aclrtMemLocation;

typedef struct {
  aclrtMemLocation location;
  uint32_t pageSize;
  uint32_t reserved[4];
} aclrtPtrAttributes;

typedef struct {
  aclrtMemLocation dstLoc;
  aclrtMemLocation srcLoc;
  uint8_t reserved[16];
} aclrtMemcpyBatchAttr;

typedef struct {
  char version[128];
  char majorVersion[64];
  char minorVersion[64];
  char releaseVersion[64];
  char patchVersion[64];
  char reserved[128];
} aclCANNPackageVersion;

typedef struct {
  char bytes[16];
} aclrtUuid;

ACL_ASSERT(sizeof(void *) == 8 && sizeof(size_t) == 8, "AscendCL is a 64-bit interface");
ACL_ASSERT(sizeof(aclError) == 4 && sizeof(aclDataType) == 4 && sizeof(aclrtMemcpyKind) == 4, "enumerations are 32 bits");
ACL_ASSERT(offsetof(aclmdlIODims, dimCount) == 128 && offsetof(aclmdlIODims, dims) == 136 && sizeof(aclmdlIODims) == 1160, "aclmdlIODims");
ACL_ASSERT(offsetof(aclmdlIODimsRange, range) == 8 && sizeof(aclmdlIODimsRange) == 2056, "aclmdlIODimsRange");
ACL_ASSERT(offsetof(aclmdlBatch, batch) == 8 && sizeof(aclmdlBatch) == 1032, "aclmdlBatch");
ACL_ASSERT(offsetof(aclmdlHW, hw) == 8 && sizeof(aclmdlHW) == 2056, "aclmdlHW");
ACL_ASSERT(offsetof(aclAippDims, srcSize) == 1160 && offsetof(aclAippDims, aippOutdims) == 1168 &&
               offsetof(aclAippDims, aippOutSize) == 2328 && sizeof(aclAippDims) == 2336, "aclAippDims");
ACL_ASSERT(sizeof(aclAippInfo) == 299216, "aclAippInfo");
ACL_ASSERT(offsetof(aclrtUtilizationInfo, utilizationExtend) == 16 && sizeof(aclrtUtilizationInfo) == 24, "aclrtUtilizationInfo");
ACL_ASSERT(sizeof(aclrtPtrAttributes) == 28, "aclrtPtrAttributes");
ACL_ASSERT(sizeof(aclCANNPackageVersion) == 512, "aclCANNPackageVersion");
ACL_ASSERT(sizeof(aclrtUuid) == 16, "aclrtUuid");

#ifdef __cplusplus
}
#endif

#endif
