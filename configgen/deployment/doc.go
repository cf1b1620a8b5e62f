// Package deployment writes what a cluster wants to be told about a model repository: the
// service of Alibaba Cloud's PAI-EAS as JSON, an InferenceService of KServe with its
// ServingRuntime, or a plain Deployment and Service of Kubernetes.
//
// [Read] looks at a repository: which models it holds, whether NPUs run them, whether
// the Python backend needs shared memory, how many NPUs their configs name. A [Service]
// adds what only people know: the image of the server, where the repository lies for the
// cluster, the protocol. [Service.EAS], [Service.KServe] and [Service.Kubernetes] give
// the text; nothing is sent anywhere.
//
// One service has one server with all models of the repository, and speaks one protocol
// to the outside where the platform forwards one port: HTTP on 8000 or gRPC on 8001.
//
// # NPUs in a cluster
//
// Pods ask for NPUs by a resource's name, which the device plugin of the cluster
// chooses. That of Huawei's MindCluster has one name for each generation ([Resource]);
// others, as HAMi's, have one for each chip, which has to be given. A container sees the
// NPUs that it got counted from 0, whatever their numbers are on the node: configs that
// name others are told.
package deployment
