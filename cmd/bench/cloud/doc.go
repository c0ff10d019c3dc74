// Package cloud is the provider of a bench: its machines are entries of a list, for which the bench
// simulates agents.
//
// The list is served at a socket that each replica's [Provider] calls, so that all replicas see the
// same machines and the bench sees what is created and removed.
package cloud
