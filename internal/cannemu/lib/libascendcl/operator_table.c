// Which operators can be computed one by one, and how they are called in ONNX. Those that programs of the
// vendor's ecosystem launch through ONNX Runtime come first.

#include <string.h>

#include "operator.h"

#define PLAIN(type, onnx) {type, onnx, NULL, 1, {NULL}, 0, {{0}}}

static const struct operator_row rows[] = {
    PLAIN("Add", "Add"),
    PLAIN("Sub", "Sub"),
    PLAIN("Mul", "Mul"),
    PLAIN("Div", "Div"),
    PLAIN("RealDiv", "Div"),
    PLAIN("Abs", "Abs"),
    PLAIN("Neg", "Neg"),
    PLAIN("Floor", "Floor"),
    PLAIN("Ceil", "Ceil"),
    PLAIN("Reciprocal", "Reciprocal"),
    PLAIN("Sqrt", "Sqrt"),
    PLAIN("Log", "Log"),  // base, scale and shift are sent with the values that change nothing
    PLAIN("Exp", "Exp"),
    PLAIN("Erf", "Erf"),
    PLAIN("Round", "Round"),
    PLAIN("Sin", "Sin"),
    PLAIN("Cos", "Cos"),
    PLAIN("Relu", "Relu"),
    PLAIN("Sigmoid", "Sigmoid"),
    PLAIN("Tanh", "Tanh"),
    PLAIN("Identity", "Identity"),
    PLAIN("Maximum", "Max"),
    PLAIN("Minimum", "Min"),
    PLAIN("Pow", "Pow"),
    {"Cast", "Cast", NULL, 1, {NULL}, 0, {{"dst_type", "to", ELEMENT_TYPE}}},
    {"TransposeD", "Transpose", NULL, 1, {NULL}, 0, {{"perm", "perm", SAME}}},
    {"Flatten", "Flatten", NULL, 1, {NULL}, 0, {{"axis", "axis", SAME}}},
    {"SoftmaxV2", "Softmax", NULL, 1, {NULL}, 0, {{"axes", "axis", FIRST_OF_LIST}}},
    {"MatMul", "MatMul", NULL, 1, {NULL}, 0, {{"transpose_x1", NULL, MUST_BE_ZERO}, {"transpose_x2", NULL, MUST_BE_ZERO}}},
    {"MatMulV2", "MatMul", NULL, 1, {NULL}, 0, {{"transpose_x1", NULL, MUST_BE_ZERO}, {"transpose_x2", NULL, MUST_BE_ZERO}}},
    {"BatchMatMul", "MatMul", NULL, 1, {NULL}, 0, {{"adj_x1", NULL, MUST_BE_ZERO}, {"adj_x2", NULL, MUST_BE_ZERO}}},
    {"BatchMatMulV2", "MatMul", NULL, 1, {NULL}, 0, {{"adj_x1", NULL, MUST_BE_ZERO}, {"adj_x2", NULL, MUST_BE_ZERO}}},
    {"GEMM", "Gemm", NULL, 1, {"alpha", "beta"}, 3, {{"transpose_a", "transA", SAME}, {"transpose_b", "transB", SAME}}},
    {"Conv2D", "Conv", NULL, 1, {NULL}, 0,
     {{"strides", "strides", WITHOUT_NC}, {"pads", "pads", SAME}, {"dilations", "dilations", WITHOUT_NC}, {"group", "group", SAME},
      {"groups", "group", SAME}, {"auto_pad", "auto_pad", PADDING}}},
    {"Conv3D", "Conv", NULL, 1, {NULL}, 0,
     {{"strides", "strides", WITHOUT_NC}, {"pads", "pads", SAME}, {"dilations", "dilations", WITHOUT_NC}, {"group", "group", SAME},
      {"groups", "group", SAME}, {"auto_pad", "auto_pad", PADDING}}},
    {"AvgPoolV2", "AveragePool", "GlobalAveragePool", 1, {NULL}, 0,
     {{"ksize", "kernel_shape", WITHOUT_NC}, {"strides", "strides", WITHOUT_NC}, {"pads", "pads", SAME}, {"ceil_mode", "ceil_mode", SAME},
      {"exclusive", "count_include_pad", OPPOSITE}, {"padding_mode", "auto_pad", PADDING}}},
    {"MaxPoolV3", "MaxPool", "GlobalMaxPool", 1, {NULL}, 0,
     {{"ksize", "kernel_shape", WITHOUT_NC}, {"strides", "strides", WITHOUT_NC}, {"pads", "pads", SAME}, {"ceil_mode", "ceil_mode", SAME},
      {"padding_mode", "auto_pad", PADDING}}},
    {"BatchNorm", "BatchNormalization", NULL, 1, {NULL}, 0, {{"epsilon", "epsilon", SAME}, {"is_training", NULL, MUST_BE_ZERO}}},
};

const struct operator_row *operator_find(const char *type) {
  for (size_t i = 0; i < COUNT(rows); i++) {
    if (strcmp(rows[i].type, type) == 0) return &rows[i];
  }
  return NULL;
}

bool npuctl_emulator_knows_operator(const char *type) { return operator_find(type) != NULL; }
