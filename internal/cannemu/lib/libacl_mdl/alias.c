// libacl_mdl.so is where newer releases of CANN have models and their descriptions.

#include "alias.h"
