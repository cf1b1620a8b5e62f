// The emulated chip: NPUCTL_EMULATOR_SOC names it. Numbers that programs ask for, by prefix of its name.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// One row serves a family where its chips differ by nothing that is told here. The longest prefix wins; the
// last row is for every other name. "0 vector cores" means that the AI cores do both.
static const struct chip chips[] = {
    {"Ascend310P", 8, 7, 8, false, 24000000000, 16777216, 1024},
    {"Ascend310P1", 10, 8, 8, false, 24000000000, 16777216, 1024},
    {"Ascend310B", 1, 1, 4, false, 34359738368, 4194304, 512},
    {"Ascend310P3", 8, 7, 7, false, 24000000000, 16777216, 1024},
    {"Ascend910", 32, 0, 4, true, 34359738368, 33554432, 2048},
    {"Ascend910ProB", 30, 0, 4, true, 34359738368, 33554432, 2048},
    {"Ascend910B", 30, 0, 6, true, 34359738368, 33554432, 2048},  // an old 910, unlike those with a digit
    {"Ascend910B1", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B2", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B3", 20, 40, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B4", 20, 40, 6, true, 34359738368, 100663296, 1984},
    {"Ascend910B4-1", 20, 40, 6, true, 34359738368, 176160768, 1984},
    {"Ascend910_93", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910_9362", 20, 40, 6, true, 68719476736, 176160768, 1984},
    {"Ascend910_9363", 20, 40, 6, true, 34359738368, 176160768, 1984},
    {"Ascend910_9372", 20, 40, 6, true, 68719476736, 201326592, 1984},
    {"Ascend950", 32, 64, 6, true, 68719476736, 134217728, 1984},
    {"", 8, 8, 4, false, 8589934592, 8388608, 1024},
};

const char *soc_name(void) {
  const char *name = getenv("NPUCTL_EMULATOR_SOC");
  return name && *name ? name : "Ascend910B3";
}

const struct chip *emulated_chip(void) {
  const char *name = soc_name();
  const struct chip *best = &chips[COUNT(chips) - 1];
  for (size_t i = 0; i < COUNT(chips); i++) {
    size_t length = strlen(chips[i].name);
    if (strncmp(name, chips[i].name, length) == 0 && length > strlen(best->name)) best = &chips[i];
  }
  return best;
}
