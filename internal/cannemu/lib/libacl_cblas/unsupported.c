// Matrix products of AscendCL, by name only.

#include "emulator.h"

UNSUPPORTED_CODE(aclblasGemmEx)
