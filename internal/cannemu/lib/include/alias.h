// For a library that only leads to libascendcl.so: newer releases of CANN spread the same functions over
// several files. The reference keeps linkers from leaving out the dependency as not needed.

#include "emulator.h"

__attribute__((used, visibility("hidden"))) void (*const npuctl_alias)(const char *) = npuctl_emulator_enter;
