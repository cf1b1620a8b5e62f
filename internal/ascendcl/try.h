// How the C files of this package call AscendCL. Each function that uses these has the variables `library` and
// `failure`, and returns a bool.
#ifndef NPUCTL_ASCENDCL_TRY_H
#define NPUCTL_ASCENDCL_TRY_H

#include "api.h"

enum {
  SUCCESS = 0,
  OUT_OF_MEMORY = 200000,  // ACL_ERROR_BAD_ALLOC
};

// acl_note keeps what went wrong, and returns false.
bool acl_note(const acl_library *library, acl_failure *failure, int code, const char *call);

// TRY calls a function, and leaves the one around it when it fails.
#define TRY(function, ...)                                                       \
  do {                                                                           \
    int code = library->function(__VA_ARGS__);                                   \
    if (code != SUCCESS) return acl_note(library, failure, code, #function);     \
  } while (0)

// MAKE calls a function that gives an object or NULL.
#define MAKE(place, function, ...)                                                                \
  do {                                                                                            \
    (place) = library->function(__VA_ARGS__);                                                     \
    if ((place) == NULL) return acl_note(library, failure, OUT_OF_MEMORY, #function);             \
  } while (0)

#endif
