// Package cloud is the provider of a bench: machines that are nothing but entries of a list, which
// the bench keeps and gives agents to.
//
// The list is served at a socket, and each replica's [Provider] asks there, so that all replicas
// see the same machines and the bench sees what is made and removed.
package cloud
