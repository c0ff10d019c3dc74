// Package cloud is the provider of a bench: a fake cloud, for whose machines the bench simulates
// agents.
//
// It is served at a socket that each replica's [Provider] calls, so that all replicas see the
// same machines and the bench hears what is created and removed.
package cloud
