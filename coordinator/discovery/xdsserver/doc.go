// Package xdsserver tells the instances in service to clients that speak xDS, such as gRPC and
// Envoy (LB-4).
//
//	server.go     where it listens, which clients it answers, how much anything may cost
//	services.go   the services that clients use
//	resources.go  a group as a listener, a cluster and endpoints
//	names.go      which resources there are
//
// # Invariants
//
//   - Answers come from a discovery.Directory alone: streams stay open while etcd is away, and
//     nothing is taken from them.
//   - Until the shard has been read no stream is served: clients go to another replica, and none is
//     told that a group does not exist.
//   - A change of a group is encoded once, and sent to the subscribers of that group alone.
//   - A client that reads slowly waits alone, and gets the newest state when it reads on.
package xdsserver
