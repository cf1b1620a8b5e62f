// The emulated chip: NPUCTL_EMULATOR_SOC names it. Numbers that programs ask for, by prefix of its name.

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// One row serves a family where its chips differ by nothing that is told here. The longest prefix wins; the
// last row is for every other name. "0 vector cores" means that the AI cores do both. What the architecture of the
// 950 is called is not known here.
static const struct chip chips[] = {
    {"Ascend310P", "AIC-M-200", 8, 7, 8, false, 24000000000, 16777216, 1024},
    {"Ascend310P1", "AIC-M-200", 10, 8, 8, false, 24000000000, 16777216, 1024},
    {"Ascend310P3", "AIC-M-200", 8, 7, 7, false, 24000000000, 16777216, 1024},
    {"Ascend310B", "AIC-M-300", 1, 1, 4, false, 34359738368, 4194304, 512},
    {"Ascend910", "AIC-C-100", 32, 0, 4, true, 34359738368, 33554432, 2048},
    {"Ascend910ProB", "AIC-C-100", 30, 0, 4, true, 34359738368, 33554432, 2048},
    {"Ascend910B", "AIC-C-100", 30, 0, 6, true, 34359738368, 33554432, 2048},  // an old 910, unlike those with a digit
    {"Ascend910B1", "AIC-C-220", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B2", "AIC-C-220", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B3", "AIC-C-220", 20, 40, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910B4", "AIC-C-220", 20, 40, 6, true, 34359738368, 100663296, 1984},
    {"Ascend910B4-1", "AIC-C-220", 20, 40, 6, true, 34359738368, 176160768, 1984},
    {"Ascend910_93", "AIC-C-220", 24, 48, 6, true, 68719476736, 201326592, 1984},
    {"Ascend910_9362", "AIC-C-220", 20, 40, 6, true, 68719476736, 176160768, 1984},
    {"Ascend910_9363", "AIC-C-220", 20, 40, 6, true, 34359738368, 176160768, 1984},
    {"Ascend910_9372", "AIC-C-220", 20, 40, 6, true, 68719476736, 201326592, 1984},
    {"Ascend950", "of 950", 32, 64, 6, true, 68719476736, 134217728, 1984},
    {"", "", 8, 8, 4, false, 8589934592, 8388608, 1024},
};

const char *chosen_soc(void) {
  const char *name = getenv("NPUCTL_EMULATOR_SOC");
  return name && *name ? name : NULL;
}

const char *soc_name(void) {
  const char *chosen = chosen_soc();
  return chosen ? chosen : "Ascend910B3";
}

static const struct chip *chip_named(const char *name) {
  const struct chip *best = &chips[COUNT(chips) - 1];
  for (size_t i = 0; i < COUNT(chips); i++) {
    size_t length = strlen(chips[i].name);
    if (strncmp(name, chips[i].name, length) == 0 && length > strlen(best->name)) best = &chips[i];
  }
  return best;
}

const struct chip *emulated_chip(void) { return chip_named(soc_name()); }

bool runs_code_of(const char *soc, const char *compiled_for) {
  const char *arch = chip_named(soc)->arch;
  // Of a chip that the table does not have, only its own name is sure to be right.
  return *arch ? strcmp(arch, chip_named(compiled_for)->arch) == 0 : strcmp(soc, compiled_for) == 0;
}
