// Package secrets looks for secrets where none may be (SEC-6): in all that is printed, logged and
// stored while real programs run a group whose workload says its secrets aloud.
//
//	search_test.go   finds a value in bytes, plain and disguised
//	secrets_test.go  the run, and what is searched
//
// # Invariants
//
//   - Agents and commands are the real programs, with their own logs at debug; etcd is a real one,
//     and its files are searched, history included.
//   - The search is proved able to find each form of a value before anything is concluded from its
//     silence.
//
// The one file that may have a value is the workload's own output on its own machine.
package secrets
