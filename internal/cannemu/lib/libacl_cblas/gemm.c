// Matrix products of AscendCL: the operator GEMM, with what the operator takes as objects given as plain arguments.

#include "emulator.h"

ACL_API aclopAttr *aclopCreateAttr(void);
ACL_API void aclopDestroyAttr(const aclopAttr *attributes);
ACL_API aclError aclopSetAttrBool(aclopAttr *attributes, const char *name, uint8_t value);
ACL_API aclTensorDesc *aclCreateTensorDesc(aclDataType type, int rank, const int64_t *dims, aclFormat format);
ACL_API void aclDestroyTensorDesc(const aclTensorDesc *desc);
ACL_API size_t aclGetTensorDescSize(const aclTensorDesc *desc);
ACL_API aclDataBuffer *aclCreateDataBuffer(void *address, size_t size);
ACL_API aclError aclDestroyDataBuffer(const aclDataBuffer *buffer);

enum { A, B, C, ALPHA, BETA, OPERANDS };

// One operand: a matrix of rows and columns, or a number when there are none.
struct operand {
  const void *address;
  aclDataType type;
  int64_t dims[2];
  int rank;
};

// The rows and columns of a matrix as it lies in memory.
static struct operand matrix(const void *address, aclDataType type, int rows, int columns, aclTransType transposed) {
  struct operand operand = {address, type, {rows, columns}, 2};
  if (transposed == ACL_TRANS_T) operand = (struct operand){address, type, {columns, rows}, 2};
  return operand;
}

static int launch(const struct operand *operands, aclTransType transposed_a, aclTransType transposed_b, aclrtStream stream) {
  const aclTensorDesc *descs[OPERANDS] = {NULL};
  aclDataBuffer *buffers[OPERANDS] = {NULL};
  aclopAttr *attributes = aclopCreateAttr();
  bool made = attributes != NULL;
  for (int i = 0; i < OPERANDS && made; i++) {
    descs[i] = aclCreateTensorDesc(operands[i].type, operands[i].rank, operands[i].dims, ACL_FORMAT_ND);
    buffers[i] = descs[i] ? aclCreateDataBuffer((void *)(uintptr_t)operands[i].address, aclGetTensorDescSize(descs[i])) : NULL;
    made = buffers[i] != NULL;
  }
  int code = made ? 0 : FAIL(ACL_ERROR_BAD_ALLOC, "no memory for the operands");
  if (code == 0) code = aclopSetAttrBool(attributes, "transpose_a", transposed_a == ACL_TRANS_T);
  if (code == 0) code = aclopSetAttrBool(attributes, "transpose_b", transposed_b == ACL_TRANS_T);
  npuctl_emulator_enter("aclblasGemmEx");  // the calls above are nobody's but ours
  if (code == 0) {
    code = npuctl_emulator_execute_operator("GEMM", OPERANDS, descs, (const aclDataBuffer *const *)buffers, 1, &descs[C], &buffers[C], attributes, stream);
  }
  for (int i = 0; i < OPERANDS; i++) {
    aclDestroyTensorDesc(descs[i]);
    if (buffers[i] != NULL) aclDestroyDataBuffer(buffers[i]);
  }
  aclopDestroyAttr(attributes);
  return code;
}

// C = alpha A B + beta C, in a stream. Matrices lie row by row; a leading dimension other than -1, and a result that
// is transposed, are refused by the real one as well.
ACL_API aclError aclblasGemmEx(aclTransType transposed_a, aclTransType transposed_b, aclTransType transposed_c, int m, int n, int k,
                               const void *alpha, const void *a, int lda, aclDataType type_a, const void *b, int ldb, aclDataType type_b,
                               const void *beta, void *c, int ldc, aclDataType type_c, aclComputeType precision, aclrtStream stream) {
  API_ENTRY();
  CHECK_ARGUMENT(alpha != NULL);
  CHECK_ARGUMENT(beta != NULL);
  CHECK_ARGUMENT(a != NULL && b != NULL && c != NULL);
  CHECK_ARGUMENT(m > 0 && n > 0 && k > 0);
  CHECK_ARGUMENT(transposed_a >= ACL_TRANS_N && transposed_a <= ACL_TRANS_NZ);
  CHECK_ARGUMENT(transposed_b >= ACL_TRANS_N && transposed_b <= ACL_TRANS_NZ);
  CHECK_ARGUMENT(transposed_c == ACL_TRANS_N || transposed_c == ACL_TRANS_NZ);
  CHECK_ARGUMENT(lda == -1 && ldb == -1 && ldc == -1);
  CHECK_ARGUMENT(precision == ACL_COMPUTE_HIGH_PRECISION);
  if (transposed_a == ACL_TRANS_NZ || transposed_b == ACL_TRANS_NZ || transposed_c == ACL_TRANS_NZ) {
    return FAIL(ACL_ERROR_FEATURE_UNSUPPORTED, "matrices in the layout FRACTAL_NZ are not emulated");
  }
  if (type_a != type_c || type_b != type_c) return FAIL(ACL_ERROR_FEATURE_UNSUPPORTED, "the emulator multiplies matrices of one element type");
  const struct operand operands[OPERANDS] = {
      [A] = matrix(a, type_a, m, k, transposed_a), [B] = matrix(b, type_b, k, n, transposed_b), [C] = matrix(c, type_c, m, n, ACL_TRANS_N),
      [ALPHA] = {alpha, type_c, {0}, 0},           [BETA] = {beta, type_c, {0}, 0},
  };
  return launch(operands, transposed_a, transposed_b, stream);
}
