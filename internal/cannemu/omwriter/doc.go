// Package omwriter writes synthetic .om files: Ascend's real container, filled with
// what the emulator needs and with stand-ins where a device would find its code.
//
// # The container
//
// A [File] is a header of 256 bytes and one or more models; a [Model] is a table of
// partitions and their bytes. Each partition has a type of Go's own here that turns
// itself into bytes: [Signature] (MODEL_INOUT_INFO), [ModelDef] (MODEL_DEF), [Tasks]
// (TASK_INFO), [Kernels] (TBE_KERNELS, CUST_AICPU_KERNELS), [SharedObjects] (SO_BINS),
// and [Emulation], the one partition that CANN does not know. [NewModel] puts them in
// the order in which GE writes them.
//
// Three generations of the container can be written, for the tests of readers:
// see [Generation].
//
// The same description gives the same bytes, on every machine: nothing of the time,
// the process or a map's order gets in.
//
// # What it is not
//
// No device can execute such a file. TASK_INFO holds no task that hardware knows,
// and the kernels are ELF stubs. The layouts are those of GE's open sources
// (inc/framework/common/framework_types_internal.h, base/common/helper, ge_ir.proto).
package omwriter
