// Dumps of tensors, by name only.

#include "emulator.h"

UNSUPPORTED_CODE(acldumpGetExceptionInfoPath)
UNSUPPORTED_POINTER(acldumpGetPath)
UNSUPPORTED_CODE(acldumpRegCallback)
UNSUPPORTED_CODE(acldumpSaveExceptionInfo)
UNSUPPORTED_VOID(acldumpUnregCallback)
UNSUPPORTED_CODE(aclopStartDumpArgs)
UNSUPPORTED_CODE(aclopStopDumpArgs)
