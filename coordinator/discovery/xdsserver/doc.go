// Package xdsserver serves the instances in service by xDS, to clients such as gRPC and Envoy
// (LB-4).
//
//	server.go     where it listens, which clients it answers, how much anything may cost
//	services.go   the services that clients use
//	resources.go  a group as a listener, a cluster and endpoints
//	names.go      which resources there are
//
// # Invariants
//
//   - Answers come only from a discovery.Directory: streams stay open while etcd is away, and no
//     endpoint is withdrawn.
//   - Until the shard has been read, no stream is served: clients go to another replica, and no
//     group is reported as missing.
//   - A change of a group is encoded once, and sent to the subscribers of that group alone.
//   - A client that reads slowly delays only itself, and gets the newest state when it continues.
package xdsserver
