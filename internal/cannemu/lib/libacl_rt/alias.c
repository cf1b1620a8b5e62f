// libacl_rt.so is where newer releases of CANN have the runtime: devices, contexts, streams, events, memory.

#include "alias.h"
