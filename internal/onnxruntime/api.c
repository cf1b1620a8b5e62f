//go:build cgo && (linux || darwin)

#include "api.h"

#include <dlfcn.h>
#include <string.h>

// What OrtGetApiBase leads to: struct OrtApiBase of ONNX Runtime.
typedef struct {
  const void *const *(*GetApi)(uint32_t version);  // NULL when the library has not that version
  const char *(*GetVersionString)(void);
} ort_api_base;

char *ort_open(ort_library *library, const char *path) {
  // RTLD_LOCAL keeps the symbols of several libraries of one process apart.
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == NULL) {
    const char *why = dlerror();
    return strdup(why ? why : "dlopen failed and does not say why");
  }
  const ort_api_base *(*get_base)(void);
  *(void **)&get_base = dlsym(library->handle, "OrtGetApiBase");
  library->base = get_base ? get_base() : NULL;
  if (library->base == NULL) {
    dlclose(library->handle);
    return strdup("it is a shared library, but not ONNX Runtime: it has no function OrtGetApiBase");
  }
  library->version = ((const ort_api_base *)library->base)->GetVersionString();
  return NULL;
}

bool ort_bind(ort_library *library, unsigned minor) {
  const ort_api_base *base = library->base;
  const void *const *table = base->GetApi(ORT_API_WANTED);
  if (table == NULL) return false;
#define ORT_BIND(slot, result, name, parameters, arguments) *(const void **)&library->name = table[slot];
  ORT_FUNCTIONS(ORT_BIND)
#undef ORT_BIND
  table = minor >= ORT_API_SHAPE ? base->GetApi(ORT_API_SHAPE) : NULL;
  if (table != NULL) *(const void **)&library->TensorTypeAndShape_HasShape = table[ORT_SLOT_HAS_SHAPE];
  return true;
}

void ort_close(ort_library *library) { dlclose(library->handle); }
