// Package cannemu builds npuctl's emulator of CANN: a folder that looks like an
// installed toolkit to ATC's callers and to programs that link AscendCL, on a machine
// without either.
//
//	DIR/bin/atc                 a script that runs `npuctl emulator atc`
//	DIR/lib64/libascendcl.so …  compiled from the C sources embedded here (lib)
//	DIR/set_env.sh              what a shell has to source
//	DIR/opp/                    where an operator package would be
//	DIR/npuctl-emulator.json    the marker: what this folder is
//
// Every library is a folder of lib: its sources are compiled together and linked into
// one file of the folder's name. The table [libraries] says what each needs besides.
//
// Parts of the emulator are packages below this one: atcemu is its atc, omwriter
// writes the .om files, interpreter computes models for the library where there is no
// ONNX Runtime.
//
// Nothing here pretends to be hardware: whoever finds the marker says "emulated".
package cannemu
