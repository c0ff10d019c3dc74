// Package durable writes files that outlast a crash, of the program or of the machine.
//
// # Invariants
//
//   - A file that is replaced has its old content or the new, whole, at any moment; and the new for
//     good once the call has returned.
//   - Before it has its name, only its writer can read it, whatever its mode will be.
//   - A directory that it makes, or takes for ours, is not everybody's to change.
//   - Writers at the same time do not mix: one of them is the last.
//
// # What it does not do
//
// It does not lock the file that is replaced: Lock is for a directory that one process works in. If
// the program dies in the middle it leaves an unfinished file beside the real one, until
// RemoveUnfinished is called for the directory.
package durable
