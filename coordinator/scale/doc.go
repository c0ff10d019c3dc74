// Package scale decides how many instances a group's load asks for. It has no clock and no I/O:
// what is known of the load comes in as numbers, and since when anything holds is judged by who
// calls it.
//
//	wish.go   what load asks for, by target
//	step.go   how far the size goes towards it now
//
// # How it counts
//
// An instance is warm, missing or on the way. Warm ones have been healthy for scale.warmup and have
// a fresh number. The load of a group is the sum of what the warm ones tell, and what it asks for
// is that sum over the target. So the wish does not depend on the size: instances that are on the
// way have no part in the sum, and a burst does not make more because they are not there yet.
//
// What is not known is taken for the less convenient: for growth missing instances have no load,
// for shrinking those that are missing and those on the way carry the target each, and the load of
// those that drain counts. Of those that have just left it counts, too, as long as the others tell
// means of a time in which they bore less; it holds a shrink up, and is no part of the wish.
//
// # What it does not do
//
// It does not know why a size must not shrink now: see coordinator/plan.
package scale
