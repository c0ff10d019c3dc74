// Package socket has several processes share one fake cloud: one process serves it, and each
// replica has a [Provider] that calls it.
//
//	server.go   services at a socket
//	machines.go the service of a provider's machines
//	client.go   a client of services
//	provider.go the provider of a replica
//	wire.go     calls and answers, as this release and the one before encode them
package socket
