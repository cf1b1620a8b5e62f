// Package tritonserver runs a real Triton server for a short while, to hear what it
// says to a model repository.
//
// [Find] looks for a server that the machine has: the program on the PATH or where
// NVIDIA's images have it, the PyPI package nvidia-pytriton, which carries the server
// and its Python backend, or a container image for docker or podman. [Named] takes one
// that the user names.
//
// [Installation.Start] runs it on free ports of the loopback address, with a folder of
// its own for logs and sockets, in a group of processes of its own and with a limit of
// memory: a hostile configuration kills the server and not the machine. Models are
// loaded under explicit control, one at a time, so that it is known which of them ends
// the server. [Server.Stop] ends it and takes away everything it made: its folder, its
// processes, the shared memory of the Python backend.
//
// [LoadEach] is the whole job: start, load every model, begin again after one that
// killed the server or did not come back, stop. Each [Outcome] has the server's own
// words.
//
// # Stand-ins
//
// A backend that the server does not have, such as npu_ge on a machine without Ascend
// chips, can be replaced by a stand-in: a small backend in C (standin/backend.c) that
// takes any model and answers zeros, compiled by the machine's compiler for the run.
// The server then judges everything it judges itself. What the real backend would say
// of a model file stays open, and [Server.StandIns] says which backends that holds for.
package tritonserver
