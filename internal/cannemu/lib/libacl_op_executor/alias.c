// libacl_op_executor.so is where newer releases of CANN have single operators that were compiled before.

#include "alias.h"
