// Package cli is the grammar of the leasehold command and what each command does.
//
// grammar.go has the whole tree of commands. Each command is a struct with its flags and arguments
// and a method Run, in a file of its own; kong fills the struct, and what a command needs of the
// world is bound in by [Env]. So a test runs the real command, from its arguments to its exit code,
// against a store in memory. To add a command, write its file and add its line to the grammar.
//
// # Invariants
//
//   - Standard output holds what was asked for and nothing else. Progress, warnings and questions go to standard error.
//   - An error is a line "error: …" for each thing that is wrong, and one line "next: …" with the command that helps.
//   - The exit code says what kind of end it was: see [Code].
//   - A spec is only ever written by compare-and-swap on the revision that was read (REC-14).
//   - Nothing is asked without a terminal, and nothing waits without a limit, a followed stream excepted.
//
// # What it does not do
//
// It decides nothing about machines and asks no provider: it reads and writes etcd. Orders to the
// leader are keys in requests/ (REC-16).
package cli
