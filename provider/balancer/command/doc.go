// Package command lets users bring a load balancer of their own: a program that Leasehold runs once
// per call (package program). docs/balancers/exec.md is the protocol for people who write such a
// program; schema.json is the same for programs.
//
//	protocol.go  parameters and results
//	command.go   the methods of balancer.Balancer in terms of calls
package command
