// AIPP, the image preparation in front of a model. Static AIPP is part of the model. The settings of dynamic AIPP
// can be made, filled and given to a model that has an input for them; such a model is not computed.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct aclmdlAIPP {
  uint64_t batch;
};

enum { AIPP_HEAD_BYTES = 64, AIPP_IMAGE_BYTES = 96 };  // what a description takes on a device

static size_t settings_bytes(uint64_t batch) { return AIPP_HEAD_BYTES + batch * AIPP_IMAGE_BYTES; }

ACL_API aclmdlAIPP *aclmdlCreateAIPP(uint64_t batch) {
  API_ENTRY();
  if (batch == 0 || batch > UINT32_MAX) {
    FAIL(ACL_ERROR_INVALID_PARAM, "a description is for at least one image");
    return NULL;
  }
  aclmdlAIPP *aipp = malloc(sizeof *aipp);
  if (aipp == NULL) return NULL;
  aipp->batch = batch;
  count(LIVE_AIPP, 1);
  return aipp;
}

ACL_API aclError aclmdlDestroyAIPP(const aclmdlAIPP *aipp) {
  API_ENTRY();
  CHECK_ARGUMENT(aipp != NULL);
  free((void *)(uintptr_t)aipp);
  count(LIVE_AIPP, -1);
  return 0;
}

ACL_API aclError aclmdlGetAippDataSize(uint64_t batch, size_t *size) {
  API_ENTRY();
  CHECK_ARGUMENT(batch > 0 && batch <= UINT32_MAX);
  CHECK_ARGUMENT(size != NULL);
  *size = settings_bytes(batch);
  return 0;
}

// ---- filling a description: checked, and then of no consequence ----

static int check(const aclmdlAIPP *aipp, uint64_t image) {
  CHECK_ARGUMENT(aipp != NULL);
  CHECK_ARGUMENT(image < aipp->batch);
  return 0;
}

#define SETTER(name, image, ...)                       \
  ACL_API aclError name(aclmdlAIPP *aipp, __VA_ARGS__) { \
    API_ENTRY();                                       \
    return check(aipp, image);                         \
  }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
SETTER(aclmdlSetAIPPInputFormat, 0, aclAippInputFormat format)
SETTER(aclmdlSetAIPPSrcImageSize, 0, int32_t width, int32_t height)
SETTER(aclmdlSetAIPPRbuvSwapSwitch, 0, int8_t on)
SETTER(aclmdlSetAIPPAxSwapSwitch, 0, int8_t on)
SETTER(aclmdlSetAIPPCscParams, 0, int8_t on, int16_t m00, int16_t m01, int16_t m02, int16_t m10, int16_t m11, int16_t m12, int16_t m20,
       int16_t m21, int16_t m22, uint8_t out0, uint8_t out1, uint8_t out2, uint8_t in0, uint8_t in1, uint8_t in2)
SETTER(aclmdlSetAIPPCropParams, image, int8_t on, int32_t left, int32_t top, int32_t width, int32_t height, uint64_t image)
SETTER(aclmdlSetAIPPScfParams, image, int8_t on, int32_t from_width, int32_t from_height, int32_t to_width, int32_t to_height, uint64_t image)
SETTER(aclmdlSetAIPPPaddingParams, image, int8_t on, int32_t top, int32_t bottom, int32_t left, int32_t right, uint64_t image)
SETTER(aclmdlSetAIPPDtcPixelMean, image, int16_t c0, int16_t c1, int16_t c2, int16_t c3, uint64_t image)
SETTER(aclmdlSetAIPPDtcPixelMin, image, float c0, float c1, float c2, float c3, uint64_t image)
SETTER(aclmdlSetAIPPPixelVarReci, image, float c0, float c1, float c2, float c3, uint64_t image)
#pragma GCC diagnostic pop

// ---- models ----

// Finds a model by its number, and says which of its inputs takes settings: SIZE_MAX for a model without.
static int find_settings(uint32_t id, size_t input, size_t *settings) {
  pthread_mutex_lock(&emulator_lock);
  struct model *model = model_find_locked(id);
  size_t inputs = model ? model->om->input_count : 0;
  *settings = model ? model->om->aipp_input : SIZE_MAX;
  pthread_mutex_unlock(&emulator_lock);
  if (model == NULL) return FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "there is no model %u", id);
  return input < inputs ? 0 : FAIL(ACL_ERROR_INVALID_PARAM, "model %u has no input %zu", id, input);
}

// Writes the settings into the buffer of their input, at once. No kernel reads them here, so what counts is that the
// memory is there and large enough.
static aclError write_settings(const aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  if (input >= dataset->count) return FAIL(ACL_ERROR_INVALID_PARAM, "the dataset has no buffer %zu for the settings", input);
  const aclDataBuffer *buffer = dataset->entries[input].buffer;
  size_t needed = settings_bytes(aipp->batch);
  if (buffer->address == NULL) return FAIL(ACL_ERROR_GE_DYNAMIC_INPUT_ADDR_INVALID, "the input for the settings has no memory");
  if (buffer->size < needed) {
    return FAIL(ACL_ERROR_GE_DYNAMIC_INPUT_LENGTH_INVALID, "the settings of %llu images take %zu bytes, and the buffer has %zu",
                (unsigned long long)aipp->batch, needed, buffer->size);
  }
  struct span span;
  int code = span_device(buffer->address, needed, "the input for the settings", &span);
  if (code != 0) return code;
  memset(span.bytes, 0, needed);
  span_release(&span);
  return 0;
}

// The input is that of the settings itself, or the image that they are for.
static aclError give_settings(uint32_t id, const aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp, bool by_image) {
  CHECK_ARGUMENT(dataset != NULL);
  CHECK_ARGUMENT(aipp != NULL);
  size_t settings;
  int code = find_settings(id, input, &settings);
  if (code != 0) return code;
  if (settings == SIZE_MAX || (input == settings) == by_image) return FAIL(ACL_ERROR_GE_AIPP_NOT_EXIST, "input %zu has no dynamic AIPP", input);
  return write_settings(dataset, settings, aipp);
}

ACL_API aclError aclmdlSetInputAIPP(uint32_t id, aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  API_ENTRY();
  return give_settings(id, dataset, input, aipp, false);
}

ACL_API aclError aclmdlSetAIPPByInputIndex(uint32_t id, aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  API_ENTRY();
  return give_settings(id, dataset, input, aipp, true);
}

enum { AIPP_NONE = 0, AIPP_SETTINGS = 3 };  // aclmdlInputAippType

// A file does not say which image has dynamic AIPP, so only the input for the settings is told.
ACL_API aclError aclmdlGetAippType(uint32_t id, size_t input, aclmdlInputAippType *type, size_t *attached) {
  API_ENTRY();
  CHECK_ARGUMENT(type != NULL);
  CHECK_ARGUMENT(attached != NULL);
  size_t settings;
  int code = find_settings(id, input, &settings);
  if (code != 0) return code;
  *type = input == settings ? AIPP_SETTINGS : AIPP_NONE;
  *attached = SIZE_MAX;
  return 0;
}

ACL_API aclError aclmdlGetFirstAippInfo(uint32_t id, size_t input, aclAippInfo *info) {
  API_ENTRY();
  CHECK_ARGUMENT(info != NULL);
  size_t settings;
  int code = find_settings(id, input, &settings);
  return code != 0 ? code : FAIL(ACL_ERROR_NOT_STATIC_AIPP, "the emulator does not keep the settings of static AIPP");
}
