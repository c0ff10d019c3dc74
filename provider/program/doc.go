// Package program runs a program of the user's once per call, with one JSON request on its standard
// input and one JSON answer on its standard output. Providers (provider/exec) and load balancers
// (provider/balancer/command) are such programs; each has its own methods.
//
//	config.go   what an operator sets, in the replica's own configuration (SEC-7)
//	program.go  a program that may be called
//	call.go     one call, with bounds on time, output and number
//	answer.go   results and errors
//
// # Invariants
//
//   - A program harms its own caller only (PROV-2): what it writes is bounded, it runs in a process
//     group of its own that is killed when the call ends, and calls wait for each other, not for
//     it.
//   - Only an answer that makes sense counts. Everything else (an exit, a signal, text that is no
//     answer) is a temporary failure, after which nothing is known.
//   - Secrets reach the program by its standard input alone. It inherits neither the coordinator's
//     environment nor its open files.
package program
