// Package tritonconfig reads from a config.pbtxt what the executor decides by: the policy
// of queue and batcher, the inputs, the gears, the instances and their devices.
//
// What the server itself computes from a file is computed here: defaults, instances of
// groups and devices. What belongs to a backend is read as that backend does: npu_ge has
// its devices, gears and static models in parameters and does not look at the devices of
// instance groups.
package tritonconfig
