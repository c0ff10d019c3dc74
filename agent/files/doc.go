// Package files keeps the files on a machine as they are wanted (FILE-1, FILE-3).
//
//	keeping.go  what is wanted, and how each file is
//	delivery.go one file: fetched, written, tried again, what follows its change
//	disk.go     one file on disk: what it is, and how it is replaced
//	state.go    what a later run of the agent has to know
//
// # Invariants
//
//   - A file has its old content or the new one, each with its own mode and owner, whatever happens
//     at whatever moment.
//   - Nothing outside of the roots is read or written, symbolic links included.
//   - What follows a change (a signal, a command) follows it at least once: it is noted before the
//     file is replaced.
//   - A file that is not wanted any more stays as it is.
//   - Contents are in no log, and what is known of a secret one is in no file but its own.
package files
