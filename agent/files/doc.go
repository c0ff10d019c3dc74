// Package files keeps the files on a machine in their wanted state (FILE-1, FILE-3).
//
//	keeping.go  what is wanted, and how each file is
//	delivery.go one file: fetched, written, tried again, what follows its change
//	disk.go     one file on disk: what it is, and how it is replaced
//	state.go    what a later run of the agent has to know
//
// # Invariants
//
//   - At any moment, and after any crash, a file has its old content or its new content, each with
//     its own mode and owner.
//   - Nothing outside of the roots is read or written, symbolic links included.
//   - The action that follows a change (a signal, a command) runs at least once: it is recorded
//     before the file is replaced.
//   - A file that is no longer wanted stays as it is.
//   - No log has contents. Nothing derived from a secret content is in any file but its own.
package files
