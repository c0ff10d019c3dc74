// Package keyfile holds the keys for secrets where programs find them: a file that no other user
// may read, or the environment (SEC-6).
//
// # Invariants
//
//   - A file that others may read is refused, with the command that helps.
//   - It is replaced as a whole, on disk before its name changes: a crash leaves the keys of before
//     or of after.
//   - A file that cannot be used any more leaves the keys in force that were read last.
//
// # What it does not do
//
// It encrypts nothing: see coordinator/encryption. No error has anything of a key.
package keyfile
