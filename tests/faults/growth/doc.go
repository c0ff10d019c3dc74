// Package growth says whether a number that was read again and again has grown, or only varies.
//
//	growth.go   a series, what it may vary by, and the verdict
//	table.go    many of them, for people
//
// # Invariants
//
//   - The first third of a series is warm-up and counts for nothing. Of the rest the middle of the
//     first third is compared with the last third's: a reading that stands out says nothing, and
//     what has stopped to grow before the rest begins is flat.
//   - Too few readings are no verdict, and must not be taken for one.
package growth
