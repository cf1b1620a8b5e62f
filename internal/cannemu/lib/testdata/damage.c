// Damaged .om files: bytes of good ones are changed, cut and repeated at random, and everything is asked about
// what can still be read. Nothing may happen but error codes; run it with a sanitizer.
// Run as: damage SECONDS SEED FILE...

#include "client.h"

aclError aclmdlGetDescFromMem(aclmdlDesc *desc, const void *bytes, size_t size);
aclError aclmdlQuerySizeFromMem(const void *bytes, size_t size, size_t *work, size_t *weight);

static uint64_t state;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static size_t damage(unsigned char *bytes, size_t size) {
  static const uint64_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, UINT64_MAX};
  size_t limit = next() % 2 ? size : size < 600 ? size : 600;  // the head more often than the rest
  for (uint64_t n = next() % 8 + 1; n > 0; n--) {
    size_t at = next() % limit;
    uint64_t value = nasty[next() % (sizeof nasty / sizeof *nasty)];
    size_t width = (size_t)1 << next() % 4;
    if (next() % 2) bytes[at] = (unsigned char)next();
    else memcpy(bytes + at, &value, width < size - at ? width : size - at);
  }
  if (next() % 8 == 0) size -= next() % size;
  // With a length that fits, more of the damage is reached.
  uint64_t length = size - 256;
  if (size > 256 && next() % 4) memcpy(bytes + 184, &length, 8);
  return size;
}

static void ask(const unsigned char *bytes, size_t size) {
  static aclmdlIODims dims[ACL_MAX_SHAPE_COUNT];
  aclmdlBatch batch;
  aclmdlHW image;
  size_t work, weight, number, index;
  aclmdlDesc *desc = aclmdlCreateDesc();
  aclmdlQuerySizeFromMem(bytes, size, &work, &weight);
  if (aclmdlGetDescFromMem(desc, bytes, size) == 0) {
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
      aclmdlGetInputSizeByIndex(desc, i);
      aclmdlGetInputDims(desc, i, dims);
      aclmdlGetInputIndexByName(desc, aclmdlGetInputNameByIndex(desc, i), &index);
    }
    for (size_t i = 0; i < aclmdlGetNumOutputs(desc); i++) {
      aclmdlGetOutputSizeByIndex(desc, i);
      aclmdlGetCurOutputDims(desc, i, dims);
    }
    aclmdlGetDynamicBatch(desc, &batch);
    aclmdlGetDynamicHW(desc, SIZE_MAX, &image);
    if (aclmdlGetInputDynamicGearCount(desc, SIZE_MAX, &number) == 0) aclmdlGetInputDynamicDims(desc, SIZE_MAX, dims, number);
  }
  aclmdlDestroyDesc(desc);
}

int main(int count, char **arguments) {
  if (count < 4) return 2;
  double deadline = seconds() + atof(arguments[1]);
  unsigned long tried = 0;
  state = strtoull(arguments[2], NULL, 10) | 1;
  while (seconds() < deadline) {
    FILE *file = fopen(arguments[3 + next() % (uint64_t)(count - 3)], "rb");
    CHECK(file != NULL);
    static unsigned char good[1 << 20];
    size_t size = fread(good, 1, sizeof good, file);
    fclose(file);
    for (int i = 0; i < 200; i++) {
      // A block of its own, so that reading past its end shows.
      unsigned char *bytes = malloc(size);
      memcpy(bytes, good, size);
      ask(bytes, damage(bytes, size));
      free(bytes);
      tried++;
    }
  }
  printf("%lu files\n", tried);
  return 0;
}
