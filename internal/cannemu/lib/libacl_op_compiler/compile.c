// The operator compiler: a call compiles and executes at once. Compiling takes no time here.

#include <string.h>

#include "emulator.h"

typedef struct aclGraphDumpOption aclGraphDumpOption;
typedef int aclCompileOpt;
typedef int aclOpCompileFlag;

ACL_API aclError aclopCompileAndExecute(const char *type, int inputs, const aclTensorDesc *const input_descs[], const aclDataBuffer *const input_buffers[],
                                        int outputs, const aclTensorDesc *const output_descs[], aclDataBuffer *const output_buffers[],
                                        const aclopAttr *attributes, aclopEngineType engine, aclopCompileType compile, const char *path, aclrtStream stream) {
  API_ENTRY();
  (void)engine, (void)compile, (void)path;
  return npuctl_emulator_execute_operator(type, inputs, input_descs, input_buffers, outputs, output_descs, output_buffers, attributes, stream);
}

ACL_API aclError aclopCompileAndExecuteV2(const char *type, int inputs, aclTensorDesc *input_descs[], aclDataBuffer *input_buffers[], int outputs,
                                          aclTensorDesc *output_descs[], aclDataBuffer *output_buffers[], aclopAttr *attributes, aclopEngineType engine,
                                          aclopCompileType compile, const char *path, aclrtStream stream) {
  API_ENTRY();
  (void)engine, (void)compile, (void)path;
  return npuctl_emulator_execute_operator(type, inputs, (const aclTensorDesc *const *)input_descs, (const aclDataBuffer *const *)input_buffers, outputs,
                                          (const aclTensorDesc *const *)output_descs, output_buffers, attributes, stream);
}

ACL_API aclError aclopCompile(const char *type, int inputs, const aclTensorDesc *const input_descs[], int outputs, const aclTensorDesc *const output_descs[],
                              const aclopAttr *attributes, aclopEngineType engine, aclopCompileType compile, const char *path) {
  API_ENTRY();
  (void)inputs, (void)input_descs, (void)outputs, (void)output_descs, (void)attributes, (void)engine, (void)compile, (void)path;
  CHECK_ARGUMENT(type != NULL);
  return npuctl_emulator_knows_operator(type) ? 0 : FAIL(ACL_ERROR_OP_NOT_FOUND, "the emulator does not compute the operator %s by itself", type);
}

// Options of compiling are taken and have no effect.
ACL_API aclError aclSetCompileopt(aclCompileOpt option, const char *value) {
  API_ENTRY();
  (void)option;
  CHECK_ARGUMENT(value != NULL);
  return 0;
}

ACL_API aclError aclopSetCompileFlag(aclOpCompileFlag flag) {
  API_ENTRY();
  (void)flag;
  return 0;
}

UNSUPPORTED_CODE(aclGetCompileopt)
UNSUPPORTED_NUMBER(aclGetCompileoptSize)
UNSUPPORTED_POINTER(aclCreateGraphDumpOpt)
UNSUPPORTED_CODE(aclDestroyGraphDumpOpt)
UNSUPPORTED_CODE(aclGenGraphAndDumpForOp)
