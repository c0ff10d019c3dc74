// Package eventfile reads and writes files of events: what a shard knows of a span of its past, for
// reports and replays elsewhere and later.
//
// A file is JSON, one record in each line. The first line says what the file is, the last one how
// many lines there are and what their SHA-256 is, so that a part of a file is never taken for all.
//
// # Invariants
//
//   - Neither reading nor writing needs more memory than the longest line; what is kept of the
//     entries is the reader's business.
//   - A file that is damaged, cut short or of a newer format is refused with the place.
package eventfile
