// Package exec lets users bring a provider of their own: a program that Leasehold runs once per
// call, with one JSON request on its standard input and one JSON answer on its standard output.
// docs/providers/exec.md is the protocol for people who write such a program; schema.json is the
// same for programs.
//
//	protocol.go  parameters and results
//	provider.go  the methods of provider.Provider in terms of calls
//
// # Invariants
//
//   - Package program keeps a program from harming more than its own provider (PROV-2).
//   - An answer about another instance or shard is a temporary failure, after which nothing is
//     known.
//   - A List is complete, or an error.
package exec
