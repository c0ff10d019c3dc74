// Package secrets looks for secrets where none may be (SEC-6): in all that is printed, logged and
// stored while real programs run a group whose workload says its secrets aloud.
//
//	secrets_test.go  the run, and what is searched
//	search_test.go   searches files, by package leaks
//
// # Invariants
//
//   - Agents and commands are the real programs, with their own logs at debug; etcd is a real one,
//     and its files are searched, history included.
//   - Tests of package leaks prove that the search finds each form of a value.
//
// The one file that may have a value is the workload's own output on its own machine.
package secrets
