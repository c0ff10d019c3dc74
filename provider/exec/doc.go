// Package exec lets users bring a provider of their own: a program that Leasehold runs once per
// call, with one JSON request on its standard input and one JSON answer on its standard output.
// docs/providers/exec.md is the protocol for people who write such a program; schema.json is the
// same for programs.
//
//	config.go    what an operator sets, in the replica's own configuration (SEC-7)
//	protocol.go  requests and answers
//	call.go      running the program, with bounds on time, output and number
//	provider.go  the methods of provider.Provider in terms of calls
//
// # Invariants
//
//   - A program harms its own provider only (PROV-2): what it writes is bounded, it runs in a process
//     group of its own that is killed when the call ends, and calls wait for each other, not for it.
//   - Only an answer that makes sense counts. Everything else (an exit, a signal, text that is no
//     answer, an answer about another instance) is a temporary failure, after which nothing is known.
//   - A List is complete, or an error.
//   - Secrets reach the program by its standard input alone. It inherits neither the coordinator's
//     environment nor its open files.
package exec
