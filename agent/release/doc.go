// Package release says which agent programs a machine may install: those that the release's offline
// key has signed (PROV-7).
//
//	statement.go  what is signed: version, platform, size, hash
//	keys.go       keys, and the signed note that carries a statement
//
// A statement is signed as a note (golang.org/x/mod/sumdb/note, the format of Go's checksum
// database): readable text, then a line for each Ed25519 signature. A note may carry several
// signatures, so that a key can be exchanged.
//
// # Invariants
//
//   - Only a statement that Keys.Open has returned may be acted on. Peek is for programs that pass
//     statements on.
//   - A statement with a line that this version does not know is refused.
package release
