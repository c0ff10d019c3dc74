// Package cli is the grammar of the leasehold command and what each command does.
//
// grammar.go has the whole tree of commands. Each command is a struct with its flags and arguments
// and a method Run, in a file of its own; kong fills the struct, and what a command needs from its
// process is bound in by [Env]. So a test runs the real command, from its arguments to its exit
// code, against a store in memory. To add a command, write its file and add its line to the
// grammar.
//
// # Invariants
//
//   - Standard output holds the result and nothing else. Progress, warnings and questions go to
//     standard error.
//   - An error is a line "error: …" for each problem, and one line "next: …" with the next command.
//   - The exit code classifies the end: see [Code].
//   - A spec is only ever written by compare-and-swap on the revision that was read (REC-14).
//   - Without a terminal no question is asked. Every wait has a limit, except a followed stream.
//
// # What it does not do
//
// It decides nothing about machines and asks no provider: it reads and writes etcd. Orders to the
// leader are keys in requests/ (REC-16).
package cli
