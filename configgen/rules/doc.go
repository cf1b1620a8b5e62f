// Package rules says what is wrong with a model repository before the Triton server
// does, and what the server would never say.
//
// [Rules] is the one table. Each row has a stable id, a severity, texts in English
// and Simplified Chinese, and a function that looks for the thing in one model. The
// rows stand in the order in which the server itself looks: reading the file, polling
// the repository, resolving ensembles, loading. Behind them come what a server takes
// and then suffers from, what the Ascend GE backend (npu_ge) makes of a config, and
// what a config says against the model file beside it.
//
// [Check] looks at paths: a repository, a model's folder, a config.pbtxt, a file that
// is none of these but reads as one, an .onnx, an .om. What stands on the disk
// is looked at; a config file that stands alone is judged in a repository made up
// around it (imagine.go says which), in which everything is as the config wants it as
// long as nothing speaks against it.
//
// [Result.Verdict] is what the server would say to the whole: refuse when it does
// not load a model, dies or hangs over it.
//
// # What hangs on the machine
//
// A backend that is not installed, a GPU that is not there and a repository agent are
// questions about a machine. They are warnings here and do not refuse, but for GPUs
// with npu_ge: a host of Ascend chips has none.
package rules
