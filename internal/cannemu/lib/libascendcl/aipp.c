// AIPP, the image preparation in front of a model. Descriptions can be made and filled; models with dynamic
// AIPP are not emulated, and static AIPP is part of the model.

#include <stdlib.h>

#include "internal.h"

struct aclmdlAIPP {
  uint64_t batch;
};

enum { AIPP_HEAD_BYTES = 64, AIPP_IMAGE_BYTES = 96 };  // what a description takes on a device

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
  *size = AIPP_HEAD_BYTES + batch * AIPP_IMAGE_BYTES;
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

static int check_input(uint32_t id, size_t input) {
  pthread_mutex_lock(&emulator_lock);
  struct model *model = model_find_locked(id);
  bool there = model != NULL && input < model->om->input_count;
  pthread_mutex_unlock(&emulator_lock);
  if (model == NULL) return FAIL(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "there is no model %u", id);
  return there ? 0 : FAIL(ACL_ERROR_INVALID_PARAM, "model %u has no input %zu", id, input);
}

static aclError set_input(uint32_t id, const aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  CHECK_ARGUMENT(dataset != NULL);
  CHECK_ARGUMENT(aipp != NULL);
  int code = check_input(id, input);
  return code != 0 ? code : FAIL(ACL_ERROR_GE_AIPP_NOT_EXIST, "input %zu has no dynamic AIPP", input);
}

ACL_API aclError aclmdlSetInputAIPP(uint32_t id, aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  API_ENTRY();
  return set_input(id, dataset, input, aipp);
}

ACL_API aclError aclmdlSetAIPPByInputIndex(uint32_t id, aclmdlDataset *dataset, size_t input, const aclmdlAIPP *aipp) {
  API_ENTRY();
  return set_input(id, dataset, input, aipp);
}

ACL_API aclError aclmdlGetAippType(uint32_t id, size_t input, aclmdlInputAippType *type, size_t *attached) {
  API_ENTRY();
  CHECK_ARGUMENT(type != NULL);
  CHECK_ARGUMENT(attached != NULL);
  int code = check_input(id, input);
  if (code != 0) return code;
  *type = 0;
  *attached = SIZE_MAX;
  return 0;
}

ACL_API aclError aclmdlGetFirstAippInfo(uint32_t id, size_t input, aclAippInfo *info) {
  API_ENTRY();
  CHECK_ARGUMENT(info != NULL);
  int code = check_input(id, input);
  return code != 0 ? code : FAIL(ACL_ERROR_NOT_STATIC_AIPP, "the emulator does not keep the settings of static AIPP");
}
